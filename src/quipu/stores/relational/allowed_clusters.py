"""The clusters that a filter leaves: worked out from the allowed entities, once for each."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy import func, select

from quipu.stores.relational import schema as s
from quipu.stores.relational.allowed import AllowedGraph, find
from quipu.stores.relational.filters import ALLOWED_CHUNK
from quipu.stores.relational.lookup import Lookup
from quipu.stores.relational.memo import arrays_once
from quipu.stores.relational.snapshot import Snapshot
from quipu.stores.relational.sql import Ints, as_texts, from_texts

_NOTHING = -1  # above a cluster of the coarsest level

_k, _m, _em = s.cluster.c, s.membership.c, s.entity_mention.c
_mentioned = select(_em.entity).where(_em.chunk.in_(select(ALLOWED_CHUNK.c.rid)))
_MEMBERS = as_texts(select(_m.entity, _m.cluster).where(_m.entity.in_(_mentioned)))
_CLUSTERS = Lookup(select(_k.rid, func.coalesce(_k.parent, _NOTHING), _k.n_entities), _k.rid)


@dataclass(frozen=True, slots=True)
class AllowedClusters:
    """Clusters with allowed entities in them or below, by row, rising, and how many these are, both [n].

    `told` are those, rising, of whose entities allowed chunks alone speak: reports on others tell of more than these.
    """

    rids: Ints
    sizes: Ints
    told: Ints

    def sizes_of(self, rids: Sequence[int]) -> list[int]:
        """Return how many allowed entities are in each cluster and below it."""
        places, is_known = find(self.rids, np.array(rids, dtype=np.int64))
        known: Ints = self.sizes.take(places, mode="clip") if len(self.sizes) else places
        return [size if is_here else 0 for size, is_here in zip(known.tolist(), is_known.tolist(), strict=True)]


def clusters_within(snapshot: Snapshot) -> AllowedClusters:
    """Return the clusters that a filtered snapshot may see."""
    allowed = snapshot.allowed
    assert allowed is not None, "a snapshot with a filter"
    return AllowedClusters(*arrays_once(snapshot.memo.arrays, "clusters", lambda: _counted(snapshot, allowed)))


def _counted(snapshot: Snapshot, allowed: AllowedGraph) -> tuple[Ints, Ints, Ints]:
    """Count entities in their finest clusters, then in those above, which may be above clusters of several levels."""
    entities, clusters = from_texts(snapshot.connection.execute(_MEMBERS).all(), 2)
    is_theirs = allowed.is_theirs[find(allowed.entities, entities)[0]]
    counts = np.stack([np.ones_like(entities), is_theirs], axis=1)
    rows: list[Ints] = []
    while len(clusters):
        rids, counts = _summed(clusters, counts)
        found = np.stack(_CLUSTERS.ints(snapshot, rids.tolist()), axis=1)
        found = found[np.argsort(found[:, 0])]
        rows.append(np.column_stack([rids, found[:, 2], counts]))
        is_below = found[:, 1] != _NOTHING
        clusters, counts = found[is_below, 1], counts[is_below]
    every = np.concatenate(rows) if rows else np.empty((0, 4), dtype=np.int64)
    totals = dict(every[:, :2].tolist())
    rids, counts = _summed(every[:, 0], every[:, 2:])
    n_entities = np.array([totals[rid] for rid in rids.tolist()], dtype=np.int64)
    return rids, counts[:, 0], rids[counts[:, 1] == n_entities]


def _summed(rids: Ints, counts: Ints) -> tuple[Ints, Ints]:
    """Return each row once, rising, with the sums of its counts [n, 2]."""
    order = np.argsort(rids, kind="stable")
    distinct, starts = np.unique(rids[order], return_index=True)
    return distinct, np.add.reduceat(counts[order], starts, axis=0) if len(distinct) else counts
