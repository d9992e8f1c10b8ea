"""Relate: relations between the names of one sentence, and between a page's subject and sentences that omit it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from quipu.ingest.local.candidates import Candidate
from quipu.ingest.local.han_words import Sort, cut_words
from quipu.ingest.local.lexicon import function_words, word_set
from quipu.ingest.local.occurrence import Cue
from quipu.ingest.local.salience import salience
from quipu.ingest.local.sentences import Sentences
from quipu.model.extraction import FoundRelation

MAX_RELATIONS = 24
PER_ENTITY = 1.5
MAX_KEYWORDS = 3
MAX_IMPLIED = 4

_PUNCTUATION = ".,;:!?()[]{}\"'“”‘’«»„—–-*_`"
_HAN_RUN = re.compile(r"[\u3400-\u9fff]{2,}")


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two candidates (by index) related in one sentence; what relates them stands in [start, end) of the text."""

    left: int
    right: int
    sentence: int
    rank: int  # 0: the sentence's first name with another, 1: neighbours, 2: the page's subject, not named there
    start: int
    end: int


def relate(candidates: Sequence[Candidate], sentences: Sentences) -> tuple[FoundRelation, ...]:
    """Return relations between candidates named in one sentence, at most 1.5 for each candidate and 24 in all.

    Chosen so that every candidate keeps one where it has any, then by number of sentences, closeness and salience;
    given in order of first sentence. The weight is the number of sentences.
    """
    by_ends: dict[tuple[int, int], list[_Pair]] = {}
    for pair in _pairs(candidates, sentences):
        by_ends.setdefault((min(pair.left, pair.right), max(pair.left, pair.right)), []).append(pair)
    groups = list(by_ends.values())
    scores = [salience(candidate) for candidate in candidates]
    limit = min(MAX_RELATIONS, int(PER_ENTITY * len(candidates)))
    chosen = _choose(groups, scores, limit)
    return tuple(_relation(groups[i], candidates, sentences) for i in chosen)


def _pairs(candidates: Sequence[Candidate], sentences: Sentences) -> Iterator[_Pair]:
    subject = next((i for i, c in enumerate(candidates) if c.cue is Cue.TITLE), None)
    for number, named in _named_by_sentence(candidates, sentences):
        present = {index for _, _, index in named}
        seen: set[tuple[int, int]] = set()
        first = named[0]
        for rank, pairs in ((0, ((first, other) for other in named[1:])), (1, pairwise(named))):
            for (_, end, left), (start, _, right) in pairs:
                if left != right and (left, right) not in seen:
                    seen.update(((left, right), (right, left)))
                    yield _Pair(left, right, number, rank, end, start)
        if subject is not None and subject not in present:
            for start, _, index in named[:MAX_IMPLIED]:
                begin = sentences.spans[number][0]
                yield _Pair(subject, index, number, 2, begin, start)


def _named_by_sentence(
    candidates: Sequence[Candidate], sentences: Sentences
) -> Iterator[tuple[int, list[tuple[int, int, int]]]]:
    """Yield each sentence that names a candidate, with (start, end, candidate) of the first place of each, in order."""
    by_sentence: dict[int, list[tuple[int, int, int]]] = {}
    for index, candidate in enumerate(candidates):
        seen: set[int] = set()
        for start, end in candidate.places:
            number = sentences.index(start)
            if number not in seen:
                seen.add(number)
                by_sentence.setdefault(number, []).append((start, end, index))
    for number in sorted(by_sentence):
        yield number, sorted(by_sentence[number])


def _choose(groups: Sequence[Sequence[_Pair]], scores: Sequence[float], limit: int) -> list[int]:
    """Return the indices of the groups to keep: first those that give a candidate its first relation, then the rest."""

    def strength(i: int) -> tuple[int, int, float, int]:
        best = min(pair.rank for pair in groups[i])
        total = scores[groups[i][0].left] + scores[groups[i][0].right]
        return (-len(groups[i]), best, -round(total, 6), i)

    ranked = sorted(range(len(groups)), key=strength)
    covered: set[int] = set()
    needed: list[int] = []
    for i in ranked:
        ends = {groups[i][0].left, groups[i][0].right}
        if not ends <= covered:
            needed.append(i)
            covered |= ends
    rest = [i for i in ranked if i not in set(needed)]
    return sorted([*needed, *rest][:limit])


def _relation(group: Sequence[_Pair], candidates: Sequence[Candidate], sentences: Sentences) -> FoundRelation:
    first = min(group, key=lambda pair: (pair.rank, pair.sentence))
    return FoundRelation(
        source=candidates[first.left].name,
        target=candidates[first.right].name,
        keywords=_keywords(sentences, first),
        description=sentences.quote(first.sentence),
        weight=round(float(len(group)), 3),
    )


def _keywords(sentences: Sentences, pair: _Pair) -> tuple[str, ...]:
    """Return up to three content words between the two places, else from behind the second to the sentence's end."""
    found = _content_words(sentences.text, pair.start, pair.end)
    return found or _content_words(sentences.text, pair.end, sentences.spans[pair.sentence][1])


def _content_words(text: str, start: int, end: int) -> tuple[str, ...]:
    segment = text[start : max(start, end)]
    if not segment.isascii() and _HAN_RUN.search(segment):
        return tuple(dict.fromkeys(_han_words(segment)))[:MAX_KEYWORDS]
    found: dict[str, None] = {}
    for piece in segment.split():
        word = piece.strip(_PUNCTUATION)
        if len(word) > 2 and word.islower() and word not in function_words():
            found[word] = None
            if len(found) == MAX_KEYWORDS:
                break
    return tuple(found)


def _han_words(segment: str) -> list[str]:
    return [
        word.text
        for run in _HAN_RUN.finditer(segment)
        for word in cut_words(segment, run.start(), run.end())
        if word.sort in (Sort.HARD, Sort.LINK) and len(word.text) > 1 and word.text not in word_set("zh_function")
    ]
