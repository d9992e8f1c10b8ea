"""Aggregates as the canonical state has them: unlike communities they have no memory, nor has what is said of them."""

import json
from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, bindparam, select

from quipu.model.cluster import Hierarchy
from quipu.stores.relational import schema as s
from quipu.stores.relational.sql import texts_from_json

_k, _m, _p, _e = s.cluster.c, s.membership.c, s.report.c, s.entity.c
_parent = s.cluster.alias("parent_cluster")
_AGGREGATES = (
    select(s.cluster, s.report, _parent.c.id.label("parent_id"), _p.rid.label("report"))
    .outerjoin(_parent, _parent.c.rid == _k.parent)
    .outerjoin(s.report, _p.rid == _k.rid)
    .where(_k.hierarchy == Hierarchy.AGGREGATES.value)
    .order_by(_k.id)
)
_MEMBERS = select(_e.key).join(s.membership, _m.entity == _e.rid).where(_m.cluster == bindparam("cluster"))


def records(connection: Connection) -> Iterator[dict[str, Any]]:
    """Yield each aggregate with its members and its report, ordered by id."""
    for row in connection.execute(_AGGREGATES).all():
        yield {
            "id": row.id,
            "level": row.level,
            "parent": row.parent_id or "",
            "members": list(connection.execute(_MEMBERS.order_by(_e.key), {"cluster": row.rid}).scalars()),
            "inputs_hash": row.inputs_hash,
            "report": None
            if row.report is None
            else {
                "title": row.title,
                "summary": row.summary,
                "findings": json.loads(row.findings),
                "chunks": texts_from_json(row.chunks),
            },
        }
