"""Sourcing: what an answer claims, the sentences of the cited passages that say it, and whether they do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from quipu.answer.cite import cite
from quipu.answer.material import Material
from quipu.answer.pack import Passage
from quipu.answer.question import Question, read_question
from quipu.answer.quotable import Quotable, known_names, quotables
from quipu.answer.statements import Claim, claims
from quipu.answer.support import NOTHING, Said, is_held, read_passage
from quipu.model.answer import Citation, Statement
from quipu.text.languages import are_different

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
    """Return what `text` claims with its sources among the passages of `material`.

    Numbers the text cites that are no passage's are left out.
    """
    passages = {passage.number: passage for passage in material.packed.passages}
    found = [(claim, [passages[number] for number in claim.numbers if number in passages]) for claim in claims(text)]
    cited = {passage.number: passage for _, each in found for passage in each}
    foreign = {number for number, passage in cited.items() if are_different(text, passage.chunk.text)}
    translated = [not foreign.isdisjoint(claim.numbers) for claim, _ in found]
    said = {number: read_passage(passage) for number, passage in cited.items()}
    sentences = {number: quotables([passage], known_names(())) for number, passage in cited.items()}
    return Sourced(
        statements=tuple(
            Statement(
                text=text[claim.start : claim.end],
                start=claim.start,
                end=claim.end,
                citations=_citations(claim, sources, sentences, material),
                is_supported=bool(sources)
                and is_held(claim.words, _together(sources, said), is_translated=is_translated),
            )
            for (claim, sources), is_translated in zip(found, translated, strict=True)
        ),
        n_translated=sum(translated),
    )


def _together(sources: Sequence[Passage], said: Mapping[int, Said]) -> Said:
    return reduce(or_, (said[passage.number] for passage in sources), NOTHING)


def _citations(
    claim: Claim, sources: Sequence[Passage], sentences: Mapping[int, Sequence[Quotable]], material: Material
) -> tuple[Citation, ...]:
    candidates = [quotable for passage in sources for quotable in sentences[passage.number]]
    wanted = read_question(claim.words, candidates, known_names(()))
    quotes = [quote for passage in sources for quote in _best(wanted, passage, sentences[passage.number])]
    return tuple(cite(quote, material.source_by_document) for quote in quotes)


def _best(wanted: Question, passage: Passage, sentences: Sequence[Quotable]) -> list[Quotable]:
    """Return the sentence of a passage that says most of what is wanted, one more that adds to it, or all of it."""
    if not sentences:
        return [_whole(passage)]
    first = max(sentences, key=lambda each: round(wanted.share(each.terms), 6))
    if wanted.share(first.terms) == 0:
        return [_whole(passage)]
    second = max(sentences, key=lambda each: round(wanted.share(each.terms, unless=first.terms), 6))
    adds = wanted.share(second.terms, unless=first.terms) >= MIN_NEWS
    return sorted([first, second], key=lambda each: each.start) if adds else [first]


def _whole(passage: Passage) -> Quotable:
    text = passage.chunk.text
    nothing: frozenset[str] = frozenset()
    return Quotable(passage=passage, start=0, end=len(text), terms=nothing, about=nothing, names=nothing, subject="")
