"""Graph: the topology of one revision as tables; build it, apply changes to it, and restrict it to a filter."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np

from quipu.algo.sparse_matrix import SparseMatrix, sparse_matrix
from quipu.ports.derivation_view import AliasRows, ChangeSet, GraphRows, SynonymRows
from quipu.ports.topology import AdjacencyMatrix, EdgeWeight, Floats, Ints
from quipu.topology.table import NO_NUMBERS, Entries, LayeredTable, build_table

MILLIONTHS = 1_000_000


@dataclass(frozen=True, kw_only=True)
class GraphTables:
    """The tables of a graph; numbers of entities, chunks and documents are rows and columns.

    Occurrences and relations follow from `occurrences_by_chunk` and `relation_mentions`, also under a filter.
    """

    occurrences: LayeredTable  # entity × chunk: number of occurrences
    occurrences_by_chunk: LayeredTable  # chunk × entity: numbers of occurrences, mentions, links by its key
    relation_mentions: LayeredTable  # chunk × source: target, weight in thousandths; one entry per mention
    relations: LayeredTable  # entity × entity: weight in thousandths, number of mentions
    chunk_positions: LayeredTable  # chunk × document: ordinal
    synonyms: LayeredTable  # entity × entity: cosine in millionths

    @cached_property
    def n_entities(self) -> int:
        """One more than the largest number of an entity."""
        return max(table.n_rows for table in (self.occurrences, self.relations, self.synonyms))

    @cached_property
    def n_chunks(self) -> int:
        """One more than the largest number of a chunk."""
        return max(table.n_rows for table in (self.occurrences_by_chunk, self.relation_mentions, self.chunk_positions))

    @cached_property
    def mentions(self) -> SparseMatrix:
        """Entity × chunk: how often the chunk mentions the entity."""
        occurrences = self.occurrences_by_chunk.all_entries()
        mentions = occurrences.where(occurrences.values[1] > 0).transposed()
        shape = self.n_entities, self.n_chunks
        return sparse_matrix(mentions.rows, mentions.columns, mentions.values[1].astype(np.float64), shape)


@dataclass(frozen=True, slots=True)
class Graph:
    """A Topology of one revision; ports.topology documents the methods."""

    revision: int
    tables: GraphTables

    @property
    def n_entities(self) -> int:
        return self.tables.n_entities

    @property
    def n_chunks(self) -> int:
        return self.tables.n_chunks

    def relations(self, weight: EdgeWeight) -> AdjacencyMatrix:
        return self.tables.relations.links(_MEASURES[weight], (self.n_entities, self.n_entities))

    def occurrences(self) -> AdjacencyMatrix:
        return self.tables.occurrences.links(_first, (self.n_entities, self.n_chunks))

    def mentions(self) -> AdjacencyMatrix:
        return self.tables.mentions

    def occurrences_by_chunk(self) -> AdjacencyMatrix:
        return self.tables.occurrences_by_chunk.links(_first, (self.n_chunks, self.n_entities))

    def synonyms(self) -> AdjacencyMatrix:
        return self.tables.synonyms.links(_cosine, (self.n_entities, self.n_entities))


def build_graph(revision: int, rows: GraphRows) -> Graph:
    """Return the graph of all rows of a store."""
    named, stated = _occurrences(rows), _relation_mentions(rows)
    tables = GraphTables(
        occurrences=_single_layer(Entries(named.columns, named.rows, named.values[:1])),
        occurrences_by_chunk=_single_layer(named),
        relation_mentions=_single_layer(stated),
        relations=_single_layer(_relations(stated)),
        chunk_positions=_single_layer(_chunk_positions(rows)),
        synonyms=_single_layer(_synonyms(rows.synonyms)),
    )
    return Graph(revision, tables)


def apply_changes(graph: Graph, revision: int, changed: ChangeSet, rows: GraphRows) -> Graph:
    """Return the graph of a later revision; `rows` are the current rows of what changed."""
    before, chunks, entities = graph.tables, changed.chunks, changed.entities
    named, stated = _occurrences(rows), _relation_mentions(rows)
    changed_chunks_of_entities = before.occurrences.entries(_rows_in(entities, before.occurrences)).columns
    changed_entities_of_chunks = before.occurrences_by_chunk.entries(
        _rows_in(chunks, before.occurrences_by_chunk)
    ).columns
    old_mentions = before.relation_mentions.entries(_rows_in(chunks, before.relation_mentions))
    similar = before.synonyms.entries(_rows_in(entities, before.synonyms)).columns
    tables = GraphTables(
        occurrences=_replace_rows_and_columns(
            before.occurrences,
            Entries(named.columns, named.rows, named.values[:1]),
            entities,
            chunks,
            changed_entities_of_chunks,
        ),
        occurrences_by_chunk=_replace_rows_and_columns(
            before.occurrences_by_chunk, named, chunks, entities, changed_chunks_of_entities
        ),
        relation_mentions=before.relation_mentions.replaced(chunks, stated),
        relations=_update_relations(before.relations, _relations(old_mentions), _relations(stated)),
        chunk_positions=before.chunk_positions.replaced(chunks, _chunk_positions(rows)),
        synonyms=_replace_rows_and_columns(before.synonyms, _synonyms(rows.synonyms), entities, entities, similar),
    )
    return Graph(revision, tables)


def restrict_graph(graph: Graph, allowed: Ints, aliases: AliasRows) -> Graph:
    """Return the graph of the `allowed` chunks (ascending) only; entities they do not mention have no entries."""
    tables = graph.tables
    chunks = _rows_in(allowed, tables.chunk_positions)
    named = _filtered_occurrences(tables.occurrences_by_chunk.entries(chunks), aliases, graph.n_entities)
    stated = tables.relation_mentions.entries(chunks)
    entities = np.unique(named.rows) if len(named) else NO_NUMBERS
    named = named.transposed()
    similar = tables.synonyms.entries(_rows_in(entities, tables.synonyms))
    return Graph(
        graph.revision,
        GraphTables(
            occurrences=_single_layer(Entries(named.columns, named.rows, named.values[:1]), graph.n_entities),
            occurrences_by_chunk=_single_layer(named, graph.n_chunks),
            relation_mentions=_single_layer(stated, graph.n_chunks),
            relations=_single_layer(_relations(stated), graph.n_entities),
            chunk_positions=_single_layer(tables.chunk_positions.entries(chunks), graph.n_chunks),
            synonyms=_single_layer(similar.where(np.isin(similar.columns, entities)), graph.n_entities),
        ),
    )


def merge_layers(graph: Graph) -> Graph:
    """Return the graph without patches, so that it does not depend on the history of changes."""
    names = [table.name for table in fields(GraphTables)]
    tables = {name: LayeredTable(getattr(graph.tables, name).merge_layers()) for name in names}
    return Graph(graph.revision, GraphTables(**tables))


def _single_layer(entries: Entries, n_rows: int | None = None) -> LayeredTable:
    return LayeredTable(build_table(entries, n_rows))


def _occurrences(rows: GraphRows) -> Entries:
    return Entries(rows.chunks, rows.entities, (rows.counts, rows.mentions, rows.keyed))


def _relation_mentions(rows: GraphRows) -> Entries:
    """Return the mentions of relations in an order that does not depend on the order of the rows."""
    order = np.lexsort((rows.weights, rows.targets, rows.sources, rows.stated_in))
    return Entries(rows.stated_in[order], rows.sources[order], (rows.targets[order], rows.weights[order]))


def _chunk_positions(rows: GraphRows) -> Entries:
    return Entries(rows.placed, rows.documents, (rows.ordinals,))


def _synonyms(rows: SynonymRows) -> Entries:
    """Return each pair of synonyms in both directions."""
    similarities = np.rint(rows.similarities * MILLIONTHS).astype(np.int64)
    entries = Entries(rows.firsts, rows.seconds, (similarities,))
    return entries.concatenate(entries.transposed())


def _relations(stated: Entries) -> Entries:
    """Return the relations of these mentions in both directions: total weight and number of mentions."""
    targets, weights = stated.values
    pairs = Entries(stated.columns, targets, (weights, np.ones(len(stated), dtype=np.int64)))
    return _sum_duplicates(pairs.concatenate(pairs.transposed()))


def _sum_duplicates(entries: Entries) -> Entries:
    """Return one entry for each row and column, with the sums of its values."""
    width = int(entries.columns.max(initial=0)) + 1
    codes = entries.rows * width + entries.columns
    order = np.argsort(codes, kind="stable")
    codes, starts = np.unique(codes[order], return_index=True)
    sums = (np.add.reduceat(value[order], starts) if len(starts) else NO_NUMBERS for value in entries.values)
    return Entries(codes // width, codes % width, tuple(sums))


def _update_relations(relations: LayeredTable, before: Entries, after: Entries) -> LayeredTable:
    """Return the relations after the mentions of changed chunks are subtracted and added again."""
    change = after.concatenate(replace(before, values=tuple(-value for value in before.values)))
    rows = np.unique(change.rows)
    current = relations.entries(_rows_in(rows, relations))
    sums = _sum_duplicates(current.concatenate(change))
    return relations.replaced(rows, sums.where(sums.values[1] > 0))


def _replace_rows_and_columns(
    table: LayeredTable, new: Entries, rows: Ints, columns: Ints, touched: Ints
) -> LayeredTable:
    """Return the table in which these `rows` and `columns` (ascending) hold exactly the new entries.

    `touched` are all rows that have an entry in these columns.
    """
    all_rows = np.unique(np.concatenate([rows, new.rows, touched]))
    old = table.entries(_rows_in(np.setdiff1d(all_rows, rows, assume_unique=True), table))
    return table.replaced(all_rows, old.where(~np.isin(old.columns, columns)).concatenate(new))


def _rows_in(rows: Ints, table: LayeredTable) -> Ints:
    """Return the `rows` (ascending) that exist in the table."""
    return rows[: np.searchsorted(rows, table.n_rows)]


def _filtered_occurrences(named: Entries, aliases: AliasRows, n_entities: int) -> Entries:
    """Return the occurrences of mentioned entities by entity × chunk, counted by key and by the `aliases`."""
    _, mentions, keyed = named.values
    codes = aliases.chunks * n_entities + aliases.entities
    order = np.argsort(codes)
    at = np.searchsorted(codes[order], pairs := named.rows * n_entities + named.columns)
    is_aliased = codes[order].take(at, mode="clip") == pairs if len(codes) else np.zeros(len(pairs), dtype=bool)
    counts = keyed.copy()
    counts[is_aliased] += aliases.counts[order][at[is_aliased]]
    counts = np.maximum(mentions, counts)
    is_mentioned = np.zeros(n_entities, dtype=bool)
    is_mentioned[named.columns[mentions > 0]] = True
    by_entity = Entries(named.columns, named.rows, (counts, mentions, keyed))
    return by_entity.where((counts > 0) & is_mentioned[named.columns])


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
