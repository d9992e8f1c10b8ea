"""Relations and claims: read by id, by entity (ranked by how connected the ends are), or by chunk.

Without a filter the stored folds are read. Under a filter relations are folded again from the allowed mentions alone.
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Row, select, tuple_

from quipu.model.graph import Claim, IncidentRelation, Relation, thousandths_to_weight, top_keywords
from quipu.model.ids import claim_id, relation_ends, relation_id
from quipu.model.summary import SummaryTargetKind
from quipu.stores.relational import schema as s
from quipu.stores.relational.entities import (
    entities,
    entity_rids,
    keys_and_names,
    summaries_of,
    visible_description,
)
from quipu.stores.relational.filters import allowed_degrees, allowed_relations, find_sorted
from quipu.stores.relational.mentions import CLAIM, CLAIMS_OF_CHUNK
from quipu.stores.relational.snapshot import Lookup, Snapshot
from quipu.stores.relational.sql import Ints, texts_from_json

_SOURCE, _TARGET = s.entity.alias("source"), s.entity.alias("target")
_c, _e, _r, _m, _k = s.chunk.c, s.entity.c, s.relation.c, s.relation_mention.c, s.claim_mention.c
_ENDS = (_SOURCE.c.key.label("source_key"), _TARGET.c.key.label("target_key"))
_RELATION = (
    select(s.relation, *_ENDS, _SOURCE.c.name.label("source_name"), _TARGET.c.name.label("target_name"))
    .join(_SOURCE, _SOURCE.c.rid == _r.source)
    .join(_TARGET, _TARGET.c.rid == _r.target)
)
_RIDS = Lookup(select(_r.rid, _r.source, _r.target), tuple_(_r.source, _r.target))
_RELATIONS = Lookup(_RELATION, _r.rid)
_WITH_END = [Lookup(_RELATION, end) for end in (_r.source, _r.target)]
_MENTIONS = Lookup(select(s.relation_mention), _m.relation, stated_in=_m.chunk)
_INCIDENT = [Lookup(select(_r.rid, _r.source, _r.target, _r.weight), end) for end in (_r.source, _r.target)]
_DEGREES = Lookup(select(_e.rid, _e.degree), _e.rid)

_SUBJECT, _OBJECT = s.entity.alias("subject"), s.entity.alias("object")
_CLAIMS_AT = Lookup(CLAIM, tuple_(_k.chunk, _k.ordinal))
_CLAIM_PLACES = Lookup(
    select(_k.entity, _c.id, _k.ordinal, _k.chunk).join_from(s.claim_mention, s.chunk, _k.chunk == _c.rid),
    _k.entity,
    stated_in=_k.chunk,
)


def relations(
    snapshot: Snapshot, ids: Sequence[str] = (), *, entities: Sequence[str] | None = None, k: int | None = None
) -> list[Relation]:
    """Return these relations in the given order, or those with an end among `entities`: all by id, or the heaviest `k`.

    A text that is no relation id is left out.
    """
    if entities is not None:
        return _with_an_end_among(snapshot, entities, k)
    rows = _RELATIONS.records(snapshot, sorted(relation_rids(snapshot, ids)))
    relation_by_id = {relation.id: relation for relation in _relations(snapshot, rows)}
    return [relation_by_id[relation_id_] for relation_id_ in ids if relation_id_ in relation_by_id]


def _with_an_end_among(snapshot: Snapshot, keys: Sequence[str], k: int | None) -> list[Relation]:
    rids = sorted(entity_rids(snapshot, keys).values())
    rows = list({row.rid: row for lookup in _WITH_END for row in lookup.records(snapshot, rids)}.values())
    if k is None:
        return sorted(_relations(snapshot, rows), key=lambda relation: relation.id)
    if not snapshot.is_filtered and 0 < k < len(rows):  # a filter changes weights
        smallest = heapq.nlargest(k, (row.weight for row in rows))[-1]
        rows = [row for row in rows if row.weight >= smallest]
    return sorted(_relations(snapshot, rows), key=lambda relation: (-relation.weight, relation.id))[:k]


def strongest_relations(snapshot: Snapshot, keys: Sequence[str], k: int) -> tuple[list[IncidentRelation], int]:
    """Return the `k` relations of these entities with the best connected ends, and how many relations there are.

    Relations are ranked as arrays, and names are read only for the first: an entity that every third chunk mentions
    has thousands of relations, of which a question uses a few hundred.
    """
    relations = _incident_arrays(snapshot, sorted(entity_rids(snapshot, keys).values()))
    if not len(relations.degree_sums) or k <= 0:
        return [], len(relations.degree_sums)
    sums, weights = relations.degree_sums, relations.weights
    order = np.lexsort((-weights, -sums))
    last = order[min(k, len(order)) - 1]
    # Relations equal to the last one are all read, because ids decide between them.
    is_equal = (sums == sums[last]) & (weights >= weights[last])
    nearest = np.flatnonzero((sums > sums[last]) | is_equal)
    ends = np.unique(np.concatenate([relations.sources[nearest], relations.targets[nearest]]))
    names = keys_and_names(snapshot, ends.tolist())
    columns = (column[nearest].tolist() for column in (relations.sources, relations.targets, weights, sums))
    ranked = [
        IncidentRelation(
            id=relation_id(names[source][0], names[target][0]),
            source=names[source][0],
            target=names[target][0],
            source_name=names[source][1],
            target_name=names[target][1],
            weight=thousandths_to_weight(weight),
            degree_sum=degree_sum,
        )
        for source, target, weight, degree_sum in zip(*columns, strict=True)
    ]
    ranked.sort(key=lambda relation: (-relation.degree_sum, -relation.weight, relation.id))
    return ranked[:k], len(sums)


def relation_rids(snapshot: Snapshot, ids: Iterable[str]) -> dict[int, str]:
    """Return the id of each of these relations that exists, by row id; a text that is no relation id is left out."""
    ends = {relation_ends(relation_id_) for relation_id_ in ids if relation_id_.count(" -- ") == 1}
    rids = entity_rids(snapshot, {key for pair in ends for key in pair})
    id_by_ends = {(rids[a], rids[b]): f"{a} -- {b}" for a, b in ends if a in rids and b in rids}
    rows = _RIDS.rows(snapshot, sorted(id_by_ends))
    return {rid: id_by_ends[source, target] for rid, source, target in rows}


def claims(
    snapshot: Snapshot, ids: Sequence[str] = (), *, subjects: Sequence[str] | None = None, k: int | None = None
) -> list[Claim]:
    """Return these claims in the given order, or the first `k` claims about each of `subjects`.

    A text that is no claim id is left out.
    """
    if subjects is not None:
        return _claims_about(snapshot, subjects, k)
    claim_ids = set(ids)
    rows = CLAIMS_OF_CHUNK.records(snapshot, sorted({claim.rpartition(":")[0] for claim in claim_ids}))
    claim_by_id = {claim.id: claim for claim in _claims(snapshot, [row for row in rows if _claim_id(row) in claim_ids])}
    return [claim_by_id[claim] for claim in ids if claim in claim_by_id]


def _claims_about(snapshot: Snapshot, keys: Sequence[str], k: int | None) -> list[Claim]:
    """Return the first `k` claims about each entity, ordered by chunk id and then by their order in the chunk."""
    rid_by_key = entity_rids(snapshot, keys) if k != 0 else {}
    places: dict[int, list[tuple[int, int]]] = {}
    for entity, _, ordinal, chunk in sorted(_CLAIM_PLACES.rows(snapshot, sorted(rid_by_key.values()))):
        first_places = places.setdefault(entity, [])
        if k is None or len(first_places) < k:
            first_places.append((chunk, ordinal))
    rows = _CLAIMS_AT.records(snapshot, sorted(place for first_places in places.values() for place in first_places))
    claim_by_place = {(row.chunk, row.ordinal): c for row, c in zip(rows, _claims(snapshot, rows), strict=True)}
    rids = [rid_by_key[key] for key in dict.fromkeys(keys) if key in rid_by_key]
    return [claim_by_place[place] for rid in rids for place in places.get(rid, ())]


def _relations(snapshot: Snapshot, rows: Sequence[Row[Any]]) -> list[Relation]:
    if not snapshot.is_filtered:
        return [_relation(row) for row in rows]
    mentions: dict[int, list[Row[Any]]] = {}
    for mention in _MENTIONS.records(snapshot, sorted(row.rid for row in rows)):
        mentions.setdefault(mention.relation, []).append(mention)
    keys = sorted({key for row in rows for key in (row.source_key, row.target_key)})
    names = {entity.key: entity.name for entity in entities(snapshot, keys)}
    visible = [row for row in rows if row.rid in mentions]
    summary_by_rid = summaries_of(snapshot, SummaryTargetKind.RELATION, visible)
    descriptions = {row.rid: visible_description(mentions[row.rid], summary_by_rid.get(row.rid)) for row in visible}
    return [_folded_again(row, mentions[row.rid], names, descriptions[row.rid]) for row in visible]


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


def _folded_again(row: Row[Any], mentions: Sequence[Row[Any]], names: Mapping[str, str], description: str) -> Relation:
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


@dataclass(frozen=True, slots=True)
class _RelationArrays:
    """Relations: the row ids of their ends, weights in thousandths, and the sum of both ends' degrees, each [n]."""

    sources: Ints
    targets: Ints
    weights: Ints
    degree_sums: Ints


def _incident_arrays(snapshot: Snapshot, entity_rids: Sequence[int]) -> _RelationArrays:
    both_ends = zip(*(lookup.ints(snapshot, entity_rids) for lookup in _INCIDENT), strict=True)
    rids, sources, targets, weights = (np.concatenate(pair) for pair in both_ends)
    rids, once = np.unique(rids, return_index=True)
    if snapshot.is_filtered:
        allowed = allowed_relations(snapshot)
        positions, is_present = find_sorted(allowed.rids, rids)
        once, weights = once[is_present], weights.copy()
        weights[once] = allowed.weights[positions[is_present]]
    sources, targets, weights = sources[once], targets[once], weights[once]
    ends, inverse = np.unique(np.concatenate([sources, targets]), return_inverse=True)
    degrees = _degrees(snapshot, ends)[inverse]
    return _RelationArrays(sources, targets, weights, degrees[: len(sources)] + degrees[len(sources) :])


def _degrees(snapshot: Snapshot, rids: Ints) -> Ints:
    """Return the number of relations of each of these entities, given by rising row ids."""
    if snapshot.is_filtered:
        return allowed_degrees(snapshot, rids)
    unsorted_rids, degrees = _DEGREES.ints(snapshot, rids.tolist())
    return degrees[np.argsort(unsorted_rids)]


def _claims(snapshot: Snapshot, rows: Sequence[Row[*tuple[Any, ...]]]) -> list[Claim]:
    names = keys_and_names(snapshot, sorted({end for row in rows for end in (row.entity, row.object) if end}))
    return [
        Claim(
            id=_claim_id(row),
            chunk_id=row.id,
            subject=row.subject_key,
            object=row.object_key or "",
            subject_name=names[row.entity][1],
            object_name=names[row.object][1] if row.object else "",
            type=row.type,
            status=row.status,
            dates=row.dates,
            description=row.description,
        )
        for row in rows
    ]


def _claim_id(row: Row[Any]) -> str:
    return claim_id(row.id, row.ordinal)
