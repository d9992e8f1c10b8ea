"""Material: everything an answer is made of, read from one view, so that none is open while a model writes."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from quipu.answer.pack import Packed, pack
from quipu.model.evidence import Evidence, Timing
from quipu.model.graph import EntityMention
from quipu.model.query import Query
from quipu.ports.store import ReadView
from quipu.ports.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """The packed evidence, what its passages mention, where their documents come from, and as of which revision."""

    packed: Packed
    mentions: tuple[EntityMention, ...]
    source_by_document: Mapping[str, str]
    evidence: Evidence
    revision: int
    stale: tuple[str, ...] = ()
    timings: tuple[Timing, ...] = ()


async def gather(
    query: Query,
    evidence: Evidence,
    view: ReadView,
    tokenizer: Tokenizer,
    *,
    timings: Sequence[Timing] = (),
    clock: Callable[[], float] = time.perf_counter,
) -> Material:
    """Return what the answer to `query` is made of; `timings` are those of the stages before, one is added."""
    begun = clock()
    packed = await pack(query, evidence, view, tokenizer)
    mentions = await view.entity_mentions([passage.chunk.id for passage in packed.passages])
    documents = await view.documents(sorted({passage.chunk.document_id for passage in packed.passages}))
    return Material(
        packed=packed,
        mentions=tuple(mention for passage in packed.passages for mention in mentions.get(passage.chunk.id, ())),
        source_by_document={document.id: document.source for document in documents},
        evidence=evidence,
        revision=view.revision,
        stale=await view.stale(),
        timings=(*timings, Timing(stage="pack", ms=(clock() - begun) * 1000)),
    )
