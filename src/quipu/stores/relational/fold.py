"""The fold in tables: after a change of mentions, bring the touched entities and relations up to date.

The cost follows the change: counts are kept as rows and added to, descriptions are picked through an index, so a hub
with ten thousand mentions costs what any other entity costs.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Row, Table, TextClause, Update, bindparam, func, select
from sqlalchemy import text as sql_text

from quipu.model.fold import (
    MAX_DESCRIPTIONS,
    NO_DESCRIPTION,
    display_name,
    distinct_descriptions,
    join_descriptions,
    most_common_type,
    needs_summary,
    top_keywords,
)
from quipu.model.graph import entity_text, relation_text
from quipu.model.summary import SummaryTargetKind
from quipu.ports.store import VectorSpace
from quipu.stores.relational import schema as s
from quipu.stores.relational import summaries
from quipu.stores.relational.backend import Backend
from quipu.stores.relational.mentions import NewEntity, NewRelation, Tallies
from quipu.stores.relational.sql import ByValues, Upsert, blocks, execute_rows, insert_rows, to_json
from quipu.stores.relational.vector_writes import VectorChanges, vector_hash


@dataclass(slots=True)
class Folded:
    """What a fold changed: entities that went, names of those that stay, by row, and which vectors are wanted."""

    gone_entities: list[str] = field(default_factory=list)  # keys
    gone_rids: list[int] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    vectors: VectorChanges = field(default_factory=VectorChanges)


class _Counts:
    """Counted values of entities or relations, a row each: (owner, value, n)."""

    def __init__(self, table: Table, owner: str, value: str) -> None:
        self._columns = owner, value
        self._add = Upsert(table, counts=("n",))
        self._of = ByValues(select(table.c[owner], table.c[value], table.c.n), table.c[owner])
        self._drop = ByValues(table.delete().where(table.c.n == 0), table.c[owner])

    def add(self, connection: Connection, backend: Backend, counts: Counter[tuple[int, str]]) -> None:
        """Add to the counts; those that reach zero go."""
        owner, value = self._columns
        changes = sorted((rid, text_, n) for (rid, text_), n in counts.items() if n)
        self._add.run(connection, backend, [{owner: rid, value: text_, "n": n} for rid, text_, n in changes])
        self._drop.run(connection, sorted({rid for rid, _, n in changes if n < 0}))

    def of(self, connection: Connection, owners: Sequence[int]) -> dict[int, dict[str, int]]:
        """Return the counts of each owner, by value."""
        counts: dict[int, dict[str, int]] = {}
        for owner, value, n in self._of.rows(connection, owners):
            counts.setdefault(owner, {})[value] = n
        return counts


_SURFACES = _Counts(s.entity_surface, "entity", "surface")
_TYPES = _Counts(s.entity_type, "entity", "type")
_KEYWORDS = _Counts(s.relation_keyword, "relation", "keyword")
_source, _target = s.entity.alias(), s.entity.alias()
_RELATIONS = ByValues(
    select(s.relation, _source.c.key.label("source_key"), _target.c.key.label("target_key"))
    .join(_source, _source.c.rid == s.relation.c.source)
    .join(_target, _target.c.rid == s.relation.c.target),
    s.relation.c.rid,
)
_WALKED = MAX_DESCRIPTIONS + 1  # one more than is shown: whether it is there decides whether a summary is wanted
_ENTITIES = ByValues(select(s.entity), s.entity.c.rid)
_DROP_RELATIONS = ByValues(s.relation.delete(), s.relation.c.rid)
_DROP_ENTITIES = ByValues(s.entity.delete(), s.entity.c.rid)


def refold(connection: Connection, backend: Backend, tallies: Tallies, folded: Folded) -> None:
    """Bring every entity and relation the tallies touch up to date."""
    degrees = _refold_relations(connection, backend, tallies, folded)
    _refold_entities(connection, backend, tallies, degrees, folded)


def mark_waiting(connection: Connection) -> None:
    """Mark everything whose join leaves a description out as waiting for a summary, in an index that never did."""
    for table, mentions in ((s.entity, s.entity_mention), (s.relation, s.relation_mention)):
        owner, rank = mentions.c[table.name], mentions.c.description_order
        several = select(owner).where(rank > NO_DESCRIPTION).group_by(owner).having(func.count(rank.distinct()) > 1)
        descriptions = _descriptions(connection, table.name, connection.execute(several).scalars().all())
        waiting = [
            {"row": rid, "described_by": s.WAITING}
            for rid, ordered in sorted(descriptions.items())
            if needs_summary(ordered)
        ]
        mark = table.update().where(table.c.rid == bindparam("row")).values(described_by=bindparam("described_by"))
        execute_rows(connection, mark, waiting)


def _refold_relations(connection: Connection, backend: Backend, tallies: Tallies, folded: Folded) -> Counter[int]:
    """Update relations; return the change of degree of the entities at their ends."""
    new = tallies.new_relations
    known = sorted(tallies.relation_mentions.keys() - new.keys())
    _KEYWORDS.add(connection, backend, tallies.keywords)
    keywords = _KEYWORDS.of(connection, known) | _of_new(tallies.keywords, new)
    descriptions = _descriptions(connection, "relation", known) | _of_new_described(tallies.relation_descriptions, new)
    degrees: Counter[int] = Counter()
    rows: list[dict[str, Any]] = []
    gone: list[int] = []
    before = _RELATIONS.rows(connection, known)
    said = tallies.relation_descriptions, tallies.relation_forgotten
    summarised = _standing_summaries(connection, SummaryTargetKind.RELATION, before, *said)
    touched: list[Row[Any] | NewRelation] = [*before, *new.values()]
    for row in touched:
        n_mentions = row.n_mentions + tallies.relation_mentions[row.rid]
        change = (n_mentions > 0) - (row.n_mentions > 0)
        degrees.update({row.source: change, row.target: change})
        if not n_mentions:
            gone.append(row.rid)
            folded.vectors.moved(VectorSpace.RELATION, row.vector_hash, "")
            continue
        words = top_keywords(keywords.get(row.rid, {}))
        description, described_by = _described(descriptions.get(row.rid, []), summarised.get(row.rid))
        text = relation_text(words, row.source_key, row.target_key, description)
        wanted = vector_hash(VectorSpace.RELATION, text)
        folded.vectors.moved(VectorSpace.RELATION, row.vector_hash, wanted)
        rows.append(
            {
                "rid": row.rid,
                "source": row.source,
                "target": row.target,
                "keywords": to_json(words),
                "description": description,
                "weight": row.weight + tallies.relation_weights[row.rid],
                "n_mentions": n_mentions,
                "n_chunks": row.n_chunks + tallies.relation_chunks[row.rid],
                "vector_hash": wanted,
                "described_by": described_by,
            }
        )
    _write(connection, s.relation, rows, new)
    _DROP_RELATIONS.run(connection, gone)
    return Counter({entity: change for entity, change in degrees.items() if change})


def _refold_entities(
    connection: Connection, backend: Backend, tallies: Tallies, degrees: Counter[int], folded: Folded
) -> None:
    new = tallies.new_entities
    known = sorted((tallies.entity_mentions.keys() | degrees.keys()) - new.keys())
    _SURFACES.add(connection, backend, tallies.surfaces)
    _TYPES.add(connection, backend, tallies.types)
    surfaces = _SURFACES.of(connection, known) | _of_new(tallies.surfaces, new)
    types = _TYPES.of(connection, known) | _of_new(tallies.types, new)
    descriptions = _descriptions(connection, "entity", known) | _of_new_described(tallies.entity_descriptions, new)
    rows: list[dict[str, Any]] = []
    gone: list[int] = []
    before = _ENTITIES.rows(connection, known)
    said = tallies.entity_descriptions, tallies.entity_forgotten
    summarised = _standing_summaries(connection, SummaryTargetKind.ENTITY, before, *said)
    touched: list[Row[Any] | NewEntity] = [*before, *new.values()]
    for row in touched:
        n_mentions = row.n_mentions + tallies.entity_mentions[row.rid]
        if not n_mentions:
            gone.append(row.rid)
            folded.gone_entities.append(row.key)
            folded.gone_rids.append(row.rid)
            folded.vectors.moved(VectorSpace.ENTITY, row.vector_hash, "")
            continue
        name = folded.names[row.rid] = display_name(surfaces[row.rid])
        description, described_by = _described(descriptions.get(row.rid, []), summarised.get(row.rid))
        wanted = vector_hash(VectorSpace.ENTITY, entity_text(name, description))
        folded.vectors.moved(VectorSpace.ENTITY, row.vector_hash, wanted)
        rows.append(
            {
                "rid": row.rid,
                "key": row.key,
                "name": name,
                "type": most_common_type(types[row.rid]),
                "description": description,
                "n_mentions": n_mentions,
                "n_chunks": row.n_chunks + tallies.entity_chunks[row.rid],
                "degree": row.degree + degrees[row.rid],
                "vector_hash": wanted,
                "described_by": described_by,
            }
        )
    _write(connection, s.entity, rows, new)
    _DROP_ENTITIES.run(connection, gone)


def _standing_summaries(
    connection: Connection,
    kind: SummaryTargetKind,
    rows: Sequence[Row[Any]],
    added: Mapping[int, Sequence[tuple[int, str]]],
    removed: Mapping[int, Sequence[int]],
) -> dict[int, str]:
    """Return the summaries, by row, whose inputs are what they were; drop the others."""
    summarised = {row.rid: row.description for row in rows if row.described_by == s.SUMMARISED}
    outdated = summaries.with_changed_descriptions(connection, kind, summarised, added, removed)
    summaries.drop(connection, kind, sorted(outdated))
    return {rid: text for rid, text in summarised.items() if rid not in outdated}


def _described(ordered: Sequence[str], summary: str | None) -> tuple[str, int]:
    """Return the description to show of an item with these descriptions, and what it is."""
    if summary is not None:
        return summary, s.SUMMARISED
    return join_descriptions(ordered), s.WAITING if needs_summary(ordered) else s.JOINED


def _write(connection: Connection, table: Table, rows: Sequence[dict[str, Any]], new: Collection[int]) -> None:
    """Insert the rows that are new and update the others."""
    insert_rows(connection, table, [row for row in rows if row["rid"] in new])
    changed = [{**row, "row": row["rid"]} for row in rows if row["rid"] not in new]
    execute_rows(connection, _UPDATES[table.name], changed)


def _update_by_rid(table: Table, kept: Collection[str]) -> Update:
    values: dict[str, Any] = {column.name: bindparam(column.name) for column in table.c if column.name not in kept}
    return table.update().where(table.c.rid == bindparam("row")).values(values)


_UPDATES = {
    "entity": _update_by_rid(s.entity, ("rid", "key")),
    "relation": _update_by_rid(s.relation, ("rid", "source", "target")),
}


def _of_new(counts: Counter[tuple[int, str]], new: Collection[int]) -> dict[int, dict[str, int]]:
    """Return the counts of new owners: all there are."""
    of_new: dict[int, dict[str, int]] = {}
    for (owner, value), n in counts.items():
        if owner in new:
            of_new.setdefault(owner, {})[value] = n
    return of_new


def _of_new_described(described: Mapping[int, Sequence[tuple[int, str]]], new: Collection[int]) -> dict[int, list[str]]:
    return {owner: distinct_descriptions(described[owner])[:_WALKED] for owner in new if owner in described}


def _descriptions(connection: Connection, owner: str, owners: Sequence[int]) -> dict[int, list[str]]:
    """Return the first few distinct descriptions of each owner, walking the index from one rank to the next."""
    found: dict[int, list[str]] = {}
    for block in blocks(owners):
        for owner_rid, description in connection.execute(_WALKS[owner], {"owners": block, "limit": _WALKED}):
            found.setdefault(owner_rid, []).append(description)
    return found


def _walk(owner: str) -> TextClause:
    return sql_text(f"""
        WITH RECURSIVE pick(owner, rank, i) AS (
            SELECT o.rid, (SELECT min(m.description_order) FROM {owner}_mention m
                           WHERE m.{owner} = o.rid AND m.description_order > -1), 1
            FROM {owner} o WHERE o.rid IN :owners
            UNION ALL
            SELECT p.owner, (SELECT min(m.description_order) FROM {owner}_mention m
                             WHERE m.{owner} = p.owner AND m.description_order > p.rank), p.i + 1
            FROM pick p WHERE p.rank IS NOT NULL AND p.i < :limit
        )
        SELECT p.owner AS owner, (SELECT m.description FROM {owner}_mention m
                         WHERE m.{owner} = p.owner AND m.description_order = p.rank LIMIT 1) AS description
        FROM pick p WHERE p.rank IS NOT NULL ORDER BY p.owner, p.rank
    """).bindparams(bindparam("owners", expanding=True))


_WALKS = {owner: _walk(owner) for owner in ("entity", "relation")}
