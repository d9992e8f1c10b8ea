"""The fold in tables: after a change of mentions, bring the touched entities and relations up to date.

The cost follows the change: counts are kept as rows and added to, descriptions are picked through an index, so a hub
with ten thousand mentions costs what any other entity costs.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Row, Table, TextClause, Update, bindparam, select
from sqlalchemy import text as sql_text

from quipu.model.fold import (
    MAX_DESCRIPTIONS,
    display_name,
    first_descriptions,
    joined_descriptions,
    top_keywords,
    voted_type,
)
from quipu.model.graph import entity_text, relation_text
from quipu.ports.store import Space
from quipu.stores.relational import schema as s
from quipu.stores.relational.backend import Backend
from quipu.stores.relational.mentions import NewEntity, NewRelation, Tallies
from quipu.stores.relational.sql import ByValues, Upsert, blocks, execute_rows, insert_rows, to_json
from quipu.stores.relational.vector_rows import vector_hash


@dataclass(slots=True)
class Folded:
    """What a fold changed: keys of entities that came and went, and vectors wanted before and after, by space."""

    gone_entities: list[str] = field(default_factory=list)
    vectors_before: Counter[tuple[Space, str]] = field(default_factory=Counter)
    vectors_after: Counter[tuple[Space, str]] = field(default_factory=Counter)

    def moved(self, space: Space, before: str, after: str) -> bool:
        """Note that an item's text changed from one hash to another ("" for none); say whether it did."""
        if before == after:
            return False
        if before:
            self.vectors_before[space, before] += 1
        if after:
            self.vectors_after[space, after] += 1
        return True


class _Counts:
    """Counted values of entities or relations, a row each: (owner, value, n)."""

    def __init__(self, table: Table, owner: str, value: str) -> None:
        self._columns = owner, value
        self._add = Upsert(table, count="n")
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
_ENTITIES = ByValues(select(s.entity), s.entity.c.rid)
_DROP_RELATIONS = ByValues(s.relation.delete(), s.relation.c.rid)
_DROP_ENTITIES = ByValues(s.entity.delete(), s.entity.c.rid)


def refold(connection: Connection, backend: Backend, tallies: Tallies, folded: Folded) -> None:
    """Bring every entity and relation the tallies touch up to date."""
    degrees = _refold_relations(connection, backend, tallies, folded)
    _refold_entities(connection, backend, tallies, degrees, folded)


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
    touched: list[Row[Any] | NewRelation] = [*_RELATIONS.rows(connection, known), *new.values()]
    for row in touched:
        n_mentions = row.n_mentions + tallies.relation_mentions[row.rid]
        change = (n_mentions > 0) - (row.n_mentions > 0)
        degrees.update({row.source: change, row.target: change})
        if not n_mentions:
            gone.append(row.rid)
            folded.moved(Space.RELATION, row.vector_hash, "")
            continue
        words = top_keywords(keywords.get(row.rid, {}))
        description = joined_descriptions(descriptions.get(row.rid, ()))
        text = relation_text(words, row.source_key, row.target_key, description)
        wanted = vector_hash(Space.RELATION, text)
        folded.moved(Space.RELATION, row.vector_hash, wanted)
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
    touched: list[Row[Any] | NewEntity] = [*_ENTITIES.rows(connection, known), *new.values()]
    for row in touched:
        n_mentions = row.n_mentions + tallies.entity_mentions[row.rid]
        if not n_mentions:
            gone.append(row.rid)
            folded.gone_entities.append(row.key)
            folded.moved(Space.ENTITY, row.vector_hash, "")
            continue
        name = display_name(surfaces[row.rid])
        description = joined_descriptions(descriptions.get(row.rid, ()))
        wanted = vector_hash(Space.ENTITY, entity_text(name, description))
        folded.moved(Space.ENTITY, row.vector_hash, wanted)
        rows.append(
            {
                "rid": row.rid,
                "key": row.key,
                "name": name,
                "type": voted_type(types[row.rid]),
                "description": description,
                "n_mentions": n_mentions,
                "n_chunks": row.n_chunks + tallies.entity_chunks[row.rid],
                "degree": row.degree + degrees[row.rid],
                "vector_hash": wanted,
            }
        )
    _write(connection, s.entity, rows, new)
    _DROP_ENTITIES.run(connection, gone)


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
    return {owner: first_descriptions(described[owner])[:MAX_DESCRIPTIONS] for owner in new if owner in described}


def _descriptions(connection: Connection, owner: str, owners: Sequence[int]) -> dict[int, list[str]]:
    """Return the first few distinct descriptions of each owner, walking the index from one rank to the next."""
    found: dict[int, list[str]] = {}
    for block in blocks(owners):
        for owner_rid, description in connection.execute(_WALKS[owner], {"owners": block, "limit": MAX_DESCRIPTIONS}):
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
