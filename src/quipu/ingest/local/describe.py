"""Describe: the sentence that says what a name is, or else the first that names it."""

import re
from dataclasses import dataclass

from quipu.ingest.local.candidates import Candidate
from quipu.ingest.local.sentences import Sentences

MAX_DESCRIPTION = 300

_DEFINES = re.compile(
    r"[\"”»'’]?(?:\s?[(（][^()（）]{0,120}[)）])?(?:,[^,.;]{1,60},)?\s*(?:"
    r"(?:is|was|are|were) (?:an?|the|one|any|part|among)\b|(?:refers|refer|referred) to\b|(?:means|denotes)\b"
    r"|(?:—|–|-) (?:это )?|это\b|(?:является|являлся|являлась|был|была|было|были) [а-яё]|是|，?指|即)"
)
_OPENING = re.compile(r"(?:(?:the|an?)\s|[\"“«'#*\s-])*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Description:
    """A sentence about a name; `is_definition` says that it tells what the name is."""

    text: str
    is_definition: bool


def describe(candidate: Candidate, sentences: Sentences) -> Description:
    """Return the first sentence that defines the candidate, else the first that names it, shortened; "" for none."""
    text = sentences.text
    for start, end in candidate.places:
        span = sentences.around(start)
        if _opens(text, span[0], start) and _DEFINES.match(text, end, span[1]):
            return Description(shorten(text[span[0] : span[1]]), True)
    if not candidate.places:
        return Description("", False)
    start, end = sentences.around(candidate.places[0][0])
    return Description(shorten(text[start:end]), False)


def _opens(text: str, sentence_start: int, start: int) -> bool:
    match = _OPENING.match(text, sentence_start, start)
    return match is not None and match.end() == start


def shorten(sentence: str) -> str:
    """Return the sentence on one line, cut at a word to at most MAX_DESCRIPTION characters."""
    line = " ".join(sentence.split())
    if len(line) <= MAX_DESCRIPTION:
        return line
    cut = line[: MAX_DESCRIPTION - 1]
    space = cut.rfind(" ")
    return (cut[:space] if space > MAX_DESCRIPTION // 2 else cut) + "…"
