"""Reading the graph of a snapshot: entities, relations, names, and what chunks say about them.

Unfiltered, the folded rows are read as they are. Under a filter they are folded again from the allowed mentions alone,
so that nothing an excluded document says can show.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Row, Select, func, or_, select

from quipu.model.evidence import Scored
from quipu.model.fold import (
    descriptions_hash,
    display_name,
    distinct_descriptions,
    join_descriptions,
    most_common_type,
    thousandths_to_weight,
    top_keywords,
)
from quipu.model.graph import Entity, EntityMention, Relation, RelationMention
from quipu.model.ids import relation_id
from quipu.model.summary import SummaryTargetKind
from quipu.stores.relational import schema as s
from quipu.stores.relational import summaries
from quipu.stores.relational.filters import is_allowed
from quipu.stores.relational.lookup import Lookup
from quipu.stores.relational.rids import entity_rids, relation_rids
from quipu.stores.relational.snapshot import Snapshot
from quipu.stores.relational.sql import select_in, texts_from_json

_SOURCE, _TARGET = s.entity.alias("source"), s.entity.alias("target")
_e, _r, _a = s.entity.c, s.relation.c, s.alias_mention.c
_em, _rm = s.entity_mention.c, s.relation_mention.c
_RELATION = (
    select(
        s.relation,
        _SOURCE.c.key.label("source_key"),
        _SOURCE.c.name.label("source_name"),
        _TARGET.c.key.label("target_key"),
        _TARGET.c.name.label("target_name"),
    )
    .join(_SOURCE, _SOURCE.c.rid == _r.source)
    .join(_TARGET, _TARGET.c.rid == _r.target)
)
_ENTITIES = Lookup(select(s.entity), _e.key)
_ALIASES = Lookup(select(_a.entity, _a.surface).distinct(), _a.entity, said_in=_a.chunk)
_STANDS_FOR = Lookup(
    select(_a.alias, _e.key).join_from(s.alias_mention, s.entity, _a.entity == _e.rid), _a.alias, said_in=_a.chunk
)
_VISIBLE = Lookup(
    select(_e.key).where(select(1).where(_em.entity == _e.rid, is_allowed(_em.chunk)).correlate(s.entity).exists()),
    _e.key,
)
_RELATIONS = Lookup(_RELATION, _r.rid)
_FROM = Lookup(_RELATION, _r.source)
_TO = Lookup(_RELATION, _r.target)
_MENTIONS = Lookup(select(s.entity_mention), _em.entity, said_in=_em.chunk)
_STATEMENTS = Lookup(select(s.relation_mention), _rm.relation, said_in=_rm.chunk)


def entities(snapshot: Snapshot, keys: Sequence[str]) -> list[Entity]:
    """Return entities in the order asked for."""
    rows = {row.rid: row for row in _ENTITIES.records(snapshot, sorted(set(keys)))}
    aliases = _aliases(snapshot, list(rows))
    if snapshot.is_filtered:
        found = _refolded_entities(snapshot, rows, aliases)
    else:
        found = {row.key: _entity(row, aliases.get(rid, ())) for rid, row in rows.items()}
    return [found[key] for key in keys if key in found]


def relations(snapshot: Snapshot, ids: Sequence[str]) -> list[Relation]:
    """Return relations in the order asked for; what is no relation id is left out."""
    rids = relation_rids(snapshot, ids)
    rows = _RELATIONS.records(snapshot, sorted(rids))
    found = {relation.id: relation for relation in _relations(snapshot, rows)}
    return [found[i] for i in ids if i in found]


def incident(snapshot: Snapshot, keys: Sequence[str]) -> list[Relation]:
    """Return every relation with an end among `keys`, ordered by id."""
    rids = sorted(entity_rids(snapshot, keys).values())
    rows = {row.rid: row for lookup in (_FROM, _TO) for row in lookup.records(snapshot, rids)}
    return sorted(_relations(snapshot, list(rows.values())), key=lambda relation: relation.id)


def degrees(snapshot: Snapshot, keys: Sequence[str]) -> dict[str, int]:
    """Return the number of relations of each entity."""
    e = s.entity.c
    rows = select_in(snapshot.connection, select(e.key, e.rid, e.degree), e.key, sorted(set(keys)))
    found = {row.key: row.degree for row in rows}
    if snapshot.is_filtered:
        m = s.entity_mention.c
        said = _allowed(snapshot, select(m.entity).distinct(), m.chunk)
        visible = {row.entity for row in select_in(snapshot.connection, said, m.entity, [row.rid for row in rows])}
        counted = _allowed_degrees(snapshot, sorted(visible))
        found = {row.key: counted[row.rid] for row in rows if row.rid in visible}
    return {key: found[key] for key in dict.fromkeys(keys) if key in found}


def _allowed_degrees(snapshot: Snapshot, rids: Sequence[int]) -> Counter[int]:
    """Count the relations of each entity that an allowed chunk states."""
    r, m = s.relation.c, s.relation_mention.c
    stated = _allowed(snapshot, select(1).where(m.relation == r.rid), m.chunk).correlate(s.relation).exists()
    degree: Counter[int] = Counter()
    for end in (r.source, r.target):
        counted = select(end.label("entity"), func.count().label("n")).where(stated).group_by(end)
        for row in select_in(snapshot.connection, counted, end, rids):
            degree[row.entity] += row.n
    return degree


def named(snapshot: Snapshot, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the keys of the entities each name stands for: its own, then those it is an alias of."""
    wanted = sorted(set(names))
    found: dict[str, list[str]] = {key: [key] for key in entity_rids(snapshot, wanted)}
    times: Counter[tuple[str, str]] = Counter(map(tuple, _STANDS_FOR.rows(snapshot, wanted)))
    for (alias, key), _ in sorted(times.items(), key=lambda item: (item[0][0], -item[1], item[0][1])):
        if key not in found.setdefault(alias, []):
            found[alias].append(key)
    if snapshot.is_filtered:
        visible = {key for (key,) in _VISIBLE.rows(snapshot, sorted({k for keys in found.values() for k in keys}))}
        found = {name: [key for key in keys if key in visible] for name, keys in found.items()}
    return {name: tuple(found[name]) for name in dict.fromkeys(names) if found.get(name)}


def search_entities(snapshot: Snapshot, text: str, k: int) -> list[Scored]:
    """Return entities whose key contains `text`: starting with it first, then most mentioned, then by key."""
    e = s.entity.c
    spellings = (text.casefold(), text.upper())  # keys of acronyms are in capitals
    starts = or_(*(e.key.startswith(spelling, autoescape=True) for spelling in spellings))
    contains = or_(*(e.key.contains(spelling, autoescape=True) for spelling in spellings))
    ranked = select(e.key, e.n_mentions, starts.label("starts")).where(contains)
    if not snapshot.is_filtered:
        ranked = ranked.order_by(starts.desc(), e.n_mentions.desc(), e.key).limit(k)
        return [Scored(id=row.key, score=float(row.n_mentions)) for row in snapshot.connection.execute(ranked)]
    begins = {row.key: bool(row.starts) for row in snapshot.connection.execute(ranked)}
    found = sorted(entities(snapshot, list(begins)), key=lambda e: (not begins[e.key], -e.n_mentions, e.key))
    return [Scored(id=entity.key, score=float(entity.n_mentions)) for entity in found[:k]]


def entity_mentions(snapshot: Snapshot, chunk_ids: Sequence[str]) -> dict[str, list[EntityMention]]:
    """Return what each chunk says about entities, in order."""
    m, c, e = s.entity_mention.c, s.chunk.c, s.entity.c
    query = select(s.entity_mention, c.id.label("chunk_id"), e.key).join_from(
        s.entity_mention, s.chunk, m.chunk == c.rid
    )
    query = query.join(s.entity, m.entity == e.rid).order_by(m.chunk, m.ordinal)
    found: dict[str, list[EntityMention]] = {}
    for row in select_in(snapshot.connection, _allowed(snapshot, query, m.chunk), c.id, sorted(set(chunk_ids))):
        mention = EntityMention(
            key=row.key,
            surface=row.surface,
            type=row.type,
            description=row.description,
            start=row.start_char,
            end=row.end_char,
            is_definition=bool(row.is_definition),
        )
        found.setdefault(row.chunk_id, []).append(mention)
    return {chunk_id: found[chunk_id] for chunk_id in dict.fromkeys(chunk_ids) if chunk_id in found}


def relation_mentions(snapshot: Snapshot, chunk_ids: Sequence[str]) -> dict[str, list[RelationMention]]:
    """Return what each chunk says about pairs of entities, in order and direction as said."""
    m, c, r = s.relation_mention.c, s.chunk.c, s.relation.c
    query = (
        select(
            s.relation_mention,
            c.id.label("chunk_id"),
            _SOURCE.c.key.label("source_key"),
            _TARGET.c.key.label("target_key"),
        )
        .join_from(s.relation_mention, s.chunk, m.chunk == c.rid)
        .join(s.relation, m.relation == r.rid)
        .join(_SOURCE, _SOURCE.c.rid == r.source)
        .join(_TARGET, _TARGET.c.rid == r.target)
        .order_by(m.chunk, m.ordinal)
    )
    found: dict[str, list[RelationMention]] = {}
    for row in select_in(snapshot.connection, _allowed(snapshot, query, m.chunk), c.id, sorted(set(chunk_ids))):
        ends = (row.source_key, row.target_key)
        source, target = reversed(ends) if row.is_reversed else ends
        mention = RelationMention(
            source=source,
            target=target,
            keywords=texts_from_json(row.keywords),
            description=row.description,
            weight=thousandths_to_weight(row.weight),
        )
        found.setdefault(row.chunk_id, []).append(mention)
    return {chunk_id: found[chunk_id] for chunk_id in dict.fromkeys(chunk_ids) if chunk_id in found}


def _allowed(snapshot: Snapshot, query: Select[Any], chunk: Any) -> Select[Any]:
    return query.where(is_allowed(chunk)) if snapshot.is_filtered else query


def _aliases(snapshot: Snapshot, rids: Sequence[int]) -> dict[int, tuple[str, ...]]:
    found: dict[int, list[str]] = {}
    for rid, surface in _ALIASES.rows(snapshot, sorted(rids)):
        found.setdefault(rid, []).append(surface)
    return {rid: tuple(sorted(surfaces)) for rid, surfaces in found.items()}


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


def _refolded_entities(
    snapshot: Snapshot, rows: Mapping[int, Row[Any]], aliases: Mapping[int, tuple[str, ...]]
) -> dict[str, Entity]:
    mentions: dict[int, list[Row[Any]]] = {}
    for mention in _MENTIONS.records(snapshot, sorted(rows)):
        mentions.setdefault(mention.entity, []).append(mention)
    degree = _allowed_degrees(snapshot, sorted(mentions))
    summarised = _summaries(snapshot, SummaryTargetKind.ENTITY, [rows[rid] for rid in mentions])
    return {
        rows[rid].key: Entity(
            key=rows[rid].key,
            name=display_name(Counter(mention.surface for mention in all_mentions)),
            type=most_common_type(Counter(mention.type for mention in all_mentions)),
            description=_description(all_mentions, summarised.get(rid)),
            n_mentions=len(all_mentions),
            n_chunks=len({mention.chunk for mention in all_mentions}),
            degree=degree[rid],
            aliases=aliases.get(rid, ()),
        )
        for rid, all_mentions in mentions.items()
    }


def _relations(snapshot: Snapshot, rows: Sequence[Row[Any]]) -> list[Relation]:
    if not snapshot.is_filtered:
        return [_relation(row) for row in rows]
    mentions: dict[int, list[Row[Any]]] = {}
    for mention in _STATEMENTS.records(snapshot, sorted(row.rid for row in rows)):
        mentions.setdefault(mention.relation, []).append(mention)
    keys = sorted({key for row in rows for key in (row.source_key, row.target_key)})
    names = {entity.key: entity.name for entity in entities(snapshot, keys)}
    said = [row for row in rows if row.rid in mentions]
    summarised = _summaries(snapshot, SummaryTargetKind.RELATION, said)
    descriptions = {row.rid: _description(mentions[row.rid], summarised.get(row.rid)) for row in said}
    return [_refolded_relation(row, mentions[row.rid], names, descriptions[row.rid]) for row in said]


def _summaries(snapshot: Snapshot, kind: SummaryTargetKind, rows: Sequence[Row[Any]]) -> dict[int, tuple[str, str]]:
    summarised = [row.rid for row in rows if row.described_by == s.SUMMARISED]
    return summaries.of(snapshot.connection, kind, summarised)


def _description(mentions: Sequence[Row[Any]], summary: tuple[str, str] | None) -> str:
    """Return the summary where the mentions that may be seen say all it was made of, else the join of what they say."""
    ordered = distinct_descriptions([(mention.description_order, mention.description) for mention in mentions])
    inputs_hash, text = summary or ("", "")
    return text if inputs_hash == descriptions_hash(ordered) else join_descriptions(ordered)


def _relation(row: Row[Any]) -> Relation:
    return Relation(
        id=relation_id(row.source_key, row.target_key),
        source=row.source_key,
        target=row.target_key,
        source_name=row.source_name,
        target_name=row.target_name,
        keywords=texts_from_json(row.keywords),
        description=row.description,
        weight=thousandths_to_weight(row.weight),
        n_mentions=row.n_mentions,
        n_chunks=row.n_chunks,
    )


def _refolded_relation(
    row: Row[Any], mentions: Sequence[Row[Any]], names: Mapping[str, str], description: str
) -> Relation:
    keywords = Counter(word for mention in mentions for word in texts_from_json(mention.keywords))
    return Relation(
        id=relation_id(row.source_key, row.target_key),
        source=row.source_key,
        target=row.target_key,
        source_name=names[row.source_key],
        target_name=names[row.target_key],
        keywords=top_keywords(keywords),
        description=description,
        weight=thousandths_to_weight(sum(mention.weight for mention in mentions)),
        n_mentions=len(mentions),
        n_chunks=len({mention.chunk for mention in mentions}),
    )
