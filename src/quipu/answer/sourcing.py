"""Sourcing: what an answer claims, the sentences of the cited sources that say it, and whether they do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from quipu.answer.cite import cite
from quipu.answer.material import Material
from quipu.answer.pack import Passage
from quipu.answer.question import Question, read_question
from quipu.answer.quotable import Quotable, known_names, quotables
from quipu.answer.sources import Source, sources_by_number
from quipu.answer.statements import Claim, claims
from quipu.answer.support import NOTHING, Said, is_held, read_passage
from quipu.model.answer import Citation, Statement
from quipu.text.languages import languages_differ

# A second sentence of a passage is cited beside the best one where it holds so much more of what the statement says.
MIN_NEWS = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Sourced:
    """The statements of an answer; `n_translated` of them could be compared with what they cite by numbers alone."""

    statements: tuple[Statement, ...]
    n_translated: int

    @property
    def citations(self) -> tuple[Citation, ...]:
        """Every citation once, in the order of the text."""
        return tuple(dict.fromkeys(citation for each in self.statements for citation in each.citations))


def source(text: str, material: Material) -> Sourced:
    """Return what `text` claims with its sources among the passages of `material`, or beneath its accounts.

    A report, a point or a claim stands for the passages it rests on: that a model said so on the way is no support.
    Numbers that lead to nothing are left out.
    """
    sources = sources_by_number(material)
    found = [(claim, [number for number in claim.numbers if number in sources]) for claim in claims(text)]
    cited = {number: sources[number] for _, numbers in found for number in numbers}
    foreign = {
        number
        for number, each in cited.items()
        if all(languages_differ(text, said.chunk.text) for said in each.passages)
    }
    translated = [not foreign.isdisjoint(claim.numbers) for claim, _ in found]
    said = {number: _said(each) for number, each in cited.items()}
    sentences = {number: quotables(each.passages, known_names(())) for number, each in cited.items()}
    return Sourced(
        statements=tuple(
            Statement(
                text=text[claim.start : claim.end],
                start=claim.start,
                end=claim.end,
                citations=_citations(claim, {number: cited[number] for number in numbers}, sentences, material),
                is_supported=bool(numbers)
                and is_held(claim.words, _together(numbers, said), is_translated=is_translated),
            )
            for (claim, numbers), is_translated in zip(found, translated, strict=True)
        ),
        n_translated=sum(translated),
    )


def _said(source: Source) -> Said:
    """Return what the passages of a source say together."""
    return reduce(or_, map(read_passage, source.passages))


def _together(numbers: Sequence[int], said: Mapping[int, Said]) -> Said:
    return reduce(or_, (said[number] for number in numbers), NOTHING)


def _citations(
    claim: Claim, sources: Mapping[int, Source], sentences: Mapping[int, Sequence[Quotable]], material: Material
) -> tuple[Citation, ...]:
    candidates = [quotable for number in sources for quotable in sentences[number]]
    wanted = read_question(claim.words, candidates, known_names(()))
    quotes = [quote for number, each in sources.items() for quote in _best(wanted, each, sentences[number])]
    return tuple(cite(quote, material.source_by_document) for quote in quotes)


def _best(wanted: Question, source: Source, sentences: Sequence[Quotable]) -> list[Quotable]:
    """Return the sentence of a source that says most of what is wanted and one more that adds to it.

    Where none says any of it, its first passage from the first sentence to the last.
    """
    if not sentences:
        return [_whole(source.passages[0], ())]
    first = max(sentences, key=lambda each: round(wanted.share(each.terms), 6))
    if wanted.share(first.terms) == 0:
        return [_whole(source.passages[0], sentences)]
    second = max(sentences, key=lambda each: round(wanted.share(each.terms, unless=first.terms), 6))
    adds = wanted.share(second.terms, unless=first.terms) >= MIN_NEWS
    return [each for each in sentences if each is first or each is second] if adds else [first]


def _whole(passage: Passage, sentences: Sequence[Quotable]) -> Quotable:
    own = [each for each in sentences if each.passage is passage]
    start, end = (own[0].start, own[-1].end) if own else (0, len(passage.chunk.text))
    nothing: frozenset[str] = frozenset()
    return Quotable(passage=passage, start=start, end=end, terms=nothing, about=nothing, names=nothing, subject="")
