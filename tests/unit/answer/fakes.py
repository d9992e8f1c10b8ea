"""Passages for answer tests, made from plain texts."""

from collections.abc import Mapping

from quipu.answer.answer_input import AnswerInput
from quipu.answer.context import PackedEvidence, Passage
from quipu.answer.passage_text import PassageText, read_passage
from quipu.answer.question_kind import analyse_question
from quipu.answer.quote_sources import QuoteSources
from quipu.model.evidence import Evidence
from quipu.model.graph import Chunk
from quipu.model.ids import digest


def passages(text_by_title: Mapping[str, str]) -> list[Passage]:
    """Return one passage for each title, numbered from 1; each stands 100 characters into its document."""
    return [
        Passage(number=number, chunk=chunk(title, text))
        for number, (title, text) in enumerate(text_by_title.items(), 1)
    ]


def chunk(title: str, text: str, *, headings: tuple[str, ...] = (), page: int | None = None) -> Chunk:
    """Return a chunk of the document `title`, 100 characters into it."""
    return Chunk(
        id=f"chunk of {title}",
        document_id=f"{title}.md",
        title=title,
        ordinal=0,
        text=text,
        start=100,
        end=100 + len(text),
        n_tokens=-(-len(text.encode()) // 4),
        text_hash=digest(text),
        headings=headings,
        page=page,
    )


def passage_text(text: str, *, title: str = "Notes", headings: tuple[str, ...] = (), score: float = 1.0) -> PassageText:
    """Return a passage as quotes are taken from it, without neighbours."""
    return read_passage(chunk(title, text, headings=headings), score, {})


def material(text_by_title: Mapping[str, str], *, searches_index: bool = True) -> AnswerInput:
    """Return what an answer over these passages is made of."""
    found = tuple(passages(text_by_title))
    return AnswerInput(
        packed=PackedEvidence(passages=found),
        quote_sources=QuoteSources(question=analyse_question("")),
        source_by_document={passage.chunk.document_id: f"/{passage.chunk.document_id}" for passage in found},
        evidence=Evidence(searches_index=searches_index),
        revision=7,
    )
