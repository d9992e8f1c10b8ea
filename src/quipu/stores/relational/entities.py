"""Entities: read by key, name or row id, with their aliases and types; the vectors of their names, and their synonyms.

Without a filter the stored folds are read. Under a filter entities are folded again from the allowed mentions alone,
so that nothing a hidden document states can show.

While the derivation "names" is kept, each name has a row for its vector. Entities with similar names are synonyms.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from sqlalchemy import Connection, Row, bindparam, func, literal_column, or_, select

from quipu.model.delta import SynonymUpdate
from quipu.model.derivation import NAMES, SYNONYMS
from quipu.model.evidence import Scored
from quipu.model.graph import (
    Entity,
    descriptions_hash,
    display_name,
    distinct_descriptions,
    join_descriptions,
    most_common_type,
)
from quipu.model.summary import SummaryTargetKind
from quipu.ports.derivation_view import DerivationCounts, EntityTypes, SynonymRows
from quipu.ports.store import VectorSpace
from quipu.stores.relational import change_log, summaries
from quipu.stores.relational import schema as s
from quipu.stores.relational.filters import visible_entities
from quipu.stores.relational.snapshot import (
    ALLOWED_CHUNK,
    Lookup,
    Snapshot,
    cached_value,
    in_order,
    is_allowed,
    read_only,
)
from quipu.stores.relational.sql import ByValues, Ints, as_texts, driver_rows, from_texts, insert_rows
from quipu.stores.relational.vector_writes import LIVE, VectorChanges, n_waiting, vector_hash

_MILLIONTHS = 1_000_000

_e, _r = s.entity.c, s.relation.c
_m, _rm, _a = s.entity_mention.c, s.relation_mention.c, s.alias_mention.c
_RIDS = Lookup(select(_e.key, _e.rid), _e.key)
_KEYS = Lookup(select(_e.rid, _e.key), _e.rid)
_NAMES = Lookup(select(_e.rid, _e.key, _e.name), _e.rid)
_SURFACES = Lookup(select(_m.entity, _m.surface), _m.entity, stated_in=_m.chunk)
_ENTITIES = Lookup(select(s.entity), _e.key)
_DEGREES = Lookup(select(_e.key, _e.rid, _e.degree), _e.key)
_ALIASES = Lookup(select(_a.entity, _a.surface).distinct(), _a.entity, stated_in=_a.chunk)
_BY_ALIAS = Lookup(
    select(_a.alias, _e.key).join_from(s.alias_mention, s.entity, _a.entity == _e.rid), _a.alias, stated_in=_a.chunk
)
_VISIBLE = Lookup(
    select(_e.key).where(select(1).where(_m.entity == _e.rid, is_allowed(_m.chunk)).correlate(s.entity).exists()),
    _e.key,
)
_MENTIONS = Lookup(select(s.entity_mention), _m.entity, stated_in=_m.chunk)
_is_stated = select(1).where(_rm.relation == _r.rid, is_allowed(_rm.chunk)).correlate(s.relation).exists()
_ALLOWED_DEGREES = [
    Lookup(select(end, func.count()).where(_is_stated).group_by(end), end) for end in (_r.source, _r.target)
]
_ALL = select(_e.rid).order_by(_e.key)
# One row for each type: one row for each entity takes three times as long.
_BY_TYPE = as_texts(select(_e.rid)).add_columns(_e.type).group_by(_e.type)
_in_allowed_chunk = _m.chunk.in_(select(ALLOWED_CHUNK.c.rid))
_ALL_ALLOWED = _ALL.where(_e.rid.in_(select(_m.entity).where(_in_allowed_chunk)))
_ALLOWED_TYPES = select(_m.entity, _m.type, func.count()).where(_in_allowed_chunk).group_by(_m.entity, _m.type)

_p, _n, _v = s.synonym.c, s.entity_name.c, s.vector.c
_PAIR_ENDS = [(_p.first, _p.second), (_p.second, _p.first)]
_PAIRS = as_texts(select(_p.first, _p.second, _p.similarity))
_PAIRS_OF = [Lookup(select(end, other, _p.similarity), end) for end, other in _PAIR_ENDS]
_is_uncompared = _n.is_compared == literal_column("0")  # a literal: for a parameter the partial index is not used
_UNCOMPARED = (
    select(_e.key)
    .join_from(s.entity_name, s.entity, _e.rid == _n.rid)
    .join(s.vector, (_v.text_hash == _n.vector_hash) & (_v.model == LIVE))
    .where(_is_uncompared)
    .order_by(_n.rid)  # the order of the index, so nothing is sorted; results do not depend on it
)
_UNCHANGED_RIDS = ByValues(
    select(_e.key, _e.rid)
    .join_from(s.entity, s.entity_name, _n.rid == _e.rid)
    .where(_n.revision <= bindparam("revision")),
    _e.key,
)
_PARTNERS = [ByValues(select(other), end) for end, other in _PAIR_ENDS]
_DELETE_PAIRS = [ByValues(s.synonym.delete(), end) for end, _ in _PAIR_ENDS]
_EXISTING_PAIRS = ByValues(select(_p.first, _p.second), _p.first)
_MARK_COMPARED = ByValues(s.entity_name.update().values(is_compared=1), _n.rid)
_NAME_HASHES = ByValues(select(_n.rid, _n.vector_hash), _n.rid)
_DELETE_NAMES = ByValues(s.entity_name.delete(), _n.rid)
_N_NAMES = select(func.count()).select_from(s.entity_name)


def entities(snapshot: Snapshot, keys: Sequence[str], k: int | None = None) -> list[Entity]:
    """Return these entities in the given order, or the `k` with the most relations, most first."""
    if k is not None:
        degree_by_key = _degrees(snapshot, keys)
        keys = sorted(degree_by_key, key=lambda key: (-degree_by_key[key], key))[:k]
    rows = {row.rid: row for row in _ENTITIES.records(snapshot, sorted(set(keys)))}
    aliases = _aliases(snapshot, list(rows))
    if snapshot.is_filtered:
        entity_by_key = _folded_again(snapshot, rows, aliases)
    else:
        entity_by_key = {row.key: _entity(row, aliases.get(rid, ())) for rid, row in rows.items()}
    return [entity_by_key[key] for key in keys if key in entity_by_key]


def named(snapshot: Snapshot, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the keys of the entities each name stands for: its own key, then those it is an alias of."""
    distinct_names = sorted(set(names))
    keys_by_name: dict[str, list[str]] = {key: [key] for key in entity_rids(snapshot, distinct_names)}
    times: Counter[tuple[str, str]] = Counter(map(tuple, _BY_ALIAS.rows(snapshot, distinct_names)))
    for alias, key in sorted(times, key=lambda pair: (pair[0], -times[pair], pair[1])):
        if key not in keys_by_name.setdefault(alias, []):
            keys_by_name[alias].append(key)
    if snapshot.is_filtered:
        all_keys = {key for keys in keys_by_name.values() for key in keys}
        visible = {key for (key,) in _VISIBLE.rows(snapshot, sorted(all_keys))}
        keys_by_name = {name: [key for key in keys if key in visible] for name, keys in keys_by_name.items()}
    return in_order({name: tuple(keys) for name, keys in keys_by_name.items() if keys}, names)


def search_entities(snapshot: Snapshot, text: str, k: int) -> list[Scored]:
    """Return entities whose key contains `text`: those that start with it first, then most mentioned, then by key."""
    spellings = (text.casefold(), text.upper())  # keys of acronyms are in capitals
    starts = or_(*(_e.key.startswith(spelling, autoescape=True) for spelling in spellings))
    contains = or_(*(_e.key.contains(spelling, autoescape=True) for spelling in spellings))
    ranked = select(_e.key, _e.n_mentions, starts.label("starts")).where(contains)
    if not snapshot.is_filtered:
        ranked = ranked.order_by(starts.desc(), _e.n_mentions.desc(), _e.key).limit(k)
        return [Scored(id=row.key, score=float(row.n_mentions)) for row in snapshot.connection.execute(ranked)]
    is_prefix = {row.key: bool(row.starts) for row in snapshot.connection.execute(ranked)}
    matches = sorted(entities(snapshot, list(is_prefix)), key=lambda e: (not is_prefix[e.key], -e.n_mentions, e.key))
    return [Scored(id=entity.key, score=float(entity.n_mentions)) for entity in matches[:k]]


def entity_types(snapshot: Snapshot) -> EntityTypes:
    """Return the types of all visible entities, in the order of their keys; cached for the revision and filter."""

    def read() -> EntityTypes:
        types = _allowed_types(snapshot) if snapshot.is_filtered else _all_types(snapshot)
        read_only(types.numbers, types.codes)
        return types

    return cached_value(snapshot.cache.types, "types", read)


def entity_rids(snapshot: Snapshot, keys: Iterable[str]) -> dict[str, int]:
    """Return the row ids of those of these entities that exist, whatever the filter."""
    return _RIDS.mapping(snapshot, snapshot.cache.entity_rids, set(keys))


def entity_numbers(snapshot: Snapshot, keys: Sequence[str]) -> dict[str, int]:
    """Return the number of each of these entities: its row id, by which arrays outside the database know it."""
    rid_by_key = entity_rids(snapshot, keys)
    visible = visible_entities(snapshot, rid_by_key.values())
    return in_order({key: rid for key, rid in rid_by_key.items() if rid in visible}, keys)


def entity_keys(snapshot: Snapshot, numbers: Sequence[int]) -> dict[int, str]:
    """Return the key of each of these entity numbers."""
    visible = visible_entities(snapshot, set(numbers))
    return in_order(_KEYS.mapping(snapshot, snapshot.cache.entity_keys, visible), numbers)


def keys_and_names(snapshot: Snapshot, rids: Collection[int]) -> dict[int, tuple[str, str]]:
    """Return the key and the display name of each entity by row id; under a filter all of them must be visible."""
    rows = _NAMES.rows(snapshot, rids)
    if not snapshot.is_filtered:
        return {rid: (key, name) for rid, key, name in rows}
    surfaces: dict[int, Counter[str]] = {}
    for rid, surface in _SURFACES.rows(snapshot, rids):
        surfaces.setdefault(rid, Counter())[surface] += 1
    return {rid: (key, display_name(surfaces[rid])) for rid, key, _ in rows}


def visible_description(mentions: Sequence[Row[Any]], summary: tuple[str, str] | None) -> str:
    """Return the summary if the visible mentions contain everything it was made from, else their joined descriptions.

    `summary` is the hash of its inputs and its text.
    """
    ordered = distinct_descriptions([(mention.description_order, mention.description) for mention in mentions])
    inputs_hash, text = summary or ("", "")
    return text if inputs_hash == descriptions_hash(ordered) else join_descriptions(ordered)


def summaries_of(snapshot: Snapshot, kind: SummaryTargetKind, rows: Sequence[Row[Any]]) -> dict[int, tuple[str, str]]:
    """Return the summaries of those of these entity or relation rows that have one, by row id."""
    summarised = [row.rid for row in rows if row.described_by == s.SUMMARISED]
    return summaries.read(snapshot.connection, kind, summarised)


def synonym_rows(snapshot: Snapshot, entities: Ints | None) -> SynonymRows:
    """Return all pairs once, or those with an end among these entities, whatever the filter."""
    if entities is None:
        firsts, seconds, similarities = from_texts(snapshot.connection.execute(_PAIRS).all(), 3)
    else:
        (firsts, seconds, similarities), (ends, others, same) = (
            lookup.ints(snapshot, entities.tolist()) for lookup in _PAIRS_OF
        )
        is_new = ~np.isin(others, entities)  # otherwise it was read from its first end
        firsts = np.concatenate([firsts, others[is_new]])
        seconds = np.concatenate([seconds, ends[is_new]])
        similarities = np.concatenate([similarities, same[is_new]])
    return SynonymRows(firsts=firsts, seconds=seconds, similarities=similarities / _MILLIONTHS)


def uncompared_names(snapshot: Snapshot, limit: int | None) -> list[str]:
    """Return the keys of up to `limit` entities whose names have a vector and are not compared with others yet."""
    return list(snapshot.connection.execute(_UNCOMPARED.limit(limit)).scalars())


def synonym_counts(snapshot: Snapshot) -> DerivationCounts:
    """Count the pairs, and the names that are not compared yet."""
    n_pairs = snapshot.connection.scalar(select(func.count()).select_from(s.synonym)) or 0
    is_kept = change_log.is_derived(snapshot.connection, SYNONYMS)
    n_uncompared = snapshot.connection.scalar(_N_NAMES.where(_is_uncompared) if is_kept else _N_NAMES) or 0
    return DerivationCounts(n_items=n_pairs, n_stale=n_uncompared)


def name_counts(snapshot: Snapshot) -> DerivationCounts:
    """Count the entities with a name row, and the names without a vector."""
    if not change_log.is_derived(snapshot.connection, NAMES):
        n_entities = snapshot.connection.scalar(select(func.count()).select_from(s.entity)) or 0
        return DerivationCounts(n_items=0, n_stale=n_entities, n_texts=n_entities)
    n_texts = n_waiting(snapshot.connection, VectorSpace.NAME)
    return DerivationCounts(n_items=snapshot.connection.scalar(_N_NAMES) or 0, n_stale=n_texts, n_texts=n_texts)


def write_synonyms(connection: Connection, compared: SynonymUpdate, revision: int) -> frozenset[int]:
    """Write the pairs of a comparison, except for names that have changed since; return entities with new synonyms."""
    changed = restart_synonyms(connection, revision) if compared.reset else frozenset()
    keys = {key for pair in compared.pairs for key in (pair.first, pair.second)}.union(compared.names)
    unchanged = _UNCHANGED_RIDS.rows(connection, sorted(keys), revision=compared.revision)
    rid_by_key: dict[str, int] = dict(map(tuple, unchanged))
    similarity_by_pair = {
        tuple(sorted((rid_by_key[pair.first], rid_by_key[pair.second]))): round(pair.similarity * _MILLIONTHS)
        for pair in compared.pairs
        if pair.first in rid_by_key and pair.second in rid_by_key
    }
    firsts = sorted({first for first, _ in similarity_by_pair})
    existing = {(first, second) for first, second in _EXISTING_PAIRS.rows(connection, firsts)}
    new = [
        {"first": first, "second": second, "similarity": similarity}
        for (first, second), similarity in sorted(similarity_by_pair.items())
        if (first, second) not in existing
    ]
    insert_rows(connection, s.synonym, new)
    _MARK_COMPARED.run(connection, sorted(rid_by_key[key] for key in compared.names if key in rid_by_key))
    return changed | {rid for row in new for rid in (row["first"], row["second"])}


def drop_synonyms(connection: Connection, rids: Collection[int]) -> frozenset[int]:
    """Drop the pairs of gone or renamed entities; return these and their former synonyms, or nothing without pairs."""
    ordered = sorted(rids)
    partners = {rid for query in _PARTNERS for (rid,) in query.rows(connection, ordered)}
    for statement in _DELETE_PAIRS:
        statement.run(connection, ordered)
    return frozenset(partners | set(rids)) if partners else frozenset()


def restart_synonyms(connection: Connection, revision: int) -> frozenset[int]:
    """Drop every pair, so that all names are compared again; return the entities that had synonyms."""
    pairs = connection.execute(select(_p.first, _p.second)).all()
    connection.execute(s.synonym.delete())
    connection.execute(s.entity_name.update().values(is_compared=0, revision=revision))
    return frozenset(rid for pair in pairs for rid in pair)


def follow_names(
    connection: Connection, names: Mapping[int, str], removed: Collection[int], revision: int
) -> tuple[frozenset[int], VectorChanges]:
    """Update the name rows of these entities, given by row id, if names are kept.

    Returns the entities that had a different name row before, and the changed vectors.
    """
    vectors = VectorChanges()
    if not (names or removed) or not change_log.is_derived(connection, NAMES):
        return frozenset(), vectors
    new_hashes = {rid: vector_hash(VectorSpace.NAME, name) for rid, name in names.items()}
    old_hashes: dict[int, str] = dict(map(tuple, _NAME_HASHES.rows(connection, [*names, *removed])))
    changed = frozenset(rid for rid, text_hash in old_hashes.items() if new_hashes.get(rid) != text_hash)
    new = sorted(rid for rid, text_hash in new_hashes.items() if old_hashes.get(rid) != text_hash)
    for rid in {*changed, *new}:
        vectors.moved(VectorSpace.NAME, old_hashes.get(rid, ""), new_hashes.get(rid, ""))
    _DELETE_NAMES.run(connection, sorted(changed))
    rows = [{"rid": rid, "vector_hash": new_hashes[rid], "revision": revision, "is_compared": 0} for rid in new]
    insert_rows(connection, s.entity_name, rows)
    return changed, vectors


def write_names(connection: Connection, revision: int) -> VectorChanges:
    """Give every entity a name row, when names begin to be kept or are derived again; return the changed vectors."""
    names: dict[int, str] = dict(map(tuple, connection.execute(select(_e.rid, _e.name))))
    rids = connection.execute(select(_n.rid)).scalars().all()
    _, vectors = follow_names(connection, names, [rid for rid in rids if rid not in names], revision)
    return vectors


def _aliases(snapshot: Snapshot, rids: Sequence[int]) -> dict[int, tuple[str, ...]]:
    surfaces: dict[int, list[str]] = {}
    for rid, surface in _ALIASES.rows(snapshot, sorted(rids)):
        surfaces.setdefault(rid, []).append(surface)
    return {rid: tuple(sorted(aliases)) for rid, aliases in surfaces.items()}


def _entity(row: Row[Any], aliases: tuple[str, ...]) -> Entity:
    return Entity(
        key=row.key,
        name=row.name,
        type=row.type,
        description=row.description,
        n_mentions=row.n_mentions,
        n_chunks=row.n_chunks,
        degree=row.degree,
        aliases=aliases,
    )


def _folded_again(
    snapshot: Snapshot, rows: Mapping[int, Row[Any]], aliases: Mapping[int, tuple[str, ...]]
) -> dict[str, Entity]:
    """Return entities by key, folded from the allowed mentions."""
    mentions_by_rid: dict[int, list[Row[Any]]] = {}
    for mention in _MENTIONS.records(snapshot, sorted(rows)):
        mentions_by_rid.setdefault(mention.entity, []).append(mention)
    degree = _allowed_degrees(snapshot, sorted(mentions_by_rid))
    summary_by_rid = summaries_of(snapshot, SummaryTargetKind.ENTITY, [rows[rid] for rid in mentions_by_rid])
    return {
        rows[rid].key: Entity(
            key=rows[rid].key,
            name=display_name(Counter(mention.surface for mention in mentions)),
            type=most_common_type(Counter(mention.type for mention in mentions)),
            description=visible_description(mentions, summary_by_rid.get(rid)),
            n_mentions=len(mentions),
            n_chunks=len({mention.chunk for mention in mentions}),
            degree=degree[rid],
            aliases=aliases.get(rid, ()),
        )
        for rid, mentions in mentions_by_rid.items()
    }


def _degrees(snapshot: Snapshot, keys: Sequence[str]) -> dict[str, int]:
    """Return the number of relations of each visible entity."""
    rows = _DEGREES.rows(snapshot, sorted(set(keys)))
    if not snapshot.is_filtered:
        return {key: degree for key, _, degree in rows}
    visible = {key for (key,) in _VISIBLE.rows(snapshot, sorted(key for key, _, _ in rows))}
    counts = _allowed_degrees(snapshot, sorted(rid for key, rid, _ in rows if key in visible))
    return {key: counts[rid] for key, rid, _ in rows if key in visible}


def _allowed_degrees(snapshot: Snapshot, rids: Sequence[int]) -> Counter[int]:
    """Count the relations of each entity that an allowed chunk states."""
    degree: Counter[int] = Counter()
    for lookup in _ALLOWED_DEGREES:
        for rid, n_relations in lookup.rows(snapshot, rids):
            degree[rid] += n_relations
    return degree


def _all_types(snapshot: Snapshot) -> EntityTypes:
    rids = [rid for (rid,) in driver_rows(snapshot.connection.execute(_ALL))]
    rids_by_type = {kind: from_texts([(texts,)], 1)[0] for texts, kind in snapshot.connection.execute(_BY_TYPE)}
    types = sorted(rids_by_type)
    code_by_rid = np.zeros(max(rids, default=0) + 1, dtype=np.int64)
    for code, kind in enumerate(types):
        code_by_rid[rids_by_type[kind]] = code
    numbers = np.array(rids, dtype=np.int64)
    return EntityTypes(numbers=numbers, types=tuple(types), codes=code_by_rid[numbers])


def _allowed_types(snapshot: Snapshot) -> EntityTypes:
    """Fold the types again from the allowed mentions."""
    counts_by_rid: dict[int, dict[str, int]] = {}
    for rid, kind, n_mentions in driver_rows(snapshot.connection.execute(_ALLOWED_TYPES)):
        counts_by_rid.setdefault(rid, {})[kind] = n_mentions
    type_by_rid = {rid: most_common_type(n) if len(n) > 1 else next(iter(n)) for rid, n in counts_by_rid.items()}
    types = sorted(set(type_by_rid.values()))
    code_by_type = {kind: code for code, kind in enumerate(types)}
    rids = [rid for (rid,) in driver_rows(snapshot.connection.execute(_ALL_ALLOWED))]
    return EntityTypes(
        numbers=np.array(rids, dtype=np.int64),
        types=tuple(types),
        codes=np.array([code_by_type[type_by_rid[rid]] for rid in rids], dtype=np.int64),
    )
