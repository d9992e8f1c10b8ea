"""The fold in tables: entities and relations, updated from the mentions that a change added and deleted.

The cost follows the change, not the size of an entity. Counts are kept as rows and added to, and the first descriptions
are picked through an index. So an entity with ten thousand mentions costs what any other costs.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, Table, TextClause, Update, bindparam, func, select
from sqlalchemy import text as sql_text

from quipu.model.graph import (
    MAX_DESCRIPTIONS,
    NO_DESCRIPTION,
    display_name,
    distinct_descriptions,
    entity_text,
    join_descriptions,
    most_common_type,
    needs_summary,
    relation_text,
    top_keywords,
)
from quipu.model.summary import SummaryTargetKind
from quipu.ports.store import VectorSpace
from quipu.stores.relational import schema as s
from quipu.stores.relational import summaries
from quipu.stores.relational.mentions import MentionChanges, NewEntity, NewRelation, count_all
from quipu.stores.relational.sql import Backend, ByValues, Upsert, blocks, checksum, execute_rows, insert_rows, to_json
from quipu.stores.relational.vector_writes import VectorChanges, vector_hash

_ENTITY, _RELATION = SummaryTargetKind.ENTITY, SummaryTargetKind.RELATION
_N_PICKED = MAX_DESCRIPTIONS + 1  # one more than is joined: if it exists, a summary is needed


@dataclass(frozen=True, slots=True)
class FoldChanges:
    """What a fold changed: keys and rows of deleted entities, names of updated entities by row, texts to embed."""

    gone_keys: list[str]
    gone_rids: list[int]
    name_by_rid: dict[int, str]
    vectors: VectorChanges


class _ValueCounts:
    """A table that counts values of entities or relations in rows (owner, value, n)."""

    def __init__(self, table: Table, owner: str, value: str) -> None:
        self._columns = owner, value
        self._add = Upsert(table, counts=("n",))
        self._select = ByValues(select(table.c[owner], table.c[value], table.c.n), table.c[owner])
        self._delete = ByValues(table.delete().where(table.c.n == 0), table.c[owner])

    def add(
        self, connection: Connection, backend: Backend, changes: Counter[tuple[int, str]], new: Collection[int]
    ) -> dict[int, dict[str, int]]:
        """Add to the counts and delete those that become zero; return the counts of the `new` owners."""
        owner, value = self._columns
        ordered = sorted((rid, text, n) for (rid, text), n in changes.items() if n)
        self._add.run(connection, backend, ({owner: rid, value: text, "n": n} for rid, text, n in ordered))
        self._delete.run(connection, sorted({rid for rid, _, n in ordered if n < 0}))
        of_new: dict[int, dict[str, int]] = {}
        for (rid, text), n in changes.items():
            if rid in new:
                of_new.setdefault(rid, {})[text] = n
        return of_new

    def read(self, connection: Connection, owners: Sequence[int]) -> dict[int, dict[str, int]]:
        """Return the counts of each owner, by value."""
        counts: dict[int, dict[str, int]] = {}
        for owner, value, n in self._select.rows(connection, owners):
            counts.setdefault(owner, {})[value] = n
        return counts


_SURFACES = _ValueCounts(s.entity_surface, "entity", "surface")
_TYPES = _ValueCounts(s.entity_type, "entity", "type")
_KEYWORDS = _ValueCounts(s.relation_keyword, "relation", "keyword")
_source, _target = s.entity.alias(), s.entity.alias()
_RELATIONS = ByValues(
    select(s.relation, _source.c.key.label("source_key"), _target.c.key.label("target_key"))
    .join(_source, _source.c.rid == s.relation.c.source)
    .join(_target, _target.c.rid == s.relation.c.target),
    s.relation.c.rid,
)
_ENTITIES = ByValues(select(s.entity), s.entity.c.rid)
_DELETE_RELATIONS = ByValues(s.relation.delete(), s.relation.c.rid)
_DELETE_ENTITIES = ByValues(s.entity.delete(), s.entity.c.rid)


def refold(connection: Connection, backend: Backend, changes: MentionChanges) -> FoldChanges:
    """Update every entity and relation whose mentions changed; delete those without mentions."""
    degrees, vectors = _refold_relations(connection, backend, changes)
    folded = _refold_entities(connection, backend, changes, degrees)
    return FoldChanges(folded.gone_keys, folded.gone_rids, folded.name_by_rid, vectors | folded.vectors)


def rebuild(connection: Connection, backend: Backend) -> None:
    """Fold all entities and relations again from their mentions, and drop those that have none.

    Summaries stay where they are sound and of the present descriptions.
    """
    for table in (s.entity_surface, s.entity_type, s.relation_keyword):
        connection.execute(table.delete())
    connection.execute(s.relation.delete().where(s.relation.c.rid.not_in(select(s.relation_mention.c.relation))))
    connection.execute(s.entity.update().values(n_mentions=0, n_chunks=0, degree=0, described_by=s.JOINED))
    unfolded = {"n_mentions": 0, "n_chunks": 0, "weight": 0, "described_by": s.JOINED}
    connection.execute(s.relation.update().values(unfolded))
    for kind, table in ((_ENTITY, s.entity), (_RELATION, s.relation)):
        rows = connection.execute(select(s.summary).where(s.summary.c.kind == kind.value)).all()
        hashes = summaries.input_hashes(connection, kind, sorted(row.owner for row in rows))
        current = [row for row in rows if hashes.get(row.owner) == row.inputs_hash]
        sound = {row.owner: row.text for row in current if row.checksum == checksum(s.summary, row._mapping)}
        summaries.drop(connection, kind, sorted({row.owner for row in rows} - sound.keys()))
        show = table.update().where(table.c.rid == bindparam("row"))
        show = show.values(description=bindparam("summary"), described_by=bindparam("origin"))
        rows_of_sound = [{"row": rid, "summary": text, "origin": s.SUMMARISED} for rid, text in sound.items()]
        execute_rows(connection, show, rows_of_sound)
    refold(connection, backend, count_all(connection))


def _refold_relations(
    connection: Connection, backend: Backend, changes: MentionChanges
) -> tuple[Counter[int], VectorChanges]:
    """Update relations; return how the degrees of entities change, and the texts to embed."""
    new = changes.new_relations
    existing = sorted(changes.relation_mentions.keys() - new.keys())
    new_keywords = _KEYWORDS.add(connection, backend, changes.keywords, new)
    keywords = _KEYWORDS.read(connection, existing) | new_keywords
    before = _RELATIONS.rows(connection, existing)
    added, forgotten = changes.relation_descriptions, changes.relation_forgotten
    described = _describe(connection, _RELATION, before, added, forgotten) | _describe_new(added, new)
    degrees, vectors, removed = Counter[int](), VectorChanges(), list[int]()

    def folded(rows: Iterable[Row[Any] | NewRelation]) -> Iterator[dict[str, Any]]:
        """Yield the updated rows; note the degrees, the texts and the relations without mentions."""
        for row in rows:
            n_mentions = row.n_mentions + changes.relation_mentions[row.rid]
            change = (n_mentions > 0) - (row.n_mentions > 0)
            degrees.update({row.source: change, row.target: change})
            if not n_mentions:
                removed.append(row.rid)
                vectors.moved(VectorSpace.RELATION, row.vector_hash, "")
                continue
            words = top_keywords(keywords.get(row.rid, {}))
            description, described_by = described[row.rid]
            text_hash = vector_hash(
                VectorSpace.RELATION, relation_text(words, row.source_key, row.target_key, description)
            )
            vectors.moved(VectorSpace.RELATION, row.vector_hash, text_hash)
            yield {
                "rid": row.rid,
                "source": row.source,
                "target": row.target,
                "keywords": to_json(words),
                "description": description,
                "weight": row.weight + changes.relation_weights[row.rid],
                "n_mentions": n_mentions,
                "n_chunks": row.n_chunks + changes.relation_chunks[row.rid],
                "vector_hash": text_hash,
                "described_by": described_by,
            }

    _write(connection, s.relation, folded(new.values()), folded(before))
    _DELETE_RELATIONS.run(connection, removed)
    return Counter({entity: change for entity, change in degrees.items() if change}), vectors


def _refold_entities(
    connection: Connection, backend: Backend, changes: MentionChanges, degrees: Counter[int]
) -> FoldChanges:
    new = changes.new_entities
    existing = sorted((changes.entity_mentions.keys() | degrees.keys()) - new.keys())
    new_surfaces = _SURFACES.add(connection, backend, changes.surfaces, new)
    new_types = _TYPES.add(connection, backend, changes.types, new)
    surfaces = _SURFACES.read(connection, existing) | new_surfaces
    types = _TYPES.read(connection, existing) | new_types
    before = _ENTITIES.rows(connection, existing)
    added, forgotten = changes.entity_descriptions, changes.entity_forgotten
    described = _describe(connection, _ENTITY, before, added, forgotten) | _describe_new(added, new)
    fold = FoldChanges([], [], {}, VectorChanges())

    def folded(rows: Iterable[Row[Any] | NewEntity]) -> Iterator[dict[str, Any]]:
        """Yield the updated rows; note the names, the texts and the entities without mentions."""
        for row in rows:
            n_mentions = row.n_mentions + changes.entity_mentions[row.rid]
            if not n_mentions:
                fold.gone_keys.append(row.key)
                fold.gone_rids.append(row.rid)
                fold.vectors.moved(VectorSpace.ENTITY, row.vector_hash, "")
                continue
            name = fold.name_by_rid[row.rid] = display_name(surfaces[row.rid])
            description, described_by = described[row.rid]
            text_hash = vector_hash(VectorSpace.ENTITY, entity_text(name, description))
            fold.vectors.moved(VectorSpace.ENTITY, row.vector_hash, text_hash)
            yield {
                "rid": row.rid,
                "key": row.key,
                "name": name,
                "type": most_common_type(types[row.rid]),
                "description": description,
                "n_mentions": n_mentions,
                "n_chunks": row.n_chunks + changes.entity_chunks[row.rid],
                "degree": row.degree + degrees[row.rid],
                "vector_hash": text_hash,
                "described_by": described_by,
            }

    _write(connection, s.entity, folded(new.values()), folded(before))
    _DELETE_ENTITIES.run(connection, fold.gone_rids)
    return fold


def _describe(
    connection: Connection,
    kind: SummaryTargetKind,
    rows: Sequence[Row[Any]],
    added: Mapping[int, Sequence[tuple[int, str]]],
    forgotten: Mapping[int, Sequence[int]],
) -> dict[int, tuple[str, int]]:
    """Return the description of each row and where it comes from; delete summaries whose descriptions changed."""
    ordered = _first_descriptions(connection, kind, [row.rid for row in rows])
    summarised = {row.rid: row.description for row in rows if row.described_by == s.SUMMARISED}
    outdated = summaries.with_changed_descriptions(connection, kind, summarised, added, forgotten)
    summaries.drop(connection, kind, sorted(outdated))
    described = {row.rid: join_or_wait(ordered.get(row.rid, [])) for row in rows}
    return described | {rid: (text, s.SUMMARISED) for rid, text in summarised.items() if rid not in outdated}


def _describe_new(added: Mapping[int, Sequence[tuple[int, str]]], new: Collection[int]) -> dict[int, tuple[str, int]]:
    return {rid: join_or_wait(distinct_descriptions(added.get(rid, []))[:_N_PICKED]) for rid in new}


def join_or_wait(ordered: Sequence[str]) -> tuple[str, int]:
    """Return the joined descriptions, and whether they are complete (JOINED) or a summary is needed (WAITING)."""
    return join_descriptions(ordered), s.WAITING if needs_summary(ordered) else s.JOINED


def _write(
    connection: Connection, table: Table, new: Iterable[dict[str, Any]], changed: Iterable[dict[str, Any]]
) -> None:
    insert_rows(connection, table, new)
    execute_rows(connection, _UPDATES[table.name], ({**row, "row": row["rid"]} for row in changed))


def _update_by_rid(table: Table, unchanged: Collection[str]) -> Update:
    values: dict[str, Any] = {column.name: bindparam(column.name) for column in table.c if column.name not in unchanged}
    return table.update().where(table.c.rid == bindparam("row")).values(values)


_UPDATES = {
    "entity": _update_by_rid(s.entity, ("rid", "key")),
    "relation": _update_by_rid(s.relation, ("rid", "source", "target")),
}


def _first_descriptions(connection: Connection, kind: SummaryTargetKind, owners: Sequence[int]) -> dict[int, list[str]]:
    """Return the first few distinct descriptions of each owner, following the index from one rank to the next."""
    descriptions: dict[int, list[str]] = {}
    for block in blocks(owners):
        for owner, description in connection.execute(_PICKS[kind], {"owners": block, "limit": _N_PICKED}):
            descriptions.setdefault(owner, []).append(description)
    return descriptions


def _pick(owner: str) -> TextClause:
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


_PICKS = {kind: _pick(kind.value) for kind in SummaryTargetKind}


def mark_waiting(connection: Connection) -> None:
    """Mark entities and relations that need a summary, in an index of a schema without these marks."""
    for kind, table, mentions in (
        (_ENTITY, s.entity, s.entity_mention),
        (_RELATION, s.relation, s.relation_mention),
    ):
        owner, rank = mentions.c[table.name], mentions.c.description_order
        several = select(owner).where(rank > NO_DESCRIPTION).group_by(owner).having(func.count(rank.distinct()) > 1)
        descriptions = _first_descriptions(connection, kind, connection.execute(several).scalars().all())
        waiting = [rid for rid, ordered in sorted(descriptions.items()) if needs_summary(ordered)]
        mark = table.update().where(table.c.rid == bindparam("row")).values(described_by=bindparam("described_by"))
        execute_rows(connection, mark, [{"row": rid, "described_by": s.WAITING} for rid in waiting])
