"""Mentions: writing and removing what chunks say, and counting what that changes."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, select, tuple_

from quipu.errors import InvalidDelta
from quipu.model.delta import ChunkFacts
from quipu.model.fold import description_rank, weight_to_thousandths
from quipu.stores.relational import schema as s
from quipu.stores.relational.sql import ByValues, insert_rows, next_rid, texts_from_json, to_json

_m, _r, _a = s.entity_mention.c, s.relation_mention.c, s.alias_mention.c
_SAID = ByValues(select(_m.chunk, _m.entity, _m.surface, _m.type, _m.description_order), _m.chunk)
_STATED = ByValues(select(_r.chunk, _r.relation, _r.keywords, _r.weight, _r.description_order), _r.chunk)
_ALIASES = ByValues(select(_a.alias, _a.entity), _a.chunk)
_MENTIONS = (s.entity_mention, s.relation_mention, s.alias_mention, s.claim_mention)
_FORGET = [ByValues(table.delete(), table.c.chunk) for table in _MENTIONS]
_ENTITIES = ByValues(select(s.entity.c.key, s.entity.c.rid), s.entity.c.key)
_ends = s.relation.c.source, s.relation.c.target
_RELATIONS = ByValues(select(*_ends, s.relation.c.rid), tuple_(*_ends))


@dataclass(frozen=True, slots=True)
class NewEntity:
    """An entity that has no row yet, as the row of one without mentions would be."""

    rid: int
    key: str
    n_mentions: int = 0
    n_chunks: int = 0
    degree: int = 0
    vector_hash: str = ""


@dataclass(frozen=True, slots=True)
class NewRelation:
    """A relation that has no row yet, as the row of one without mentions would be, with the keys of its ends."""

    rid: int
    source: int
    target: int
    source_key: str
    target_key: str
    weight: int = 0
    n_mentions: int = 0
    n_chunks: int = 0
    vector_hash: str = ""


@dataclass(slots=True)
class Tallies:
    """What a change adds to (or takes from) the counts of entities, relations and names, by row number or key."""

    entity_mentions: Counter[int] = field(default_factory=Counter)
    entity_chunks: Counter[int] = field(default_factory=Counter)
    surfaces: Counter[tuple[int, str]] = field(default_factory=Counter)
    types: Counter[tuple[int, str]] = field(default_factory=Counter)
    relation_mentions: Counter[int] = field(default_factory=Counter)
    relation_chunks: Counter[int] = field(default_factory=Counter)
    relation_weights: Counter[int] = field(default_factory=Counter)
    keywords: Counter[tuple[int, str]] = field(default_factory=Counter)
    aliases: Counter[str] = field(default_factory=Counter)
    aliased: set[int] = field(default_factory=set)  # entities of which an alias is stated, or no longer
    new_entities: dict[int, NewEntity] = field(default_factory=dict)
    new_relations: dict[int, NewRelation] = field(default_factory=dict)
    entity_descriptions: dict[int, list[tuple[int, str]]] = field(default_factory=dict)  # (rank, description), as added
    relation_descriptions: dict[int, list[tuple[int, str]]] = field(default_factory=dict)
    entity_forgotten: dict[int, list[int]] = field(default_factory=dict)  # ranks of descriptions taken back
    relation_forgotten: dict[int, list[int]] = field(default_factory=dict)

    def add_entity(self, chunk_entities: set[int], entity: int, surface: str, kind: str, sign: int) -> None:
        """Count one mention; `chunk_entities` are those already seen in its chunk."""
        self.entity_mentions[entity] += sign
        self.surfaces[entity, surface] += sign
        self.types[entity, kind] += sign
        if entity not in chunk_entities:
            chunk_entities.add(entity)
            self.entity_chunks[entity] += sign

    def add_relation(
        self, chunk_relations: set[int], relation: int, keywords: Iterable[str], weight: int, sign: int
    ) -> None:
        """Count one mention; `chunk_relations` are those already seen in its chunk."""
        self.relation_mentions[relation] += sign
        self.relation_weights[relation] += sign * weight
        for keyword in keywords:
            self.keywords[relation, keyword] += sign
        if relation not in chunk_relations:
            chunk_relations.add(relation)
            self.relation_chunks[relation] += sign


def forget(connection: Connection, chunks: Sequence[int], tallies: Tallies) -> None:
    """Remove everything these chunks say, and take it from the tallies."""
    entities: dict[int, set[int]] = {}
    for row in _SAID.rows(connection, chunks):
        tallies.add_entity(entities.setdefault(row.chunk, set()), row.entity, row.surface, row.type, -1)
        tallies.entity_forgotten.setdefault(row.entity, []).append(row.description_order)
    relations: dict[int, set[int]] = {}
    for row in _STATED.rows(connection, chunks):
        seen = relations.setdefault(row.chunk, set())
        tallies.add_relation(seen, row.relation, texts_from_json(row.keywords), row.weight, -1)
        tallies.relation_forgotten.setdefault(row.relation, []).append(row.description_order)
    for row in _ALIASES.rows(connection, chunks):
        tallies.aliases[row.alias] -= 1
        tallies.aliased.add(row.entity)
    for delete in _FORGET:
        delete.run(connection, chunks)


def record(connection: Connection, said: Sequence[tuple[int, ChunkFacts]], tallies: Tallies) -> None:
    """Write what chunks say, and add it to the tallies.

    Raises InvalidDelta where something is said of what is not mentioned.
    """
    _check(said)
    entity_by_key = _rows_of_entities(connection, {m.key for _, facts in said for m in facts.entities}, tallies)
    relation_by_ends = _rows_of_relations(connection, said, entity_by_key, tallies)
    entity_rows: list[dict[str, Any]] = []
    relation_rows: list[dict[str, Any]] = []
    alias_rows: list[dict[str, Any]] = []
    claim_rows: list[dict[str, Any]] = []
    for chunk, facts in said:
        entity_rows += _entity_rows(chunk, facts, entity_by_key, tallies)
        relation_rows += _relation_rows(chunk, facts, relation_by_ends, tallies)
        alias_rows += _alias_rows(chunk, facts, entity_by_key, tallies)
        claim_rows += _claim_rows(chunk, facts, entity_by_key)
    insert_rows(connection, s.entity_mention, entity_rows)
    insert_rows(connection, s.relation_mention, relation_rows)
    insert_rows(connection, s.alias_mention, alias_rows)
    insert_rows(connection, s.claim_mention, claim_rows)


def _entity_rows(
    chunk: int, facts: ChunkFacts, entity_by_key: Mapping[str, int], tallies: Tallies
) -> Iterator[dict[str, Any]]:
    seen: set[int] = set()
    for ordinal, mention in enumerate(facts.entities):
        entity = entity_by_key[mention.key]
        tallies.add_entity(seen, entity, mention.surface, mention.type, 1)
        rank = description_rank(mention.description, is_definition=mention.is_definition)
        tallies.entity_descriptions.setdefault(entity, []).append((rank, mention.description))
        yield {
            "chunk": chunk,
            "ordinal": ordinal,
            "entity": entity,
            "surface": mention.surface,
            "type": mention.type,
            "description": mention.description,
            "description_order": rank,
            "is_definition": int(mention.is_definition),
            "start_char": mention.start,
            "end_char": mention.end,
        }


def _relation_rows(
    chunk: int, facts: ChunkFacts, relation_by_ends: Mapping[tuple[str, str], int], tallies: Tallies
) -> Iterator[dict[str, Any]]:
    seen: set[int] = set()
    for ordinal, found in enumerate(facts.relations):
        ends = _ordered(found.source, found.target)
        weight = weight_to_thousandths(found.weight)
        relation, rank = relation_by_ends[ends], description_rank(found.description)
        tallies.add_relation(seen, relation, found.keywords, weight, 1)
        tallies.relation_descriptions.setdefault(relation, []).append((rank, found.description))
        yield {
            "chunk": chunk,
            "ordinal": ordinal,
            "relation": relation,
            "is_reversed": int(found.source != ends[0]),
            "keywords": to_json(found.keywords),
            "description": found.description,
            "description_order": rank,
            "weight": weight,
        }


def _alias_rows(
    chunk: int, facts: ChunkFacts, entity_by_key: Mapping[str, int], tallies: Tallies
) -> Iterator[dict[str, Any]]:
    for ordinal, alias in enumerate(facts.aliases):
        tallies.aliases[alias.alias] += 1
        tallies.aliased.add(entity_by_key[alias.key])
        yield {
            "chunk": chunk,
            "ordinal": ordinal,
            "entity": entity_by_key[alias.key],
            "alias": alias.alias,
            "surface": alias.surface,
        }


def _claim_rows(chunk: int, facts: ChunkFacts, entity_by_key: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    for ordinal, claim in enumerate(facts.claims):
        yield {
            "chunk": chunk,
            "ordinal": ordinal,
            "entity": entity_by_key[claim.subject],
            "object": entity_by_key[claim.object] if claim.object else None,
            "type": claim.type,
            "status": claim.status,
            "dates": claim.dates,
            "description": claim.description,
        }


def _check(said: Sequence[tuple[int, ChunkFacts]]) -> None:
    for _, facts in said:
        keys = {mention.key for mention in facts.entities}
        if "" in keys:
            raise InvalidDelta(f"Chunk {facts.chunk.id} mentions an entity without a name.")
        ends = {end for r in facts.relations for end in (r.source, r.target)} | {a.key for a in facts.aliases}
        if missing := sorted(ends - keys):
            raise InvalidDelta(f"Chunk {facts.chunk.id} relates {missing[0]!r} without mentioning it.")
        claimed_of = {c.subject for c in facts.claims} | {c.object for c in facts.claims if c.object}
        if missing := sorted(claimed_of - keys):
            raise InvalidDelta(f"Chunk {facts.chunk.id} claims something of {missing[0]!r} without mentioning it.")
        if any(r.source == r.target for r in facts.relations):
            raise InvalidDelta(f"Chunk {facts.chunk.id} relates an entity to itself.")


def _ordered(first: str, second: str) -> tuple[str, str]:
    return (first, second) if first < second else (second, first)


def _rows_of_entities(connection: Connection, keys: set[str], tallies: Tallies) -> dict[str, int]:
    """Return the row of each key; those of new ones are yet to be written, by the fold."""
    found = {row.key: row.rid for row in _ENTITIES.rows(connection, sorted(keys))}
    new = sorted(keys - found.keys())
    first = next_rid(connection, s.entity) if new else 0
    found.update({key: first + i for i, key in enumerate(new)})
    tallies.new_entities.update((found[key], NewEntity(found[key], key)) for key in new)
    return found


def _rows_of_relations(
    connection: Connection, said: Sequence[tuple[int, ChunkFacts]], entity_by_key: Mapping[str, int], tallies: Tallies
) -> dict[tuple[str, str], int]:
    """Return the row of each unordered pair; those of new ones are yet to be written, by the fold."""
    pairs = {_ordered(r.source, r.target) for _, facts in said for r in facts.relations}
    by_rows = {(entity_by_key[a], entity_by_key[b]): (a, b) for a, b in pairs}
    rows = _RELATIONS.rows(connection, sorted(by_rows))
    found = {by_rows[source, target]: rid for source, target, rid in rows}
    new = sorted(pairs - found.keys())
    first = next_rid(connection, s.relation) if new else 0
    found.update({pair: first + i for i, pair in enumerate(new)})
    for a, b in new:
        rid = found[a, b]
        tallies.new_relations[rid] = NewRelation(rid, entity_by_key[a], entity_by_key[b], a, b)
    return found
