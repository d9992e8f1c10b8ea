"""RelationalView: one snapshot as a ReadView; each read runs in a thread, one at a time.

`ports.store` describes every method. The table in the class names the function that does each read.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from itertools import islice
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import Table, func, select

from quipu.model.cluster import Hierarchy
from quipu.model.derivation import NAMES, REPORTS, SENTENCES, SYNONYMS, DerivationRecord
from quipu.model.document import EXTRACTOR_NAME_OFFSET, DocumentStatus
from quipu.model.query import Filter
from quipu.ports.derivation_view import ChangeSet, DerivationCounts, NodeKind
from quipu.ports.store import IndexCounts
from quipu.stores.relational import change_log, dump, filters, mentions, summaries
from quipu.stores.relational import chunks as chunk_reads
from quipu.stores.relational import clusters as cluster_reads
from quipu.stores.relational import entities as entity_reads
from quipu.stores.relational import graph_rows as graph_reads
from quipu.stores.relational import relations as relation_reads
from quipu.stores.relational import schema as s
from quipu.stores.relational import vectors as vector_reads
from quipu.stores.relational.snapshot import Snapshot
from quipu.stores.relational.sql import finish_in_thread
from quipu.text.formatting import format_count

P = ParamSpec("P")
R = TypeVar("R")

_DUMP_LINES = 1_000
_REPORTED = {REPORTS: Hierarchy.COMMUNITIES, "hierarchy": Hierarchy.AGGREGATES}
_DERIVATION_COUNTS = {
    NAMES: entity_reads.name_counts,
    SYNONYMS: entity_reads.synonym_counts,
    SENTENCES: chunk_reads.sentence_counts,
}


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
        stale_vectors=vector_reads.n_texts_without_vector(snapshot),
        n_unsummarised=summaries.n_unsummarised(snapshot.connection),
        extractors={row[0]: row[1] for row in snapshot.connection.execute(by_reader)},
    )


def _n_rows(snapshot: Snapshot, table: Table) -> int:
    return snapshot.connection.scalar(select(func.count()).select_from(table)) or 0


def _stale(snapshot: Snapshot) -> tuple[str, ...]:
    n_texts = vector_reads.n_texts_without_vector(snapshot)
    waiting = select(func.count()).where(s.job.c.status.not_in((DocumentStatus.FAILED, DocumentStatus.PARTIAL)))
    n_documents = snapshot.connection.scalar(waiting) or 0
    notes = [f"not computed yet: {format_count(n_texts, 'vector')}"] if n_texts else []
    return (*notes, *([f"waiting: {format_count(n_documents, 'document')}"] if n_documents else []))


def _changes_since(snapshot: Snapshot, revision: int) -> ChangeSet | None:
    return change_log.changes_since(snapshot.connection, revision)


def _derivation_records(snapshot: Snapshot) -> Mapping[str, DerivationRecord]:
    return change_log.derivation_records(snapshot.connection)


def _numbers(snapshot: Snapshot, kind: NodeKind, ids: Sequence[str]) -> dict[str, int]:
    read = entity_reads.entity_numbers if kind is NodeKind.ENTITY else chunk_reads.chunk_numbers
    return read(snapshot, ids)


def _ids(snapshot: Snapshot, kind: NodeKind, numbers: Sequence[int]) -> dict[int, str]:
    read = entity_reads.entity_keys if kind is NodeKind.ENTITY else chunk_reads.chunk_ids
    return read(snapshot, numbers)


def _derivation_counts(snapshot: Snapshot, derivation: str) -> DerivationCounts:
    return _DERIVATION_COUNTS[derivation](snapshot)


def _pending(snapshot: Snapshot, derivation: str, limit: int | None = None, *, not_by: str = "") -> list[str]:
    if derivation == SYNONYMS:
        return entity_reads.uncompared_names(snapshot, limit)
    if derivation == SENTENCES:
        return chunk_reads.unsplit_chunks(snapshot, limit)
    return cluster_reads.unreported(snapshot, _REPORTED[derivation], not_by)[:limit]


def _in_thread(
    read: Callable[Concatenate[Snapshot, P], R],
) -> Callable[Concatenate["RelationalView", P], Coroutine[Any, Any, R]]:
    """Return a method that runs `read` on the view's snapshot in a thread."""

    async def method(view: "RelationalView", /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await view.run(lambda snapshot: read(snapshot, *args, **kwargs))

    return method


class RelationalView:
    """A ReadView over a connection inside a read transaction."""

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

    counts = _in_thread(_counts)
    stale_notes = _in_thread(_stale)

    n_chunks = _in_thread(chunk_reads.n_chunks)
    documents = _in_thread(chunk_reads.documents)
    chunks = _in_thread(chunk_reads.chunks)
    document_chunks = _in_thread(chunk_reads.document_chunks)
    full_text = _in_thread(chunk_reads.full_text)
    sentences = _in_thread(chunk_reads.sentences)
    allowed_chunks = _in_thread(filters.allowed_chunks)
    numbers = _in_thread(_numbers)
    ids = _in_thread(_ids)

    entities = _in_thread(entity_reads.entities)
    degrees = _in_thread(entity_reads.degrees)
    keys_by_name = _in_thread(entity_reads.named)
    search_entities = _in_thread(entity_reads.search_entities)
    entity_mentions = _in_thread(mentions.entity_mentions)
    alias_mentions = _in_thread(mentions.alias_mentions)
    entity_types = _in_thread(entity_reads.entity_types)

    relations = _in_thread(relation_reads.relations)
    incident_relations = _in_thread(relation_reads.incident)
    strongest_relations = _in_thread(relation_reads.strongest_relations)
    relation_mentions = _in_thread(mentions.relation_mentions)
    claims = _in_thread(relation_reads.claims)
    claims_of_entities = _in_thread(relation_reads.claims_of_entities)
    claim_mentions = _in_thread(mentions.claim_mentions)

    chunks_of_entities = _in_thread(graph_reads.chunks_of_entities)
    chunks_mentioning = _in_thread(graph_reads.chunks_mentioning)
    chunks_of_relations = _in_thread(graph_reads.chunks_of_relations)
    graph_rows = _in_thread(graph_reads.graph_rows)
    alias_rows = _in_thread(graph_reads.alias_rows)

    vector_dimension = _in_thread(vector_reads.vector_dimension)
    vectors_after = _in_thread(vector_reads.vectors_after)
    deleted_vector_rows = _in_thread(vector_reads.vectors_gone)
    allowed_vector_rows = _in_thread(vector_reads.vectors_allowed)
    vector_owners = _in_thread(vector_reads.vector_owners)
    vector_rows = _in_thread(vector_reads.vector_rows)
    chunk_vector_rows = _in_thread(vector_reads.chunk_vector_rows)

    clusters = _in_thread(cluster_reads.clusters)
    clusters_of = _in_thread(cluster_reads.clusters_of)
    cluster_counts = _in_thread(cluster_reads.cluster_counts)
    cluster_documents = _in_thread(cluster_reads.cluster_documents)
    cluster_reports = _in_thread(cluster_reads.cluster_reports)
    cluster_relations = _in_thread(cluster_reads.cluster_relations)

    synonym_rows = _in_thread(entity_reads.synonym_rows)

    changes_since = _in_thread(_changes_since)
    derivations = _in_thread(_derivation_records)
    derivation_counts = _in_thread(_derivation_counts)
    pending = _in_thread(_pending)

    async def dump(self) -> AsyncIterator[str]:
        lines = dump.lines(self._snapshot.connection)
        while block := await self.run(lambda _: list(islice(lines, _DUMP_LINES))):
            for line in block:
                yield line

    async def run(self, read: Callable[[Snapshot], R]) -> R:
        """Run `read` on the snapshot in a thread, after the reads that other tasks have started."""

        def guarded() -> R:
            with self._snapshot.backend.guard():
                return read(self._snapshot)

        async with self._lock:
            return await finish_in_thread(guarded)
