"""Reports in tables: what is written of clusters, who may read it, and that it goes with what it was made from."""

import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np
from sqlalchemy import Connection, Row, select

from quipu.errors import InvalidDelta
from quipu.model.cluster import ClusterReport, Finding, Hierarchy, report_text
from quipu.model.derivation import REPORTS
from quipu.ports.store import VectorSpace
from quipu.stores.relational import change_log
from quipu.stores.relational import schema as s
from quipu.stores.relational.allowed import find
from quipu.stores.relational.allowed_clusters import clusters_within
from quipu.stores.relational.snapshot import Snapshot
from quipu.stores.relational.sql import ByValues, insert_rows, texts_from_json, to_json
from quipu.stores.relational.vector_writes import VectorChanges, vector_hash

_k, _p = s.cluster.c, s.report.c
_REPORT = select(s.report, _k.id.label("cluster")).join(s.cluster, _k.rid == _p.rid)
_BY_CLUSTER, _BY_RID = ByValues(_REPORT, _k.id), ByValues(_REPORT, _p.rid)
_RATINGS = ByValues(select(_p.rid, _k.id, _p.rating).join(s.cluster, _k.rid == _p.rid), _k.id)
_HASHES = ByValues(select(_p.rid, _p.vector_hash), _p.rid)
_DROP = ByValues(s.report.delete(), _p.rid)
_CLUSTERS = ByValues(select(_k.rid, _k.id, _k.inputs_hash, _k.hierarchy), _k.id)


def read(snapshot: Snapshot, ids: Sequence[str]) -> list[ClusterReport]:
    """Return the reports of these clusters in their order; those that a filter hides are left out."""
    rows = _BY_CLUSTER.rows(snapshot.connection, sorted(set(ids)))
    shown = readable(snapshot, [row.rid for row in rows])
    found = {row.cluster: _report(row) for row in rows if row.rid in shown}
    return [found[each] for each in dict.fromkeys(ids) if each in found]


def ratings(snapshot: Snapshot, ids: Sequence[str]) -> dict[str, float]:
    """Return the rating of each report that `read` would return."""
    rows = _RATINGS.tuples(snapshot.connection, sorted(set(ids)))
    shown = readable(snapshot, [rid for rid, _, _ in rows])
    found = {cluster: rating for rid, cluster, rating in rows if rid in shown}
    return {each: found[each] for each in dict.fromkeys(ids) if each in found}


def readable(snapshot: Snapshot, rids: Collection[int]) -> frozenset[int]:
    """Return which of these clusters a filter lets be read of: allowed chunks alone speak of what is in them."""
    if not snapshot.is_filtered:
        return frozenset(rids)
    wanted = np.array(list(rids), dtype=np.int64)
    return frozenset(wanted[find(clusters_within(snapshot).told, wanted)[1]].tolist())


def write(connection: Connection, reports: Sequence[ClusterReport], vectors: VectorChanges) -> int:
    """Keep the reports of what is in their clusters now; return how many are of what was there before, or of none.

    Those on communities that arrive when reports are kept no longer count as of none.
    """
    if any(not (report.title.strip() or report.summary.strip()) for report in reports):
        raise InvalidDelta("A report without words.")
    are_kept = change_log.is_derived(connection, REPORTS)  # those on communities, which stay when these are dropped
    rows = {
        row.id: row
        for row in _CLUSTERS.rows(connection, sorted({report.cluster for report in reports}))
        if are_kept or row.hierarchy != Hierarchy.COMMUNITIES
    }
    current = {
        rows[report.cluster].rid: report
        for report in reports
        if report.cluster in rows and report.inputs_hash and report.inputs_hash == rows[report.cluster].inputs_hash
    }
    before = dict(map(tuple, _HASHES.rows(connection, sorted(current))))
    _DROP.run(connection, sorted(current))
    written = [_row(rid, report) for rid, report in sorted(current.items())]
    for row in written:
        vectors.moved(VectorSpace.REPORT, before.get(row["rid"], ""), row["vector_hash"])
    insert_rows(connection, s.report, written)
    return len(reports) - len(written)


def drop(connection: Connection, rids: Iterable[int], vectors: VectorChanges) -> None:
    """Drop the reports of these clusters."""
    rows = _HASHES.rows(connection, sorted(rids))
    for _, text_hash in rows:
        vectors.moved(VectorSpace.REPORT, text_hash, "")
    _DROP.run(connection, [rid for rid, _ in rows])


def texts(connection: Connection, rids: Sequence[int]) -> dict[int, str]:
    """Return the text of each of these reports, by row."""
    return {row.rid: report_text(_report(row)) for row in _BY_RID.rows(connection, rids)}


def _report(row: Row[Any]) -> ClusterReport:
    return ClusterReport(
        cluster=row.cluster,
        title=row.title,
        summary=row.summary,
        findings=tuple(Finding(summary=summary, explanation=told) for summary, told in json.loads(row.findings)),
        rating=row.rating,
        chunks=texts_from_json(row.chunks),
        inputs_hash=row.inputs_hash,
        model=row.model,
    )


def _row(rid: int, report: ClusterReport) -> dict[str, Any]:
    return {
        "rid": rid,
        "title": report.title,
        "summary": report.summary,
        "findings": to_json([[each.summary, each.explanation] for each in report.findings]),
        "rating": report.rating,
        "chunks": to_json(report.chunks),
        "inputs_hash": report.inputs_hash,
        "model": report.model,
        "vector_hash": vector_hash(VectorSpace.REPORT, report_text(report)),
    }
