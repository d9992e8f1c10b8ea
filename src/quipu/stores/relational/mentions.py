"""Mentions: the entities, relations, aliases and claims that chunks state, and how a change of them changes counts."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from sqlalchemy import Connection, select, tuple_

from quipu.errors import InvalidDelta
from quipu.model.delta import ChunkFacts
from quipu.model.graph import (
    AliasMention,
    ClaimMention,
    EntityMention,
    RelationMention,
    description_rank,
    thousandths_to_weight,
    weight_to_thousandths,
)
from quipu.ports.store import Mention
from quipu.stores.relational import schema as s
from quipu.stores.relational.snapshot import Lookup, Snapshot, check_rows, in_order
from quipu.stores.relational.sql import ByValues, insert_rows, next_rid, texts_from_json, to_json

_m, _r, _a = s.entity_mention.c, s.relation_mention.c, s.alias_mention.c
_ENTITY_MENTIONS = ByValues(select(_m.chunk, _m.entity, _m.surface, _m.type, _m.description_order), _m.chunk)
_RELATION_MENTIONS = ByValues(select(_r.chunk, _r.relation, _r.keywords, _r.weight, _r.description_order), _r.chunk)
_ALIASES = ByValues(select(_a.alias, _a.entity), _a.chunk)
_TABLES = (s.entity_mention, s.relation_mention, s.alias_mention, s.claim_mention)
_DELETE = [ByValues(table.delete(), table.c.chunk) for table in _TABLES]
_ENTITIES = ByValues(select(s.entity.c.key, s.entity.c.rid), s.entity.c.key)
_ends = s.relation.c.source, s.relation.c.target
_RELATIONS = ByValues(select(*_ends, s.relation.c.rid), tuple_(*_ends))

_c, _e, _k = s.chunk.c, s.entity.c, s.claim_mention.c
_SOURCE, _TARGET = s.entity.alias("source"), s.entity.alias("target")
_SUBJECT, _OBJECT = s.entity.alias("subject"), s.entity.alias("object")
_ENTITIES_OF_CHUNK = Lookup(
    select(s.entity_mention, _c.id.label("chunk_id"), _e.key)
    .join_from(s.entity_mention, s.chunk, _m.chunk == _c.rid)
    .join(s.entity, _m.entity == _e.rid),
    _c.id,
    stated_in=_m.chunk,
)
_ALIASES_OF_CHUNK = Lookup(
    select(_c.id, _a.ordinal, _e.key, _a.alias, _a.surface)
    .join_from(s.alias_mention, s.chunk, _a.chunk == _c.rid)
    .join(s.entity, _a.entity == _e.rid),
    _c.id,
    stated_in=_a.chunk,
)
_RELATIONS_OF_CHUNK = Lookup(
    select(
        s.relation_mention,
        _c.id.label("chunk_id"),
        _SOURCE.c.key.label("source_key"),
        _TARGET.c.key.label("target_key"),
    )
    .join_from(s.relation_mention, s.chunk, _r.chunk == _c.rid)
    .join(s.relation, _r.relation == s.relation.c.rid)
    .join(_SOURCE, _SOURCE.c.rid == s.relation.c.source)
    .join(_TARGET, _TARGET.c.rid == s.relation.c.target),
    _c.id,
    stated_in=_r.chunk,
)
CLAIM = (
    select(s.claim_mention, _c.id, _SUBJECT.c.key.label("subject_key"), _OBJECT.c.key.label("object_key"))
    .join_from(s.claim_mention, s.chunk, _k.chunk == _c.rid)
    .join(_SUBJECT, _k.entity == _SUBJECT.c.rid)
    .outerjoin(_OBJECT, _k.object == _OBJECT.c.rid)
)
CLAIMS_OF_CHUNK = Lookup(CLAIM, _c.id, stated_in=_k.chunk)

StatedChunk = tuple[int, ChunkFacts]  # the row number of a chunk and what it states


@dataclass(frozen=True, slots=True)
class NewEntity:
    """An entity that has no row yet, as the row of an entity without mentions."""

    rid: int
    key: str
    n_mentions: int = 0
    n_chunks: int = 0
    degree: int = 0
    vector_hash: str = ""


@dataclass(frozen=True, slots=True)
class NewRelation:
    """A relation that has no row yet, as the row of a relation without mentions, with the keys of its ends."""

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
class MentionChanges:
    """What a change adds to the counts of entities, relations and aliases, by row number or key; may be negative.

    `*_descriptions` are the added descriptions with their rank, `*_forgotten` the ranks of those deleted.
    `aliased` are the entities with an added or deleted alias mention.
    """

    entity_mentions: Counter[int] = field(default_factory=Counter)
    entity_chunks: Counter[int] = field(default_factory=Counter)
    surfaces: Counter[tuple[int, str]] = field(default_factory=Counter)
    types: Counter[tuple[int, str]] = field(default_factory=Counter)
    relation_mentions: Counter[int] = field(default_factory=Counter)
    relation_chunks: Counter[int] = field(default_factory=Counter)
    relation_weights: Counter[int] = field(default_factory=Counter)
    keywords: Counter[tuple[int, str]] = field(default_factory=Counter)
    aliases: Counter[str] = field(default_factory=Counter)
    aliased: set[int] = field(default_factory=set)
    new_entities: dict[int, NewEntity] = field(default_factory=dict)
    new_relations: dict[int, NewRelation] = field(default_factory=dict)
    entity_descriptions: dict[int, list[tuple[int, str]]] = field(default_factory=dict)
    relation_descriptions: dict[int, list[tuple[int, str]]] = field(default_factory=dict)
    entity_forgotten: dict[int, list[int]] = field(default_factory=dict)
    relation_forgotten: dict[int, list[int]] = field(default_factory=dict)

    def count_entity(self, chunk_entities: set[int], entity: int, surface: str, kind: str, sign: int) -> None:
        """Count one mention; `chunk_entities` are those already counted in its chunk."""
        self.entity_mentions[entity] += sign
        self.surfaces[entity, surface] += sign
        self.types[entity, kind] += sign
        if entity not in chunk_entities:
            chunk_entities.add(entity)
            self.entity_chunks[entity] += sign

    def count_relation(
        self, chunk_relations: set[int], relation: int, keywords: Iterable[str], weight: int, sign: int
    ) -> None:
        """Count one mention; `chunk_relations` are those already counted in its chunk."""
        self.relation_mentions[relation] += sign
        self.relation_weights[relation] += sign * weight
        for keyword in keywords:
            self.keywords[relation, keyword] += sign
        if relation not in chunk_relations:
            chunk_relations.add(relation)
            self.relation_chunks[relation] += sign


def write(connection: Connection, retracted: Sequence[int], stated: Sequence[StatedChunk]) -> MentionChanges:
    """Delete the mentions of `retracted` chunks, write those of `stated` chunks, and return how counts change.

    Raises InvalidDelta if a chunk states something about an entity that it does not mention.
    """
    changes = MentionChanges()
    _delete(connection, retracted, changes)
    _check(stated)
    entity_by_key = _entity_rids(connection, {m.key for _, facts in stated for m in facts.entities}, changes)
    relation_by_ends = _relation_rids(connection, stated, entity_by_key, changes)
    rows = (
        (_entity_rows(chunk, facts, entity_by_key, changes) for chunk, facts in stated),
        (_relation_rows(chunk, facts, relation_by_ends, changes) for chunk, facts in stated),
        (_alias_rows(chunk, facts, entity_by_key, changes) for chunk, facts in stated),
        (_claim_rows(chunk, facts, entity_by_key) for chunk, facts in stated),
    )
    for table, rows_by_chunk in zip(_TABLES, rows, strict=True):
        insert_rows(connection, table, chain.from_iterable(rows_by_chunk))
    return changes


def mentions(snapshot: Snapshot, kind: type[Mention], chunk_ids: Sequence[str]) -> dict[str, list[Mention]]:
    """Return the mentions of one kind in each chunk, in order."""
    return _READS[kind](snapshot, chunk_ids)


def _entity_mentions(snapshot: Snapshot, chunk_ids: Sequence[str]) -> dict[str, list[EntityMention]]:
    """Return what each chunk states about entities, in order."""
    mentions: dict[str, list[EntityMention]] = {}
    rows = check_rows(s.entity_mention, _ENTITIES_OF_CHUNK.records(snapshot, sorted(set(chunk_ids))))
    for row in sorted(rows, key=lambda row: row.ordinal):
        mention = EntityMention(
            key=row.key,
            surface=row.surface,
            type=row.type,
            description=row.description,
            start=row.start_char,
            end=row.end_char,
            is_definition=bool(row.is_definition),
        )
        mentions.setdefault(row.chunk_id, []).append(mention)
    return in_order(mentions, chunk_ids)


def _relation_mentions(snapshot: Snapshot, chunk_ids: Sequence[str]) -> dict[str, list[RelationMention]]:
    """Return what each chunk states about pairs of entities, in order, each in the stated direction."""
    mentions: dict[str, list[RelationMention]] = {}
    rows = check_rows(s.relation_mention, _RELATIONS_OF_CHUNK.records(snapshot, sorted(set(chunk_ids))))
    for row in sorted(rows, key=lambda row: row.ordinal):
        ends = (row.source_key, row.target_key)
        source, target = reversed(ends) if row.is_reversed else ends
        mention = RelationMention(
            source=source,
            target=target,
            keywords=texts_from_json(row.keywords),
            description=row.description,
            weight=thousandths_to_weight(row.weight),
        )
        mentions.setdefault(row.chunk_id, []).append(mention)
    return in_order(mentions, chunk_ids)


def _alias_mentions(snapshot: Snapshot, chunk_ids: Sequence[str]) -> dict[str, list[AliasMention]]:
    """Return the aliases each chunk states, in order."""
    mentions: dict[str, list[AliasMention]] = {}
    for chunk_id, _, key, alias, surface in sorted(_ALIASES_OF_CHUNK.rows(snapshot, sorted(set(chunk_ids)))):
        mentions.setdefault(chunk_id, []).append(AliasMention(key=key, alias=alias, surface=surface))
    return in_order(mentions, chunk_ids)


def _claim_mentions(snapshot: Snapshot, chunk_ids: Sequence[str]) -> dict[str, list[ClaimMention]]:
    """Return what each chunk claims, in order."""
    mentions: dict[str, list[ClaimMention]] = {}
    rows = check_rows(s.claim_mention, CLAIMS_OF_CHUNK.records(snapshot, sorted(set(chunk_ids))))
    for row in sorted(rows, key=lambda row: row.ordinal):
        mention = ClaimMention(
            subject=row.subject_key,
            object=row.object_key or "",
            type=row.type,
            status=row.status,
            dates=row.dates,
            description=row.description,
        )
        mentions.setdefault(row.id, []).append(mention)
    return in_order(mentions, chunk_ids)


_READS: Mapping[type[Any], Callable[[Snapshot, Sequence[str]], dict[str, list[Any]]]] = {
    EntityMention: _entity_mentions,
    RelationMention: _relation_mentions,
    AliasMention: _alias_mentions,
    ClaimMention: _claim_mentions,
}


def count_all(connection: Connection) -> MentionChanges:
    """Return the counts of all mentions, as changes of entities and relations that count none yet."""
    changes = MentionChanges()
    for counts, table in ((changes.entity_mentions, s.entity), (changes.relation_mentions, s.relation)):
        counts.update(dict.fromkeys(connection.execute(select(table.c.rid)).scalars(), 0))
    entities, relations = defaultdict[int, set[int]](set), defaultdict[int, set[int]](set)
    for row in connection.execute(select(s.entity_mention)):
        changes.count_entity(entities[row.chunk], row.entity, row.surface, row.type, 1)
    for row in connection.execute(select(s.relation_mention)):
        changes.count_relation(relations[row.chunk], row.relation, texts_from_json(row.keywords), row.weight, 1)
    return changes


def _delete(connection: Connection, chunks: Sequence[int], changes: MentionChanges) -> None:
    entities: dict[int, set[int]] = {}
    for row in _ENTITY_MENTIONS.rows(connection, chunks):
        changes.count_entity(entities.setdefault(row.chunk, set()), row.entity, row.surface, row.type, -1)
        changes.entity_forgotten.setdefault(row.entity, []).append(row.description_order)
    relations: dict[int, set[int]] = {}
    for row in _RELATION_MENTIONS.rows(connection, chunks):
        counted = relations.setdefault(row.chunk, set())
        changes.count_relation(counted, row.relation, texts_from_json(row.keywords), row.weight, -1)
        changes.relation_forgotten.setdefault(row.relation, []).append(row.description_order)
    for row in _ALIASES.rows(connection, chunks):
        changes.aliases[row.alias] -= 1
        changes.aliased.add(row.entity)
    for delete in _DELETE:
        delete.run(connection, chunks)


def _check(stated: Sequence[StatedChunk]) -> None:
    for _, facts in stated:
        keys = {mention.key for mention in facts.entities}
        if "" in keys:
            raise InvalidDelta(f"Chunk {facts.chunk.id} mentions an entity without a name.")
        ends = {end for r in facts.relations for end in (r.source, r.target)} | {a.key for a in facts.aliases}
        if missing := sorted(ends - keys):
            raise InvalidDelta(f"Chunk {facts.chunk.id} relates {missing[0]!r} without mentioning it.")
        in_claims = {c.subject for c in facts.claims} | {c.object for c in facts.claims if c.object}
        if missing := sorted(in_claims - keys):
            raise InvalidDelta(f"Chunk {facts.chunk.id} has a claim about {missing[0]!r} without mentioning it.")
        if any(r.source == r.target for r in facts.relations):
            raise InvalidDelta(f"Chunk {facts.chunk.id} relates an entity to itself.")


def _entity_rids(connection: Connection, keys: set[str], changes: MentionChanges) -> dict[str, int]:
    """Return the row number of each key. The rows of new entities are written later, by the fold."""
    rid_by_key = {row.key: row.rid for row in _ENTITIES.rows(connection, sorted(keys))}
    new = sorted(keys - rid_by_key.keys())
    first = next_rid(connection, s.entity) if new else 0
    changes.new_entities.update((first + i, NewEntity(first + i, key)) for i, key in enumerate(new))
    return rid_by_key | {key: first + i for i, key in enumerate(new)}


def _relation_rids(
    connection: Connection,
    stated: Sequence[StatedChunk],
    entity_by_key: Mapping[str, int],
    changes: MentionChanges,
) -> dict[tuple[str, str], int]:
    """Return the row number of each ordered pair of keys. The rows of new relations are written later, by the fold."""
    pairs = {_ordered(r.source, r.target) for _, facts in stated for r in facts.relations}
    pair_by_rids = {(entity_by_key[a], entity_by_key[b]): (a, b) for a, b in pairs}
    rows = _RELATIONS.rows(connection, sorted(pair_by_rids))
    rid_by_pair = {pair_by_rids[source, target]: rid for source, target, rid in rows}
    new = sorted(pairs - rid_by_pair.keys())
    first = next_rid(connection, s.relation) if new else 0
    for rid, (a, b) in enumerate(new, first):
        rid_by_pair[a, b] = rid
        changes.new_relations[rid] = NewRelation(rid, entity_by_key[a], entity_by_key[b], a, b)
    return rid_by_pair


def _ordered(first: str, second: str) -> tuple[str, str]:
    return (first, second) if first < second else (second, first)


def _entity_rows(
    chunk: int, facts: ChunkFacts, entity_by_key: Mapping[str, int], changes: MentionChanges
) -> Iterator[dict[str, Any]]:
    counted: set[int] = set()
    for ordinal, mention in enumerate(facts.entities):
        entity = entity_by_key[mention.key]
        changes.count_entity(counted, entity, mention.surface, mention.type, 1)
        rank = description_rank(mention.description, is_definition=mention.is_definition)
        changes.entity_descriptions.setdefault(entity, []).append((rank, mention.description))
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
    chunk: int, facts: ChunkFacts, relation_by_ends: Mapping[tuple[str, str], int], changes: MentionChanges
) -> Iterator[dict[str, Any]]:
    counted: set[int] = set()
    for ordinal, mention in enumerate(facts.relations):
        ends = _ordered(mention.source, mention.target)
        weight = weight_to_thousandths(mention.weight)
        relation, rank = relation_by_ends[ends], description_rank(mention.description)
        changes.count_relation(counted, relation, mention.keywords, weight, 1)
        changes.relation_descriptions.setdefault(relation, []).append((rank, mention.description))
        yield {
            "chunk": chunk,
            "ordinal": ordinal,
            "relation": relation,
            "is_reversed": int(mention.source != ends[0]),
            "keywords": to_json(mention.keywords),
            "description": mention.description,
            "description_order": rank,
            "weight": weight,
        }


def _alias_rows(
    chunk: int, facts: ChunkFacts, entity_by_key: Mapping[str, int], changes: MentionChanges
) -> Iterator[dict[str, Any]]:
    for ordinal, mention in enumerate(facts.aliases):
        entity = entity_by_key[mention.key]
        changes.aliases[mention.alias] += 1
        changes.aliased.add(entity)
        yield {
            "chunk": chunk,
            "ordinal": ordinal,
            "entity": entity,
            "alias": mention.alias,
            "surface": mention.surface,
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
