"""RelationalView: one snapshot as a ReadView; each read runs in a thread, one at a time.

`ports.store` describes every method. The table in the class names the function that does each read.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from functools import lru_cache, reduce
from itertools import islice
from operator import add
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar

import numpy as np
from sqlalchemy import ColumnElement, Select, Table, func, select

from quipu.model.cluster import Hierarchy
from quipu.model.derivation import (
    COMMUNITIES,
    HIERARCHY,
    NAMES,
    REPORTS,
    SENTENCES,
    SUMMARIES,
    SYNONYMS,
    DerivationRecord,
)
from quipu.model.document import EXTRACTOR_NAME_OFFSET
from quipu.model.evidence import Scored
from quipu.model.graph import IndexCounts
from quipu.ports.derivation_view import ChangeSet, DerivationCounts, NodeKind
from quipu.ports.store import CountName, Mention, VectorSpace
from quipu.stores.relational import change_log, dump, filters, full_text, mentions, replies, summaries
from quipu.stores.relational import chunks as chunk_reads
from quipu.stores.relational import clusters as cluster_reads
from quipu.stores.relational import entities as entity_reads
from quipu.stores.relational import graph_rows as graph_reads
from quipu.stores.relational import relations as relation_reads
from quipu.stores.relational import schema as s
from quipu.stores.relational import vectors as vector_reads
from quipu.stores.relational.snapshot import Lookup, Snapshot, in_order
from quipu.stores.relational.sql import Ints, finish_in_thread, read_number
from quipu.text.names import other_spellings, spelling_key

P = ParamSpec("P")
_BY_SPELLING = Lookup(
    select(s.spelling.c.spelling, s.name.c.key).join_from(s.spelling, s.name, s.name.c.rid == s.spelling.c.name),
    s.spelling.c.spelling,
)
R = TypeVar("R")

_DUMP_LINES = 1_000
_NONE: Ints = np.empty(0, dtype=np.int64)
_REPORTED = {REPORTS: Hierarchy.COMMUNITIES, HIERARCHY: Hierarchy.AGGREGATES}
_DERIVATION_COUNTS: Mapping[str, Callable[[Snapshot], DerivationCounts]] = {
    NAMES: entity_reads.name_counts,
    SYNONYMS: entity_reads.synonym_counts,
    SENTENCES: chunk_reads.sentence_counts,
    COMMUNITIES: lambda snapshot: cluster_reads.cluster_counts(snapshot, Hierarchy.COMMUNITIES),
    HIERARCHY: lambda snapshot: cluster_reads.cluster_counts(snapshot, Hierarchy.AGGREGATES),
}


def _n_rows(*tables: Table) -> list[Select[Any]]:
    return [select(func.count()).select_from(table) for table in tables]


def _n_by_value(column: ColumnElement[Any]) -> Callable[[Snapshot], dict[str, int]]:
    query = select(column, func.count()).group_by(column).order_by(column)
    return lambda snapshot: {row[0]: row[1] for row in snapshot.connection.execute(query)}


# Numbers are read with one statement, each the sum of some counts.
_NUMBERS: Mapping[CountName, Sequence[Select[Any]]] = {
    "documents": _n_rows(s.document),
    "chunks": _n_rows(s.chunk),
    "entities": _n_rows(s.entity),
    "relations": _n_rows(s.relation),
    "mentions": _n_rows(s.entity_mention, s.relation_mention),
    "links": _n_rows(s.link),
    "vectors": [vector_reads.N_VECTORS],
    "replies": _n_rows(s.reply),
    "stale_vectors": [vector_reads.N_WITHOUT_VECTOR],
    "n_unsummarised": summaries.N_WAITING,
}
_COUNTS: Mapping[CountName, Callable[[Snapshot], Any]] = {
    "jobs": _n_by_value(s.job.c.status),
    "extractors": _n_by_value(func.substr(s.document.c.content_hash, EXTRACTOR_NAME_OFFSET + 1).label("reader")),
    "embedder": lambda snapshot: vector_reads.live_model(snapshot.connection),
    "schema": lambda snapshot: read_number(snapshot.connection, "schema"),
    "database_bytes": lambda snapshot: snapshot.backend.n_bytes(snapshot.connection),
}


def _counts(snapshot: Snapshot, *names: CountName, of: Sequence[str] | None = None) -> IndexCounts:
    numbers = [name for name in names or _NUMBERS if name in _NUMBERS]
    counts = {name: _COUNTS[name](snapshot) for name in names or _COUNTS if name in _COUNTS}
    if numbers:
        counts |= snapshot.connection.execute(_count(*numbers)).one()._mapping
    if of is not None and "replies" in counts:
        counts["replies"] = replies.n_removed_with(snapshot.connection, of)
    return IndexCounts(**counts)


@lru_cache
def _count(*names: CountName) -> Select[Any]:
    """Return a query of one row with these numbers, by name."""
    sums = {name: reduce(add, [count.scalar_subquery() for count in _NUMBERS[name]]) for name in names}
    return select(*(total.label(name) for name, total in sums.items()))


def _derivation_records(snapshot: Snapshot) -> Mapping[str, DerivationRecord]:
    return change_log.derivation_records(snapshot.connection)


def _numbers(snapshot: Snapshot, kind: NodeKind | VectorSpace, ids: Sequence[str]) -> dict[str, int]:
    if isinstance(kind, VectorSpace):
        return vector_reads.vector_rows(snapshot, kind, ids)
    read = entity_reads.entity_numbers if kind is NodeKind.ENTITY else chunk_reads.chunk_numbers
    return read(snapshot, ids)


def _keys_by_name(
    snapshot: Snapshot, names: Sequence[str], *, any_spelling: bool = False
) -> dict[str, tuple[str, ...]]:
    """Return the keys of the entities each name stands for, if `any_spelling` also in another spelling.

    Another spelling counts only where no visible entity has the name as it is.
    """
    keys = entity_reads.named(snapshot, names)
    spelling_by_name = {name: spelling_key(name) for name in names if name not in keys} if any_spelling else {}
    names_by_spelling = _names_by_spelling(snapshot, spelling_by_name.values())
    if not names_by_spelling:
        return keys
    known_names = [name for spelt in names_by_spelling.values() for name in spelt]
    visible_keys = entity_reads.named(snapshot, known_names)
    for name, spelling in spelling_by_name.items():
        spelt = [known for known in names_by_spelling.get(spelling, ()) if known in visible_keys]
        if others := other_spellings(name, spelt):
            keys[name] = tuple(dict.fromkeys(key for other in others for key in visible_keys[other]))
    return in_order(keys, names)


def _names_by_spelling(snapshot: Snapshot, spellings: Iterable[str]) -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    for spelling, name in sorted(_BY_SPELLING.rows(snapshot, sorted(set(filter(None, spellings))))):
        names.setdefault(spelling, []).append(name)
    return names


def _search_text(snapshot: Snapshot, kind: NodeKind, text: str, k: int) -> list[Scored]:
    if kind is NodeKind.ENTITY:
        return entity_reads.search_entities(snapshot, text, k)
    score_by_rid = dict(full_text.search(snapshot, snapshot.analyzer.query_terms(text), k))
    ids = chunk_reads.chunk_ids(snapshot, score_by_rid)
    hits = [Scored(id=chunk_id, score=score_by_rid[rid]) for rid, chunk_id in ids.items()]
    return sorted(hits, key=lambda hit: (-hit.score, hit.id))[: max(k, 0)]


def _ids(snapshot: Snapshot, kind: NodeKind, numbers: Sequence[int]) -> dict[int, str]:
    read = entity_reads.entity_keys if kind is NodeKind.ENTITY else chunk_reads.chunk_ids
    return read(snapshot, numbers)


def _derivation_counts(snapshot: Snapshot, derivation: str) -> DerivationCounts:
    return _DERIVATION_COUNTS[derivation](snapshot)


def _pending(snapshot: Snapshot, derivation: str, limit: int | None = None, *, not_by: str = "") -> list[str]:
    if derivation == SUMMARIES:
        return summaries.unsummarised(snapshot.connection)[:limit]
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

    def __init__(self, snapshot: Snapshot, *, revision: int, history_nonce: int | None) -> None:
        self._snapshot = snapshot
        self._revision = revision
        self._history_nonce = history_nonce
        self._lock = asyncio.Lock()

    @property
    def revision(self) -> int:
        return self._revision

    counts = _in_thread(_counts)
    documents = _in_thread(chunk_reads.documents)
    content = _in_thread(chunk_reads.content)
    chunks = _in_thread(chunk_reads.chunks)
    sentences = _in_thread(chunk_reads.sentences)
    search_text = _in_thread(_search_text)

    entities = _in_thread(entity_reads.entities)
    keys_by_name = _in_thread(_keys_by_name)
    entity_types = _in_thread(entity_reads.entity_types)
    relations = _in_thread(relation_reads.relations)
    strongest_relations = _in_thread(relation_reads.strongest_relations)
    claims = _in_thread(relation_reads.claims)

    occurrences = _in_thread(graph_reads.occurrences)
    graph_rows = _in_thread(graph_reads.graph_rows)
    alias_rows = _in_thread(graph_reads.alias_rows)
    title_entities = _in_thread(graph_reads.title_entities)

    numbers = _in_thread(_numbers)
    ids = _in_thread(_ids)
    vectors = _in_thread(vector_reads.vectors)
    vector_owners = _in_thread(vector_reads.vector_owners)
    chunk_vector_rows = _in_thread(vector_reads.chunk_vector_rows)

    clusters = _in_thread(cluster_reads.clusters)
    cluster_documents = _in_thread(cluster_reads.cluster_documents)
    cluster_reports = _in_thread(cluster_reads.cluster_reports)
    cluster_relations = _in_thread(cluster_reads.cluster_relations)

    derivations = _in_thread(_derivation_records)
    derivation_counts = _in_thread(_derivation_counts)
    pending = _in_thread(_pending)

    async def changes_since(self, revision: int) -> ChangeSet | None:
        if revision == self._revision:  # nothing: the database need not be asked, which each question would do
            return ChangeSet(chunks=_NONE, entities=_NONE, history_nonce=self._history_nonce)
        return await self.run(lambda snapshot: change_log.changes_since(snapshot.connection, revision))

    async def mentions(self, kind: type[Mention], chunk_ids: Sequence[str]) -> dict[str, list[Mention]]:
        return await self.run(lambda snapshot: mentions.mentions(snapshot, kind, chunk_ids))

    async def allowed_numbers(self, kind: Literal[NodeKind.CHUNK] | VectorSpace) -> Ints | None:
        if not self._snapshot.is_filtered:
            return None  # at once, because every search asks for them
        if isinstance(kind, VectorSpace):
            return await self.run(lambda snapshot: vector_reads.allowed_rows(snapshot, kind))
        return await self.run(filters.allowed_chunks)

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
