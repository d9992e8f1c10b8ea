"""What lies around entities and relations, ranked by whole numbers; names and ids are looked up for what is kept.

An entity named in every third chunk has thousands of relations and chunks, of which a question sees a few.
"""

from collections.abc import Iterable, Mapping, Sequence
from heapq import nsmallest

import numpy as np
from sqlalchemy import select, tuple_

from quipu.model.fold import display_name, thousandths_to_weight
from quipu.model.graph import IncidentRelation
from quipu.model.ids import relation_ends, relation_id
from quipu.stores.relational import schema as s
from quipu.stores.relational.allowed import find
from quipu.stores.relational.columns import Ints
from quipu.stores.relational.lookup import Lookup
from quipu.stores.relational.snapshot import Snapshot

_e, _r, _c, _l = s.entity.c, s.relation.c, s.chunk.c, s.link.c
_em, _rm, _am = s.entity_mention.c, s.relation_mention.c, s.alias_mention.c

_ENTITY_RIDS = Lookup(select(_e.key, _e.rid), _e.key)
_ENTITY_NAMES = Lookup(select(_e.rid, _e.key, _e.name), _e.rid)
_SURFACES = Lookup(select(_em.entity, _em.surface), _em.entity, said_in=_em.chunk)
_DEGREES = Lookup(select(_e.rid, _e.degree), _e.rid)
_RELATION_RIDS = Lookup(select(_r.rid, _r.source, _r.target), tuple_(_r.source, _r.target))
_FROM = Lookup(select(_r.rid, _r.source, _r.target, _r.weight), _r.source)
_TO = Lookup(select(_r.rid, _r.source, _r.target, _r.weight), _r.target)
_STATED_IN = Lookup(select(_rm.relation, _rm.chunk), _rm.relation, said_in=_rm.chunk)
_SAID_IN = Lookup(select(_em.entity, _em.chunk), _em.entity, said_in=_em.chunk)
_ALIASES = Lookup(select(_am.entity, _am.alias).distinct(), _am.entity, said_in=_am.chunk)
_NAME_RIDS = Lookup(select(s.name.c.key, s.name.c.rid), s.name.c.key)
_LINKED_TO = Lookup(select(_l.name, _l.chunk, _l.n), _l.name, said_in=_l.chunk)
_CHUNK_IDS = Lookup(select(_c.rid, _c.id), _c.rid)

_CHUNK_BITS = 40  # an entity's position and a chunk's row as one number


def entity_rids(snapshot: Snapshot, keys: Iterable[str]) -> dict[str, int]:
    """Return the row of each of these entities there is, by key."""
    return {key: rid for key, rid in _ENTITY_RIDS.rows(snapshot, sorted(set(keys)))}


def relation_rids(snapshot: Snapshot, ids: Iterable[str]) -> dict[int, str]:
    """Return the id of each of these relations there is, by row; what is no relation id is left out."""
    ends = {relation_ends(i) for i in ids if i.count(" -- ") == 1}
    rids = entity_rids(snapshot, {key for pair in ends for key in pair})
    pairs = {(rids[a], rids[b]): f"{a} -- {b}" for a, b in ends if a in rids and b in rids}
    return {rid: pairs[source, target] for rid, source, target in _RELATION_RIDS.rows(snapshot, sorted(pairs))}


def strongest_relations(snapshot: Snapshot, keys: Sequence[str], k: int) -> tuple[list[IncidentRelation], int]:
    """Return the `k` relations of these entities with the best connected ends, and how many there are in all."""
    rids, sources, targets, weights = _incident(snapshot, sorted(entity_rids(snapshot, keys).values()))
    if not len(rids) or k <= 0:
        return [], len(rids)
    degrees = _degrees(snapshot, np.unique(np.concatenate([sources, targets])))
    sums = degrees[sources] + degrees[targets]
    order = np.lexsort((-weights, -sums))
    last = order[min(k, len(order)) - 1]
    # Equal ones are told apart by id, so all that equal the last are looked at.
    near = order[(sums[order] > sums[last]) | ((sums[order] == sums[last]) & (weights[order] >= weights[last]))]
    ends = _names(snapshot, np.unique(np.concatenate([sources[near], targets[near]])))
    columns = (array[near].tolist() for array in (sources, targets, weights, sums))
    found = [_incident_relation(ends[source], ends[target], *sizes) for source, target, *sizes in zip(*columns)]
    return sorted(found, key=lambda one: (-one.degree_sum, -one.weight, one.id))[:k], len(rids)
