"""Compose: evidence to an answer, step by step: pack → extract → cite, with a trace of all of it."""

import asyncio
import time
from collections.abc import Callable, Sequence

from quipu.answer.cite import cite
from quipu.answer.extractive import Extract, extract
from quipu.answer.pack import Packed, pack
from quipu.model.answer import Answer, Citation
from quipu.model.evidence import Evidence, Timing, Trace
from quipu.model.query import Query
from quipu.ports.store import ReadView
from quipu.ports.tokenizer import Tokenizer

EXTRACTIVE = "extractive"
NOTHING_FOUND = "I found nothing about this."


async def compose(
    query: Query,
    evidence: Evidence,
    view: ReadView,
    tokenizer: Tokenizer,
    *,
    timings: Sequence[Timing] = (),
    clock: Callable[[], float] = time.perf_counter,
) -> Answer:
    """Return the answer that `evidence` gives: quotes with citations, or that nothing was found and where.

    `context` and `prompt` are filled in any case. `timings` are those of the stages before; two are added.
    """
    begun = clock()
    packed = await pack(query, evidence, view, tokenizer)
    packed_at = clock()
    found = await _extract(query, packed, view)
    citations = await _citations(found, view) if found.is_supported else ()
    done = clock()
    return Answer(
        text=_quoted(citations) if citations else _nothing_found(query, packed),
        generator=EXTRACTIVE,
        citations=citations,
        is_supported=bool(citations),
        context=packed.context(),
        prompt=packed.prompt(query),
        trace=Trace(
            strategy=query.strategy,
            revision=view.revision,
            evidence=evidence,
            dropped=packed.dropped,
            timings=(*timings, _timing("pack", begun, packed_at), _timing("answer", packed_at, done)),
            stale=await view.stale(),
            notes=(_support_note(found),),
        ),
    )


async def _extract(query: Query, packed: Packed, view: ReadView) -> Extract:
    mentions = await view.entity_mentions([passage.chunk.id for passage in packed.passages])
    said = [mention for passage in packed.passages for mention in mentions.get(passage.chunk.id, ())]
    return await asyncio.to_thread(extract, query.text, packed.passages, said)


async def _citations(found: Extract, view: ReadView) -> tuple[Citation, ...]:
    ids = sorted({quote.passage.chunk.document_id for quote in found.quotes})
    source_by_document = {document.id: document.source for document in await view.documents(ids)}
    return tuple(cite(quote, source_by_document) for quote in found.quotes)


def _quoted(citations: Sequence[Citation]) -> str:
    return "\n\n".join(f"{citation.quote} [{citation.number}]" for citation in citations)


def _nothing_found(query: Query, packed: Packed) -> str:
    passages = packed.passages
    if not passages:
        return f"{NOTHING_FOUND} The strategy '{query.strategy}' brought back no passage."
    n_documents = len({passage.chunk.document_id for passage in passages})
    return (
        f"{NOTHING_FOUND} The strategy '{query.strategy}' brought back {_counted(len(passages), 'passage')} "
        f"from {_counted(n_documents, 'document')}, first '{passages[0].chunk.title}', but none says enough."
    )


def _counted(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def _support_note(found: Extract) -> str:
    best, total = found.best_share, found.total_share
    return f"of what the question's words tell, the best quote holds {best:.0%}, all quotes together {total:.0%}"


def _timing(stage: str, begun: float, ended: float) -> Timing:
    return Timing(stage=stage, ms=(ended - begun) * 1000)
