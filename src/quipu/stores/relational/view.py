"""RelationalView: one snapshot as a ReadView; each read runs in a thread, one at a time."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from itertools import islice
from typing import Concatenate, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt
from sqlalchemy import Table, func, select

from quipu.model.document import EXTRACTOR_NAME_OFFSET, Document, DocumentStatus
from quipu.model.evidence import Scored
from quipu.model.graph import (
    AliasMention,
    Chunk,
    Claim,
    ClaimMention,
    Entity,
    EntityMention,
    IncidentRelation,
    Relation,
    RelationMention,
)
from quipu.model.query import Filter
from quipu.ports.store import IndexCounts, VectorBlock, VectorSpace
from quipu.stores.relational import (
    alias_mentions,
    appearances,
    chunk_vectors,
    claims,
    dump,
    graph,
    neighbours,
    passages,
    summaries,
    vector_reads,
)
from quipu.stores.relational import schema as s
from quipu.stores.relational.derived_view import DerivedReads
from quipu.stores.relational.snapshot import Snapshot
from quipu.stores.relational.sql import Ints, finish_in_thread
from quipu.text.formatting import format_count

P = ParamSpec("P")
R = TypeVar("R")

_DUMP_LINES = 1_000


class RelationalView(DerivedReads):
    """A ReadView over a connection inside a read transaction; see ports.store for what each method promises."""

    def __init__(self, snapshot: Snapshot, *, revision: int, allowed: Filter) -> None:
        self._snapshot = snapshot
        self._revision = revision
        self._filter = allowed
        self._lock = asyncio.Lock()

    @property
    def revision(self) -> int:
        return self._revision

    @property
    def filter(self) -> Filter:
        return self._filter

    async def counts(self) -> IndexCounts:
        return await self._read(_counts)

    async def n_chunks(self) -> int:
        return await self._read(passages.n_chunks)

    async def documents(self, ids: Sequence[str] | None = None) -> list[Document]:
        return await self._read(passages.documents, ids)

    async def chunks(self, ids: Sequence[str]) -> list[Chunk]:
        return await self._read(passages.chunks, ids)

    async def document_chunks(self, document_id: str) -> list[Chunk]:
        return await self._read(passages.document_chunks, document_id)

    async def entities(self, keys: Sequence[str]) -> list[Entity]:
        return await self._read(graph.entities, keys)

    async def relations(self, ids: Sequence[str]) -> list[Relation]:
        return await self._read(graph.relations, ids)

    async def incident(self, keys: Sequence[str]) -> list[Relation]:
        return await self._read(graph.incident, keys)

    async def strongest_relations(self, keys: Sequence[str], k: int) -> tuple[list[IncidentRelation], int]:
        return await self._read(neighbours.strongest_relations, keys, k)

    async def degrees(self, keys: Sequence[str]) -> dict[str, int]:
        return await self._read(graph.degrees, keys)

    async def named(self, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
        return await self._read(graph.named, names)

    async def search_entities(self, text: str, k: int) -> list[Scored]:
        return await self._read(graph.search_entities, text, k)

    async def chunks_of_entities(self, keys: Sequence[str], k: int) -> dict[str, dict[str, int]]:
        return await self._read(appearances.chunks_of_entities, keys, k)

    async def chunks_mentioning(self, keys: Sequence[str], k: int) -> dict[str, list[str]]:
        return await self._read(appearances.chunks_mentioning, keys, k)

    async def chunks_of_relations(self, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        return await self._read(appearances.chunks_of_relations, ids)

    async def entity_mentions(self, chunk_ids: Sequence[str]) -> dict[str, list[EntityMention]]:
        return await self._read(graph.entity_mentions, chunk_ids)

    async def relation_mentions(self, chunk_ids: Sequence[str]) -> dict[str, list[RelationMention]]:
        return await self._read(graph.relation_mentions, chunk_ids)

    async def alias_mentions(self, chunk_ids: Sequence[str]) -> dict[str, list[AliasMention]]:
        return await self._read(alias_mentions.alias_mentions, chunk_ids)

    async def claim_mentions(self, chunk_ids: Sequence[str]) -> dict[str, list[ClaimMention]]:
        return await self._read(claims.claim_mentions, chunk_ids)

    async def claims(self, ids: Sequence[str]) -> list[Claim]:
        return await self._read(claims.claims, ids)

    async def claims_of_entities(self, keys: Sequence[str], k: int) -> dict[str, list[Claim]]:
        return await self._read(claims.claims_of_entities, keys, k)

    async def full_text(self, text: str, k: int) -> list[Scored]:
        return await self._read(passages.full_text, text, k)

    async def vector_dimension(self, space: VectorSpace) -> int:
        return await self._read(vector_reads.dimension)

    async def vectors_after(self, space: VectorSpace, row: int) -> VectorBlock:
        return await self._read(vector_reads.after, space, row)

    async def vectors_gone(self, space: VectorSpace, revision: int) -> npt.NDArray[np.int64] | None:
        return await self._read(vector_reads.gone, space, revision)

    async def vectors_allowed(self, space: VectorSpace) -> npt.NDArray[np.int64] | None:
        return await self._read(vector_reads.allowed, space)

    async def vector_owners(self, space: VectorSpace, rows: Sequence[int]) -> dict[int, tuple[str, ...]]:
        return await self._read(vector_reads.owners, space, rows)

    async def vector_rows(self, space: VectorSpace, ids: Sequence[str]) -> dict[str, int]:
        return await self._read(vector_reads.rows_of, space, ids)

    async def chunk_vector_rows(self) -> tuple[Ints, Ints]:
        return await self._read(chunk_vectors.rows_of_chunks)

    async def stale(self) -> tuple[str, ...]:
        return await self._read(_stale)

    async def dump(self) -> AsyncIterator[str]:
        lines = dump.lines(self._snapshot.connection)
        while block := await self._read(lambda _: list(islice(lines, _DUMP_LINES))):
            for line in block:
                yield line

    async def _read(self, read: Callable[Concatenate[Snapshot, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        def run() -> R:
            with self._snapshot.backend.guard():
                return read(self._snapshot, *args, **kwargs)

        async with self._lock:
            return await finish_in_thread(run)


def _stale(snapshot: Snapshot) -> tuple[str, ...]:
    n_vectors = vector_reads.n_waiting(snapshot)
    j = s.job.c
    waiting = select(func.count()).where(j.status.not_in((DocumentStatus.FAILED, DocumentStatus.PARTIAL)))
    n_documents = snapshot.connection.scalar(waiting) or 0
    notes = [f"not computed yet: {format_count(n_vectors, 'vector')}"] if n_vectors else []
    return (*notes, *([f"waiting: {format_count(n_documents, 'document')}"] if n_documents else []))


def _counts(snapshot: Snapshot) -> IndexCounts:
    reader = func.substr(s.document.c.content_hash, EXTRACTOR_NAME_OFFSET + 1).label("reader")
    by_reader = select(reader, func.count()).group_by(reader).order_by(reader)
    by_status = select(s.job.c.status, func.count()).group_by(s.job.c.status).order_by(s.job.c.status)
    return IndexCounts(
        documents=_n_rows(snapshot, s.document),
        chunks=_n_rows(snapshot, s.chunk),
        entities=_n_rows(snapshot, s.entity),
        relations=_n_rows(snapshot, s.relation),
        mentions=_n_rows(snapshot, s.entity_mention) + _n_rows(snapshot, s.relation_mention),
        links=_n_rows(snapshot, s.link),
        vectors=vector_reads.n_vectors(snapshot),
        replies=_n_rows(snapshot, s.reply),
        jobs={row[0]: row[1] for row in snapshot.connection.execute(by_status)},
        stale_vectors=vector_reads.n_waiting(snapshot),
        n_unsummarised=summaries.n_waiting(snapshot.connection),
        readers={row[0]: row[1] for row in snapshot.connection.execute(by_reader)},
    )


def _n_rows(snapshot: Snapshot, table: Table) -> int:
    return snapshot.connection.scalar(select(func.count()).select_from(table)) or 0
