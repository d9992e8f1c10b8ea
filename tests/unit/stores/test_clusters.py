"""Counts of clusters: reckoned once a revision for each hierarchy, however many views ask."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, event

from quipu.model.cluster import Cluster, Hierarchy, Partition
from quipu.model.delta import Delta
from quipu.model.derivation import COMMUNITIES, HIERARCHY
from quipu.ports.store import Store
from quipu.testing.contract.steps import remove
from tests.unit.stores.opening import fill, open_index

DERIVATIONS = {Hierarchy.COMMUNITIES: COMMUNITIES, Hierarchy.AGGREGATES: HIERARCHY}
SIZES = {Hierarchy.COMMUNITIES: [2], Hierarchy.AGGREGATES: [1, 1]}  # by level


async def divide(store: Store, *clusters: Cluster) -> None:
    """Make these the clusters of their hierarchy."""
    async with store.view() as view:
        revision = view.revision
    await store.commit(
        Delta(partition=Partition(hierarchy=clusters[0].hierarchy, clusters=clusters, revision=revision))
    )


def cluster(name: str, hierarchy: Hierarchy, *members: str, parent: str = "", level: int = 0) -> Cluster:
    """Return a cluster."""
    return Cluster(
        id=name, hierarchy=hierarchy, level=level, parent=parent, members=members, inputs_hash=f"inputs of {name}"
    )


async def n_entities(store: Store, hierarchies: Sequence[Hierarchy]) -> dict[Hierarchy, list[int]]:
    """Return of each hierarchy how many entities there are on its levels, as a new view counts them."""
    async with store.view() as view:
        counts = {each: await view.derivation_counts(DERIVATIONS[each]) for each in hierarchies}
        return {each: [level.n_entities for level in count.levels] for each, count in counts.items()}


@contextmanager
def counting() -> Iterator[list[str]]:
    """Note every statement that counts clusters within this context."""
    seen: list[str] = []

    def note(_connection: Connection, _cursor: object, statement: str, *_: Any) -> None:
        if "n_pending" in statement:
            seen.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(Engine, "before_cursor_execute", note)


async def test_each_hierarchy_is_counted_once_a_revision(database: Path) -> None:
    async with open_index(database) as store:
        await fill(store)
        of = Hierarchy.AGGREGATES
        await divide(store, cluster("all", Hierarchy.COMMUNITIES, "geneva", "world health organization"))
        await divide(store, cluster("some", of), cluster("part", of, "geneva", parent="some", level=1))
        with counting() as counted:
            for hierarchies in (list(SIZES), list(SIZES)[::-1]):
                assert await n_entities(store, hierarchies) == SIZES
            assert len(counted) == len(SIZES)
            await remove(store, "a.md", "b.md")
            assert await n_entities(store, list(SIZES)) != SIZES
            assert len(counted) == 2 * len(SIZES)
