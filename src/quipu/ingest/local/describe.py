"""Describe: the sentence that says what a name is, or else the first that names it."""

import re

from quipu.ingest.local.candidates import Candidate
from quipu.ingest.local.sentences import Sentences

_DEFINES = re.compile(
    r"[\"”»'’]?(?:\s?[(（][^()（）]{0,120}[)）])?(?:,[^,.;]{1,60},)?\s*(?:"
    r"(?:is|was|are|were) (?:an?|the|one|any|part|among)\b|(?:refers|refer|referred) to\b|(?:means|denotes)\b"
    r"|[—–-] |это\b|(?:является|являлся|являлась|был|была|было|были) [а-яё]|是|，?指|即)"
)
_OPENING = re.compile(r"(?:(?:the|an?)\s|[\"“«'#*\s-])*", re.IGNORECASE)


def describe(candidate: Candidate, sentences: Sentences) -> tuple[str, bool]:
    """Return the first sentence that says what the candidate is, else the first that names it ("" where none does).

    The flag tells whether it says what the candidate is.
    """
    if not candidate.places:
        return "", False
    for start, end in candidate.places:
        index = sentences.index(start)
        if _opens(sentences, index, start) and _DEFINES.match(sentences.text, end, sentences.spans[index][1]):
            return sentences.quote(index), True
    return sentences.quote(sentences.index(candidate.places[0][0])), False


def _opens(sentences: Sentences, index: int, place: int) -> bool:
    """Say whether nothing but an article or marks stands between the start of a sentence and `place`."""
    match = _OPENING.match(sentences.text, sentences.spans[index][0], place)
    return match is not None and match.end() == place
