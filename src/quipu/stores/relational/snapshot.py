"""A snapshot of the index: its connection, what is cached for its revision, lookups by value; and the known names."""

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, chain
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from sqlalchemy import ColumnElement, Connection, Row, Select, Table, TableClause, func, inspect, select
from sqlalchemy import column as sql_column
from sqlalchemy.ext.compiler import compiles

from quipu.errors import Corrupt, Mismatch
from quipu.model.cluster import Cluster, Hierarchy
from quipu.model.graph import Chunk
from quipu.model.query import Filter
from quipu.ports.derivation_view import DerivationCounts, EntityTypes
from quipu.ports.store import VectorSpace
from quipu.stores.relational import schema as s
from quipu.stores.relational.sql import Backend, ByValues, Ints, as_texts, checksum, from_texts, read_meta
from quipu.text.names import NameStarts, anchor
from quipu.text.words import Analyzer

K = TypeVar("K")
V = TypeVar("V")
Rows = TypeVar("Rows", bound=Iterable[Any])


class AllowedRows(TableClause):
    """The row ids of the documents or chunks that a filtered snapshot may see; `Backend.restrict` fills it.

    It is a temporary table, but on PostgreSQL a variable of the session: a standby cannot make tables.
    """

    inherit_cache = True


@compiles(AllowedRows, "postgresql")
def _compile_variable(table: AllowedRows, compiler: Any, asfrom: bool = False, **options: Any) -> str:
    if not asfrom:
        return str(compiler.visit_table(table, asfrom=False, **options))
    return f"unnest(CAST(current_setting('quipu.{table.name}') AS bigint[])) AS {table.name}(rid)"


ALLOWED_DOCUMENT = AllowedRows("allowed_document", sql_column("rid", s.INTEGER))
ALLOWED_CHUNK = AllowedRows("allowed_chunk", sql_column("rid", s.INTEGER))

_ALL_WORDS = select(s.name.c.words)
_LAST_NAME = select(func.max(s.name.c.rid))
_BITS_PER_NAME = 16  # of the Bloom filter: about one in sixteen unknown anchors passes
_MAX_CACHED_IDS = 100_000  # of each kind; a cache has 13 kinds
_BYTES_PER_ID = 200  # measured, with the key: at most 260 MB of ids in one cache
MAX_CACHED_CHUNKS = 1_000
_BYTES_PER_CHUNK = 6_000  # of the longest usual ones
_MAX_FILTERS = 4  # the most recently used ones stay cached
_MAX_BYTES = 256_000_000  # of the caches of all filters together


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionArrays:
    """Arrays of the whole index at a revision, with its history nonce and the next vector row at that time."""

    revision: int
    history_nonce: int | None
    next_row: int
    arrays: tuple[Ints, ...]


@dataclass(frozen=True, slots=True)
class SnapshotCache:
    """What snapshots of one revision and filter have read, so that a server reads it once.

    Filters of the same revision share `unfiltered`. All revisions share `incremental`: its arrays may be of an
    earlier revision and are updated when they are used. `clusters` are cached without their members.
    """

    unfiltered: dict[str, tuple[Ints, ...]] = field(default_factory=dict)
    incremental: dict[str, RevisionArrays] = field(default_factory=dict)
    chunks: dict[str, Chunk] = field(default_factory=dict)
    chunk_ids: dict[int, str] = field(default_factory=dict)
    chunk_numbers: dict[str, int] = field(default_factory=dict)
    entity_keys: dict[int, str] = field(default_factory=dict)
    entity_rids: dict[str, int] = field(default_factory=dict)
    title_entities: dict[int, int] = field(default_factory=dict)
    vector_rows: Mapping[VectorSpace, dict[str, int]] = field(
        default_factory=lambda: {space: {} for space in VectorSpace}
    )
    arrays: dict[str, tuple[Ints, ...]] = field(default_factory=dict)
    types: dict[str, EntityTypes] = field(default_factory=dict)
    clusters: dict[Hierarchy, list[Cluster]] = field(default_factory=dict)
    cluster_counts: dict[Hierarchy, DerivationCounts] = field(default_factory=dict)
    owners: Mapping[VectorSpace, dict[int, tuple[str, ...]]] = field(
        default_factory=lambda: {space: {} for space in VectorSpace}
    )

    def n_bytes(self) -> int:
        """Return about how much memory this cache uses, without what it shares with other filters."""
        types = self.types.copy().values()  # copies, because other threads may add entries
        arrays = chain(*self.arrays.copy().values(), *((types_.numbers, types_.codes) for types_ in types))
        chunks, entities = (self.chunk_ids, self.chunk_numbers), (self.entity_keys, self.entity_rids)
        ids: list[Sized] = [*chunks, *entities, self.title_entities]
        ids += [*self.vector_rows.values(), *self.owners.values()]
        n_ids = sum(map(len, [*ids, *self.clusters.copy().values()]))
        return sum(array.nbytes for array in arrays) + _BYTES_PER_ID * n_ids + _BYTES_PER_CHUNK * len(self.chunks)


class SnapshotCaches:
    """The caches of the newest revision: one for the whole index, and one for each recently used filter.

    The cache of the last used filter always stays; older ones stay while all together fit `_MAX_BYTES`.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()  # views open in threads
        self._revision = -1
        self._history_nonce: int | None = None
        self._unfiltered: dict[str, tuple[Ints, ...]] = {}
        self._incremental: dict[str, RevisionArrays] = {}
        self._by_filter: dict[Filter, SnapshotCache] = {}

    def at(self, revision: int, history_nonce: int | None, allowed: Filter) -> SnapshotCache:
        """Return the cache of a revision and filter; an empty one for a revision older than the newest.

        The history nonce separates equal revision numbers of different histories, as after restoring a backup.
        """
        with self._lock:
            if revision < self._revision:
                return SnapshotCache()
            if (revision, history_nonce) != (self._revision, self._history_nonce):
                self._revision, self._history_nonce = revision, history_nonce
                self._unfiltered, self._by_filter = {}, {}
            cache = self._by_filter.pop(allowed, None)
            cache = cache or SnapshotCache(unfiltered=self._unfiltered, incremental=self._incremental)
            self._by_filter[allowed] = cache  # last: the most recently used
            self._evict()
            return cache

    def _evict(self) -> None:
        filters = [allowed for allowed in reversed(self._by_filter) if not allowed.is_empty()]
        totals = list(accumulate(self._by_filter[allowed].n_bytes() for allowed in filters))
        for n_newer, (allowed, n_bytes) in enumerate(zip(filters, totals, strict=True)):
            if n_newer >= _MAX_FILTERS or (n_newer and n_bytes > _MAX_BYTES):
                del self._by_filter[allowed]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A connection inside a read transaction; if `is_filtered`, its temporary tables say which chunks may be seen.

    Snapshots of the same revision and filter share `cache`.
    """

    connection: Connection
    backend: Backend
    analyzer: Analyzer
    cache: SnapshotCache
    is_filtered: bool = False
    keeps_history: bool = False  # whether a commit keeps what it replaces and removes


class Lookup:
    """A query of the rows whose `column` is among given values. Its statements are built once, when first used.

    Under a filter it returns only rows whose chunk, at the column `stated_in`, is allowed. Prefer plain tuples:
    naming the columns of a row takes longer than reading it, which counts for thousands of rows.
    """

    def __init__(self, query: Select[Any], column: Any, *, stated_in: ColumnElement[Any] | None = None) -> None:
        self._query = query
        self._column = column
        self._stated_in = stated_in

    def rows(self, snapshot: Snapshot, values: Collection[Any]) -> list[tuple[Any, ...]]:
        """Return the rows of any number of values as plain tuples, in no order."""
        return (self._filtered if self._restricts(snapshot) else self._plain).tuples(snapshot.connection, values)

    def records(
        self, snapshot: Snapshot, values: Collection[Any], **parameters: object
    ) -> Sequence[Row[*tuple[Any, ...]]]:
        """Return the rows of any number of values with named columns, in no order; `parameters` as in `ByValues`."""
        by_values = self._filtered if self._restricts(snapshot) else self._plain
        return by_values.rows(snapshot.connection, values, **parameters)

    def mapping(self, snapshot: Snapshot, cache: dict[K, V], values: Collection[K]) -> dict[K, V]:
        """Return the second column by the first, from `cache` where it has them."""
        return cached_values(cache, values, lambda missing: dict(map(tuple, self.rows(snapshot, sorted(missing)))))

    def ints(self, snapshot: Snapshot, values: Collection[Any]) -> tuple[Ints, ...]:
        """Return each column of a query of whole numbers as an array [n], the rows in no order."""
        by_values = self._filtered_texts if self._restricts(snapshot) else self._plain_texts
        return from_texts(by_values.tuples(snapshot.connection, values), len(self._query.selected_columns))

    def _restricts(self, snapshot: Snapshot) -> bool:
        return snapshot.is_filtered and self._stated_in is not None

    @cached_property
    def _plain(self) -> ByValues:
        return ByValues(self._query, self._column)

    @cached_property
    def _filtered(self) -> ByValues:
        return ByValues(self._query.where(is_allowed(self._stated_in)), self._column)

    @cached_property
    def _plain_texts(self) -> ByValues:
        return ByValues(as_texts(self._query), self._column)

    @cached_property
    def _filtered_texts(self) -> ByValues:
        return ByValues(as_texts(self._query.where(is_allowed(self._stated_in))), self._column)


def is_allowed(chunk: Any) -> ColumnElement[bool]:
    """Return the condition that the filter allows the chunk with this row id.

    It uses EXISTS instead of IN: for IN the planner would start from every allowed chunk.
    """
    return select(1).where(ALLOWED_CHUNK.c.rid == chunk).correlate_except(ALLOWED_CHUNK).exists()


def in_order(value_by_key: Mapping[K, V], keys: Iterable[K]) -> dict[K, V]:
    """Return the values of those keys that have one, in the order of `keys`, each key once."""
    return {key: value_by_key[key] for key in dict.fromkeys(keys) if key in value_by_key}


def read_only(*arrays: Ints) -> tuple[Ints, ...]:
    """Make arrays read-only, because many views share them, and return them."""
    for array in arrays:
        array.setflags(write=False)
    return arrays


def cached_arrays(
    cache: dict[str, tuple[Ints, ...]], key: str, read: Callable[[], tuple[Ints, ...]]
) -> tuple[Ints, ...]:
    """Return the arrays of a key, read and made read-only if they are not cached."""
    return cached_value(cache, key, lambda: read_only(*read()))


def cached_value(cache: dict[K, V], key: K, read: Callable[[], V]) -> V:
    """Return the value of a key, read if it is not cached."""
    return cached_values(cache, [key], lambda _: {key: read()})[key]


def cached_values(
    cache: dict[K, V],
    keys: Collection[K],
    read: Callable[[list[K]], Mapping[K, V]],
    max_cached: int | None = None,
) -> dict[K, V]:
    """Return the values of those keys that exist; `read` gets the keys that are not cached."""
    values: dict[K, V] = {}
    missing: list[K] = []
    for key in keys:  # one access for each key: another thread may clear the cache meanwhile
        value = cache.get(key)
        if value is None:
            missing.append(key)
        else:
            values[key] = value
    if missing:
        new, limit = read(missing), max_cached or _MAX_CACHED_IDS
        if len(cache) + len(new) > limit:
            cache.clear()
        if len(new) <= limit:
            cache.update(new)
        values.update(new)
    return values


def check_rows(table: Table, rows: Rows) -> Rows:
    """Return rows with all columns of a table. Raises Corrupt if one differs from its checksum."""
    for row in rows:
        if row.checksum != checksum(table, row._mapping):
            raise Corrupt(
                f"A row of the table {table.name} is damaged: it differs from its checksum.",
                remedy="Restore the index from a copy, or add the documents to a new one. `quipu verify` lists damage.",
            )
    return rows


class BloomFilter:
    """The anchors of known names, in memory: of a thousand word pairs of a chunk, few need a look-up.

    Source: Bloom, Space/time trade-offs in hash coding with allowable errors (1970), with one hash function. Names
    that pass are looked up in the database, so the filter may hold too much, but never too little. It describes one
    revision. It is filled once look-ups have cost as much as filling it, and emptied when another process has written.
    """

    def __init__(self) -> None:
        self._revision = -1
        self._bits: npt.NDArray[np.bool_] | None = None
        self._n_names = 0
        self._n_lookups = 0

    def begin(self, revision: int) -> None:
        """Begin a commit on top of `revision`; if that is the commit of another process, the filter is emptied."""
        if self._revision != revision:
            self.clear()
        self._revision = -1

    def clear(self) -> None:
        """Empty the filter: it is filled again when it is next used."""
        self._bits = None

    def finish(self, revision: int) -> None:
        """Record that the commit succeeded and made `revision`."""
        self._revision = revision

    def add(self, anchors: Collection[str]) -> None:
        """Add the anchors of new names."""
        self._n_names += len(anchors)
        if self._bits is not None:
            if self._n_names * _BITS_PER_NAME > 2 * len(self._bits):
                self.clear()  # it is too full
            else:
                self._bits[_positions(anchors, len(self._bits))] = True

    def passing(self, connection: Connection, places: NameStarts) -> NameStarts:
        """Return those of `places` where a known name may begin."""
        if self._bits is None:
            self._n_lookups += len(places.anchors)
            if self._n_lookups > (connection.scalar(_LAST_NAME) or 0):
                self._fill(connection)
        if self._bits is None:
            return places
        passing = self._bits[_positions(places.anchors, len(self._bits))].nonzero()[0].tolist()
        return NameStarts([places.positions[i] for i in passing], [places.anchors[i] for i in passing])

    def _fill(self, connection: Connection) -> None:
        anchors = [anchor(words.split(" ", 2)) for words in connection.execute(_ALL_WORDS).scalars()]
        self._n_names = len(anchors)
        self._bits = np.zeros(max(1 << 16, 1 << (len(anchors) * _BITS_PER_NAME).bit_length()), dtype=np.bool_)
        self._bits[_positions(anchors, len(self._bits))] = True


def _positions(anchors: Iterable[str], n_bits: int) -> npt.NDArray[np.int64]:
    return np.fromiter(map(hash, anchors), dtype=np.int64) & (n_bits - 1)


def schema_number(connection: Connection) -> int:
    """Return the schema number of the index, 0 where the database is empty or not an index."""
    tables = inspect(connection)
    if not tables.has_table("meta") or {c["name"] for c in tables.get_columns("meta")} != {"key", "value"}:
        return 0
    number = read_meta(connection, "schema") or ""
    return int(number) if number.isdigit() else 0


def check_tokenizer(connection: Connection, tokenizer: str) -> None:
    """Raise Mismatch if full text was built with another tokenizer."""
    index_tokenizer = read_meta(connection, "tokenizer")
    if index_tokenizer != tokenizer:
        raise Mismatch(
            f"Full text was built with the tokenizer {index_tokenizer!r}, but {tokenizer!r} is set.",
            remedy="Run `quipu refresh --rebuild`, or set the earlier tokenizer again.",
        )
