"""Relations between clusters in tables: they go with either of their ends, and with what is said at either of them."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, Row, bindparam, func, select, tuple_

from quipu.model.cluster import ClusterRelation, ClusterRelationUpdate, Hierarchy
from quipu.model.fold import thousandths_to_weight, weight_to_thousandths
from quipu.stores.relational import partitions, reports
from quipu.stores.relational import schema as s
from quipu.stores.relational.snapshot import Snapshot
from quipu.stores.relational.sql import ByValues, insert_rows, next_rid

_k, _r = s.cluster.c, s.cluster_relation.c
_source, _target = s.cluster.alias("source_cluster"), s.cluster.alias("target_cluster")
_RELATION = (
    select(s.cluster_relation, _source.c.id.label("source_id"), _target.c.id.label("target_id"))
    .join(_source, _source.c.rid == _r.source)
    .join(_target, _target.c.rid == _r.target)
)
_FROM = ByValues(_RELATION, _r.source)
_RIDS = ByValues(select(_k.rid, _k.id), _k.id)
_ENDS = ByValues(select(_k.rid, _k.id, _k.inputs_hash), _k.id)
_N_BY = select(func.count()).where(_r.model == bindparam("by"))
_DROP_PAIRS = ByValues(s.cluster_relation.delete(), tuple_(_r.source, _r.target))
_DROP_FROM, _DROP_TO = (ByValues(s.cluster_relation.delete(), end) for end in (_r.source, _r.target))


def read(snapshot: Snapshot, ids: Sequence[str]) -> list[ClusterRelation]:
    """Return the relations with both ends among these clusters, ordered by ends; those a filter hides are left out."""
    rids = [rid for rid, _ in _RIDS.rows(snapshot.connection, sorted(set(ids)))]
    shown = reports.readable(snapshot, rids)
    rows = [row for row in _FROM.rows(snapshot.connection, sorted(shown)) if row.target in shown]
    return sorted(map(_relation, rows), key=lambda each: (each.source, each.target))


def n_by(snapshot: Snapshot, by: str) -> int:
    """Return how many relations are by this model, whatever the filter."""
    return snapshot.connection.scalar(_N_BY, {"by": by}) or 0


def write(connection: Connection, crossings: ClusterRelationUpdate) -> int:
    """Put relations in the place of those with the same ends; return how many were of what has changed since."""
    if crossings.revision < partitions.revision_of(connection, Hierarchy.AGGREGATES):
        return len(crossings.relations)
    pairs = [*crossings.gone, *((each.source, each.target) for each in crossings.relations)]
    ends = _ENDS.rows(connection, sorted({end for pair in pairs for end in pair}))
    rid = {name: rid for rid, name, _ in ends}
    settled = {name for _, name, inputs_hash in ends if inputs_hash}
    kept = [each for each in crossings.relations if {each.source, each.target} <= settled]
    pairs = [*crossings.gone, *((each.source, each.target) for each in kept)]
    _DROP_PAIRS.run(connection, sorted({(rid[a], rid[b]) for a, b in pairs if a in rid and b in rid}))
    first = next_rid(connection, s.cluster_relation)
    insert_rows(
        connection,
        s.cluster_relation,
        [
            {
                "rid": first + i,
                "source": rid[each.source],
                "target": rid[each.target],
                "level": each.level,
                "description": each.description,
                "weight": weight_to_thousandths(each.weight),
                "n": each.n,
                "inputs_hash": each.inputs_hash,
                "model": each.model,
            }
            for i, each in enumerate(kept)
        ],
    )
    return len(crossings.relations) - len(kept)


def drop(connection: Connection, clusters: Collection[int]) -> None:
    """Drop the relations with an end among these clusters, by row."""
    for drop_at_end in (_DROP_FROM, _DROP_TO):
        drop_at_end.run(connection, sorted(clusters))


def records(connection: Connection) -> Iterator[dict[str, Any]]:
    """Yield each relation as the canonical state has it, ordered by ends."""
    for row in connection.execute(_RELATION.order_by(_source.c.id, _target.c.id)):
        yield {
            "source": row.source_id,
            "target": row.target_id,
            "level": row.level,
            "description": row.description,
            "weight": row.weight,
            "n": row.n,
            "inputs_hash": row.inputs_hash,
        }


def differences(connection: Connection) -> Iterator[str]:
    """Yield what is wrong, in words: an end that is not there, or that is not the first."""
    clusters = dict(map(tuple, connection.execute(select(_k.rid, _k.id))))
    for row in connection.execute(select(_r.rid, _r.source, _r.target).order_by(_r.rid)):
        ends = clusters.get(row.source), clusters.get(row.target)
        if None in ends:
            yield f"cluster relation {row.rid}: one of its ends is not there"
        elif str(ends[0]) >= str(ends[1]):
            yield f"cluster relation {row.rid}: its ends are not in order"


def _relation(row: Row[*tuple[Any, ...]]) -> ClusterRelation:
    return ClusterRelation(
        source=row.source_id,
        target=row.target_id,
        level=row.level,
        description=row.description,
        weight=thousandths_to_weight(row.weight),
        n=row.n,
        inputs_hash=row.inputs_hash,
        model=row.model,
    )
