"""Graph: the topology of one revision as tables, what a change makes of it, and what a filter leaves of it."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np

from quipu.algo.sparse_matrix import SparseMatrix, sparse_matrix
from quipu.ports.derivation_view import AliasRows, ChangeSet, GraphRows, SynonymRows
from quipu.ports.topology import AdjacencyMatrix, EdgeWeight, Floats, Ints
from quipu.topology.table import NONE, Entries, Layered, table_of

MILLIONTHS = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Tables:
    """What a graph consists of, as tables.

    Of `namings` and `statements` everything else follows, under a filter too, but for places and synonyms.
    """

    appearances: Layered  # entity × chunk: how often it is named there
    namings: Layered  # chunk × entity: how often it is named, how often mentioned, how often by its key
    statements: Layered  # chunk × source: target, weight in thousandths; a row for each mention
    relations: Layered  # entity × entity: weight in thousandths, mentions
    places: Layered  # chunk × document: ordinal
    synonyms: Layered  # entity × entity: cosine in millionths

    @cached_property
    def n_entities(self) -> int:
        """Numbers of entities are below this."""
        return max(table.n_rows for table in (self.appearances, self.relations, self.synonyms))

    @cached_property
    def n_chunks(self) -> int:
        """Numbers of chunks are below this."""
        return max(table.n_rows for table in (self.namings, self.statements, self.places))

    @cached_property
    def mentions(self) -> SparseMatrix:
        """Entity × chunk: how often it is mentioned there."""
        named = self.namings.everything()
        said = named.where(named.values[1] > 0).turned()
        shape = self.n_entities, self.n_chunks
        return sparse_matrix(said.rows, said.columns, said.values[1].astype(np.float64), shape)


@dataclass(frozen=True, slots=True)
class Graph:
    """A Topology; see ports.topology for what each method promises."""

    revision: int
    tables: Tables

    @property
    def n_entities(self) -> int:
        return self.tables.n_entities

    @property
    def n_chunks(self) -> int:
        return self.tables.n_chunks

    def relations(self, weight: EdgeWeight) -> AdjacencyMatrix:
        return self.tables.relations.links(_MEASURES[weight], (self.n_entities, self.n_entities))

    def occurrences(self) -> AdjacencyMatrix:
        return self.tables.appearances.links(_first, (self.n_entities, self.n_chunks))

    def mentions(self) -> AdjacencyMatrix:
        return self.tables.mentions

    def occurrences_by_chunk(self) -> AdjacencyMatrix:
        return self.tables.namings.links(_first, (self.n_chunks, self.n_entities))

    def synonyms(self) -> AdjacencyMatrix:
        return self.tables.synonyms.links(_cosine, (self.n_entities, self.n_entities))


def graph_of(revision: int, rows: GraphRows, synonyms: SynonymRows) -> Graph:
    """Return the graph that consists of all the rows of a store."""
    named, stated = _named(rows), _stated(rows)
    tables = Tables(
        appearances=_whole(Entries(named.columns, named.rows, named.values[:1])),
        namings=_whole(named),
        statements=_whole(stated),
        relations=_whole(_related(stated)),
        places=_whole(_placed(rows)),
        synonyms=_whole(_alike(synonyms)),
    )
    return Graph(revision, tables)


def advanced(graph: Graph, revision: int, changed: ChangeSet, rows: GraphRows, synonyms: SynonymRows) -> Graph:
    """Return the graph of a later revision, given what there is now of what changed."""
    before, chunks, entities = graph.tables, changed.chunks, changed.entities
    named, stated = _named(rows), _stated(rows)
    stood = before.appearances.entries(_within(entities, before.appearances)).columns
    stood_in = before.namings.entries(_within(chunks, before.namings)).columns
    said = before.statements.entries(_within(chunks, before.statements))
    alike = before.synonyms.entries(_within(entities, before.synonyms)).columns
    tables = Tables(
        appearances=_patched(
            before.appearances, Entries(named.columns, named.rows, named.values[:1]), entities, chunks, stood_in
        ),
        namings=_patched(before.namings, named, chunks, entities, stood),
        statements=before.statements.replaced(chunks, stated),
        relations=_restated(before.relations, _related(said), _related(stated)),
        places=before.places.replaced(chunks, _placed(rows)),
        synonyms=_patched(before.synonyms, _alike(synonyms), entities, entities, alike),
    )
    return Graph(revision, tables)


def restricted(graph: Graph, allowed: Ints, aliases: AliasRows) -> Graph:
    """Return what the `allowed` chunks (rising) alone say; entities that none of them mentions have no links."""
    tables = graph.tables
    chunks = _within(allowed, tables.places)
    named = _named_again(tables.namings.entries(chunks), aliases, graph.n_entities)
    stated = tables.statements.entries(chunks)
    entities = np.unique(named.rows) if len(named) else NONE
    named = named.turned()
    alike = tables.synonyms.entries(_within(entities, tables.synonyms))
    return Graph(
        graph.revision,
        Tables(
            appearances=_whole(Entries(named.columns, named.rows, named.values[:1]), graph.n_entities),
            namings=_whole(named, graph.n_chunks),
            statements=_whole(stated, graph.n_chunks),
            relations=_whole(_related(stated), graph.n_entities),
            places=_whole(tables.places.entries(chunks), graph.n_chunks),
            synonyms=_whole(alike.where(np.isin(alike.columns, entities)), graph.n_entities),
        ),
    )


def merged(graph: Graph) -> Graph:
    """Return the graph with tables in one piece each: the same however they came about."""
    parts = {each.name: Layered(getattr(graph.tables, each.name).merged()) for each in fields(Tables)}
    return Graph(graph.revision, Tables(**parts))


def _whole(entries: Entries, n_rows: int | None = None) -> Layered:
    return Layered(table_of(entries, n_rows))


def _named(rows: GraphRows) -> Entries:
    return Entries(rows.chunks, rows.entities, (rows.counts, rows.mentions, rows.keyed))


def _stated(rows: GraphRows) -> Entries:
    """Return the statements, in an order that does not depend on that of the rows."""
    order = np.lexsort((rows.weights, rows.targets, rows.sources, rows.stated_in))
    return Entries(rows.stated_in[order], rows.sources[order], (rows.targets[order], rows.weights[order]))


def _placed(rows: GraphRows) -> Entries:
    return Entries(rows.placed, rows.documents, (rows.ordinals,))


def _alike(rows: SynonymRows) -> Entries:
    """Return the pairs from either side."""
    similarities = np.rint(rows.similarities * MILLIONTHS).astype(np.int64)
    entries = Entries(rows.firsts, rows.seconds, (similarities,))
    return entries.and_(entries.turned())


def _related(stated: Entries) -> Entries:
    """Return the relations that statements make, from either side: their weight, and how many mentions they have."""
    targets, weights = stated.values
    pairs = Entries(stated.columns, targets, (weights, np.ones(len(stated), dtype=np.int64)))
    return _summed(pairs.and_(pairs.turned()))


def _summed(entries: Entries) -> Entries:
    """Return each place once, with the sums of its values."""
    width = int(entries.columns.max(initial=0)) + 1
    codes = entries.rows * width + entries.columns
    order = np.argsort(codes, kind="stable")
    codes, starts = np.unique(codes[order], return_index=True)
    sums = (np.add.reduceat(value[order], starts) if len(starts) else NONE for value in entries.values)
    return Entries(codes // width, codes % width, tuple(sums))


def _restated(relations: Layered, before: Entries, after: Entries) -> Layered:
    """Return the relations without what chunks said before and with what they say now."""
    change = after.and_(replace(before, values=tuple(-value for value in before.values)))
    rows = np.unique(change.rows)
    there = relations.entries(_within(rows, relations))
    sums = _summed(there.and_(change))
    return relations.replaced(rows, sums.where(sums.values[1] > 0))


def _patched(table: Layered, new: Entries, rows: Ints, columns: Ints, touched: Ints) -> Layered:
    """Return the table with these `rows` and `columns` (rising) holding the new entries alone.

    `touched` are all rows that have an entry in these columns.
    """
    every = np.unique(np.concatenate([rows, new.rows, touched]))
    old = table.entries(_within(np.setdiff1d(every, rows, assume_unique=True), table))
    return table.replaced(every, old.where(~np.isin(old.columns, columns)).and_(new))


def _within(rows: Ints, table: Layered) -> Ints:
    """Return those of the rows, rising, that the table may have."""
    return rows[: np.searchsorted(rows, table.n_rows)]


def _named_again(named: Entries, aliases: AliasRows, n_entities: int) -> Entries:
    """Return how often chunks name the entities they mention, by their keys and by the aliases given, by entity."""
    _, mentions, keyed = named.values
    codes = aliases.chunks * n_entities + aliases.entities
    order = np.argsort(codes)
    at = np.searchsorted(codes[order], wanted := named.rows * n_entities + named.columns)
    is_aliased = codes[order].take(at, mode="clip") == wanted if len(codes) else np.zeros(len(wanted), dtype=bool)
    counts = keyed.copy()
    counts[is_aliased] += aliases.counts[order][at[is_aliased]]
    counts = np.maximum(mentions, counts)
    is_known = np.zeros(n_entities, dtype=bool)
    is_known[named.columns[mentions > 0]] = True
    again = Entries(named.columns, named.rows, (counts, mentions, keyed))
    return again.where((counts > 0) & is_known[named.columns])


def _ones(_: Sequence[Ints]) -> Floats | None:
    return None


def _first(values: Sequence[Ints]) -> Floats | None:
    return values[0].astype(np.float64)


def _second(values: Sequence[Ints]) -> Floats | None:
    return values[1].astype(np.float64)


def _thousandths(values: Sequence[Ints]) -> Floats | None:
    return values[0] / 1_000


def _cosine(values: Sequence[Ints]) -> Floats | None:
    return values[0] / MILLIONTHS


_MEASURES = {EdgeWeight.ONE: _ones, EdgeWeight.WEIGHT: _thousandths, EdgeWeight.MENTIONS: _second}
