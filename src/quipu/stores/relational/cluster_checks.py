"""Checks of clusters and reports for `verify`: that all they point at is there, and that they count right."""

from collections import Counter
from collections.abc import Iterator

from sqlalchemy import Connection, select

from quipu.stores.relational import schema as s
from quipu.stores.relational.sql import texts_from_json
from quipu.text.formatting import format_count


def differences(connection: Connection) -> Iterator[str]:
    """Yield what is wrong, in words."""
    clusters = {row.rid: row for row in connection.execute(select(s.cluster).order_by(s.cluster.c.rid))}
    entities = set(connection.execute(select(s.entity.c.rid)).scalars())
    sizes, held = Counter[int](), set[tuple[int, str]]()
    for entity, rid in connection.execute(select(s.membership).order_by(*s.membership.c)):
        if rid not in clusters or entity not in entities:
            yield f"membership of entity row {entity} in cluster row {rid}: one of them is not there"
            continue
        if (entity, clusters[rid].hierarchy) in held:
            yield f"entity row {entity}: it is in two {clusters[rid].hierarchy} clusters"
        held.add((entity, clusters[rid].hierarchy))
        at = rid
        while at in clusters:
            sizes[at] += 1
            at = clusters[at].parent
    for rid, row in clusters.items():
        holder = clusters.get(row.parent)
        if row.parent is not None and (holder is None or holder.hierarchy != row.hierarchy):
            yield f"cluster {row.id}: what holds it is not there"
        if row.n_entities != sizes[rid]:
            yield f"cluster {row.id}: kept {format_count(row.n_entities, 'entity')}, but there are {sizes[rid]}"
    yield from _reports(connection, set(clusters))


def _reports(connection: Connection, clusters: set[int]) -> Iterator[str]:
    chunks_of = dict(map(tuple, connection.execute(select(s.report.c.rid, s.report.c.chunks))))
    chunks = set(connection.execute(select(s.chunk.c.id)).scalars()) if chunks_of else set()
    for rid, listed in sorted(chunks_of.items()):
        if rid not in clusters:
            yield f"report {rid}: its cluster is not there"
        for gone in sorted(set(texts_from_json(listed)) - chunks):
            yield f"report {rid}: the chunk {gone} it rests on is not there"
