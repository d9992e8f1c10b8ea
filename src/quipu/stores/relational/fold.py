"""The fold in tables: after a change of mentions, bring the touched entities and relations up to date.

The cost follows the change: counts are kept as rows and added to, descriptions are picked through an index, so a hub
with ten thousand mentions costs what any other entity costs.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Table, bindparam, select, update
from sqlalchemy import text as sql_text

from quipu.model.fold import (
    MAX_DESCRIPTIONS,
    display_name,
    joined_descriptions,
    top_keywords,
    voted_type,
)
from quipu.model.graph import entity_text, relation_text
from quipu.ports.store import Space
from quipu.stores.relational import schema as s
from quipu.stores.relational.backend import Backend
from quipu.stores.relational.mentions import Tallies
from quipu.stores.relational.sql import ByValues, blocks, execute_rows, to_json
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
        self._table = table
        self._columns = owner, value
        self._of = ByValues(select(table.c[owner], table.c[value], table.c.n), table.c[owner])
        self._drop = ByValues(table.delete().where(table.c.n == 0), table.c[owner])

    def add(self, connection: Connection, backend: Backend, counts: Counter[tuple[int, str]]) -> None:
        """Add to the counts; those that reach zero go."""
        owner, value = self._columns
        changes = sorted((rid, text_, n) for (rid, text_), n in counts.items() if n)
        statement = backend.insert(self._table)
        total = self._table.c.n + statement.excluded.n
        execute_rows(
            connection,
            statement.on_conflict_do_update(index_elements=[owner, value], set_={"n": total}),
            [{owner: rid, value: text_, "n": n} for rid, text_, n in changes],
        )
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
    touched = sorted(tallies.relation_mentions)
    _KEYWORDS.add(connection, backend, tallies.keywords)
    keywords = _KEYWORDS.of(connection, touched)
    descriptions = _descriptions(connection, "relation", touched)
    degrees: Counter[int] = Counter()
    changed: list[dict[str, Any]] = []
    gone: list[int] = []
    for row in _RELATIONS.rows(connection, touched):
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
        changed.append(
            {
                "row": row.rid,
                "keywords": to_json(words),
                "description": description,
                "weight": row.weight + tallies.relation_weights[row.rid],
                "n_mentions": n_mentions,
                "n_chunks": row.n_chunks + tallies.relation_chunks[row.rid],
                "vector_hash": wanted,
            }
        )
    _update_rows(connection, s.relation, changed)
    _DROP_RELATIONS.run(connection, gone)
    return Counter({entity: change for entity, change in degrees.items() if change})


def _refold_entities(
    connection: Connection, backend: Backend, tallies: Tallies, degrees: Counter[int], folded: Folded
) -> None:
    touched = sorted(tallies.entity_mentions.keys() | degrees.keys())
    _SURFACES.add(connection, backend, tallies.surfaces)
    _TYPES.add(connection, backend, tallies.types)
    surfaces = _SURFACES.of(connection, touched)
    types = _TYPES.of(connection, touched)
    descriptions = _descriptions(connection, "entity", touched)
    changed: list[dict[str, Any]] = []
    gone: list[int] = []
    for row in _ENTITIES.rows(connection, touched):
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
        changed.append(
            {
                "row": row.rid,
                "name": name,
                "type": voted_type(types[row.rid]),
                "description": description,
                "n_mentions": n_mentions,
                "n_chunks": row.n_chunks + tallies.entity_chunks[row.rid],
                "degree": row.degree + degrees[row.rid],
                "vector_hash": wanted,
            }
        )
    _update_rows(connection, s.entity, changed)
    _DROP_ENTITIES.run(connection, gone)


def _update_rows(connection: Connection, table: Table, changed: list[dict[str, Any]]) -> None:
    if changed:
        values: dict[str, Any] = {column: bindparam(column) for column in changed[0] if column != "row"}
        execute_rows(connection, update(table).where(table.c.rid == bindparam("row")).values(values), changed)


def _descriptions(connection: Connection, owner: str, owners: Sequence[int]) -> dict[int, list[str]]:
    """Return the first few distinct descriptions of each owner, walking the index from one rank to the next."""
    walk = sql_text(f"""
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
    found: dict[int, list[str]] = {}
    for block in blocks(owners):
        for row in connection.execute(walk, {"owners": block, "limit": MAX_DESCRIPTIONS}):
            found.setdefault(row.owner, []).append(row.description)
    return found
