"""Reading the claims of a snapshot: those of a chunk, those about an entity, and some by id."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, select, tuple_

from quipu.model.graph import Claim, ClaimMention
from quipu.model.ids import claim_id
from quipu.stores.relational import schema as s
from quipu.stores.relational.display_names import keys_and_names
from quipu.stores.relational.lookup import Lookup
from quipu.stores.relational.rids import entity_rids
from quipu.stores.relational.snapshot import Snapshot

_SUBJECT, _OBJECT = s.entity.alias("subject"), s.entity.alias("object")
_m, _c = s.claim_mention.c, s.chunk.c
_CLAIM = (
    select(s.claim_mention, _c.id, _SUBJECT.c.key.label("subject_key"), _OBJECT.c.key.label("object_key"))
    .join_from(s.claim_mention, s.chunk, _m.chunk == _c.rid)
    .join(_SUBJECT, _m.entity == _SUBJECT.c.rid)
    .outerjoin(_OBJECT, _m.object == _OBJECT.c.rid)
)
_IN_CHUNKS = Lookup(_CLAIM, _c.id, said_in=_m.chunk)
_AT_PLACES = Lookup(_CLAIM, tuple_(_m.chunk, _m.ordinal))
_PLACES = Lookup(
    select(_m.entity, _c.id, _m.ordinal, _m.chunk).join_from(s.claim_mention, s.chunk, _m.chunk == _c.rid),
    _m.entity,
    said_in=_m.chunk,
)


def claim_mentions(snapshot: Snapshot, chunk_ids: Sequence[str]) -> dict[str, list[ClaimMention]]:
    """Return what each chunk claims, in order."""
    found: dict[str, list[ClaimMention]] = {}
    for row in sorted(_IN_CHUNKS.records(snapshot, sorted(set(chunk_ids))), key=lambda row: row.ordinal):
        found.setdefault(row.id, []).append(_mention(row))
    return {chunk_id: found[chunk_id] for chunk_id in dict.fromkeys(chunk_ids) if chunk_id in found}


def claims(snapshot: Snapshot, ids: Sequence[str]) -> list[Claim]:
    """Return claims in the order asked for; what is no claim id is left out."""
    wanted = set(ids)
    rows = _IN_CHUNKS.records(snapshot, sorted({each.rpartition(":")[0] for each in wanted}))
    found = {each.id: each for each in _claims(snapshot, [row for row in rows if _id(row) in wanted])}
    return [found[each] for each in ids if each in found]


def claims_of_entities(snapshot: Snapshot, keys: Sequence[str], k: int) -> dict[str, list[Claim]]:
    """Return the first `k` claims about each entity: by chunk id, then as they were said."""
    rid_by_key = entity_rids(snapshot, keys) if k > 0 else {}
    places: dict[int, list[tuple[int, int]]] = {}
    for entity, _, ordinal, chunk in sorted(_PLACES.rows(snapshot, sorted(rid_by_key.values()))):
        if len(first := places.setdefault(entity, [])) < k:
            first.append((chunk, ordinal))
    wanted = sorted(place for first in places.values() for place in first)
    rows = _AT_PLACES.records(snapshot, wanted)
    said = {(row.chunk, row.ordinal): each for row, each in zip(rows, _claims(snapshot, rows), strict=True)}
    found = {key: [said[place] for place in places.get(rid, ())] for key, rid in rid_by_key.items()}
    return {key: found[key] for key in dict.fromkeys(keys) if found.get(key)}


def _claims(snapshot: Snapshot, rows: Sequence[Row[*tuple[Any, ...]]]) -> list[Claim]:
    names = keys_and_names(snapshot, sorted({end for row in rows for end in (row.entity, row.object) if end}))
    return [
        Claim(
            id=_id(row),
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


def _id(row: Row[Any]) -> str:
    return claim_id(row.id, row.ordinal)


def _mention(row: Row[Any]) -> ClaimMention:
    return ClaimMention(
        subject=row.subject_key,
        object=row.object_key or "",
        type=row.type,
        status=row.status,
        dates=row.dates,
        description=row.description,
    )
