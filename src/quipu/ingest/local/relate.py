"""Relate: relations between the names of one sentence, and with the subject of sentences that do not name it."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from quipu.ingest.local.candidates import Candidate
from quipu.ingest.local.han_words import Sort, cut_words
from quipu.ingest.local.lexicon import function_words, word_set, words
from quipu.ingest.local.occurrence import Cue
from quipu.ingest.local.salience import salience
from quipu.ingest.local.sentences import Sentences
from quipu.model.extraction import ExtractedAlias, ExtractedRelation

MAX_RELATIONS = 24
PER_ENTITY = 1.5
MAX_KEYWORDS = 3
MAX_IMPLIED = 4
MIN_LETTERS = 3

_HAN_RUN = re.compile(r"[\u3400-\u9fff]{2,}")
_PUNCTUATION = ".,;:!?()[]{}\"'“”‘’«»„—–-*_`"
_PARTICLES = words("van von der den del des das dos las los les bin ibn und фон дер ван")

_Place = tuple[int, int, int]  # start and end in the text, index of the candidate


class _Pair(NamedTuple):
    """Two candidates (by index) related in one sentence; what relates them stands in [start, end) of the text.

    `rank` is 0 for the sentence's first name with another, 1 for neighbours, 2 for a subject that is only implied.
    """

    left: int
    right: int
    sentence: int
    rank: int
    start: int
    end: int


def relate(
    candidates: Sequence[Candidate], aliases: Sequence[ExtractedAlias], sentences: Sentences
) -> tuple[ExtractedRelation, ...]:
    """Return relations between candidates named in one sentence, at most 1.5 for each candidate and 24 in all.

    A candidate that is only another name counts for the one it names. Chosen so that every candidate keeps one where
    it has any, then by number of sentences, closeness and salience; given in order of first sentence. The weight is
    the number of sentences.
    """
    by_ends: dict[tuple[int, int], list[_Pair]] = {}
    for pair in _pairs(candidates, _owners(candidates, aliases), sentences):
        by_ends.setdefault((min(pair.left, pair.right), max(pair.left, pair.right)), []).append(pair)
    groups = list(by_ends.values())
    scores = [salience(candidate) for candidate in candidates]
    limit = min(MAX_RELATIONS, int(PER_ENTITY * len(candidates)))
    return tuple(_relation(groups[i], candidates, sentences) for i in _choose(groups, scores, limit))


def _owners(candidates: Sequence[Candidate], aliases: Sequence[ExtractedAlias]) -> list[int]:
    """Return, for each candidate, the index of the one it is another name of, else its own."""
    index_by_name = {candidate.name: index for index, candidate in enumerate(candidates)}
    owners = list(range(len(candidates)))
    for alias in aliases:
        if alias.alias in index_by_name and alias.name in index_by_name:
            owners[index_by_name[alias.alias]] = owners[index_by_name[alias.name]]
    return owners


def _pairs(candidates: Sequence[Candidate], owners: Sequence[int], sentences: Sentences) -> Iterator[_Pair]:
    subjects = _Subjects(candidates)
    for number, named in _named_by_sentence(candidates, owners, sentences):
        begin = sentences.spans[number][0]
        if sentences.text[begin] == "#":
            continue
        yield from _named_pairs(named, number)
        subject = subjects.before(named[0][0])
        if subject is not None and all(index != subject for _, _, index in named):
            for start, _, index in named[:MAX_IMPLIED]:
                yield _Pair(subject, index, number, 2, begin, start)


def _named_pairs(named: Sequence[_Place], number: int) -> Iterator[_Pair]:
    """Yield the first name of a sentence with each other, then each name with the next."""
    seen: set[tuple[int, int]] = set()
    first = named[0]
    for rank, pairs in ((0, [(first, other) for other in named[1:]]), (1, pairwise(named))):
        for (_, end, left), (start, _, right) in pairs:
            if (left, right) not in seen:
                seen.add((left, right))
                yield _Pair(left, right, number, rank, end, start)


class _Subjects:
    """Who or what a sentence is about when it does not say: the last speaker, else the page's subject."""

    def __init__(self, candidates: Sequence[Candidate]) -> None:
        self._page = min(
            (i for i, c in enumerate(candidates) if c.cue in (Cue.SUBJECT, Cue.TITLE)),
            key=lambda i: candidates[i].cue is Cue.TITLE,
            default=None,
        )
        said = [(start, i) for i, c in enumerate(candidates) if c.cue is Cue.SPEAKER for start, _ in c.places]
        self._speakers = sorted(said)

    def before(self, place: int) -> int | None:
        """Return the index of the subject implied at `place`."""
        position = bisect_right(self._speakers, (place,))
        return self._speakers[position - 1][1] if position else self._page


def _named_by_sentence(
    candidates: Sequence[Candidate], owners: Sequence[int], sentences: Sentences
) -> Iterator[tuple[int, list[_Place]]]:
    """Yield each sentence that names a candidate, with the first place of each candidate in it, in order."""
    by_sentence: dict[int, dict[int, _Place]] = {}
    for index, candidate in zip(owners, candidates, strict=True):
        for start, end in candidate.places:
            by_sentence.setdefault(sentences.index(start), {}).setdefault(index, (start, end, index))
    for number in sorted(by_sentence):
        yield number, sorted(by_sentence[number].values())


def _choose(groups: Sequence[Sequence[_Pair]], scores: Sequence[float], limit: int) -> list[int]:
    """Return the indices of the groups to keep: first those that give a candidate its first relation, then the rest."""

    def order(i: int) -> tuple[int, int, float, int]:
        pair = groups[i][0]
        closest = min(pair.rank for pair in groups[i])
        return (-len(groups[i]), closest, -round(scores[pair.left] + scores[pair.right], 6), i)

    covered: set[int] = set()
    needed: list[int] = []
    rest: list[int] = []
    for i in sorted(range(len(groups)), key=order):
        ends = {groups[i][0].left, groups[i][0].right}
        (rest if ends <= covered else needed).append(i)
        covered |= ends
    return sorted([*needed, *rest][:limit])


def _relation(group: Sequence[_Pair], candidates: Sequence[Candidate], sentences: Sentences) -> ExtractedRelation:
    best = min(group, key=lambda pair: (pair.rank, pair.sentence))
    return ExtractedRelation(
        source=candidates[best.left].name,
        target=candidates[best.right].name,
        keywords=_keywords(best, sentences),
        description=sentences.quote(best.sentence),
        weight=round(float(len({pair.sentence for pair in group})), 3),
    )


def _keywords(pair: _Pair, sentences: Sentences) -> tuple[str, ...]:
    """Return up to three content words between the two places, else from behind the second to the sentence's end."""
    found = _content_words(sentences.text[pair.start : pair.end])
    return found or _content_words(sentences.text[pair.end : sentences.spans[pair.sentence][1]])


def _content_words(segment: str) -> tuple[str, ...]:
    if not segment.isascii() and _HAN_RUN.search(segment):
        return tuple(dict.fromkeys(_han_words(segment)))[:MAX_KEYWORDS]
    found: dict[str, None] = {}
    for piece in segment.split():
        word = piece.strip(_PUNCTUATION)
        if len(word) >= MIN_LETTERS and word.islower() and word not in function_words() and word not in _PARTICLES:
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
