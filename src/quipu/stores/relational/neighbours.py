"""The relations around entities, ranked by whole numbers; names are looked up for those that are kept.

An entity named in every third chunk has thousands of relations, of which a question sees a few hundred.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy import select

from quipu.model.fold import thousandths_to_weight
from quipu.model.graph import IncidentRelation
from quipu.model.ids import relation_id
from quipu.stores.relational import schema as s
from quipu.stores.relational.allowed import find
from quipu.stores.relational.display_names import keys_and_names
from quipu.stores.relational.lookup import Lookup
from quipu.stores.relational.rids import entity_rids
from quipu.stores.relational.snapshot import Snapshot
from quipu.stores.relational.sql import Ints

_e, _r = s.entity.c, s.relation.c
_FROM = Lookup(select(_r.rid, _r.source, _r.target, _r.weight), _r.source)
_TO = Lookup(select(_r.rid, _r.source, _r.target, _r.weight), _r.target)
_DEGREES = Lookup(select(_e.rid, _e.degree), _e.rid)


def strongest_relations(snapshot: Snapshot, keys: Sequence[str], k: int) -> tuple[list[IncidentRelation], int]:
    """Return the `k` relations of these entities with the best connected ends, and how many there are in all."""
    found = _incident(snapshot, sorted(entity_rids(snapshot, keys).values()))
    if not len(found.sums) or k <= 0:
        return [], len(found.sums)
    order = np.lexsort((-found.weights, -found.sums))
    last = order[min(k, len(order)) - 1]
    # Equal ones are told apart by id: all that equal the last are looked at.
    is_equal = (found.sums == found.sums[last]) & (found.weights >= found.weights[last])
    near = np.flatnonzero((found.sums > found.sums[last]) | is_equal)
    ends = np.unique(np.concatenate([found.sources[near], found.targets[near]]))
    names = keys_and_names(snapshot, ends.tolist())
    columns = (column[near].tolist() for column in (found.sources, found.targets, found.weights, found.sums))
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
    return sorted(ranked, key=lambda each: (-each.degree_sum, -each.weight, each.id))[:k], len(found.sums)


@dataclass(frozen=True, slots=True)
class _Incident:
    """Relations: the rows of their ends, their weights in thousandths, the sums of their ends' degrees; each [n]."""

    sources: Ints
    targets: Ints
    weights: Ints
    sums: Ints


def _incident(snapshot: Snapshot, entities: Sequence[int]) -> _Incident:
    both = zip(_FROM.ints(snapshot, entities), _TO.ints(snapshot, entities), strict=True)
    rids, sources, targets, weights = (np.concatenate(pair) for pair in both)
    rids, once = np.unique(rids, return_index=True)
    if snapshot.allowed is not None:
        places, is_allowed = find(snapshot.allowed.relations.rids, rids)
        once, weights = once[is_allowed], weights.copy()
        weights[once] = snapshot.allowed.relations.weights[places[is_allowed]]
    sources, targets, weights = sources[once], targets[once], weights[once]
    ends, at = np.unique(np.concatenate([sources, targets]), return_inverse=True)
    degrees = _degrees(snapshot, ends)[at]
    return _Incident(sources, targets, weights, degrees[: len(sources)] + degrees[len(sources) :])


def _degrees(snapshot: Snapshot, entities: Ints) -> Ints:
    """Return the number of relations of each entity; of those there are, rising."""
    if snapshot.allowed is not None:
        return snapshot.allowed.degrees(entities)
    rids, degrees = _DEGREES.ints(snapshot, entities.tolist())
    return degrees[np.argsort(rids)]
