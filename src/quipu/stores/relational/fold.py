"""The fold in tables: after a change of mentions, bring the touched entities and relations up to date.

The cost follows the change: counts are kept as rows and added to, descriptions are picked through an index, so a hub
with ten thousand mentions costs what any other entity costs.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Select, Table, bindparam, select, update
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
from quipu.stores.relational.sql import blocks, delete_in, select_in, to_json
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


def refold(connection: Connection, backend: Backend, tallies: Tallies, folded: Folded) -> None:
    """Bring every entity and relation the tallies touch up to date."""
    degrees = _refold_relations(connection, backend, tallies, folded)
    _refold_entities(connection, backend, tallies, degrees, folded)


def _refold_relations(connection: Connection, backend: Backend, tallies: Tallies, folded: Folded) -> Counter[int]:
    """Update relations; return the change of degree of the entities at their ends."""
    touched = sorted(tallies.relation_mentions)
    _add_counts(connection, backend, s.relation_keyword, "relation", "keyword", tallies.keywords)
    keywords = _counts_of(connection, s.relation_keyword, "relation", "keyword", touched)
    descriptions = _descriptions(connection, "relation", touched)
    degrees: Counter[int] = Counter()
    changed: list[dict[str, Any]] = []
    gone: list[int] = []
    for row in select_in(connection, _relations_with_keys(), s.relation.c.rid, touched):
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
    delete_in(connection, s.relation.delete(), s.relation.c.rid, gone)
    return Counter({entity: change for entity, change in degrees.items() if change})


def _relations_with_keys() -> Select[Any]:
    source, target = s.entity.alias(), s.entity.alias()
    return (
        select(s.relation, source.c.key.label("source_key"), target.c.key.label("target_key"))
        .join(source, source.c.rid == s.relation.c.source)
        .join(target, target.c.rid == s.relation.c.target)
    )


def _refold_entities(
    connection: Connection, backend: Backend, tallies: Tallies, degrees: Counter[int], folded: Folded
) -> None:
    touched = sorted(tallies.entity_mentions.keys() | degrees.keys())
    _add_counts(connection, backend, s.entity_surface, "entity", "surface", tallies.surfaces)
    _add_counts(connection, backend, s.entity_type, "entity", "type", tallies.types)
    surfaces = _counts_of(connection, s.entity_surface, "entity", "surface", touched)
    types = _counts_of(connection, s.entity_type, "entity", "type", touched)
    descriptions = _descriptions(connection, "entity", touched)
    changed: list[dict[str, Any]] = []
    gone: list[int] = []
    for row in select_in(connection, select(s.entity), s.entity.c.rid, touched):
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
    delete_in(connection, s.entity.delete(), s.entity.c.rid, gone)


def _update_rows(connection: Connection, table: Table, changed: list[dict[str, Any]]) -> None:
    if changed:
        values: dict[str, Any] = {column: bindparam(column) for column in changed[0] if column != "row"}
        connection.execute(update(table).where(table.c.rid == bindparam("row")).values(values), changed)


def _add_counts(
    connection: Connection, backend: Backend, table: Table, owner: str, value: str, counts: Counter[tuple[int, str]]
) -> None:
    """Add to counted rows; rows that reach zero go."""
    changes = [(rid, text_, n) for (rid, text_), n in sorted(counts.items()) if n]
    if not changes:
        return
    statement = backend.insert(table)
    added = statement.on_conflict_do_update(index_elements=[owner, value], set_={"n": table.c.n + statement.excluded.n})
    connection.execute(added, [{owner: rid, value: text_, "n": n} for rid, text_, n in changes])
    if lowered := sorted({rid for rid, _, n in changes if n < 0}):
        delete_in(connection, table.delete().where(table.c.n == 0), table.c[owner], lowered)


def _counts_of(
    connection: Connection, table: Table, owner: str, value: str, owners: Sequence[int]
) -> dict[int, dict[str, int]]:
    counts: dict[int, dict[str, int]] = {}
    query = select(table.c[owner].label("owner"), table.c[value].label("value"), table.c.n)
    for row in select_in(connection, query, table.c[owner], owners):
        counts.setdefault(row.owner, {})[row.value] = row.n
    return counts


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
