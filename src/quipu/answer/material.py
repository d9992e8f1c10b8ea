"""Material: everything an answer is made of, read from one view, so that none is open while a model writes."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from quipu.answer.accounts import chunks_of
from quipu.answer.pack import Packed, pack
from quipu.model.evidence import Evidence, Timing
from quipu.model.graph import Chunk, EntityMention
from quipu.model.query import Filter, Query
from quipu.ports.providers import Tokenizer
from quipu.ports.store import ReadView

MAX_BASIS = 400  # chunks beneath points, reports and claims that are read, to cite them


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """The packed evidence, what its passages mention, where their documents come from, and as of which revision.

    `basis` are chunks that packed points, reports and claims rest on, by id. `has_text` is False where the view shows
    no chunk at all.
    """

    packed: Packed
    mentions: tuple[EntityMention, ...]
    source_by_document: Mapping[str, str]
    evidence: Evidence
    revision: int
    stale: tuple[str, ...] = ()
    timings: tuple[Timing, ...] = ()
    basis: Mapping[str, Chunk] = field(default_factory=dict)
    has_text: bool = True

    @property
    def documents(self) -> tuple[str, ...]:
        """The ids of all documents it holds text of, ordered."""
        return tuple(sorted(self.source_by_document))


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
    beneath = await view.chunks(chunks_of(packed.accounts, MAX_BASIS)) if packed.accounts else []
    chunks = {chunk.id: chunk for chunk in (*(passage.chunk for passage in packed.passages), *beneath)}
    mentions = await view.entity_mentions(list(chunks))
    documents = await view.documents(sorted({chunk.document_id for chunk in chunks.values()}))
    return Material(
        packed=packed,
        mentions=tuple(mention for chunk in chunks for mention in mentions.get(chunk, ())),
        source_by_document={document.id: document.source for document in documents},
        evidence=evidence,
        revision=view.revision,
        stale=await view.stale(),
        basis={chunk.id: chunk for chunk in beneath},
        has_text=bool(chunks) or await _has_text(query, view),
        timings=(*timings, Timing(stage="pack", ms=(clock() - begun) * 1000)),
    )


async def _has_text(query: Query, view: ReadView) -> bool:
    """Return whether the view shows any chunk."""
    if query.filter == Filter():
        return await view.n_chunks() > 0
    return any(document.n_chunks for document in await view.documents())
