"""Relations: between the names of one sentence, and with the subject of sentences that do not name it."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from quipu.ingest.local.candidates import Candidate, salience
from quipu.ingest.local.lexicon import is_function_word, words
from quipu.ingest.local.occurrences import Cue, SentenceIndex
from quipu.ingest.local.script_rules import chinese_rules
from quipu.model.extraction import ExtractedAlias, ExtractedRelation

MAX_RELATIONS = 24
RELATIONS_PER_ENTITY = 1.5
MAX_KEYWORDS = 3
MAX_IMPLIED = 4
MIN_LETTERS = 3

_HAN_RUN = re.compile(r"[\u3400-\u9fff]{2,}")
_PUNCTUATION = ".,;:!?()[]{}\"'“”‘’«»„—–-*_`"
_PARTICLES = words("van von der den del des das dos las los les bin ibn und фон дер ван")

_CandidateSpan = tuple[int, int, int]  # start and end in the text, index of the candidate


class _CandidatePair(NamedTuple):
    """Two candidates (indices) that one sentence relates; the words in [start, end) of the text relate them.

    `rank` is 0 for the sentence's first name with another, 1 for neighbours, 2 for a subject that is only implied.
    """

    left: int
    right: int
    sentence: int
    rank: int
    start: int
    end: int


def relate_candidates(
    candidates: Sequence[Candidate], aliases: Sequence[ExtractedAlias], sentences: SentenceIndex
) -> tuple[ExtractedRelation, ...]:
    """Return relations between candidates in one sentence: at most 1.5 per candidate and 24 in all.

    An alias counts as the name that it belongs to. The selection first gives a relation to every candidate that can
    have one. Then it prefers relations in many sentences, then close names, then salient names. The result is in order
    of first sentence. The weight of a relation is its number of sentences.
    """
    pairs_by_ends: dict[tuple[int, int], list[_CandidatePair]] = {}
    for pair in _find_pairs(candidates, _resolve_aliases(candidates, aliases), sentences):
        pairs_by_ends.setdefault((min(pair.left, pair.right), max(pair.left, pair.right)), []).append(pair)
    groups = list(pairs_by_ends.values())
    saliences = [salience(candidate) for candidate in candidates]
    limit = min(MAX_RELATIONS, int(RELATIONS_PER_ENTITY * len(candidates)))
    return tuple(_relation(groups[i], candidates, sentences) for i in _select(groups, saliences, limit))


def _resolve_aliases(candidates: Sequence[Candidate], aliases: Sequence[ExtractedAlias]) -> list[int]:
    """Return, for each candidate, the index of the candidate that it is an alias of, else its own index."""
    index_by_name = {candidate.name: index for index, candidate in enumerate(candidates)}
    owners = list(range(len(candidates)))
    for alias in aliases:
        if alias.alias in index_by_name and alias.name in index_by_name:
            owners[index_by_name[alias.alias]] = owners[index_by_name[alias.name]]
    return owners


def _find_pairs(
    candidates: Sequence[Candidate], owners: Sequence[int], sentences: SentenceIndex
) -> Iterator[_CandidatePair]:
    implied_subjects = _ImpliedSubjects(candidates)
    for sentence, names in _spans_by_sentence(candidates, owners, sentences):
        begin = sentences.spans[sentence][0]
        if sentences.text[begin] == "#":
            continue
        yield from _pairs_in_sentence(names, sentence)
        subject = implied_subjects.at(names[0][0])
        if subject is not None and all(index != subject for _, _, index in names):
            for start, _, index in names[:MAX_IMPLIED]:
                yield _CandidatePair(subject, index, sentence, 2, begin, start)


def _spans_by_sentence(
    candidates: Sequence[Candidate], owners: Sequence[int], sentences: SentenceIndex
) -> Iterator[tuple[int, list[_CandidateSpan]]]:
    """Yield each sentence that names candidates, with the first span of each candidate in it, in order."""
    by_sentence: dict[int, dict[int, _CandidateSpan]] = {}
    for owner, candidate in zip(owners, candidates, strict=True):
        for start, end in candidate.spans:
            by_sentence.setdefault(sentences.index_at(start), {}).setdefault(owner, (start, end, owner))
    for sentence in sorted(by_sentence):
        yield sentence, sorted(by_sentence[sentence].values())


def _pairs_in_sentence(names: Sequence[_CandidateSpan], sentence: int) -> Iterator[_CandidatePair]:
    """Yield the first name of a sentence with every other, then each name with the next; each pair once."""
    yielded: set[tuple[int, int]] = set()
    first = names[0]
    for rank, pairs in ((0, [(first, other) for other in names[1:]]), (1, pairwise(names))):
        for (_, end, left), (start, _, right) in pairs:
            if (left, right) not in yielded:
                yielded.add((left, right))
                yield _CandidatePair(left, right, sentence, rank, end, start)


class _ImpliedSubjects:
    """The subject of a sentence that does not name it: the last speaker, else the subject of the page."""

    def __init__(self, candidates: Sequence[Candidate]) -> None:
        self._page_subject = min(
            (i for i, c in enumerate(candidates) if c.cue in (Cue.SUBJECT, Cue.TITLE)),
            key=lambda i: candidates[i].cue is Cue.TITLE,
            default=None,
        )
        self._speakers = sorted(
            (start, i) for i, c in enumerate(candidates) if c.cue is Cue.SPEAKER for start, _ in c.spans
        )

    def at(self, position: int) -> int | None:
        """Return the index of the subject implied at a position of the text."""
        n_before = bisect_right(self._speakers, (position,))
        return self._speakers[n_before - 1][1] if n_before else self._page_subject


def _select(groups: Sequence[Sequence[_CandidatePair]], saliences: Sequence[float], limit: int) -> list[int]:
    """Return the indices of `limit` groups: first those that give a candidate its first relation, then the others."""

    def order(i: int) -> tuple[int, int, float, int]:
        pair = groups[i][0]
        closest = min(pair.rank for pair in groups[i])
        return (-len(groups[i]), closest, -round(saliences[pair.left] + saliences[pair.right], 6), i)

    covered: set[int] = set()
    first_relations: list[int] = []
    others: list[int] = []
    for i in sorted(range(len(groups)), key=order):
        ends = {groups[i][0].left, groups[i][0].right}
        (others if ends <= covered else first_relations).append(i)
        covered |= ends
    return sorted([*first_relations, *others][:limit])


def _relation(
    group: Sequence[_CandidatePair], candidates: Sequence[Candidate], sentences: SentenceIndex
) -> ExtractedRelation:
    best = min(group, key=lambda pair: (pair.rank, pair.sentence))
    return ExtractedRelation(
        source=candidates[best.left].name,
        target=candidates[best.right].name,
        keywords=_keywords(best, sentences),
        description=sentences.quote(best.sentence),
        weight=float(len({pair.sentence for pair in group})),
    )


def _keywords(pair: _CandidatePair, sentences: SentenceIndex) -> tuple[str, ...]:
    """Return up to three content words between the two names, else from the second name to the sentence's end."""
    between = _content_words(sentences.text[pair.start : pair.end])
    return between or _content_words(sentences.text[pair.end : sentences.spans[pair.sentence][1]])


def _content_words(text: str) -> tuple[str, ...]:
    if not text.isascii() and _HAN_RUN.search(text):
        return tuple(dict.fromkeys(chinese_rules().keywords(text)))[:MAX_KEYWORDS]
    content_words: dict[str, None] = {}
    for token in text.split():
        word = token.strip(_PUNCTUATION)
        if len(word) >= MIN_LETTERS and word.islower() and not is_function_word(word) and word not in _PARTICLES:
            content_words[word] = None
            if len(content_words) == MAX_KEYWORDS:
                break
    return tuple(content_words)
