"""Clusters and their reports: partitions written whole, reports that go with what they tell of, filters over both."""

from dataclasses import replace

import pytest

from quipu.errors import InvalidDelta
from quipu.model.cluster import Cluster, ClusterCount, ClusterReport, Finding, Hierarchy, Partition, report_text
from quipu.model.delta import Delta
from quipu.model.derivation import COMMUNITIES, REPORTS, DerivationRecord
from quipu.model.query import Filter
from quipu.ports.store import Store, VectorSpace
from quipu.testing.contract.steps import (
    DIMENSION,
    MODEL,
    OpenStore,
    dump,
    embed,
    publish,
    remove,
    report_ratings,
    summarise,
)
from quipu.testing.facts import document, entity, passage, relation

_COMMUNITIES, _AGGREGATES = Hierarchy.COMMUNITIES, Hierarchy.AGGREGATES
_EAST = document(
    "east", passage("Ada met Bo.", entity("Ada"), entity("Bo"), relation("Ada", "Bo", "Ada met Bo.")), title="East"
)
_WEST = document("west", passage("Cy met Di.", entity("Cy"), entity("Di"), relation("Cy", "Di", "Cy met Di.")))
_BOTH = document("both", passage("Bo saw Cy.", entity("Bo"), entity("Cy"), relation("Bo", "Cy", "Bo saw Cy.")))


def _cluster(name: str, *members: str, parent: str = "", level: int = 0, inputs: str = "", of: str = "") -> Cluster:
    return Cluster(
        id=name,
        hierarchy=Hierarchy(of or _COMMUNITIES),
        level=level,
        parent=parent,
        members=members,
        inputs_hash=inputs or f"inputs of {name}",
    )


_TREE = (
    _cluster("all"),
    _cluster("left", "ada", "bo", parent="all", level=1),
    _cluster("right", "cy", "di", parent="all", level=1),
)


def _report(name: str, summary: str = "", *, inputs: str = "", chunks: tuple[str, ...] = ()) -> ClusterReport:
    return ClusterReport(
        cluster=name,
        title=f"On {name}",
        summary=summary or f"What {name} does.",
        findings=(Finding(summary="It is told.", explanation="Twice."), Finding(summary="长城")),
        rating=4.5,
        chunks=chunks,
        inputs_hash=inputs or f"inputs of {name}",
        model="tests/reports",
    )


async def _divide(store: Store, *clusters: Cluster, hierarchy: Hierarchy = _COMMUNITIES) -> None:
    async with store.view() as view:
        revision = view.revision
    partition = Partition(hierarchy=hierarchy, clusters=clusters, revision=revision)
    await store.commit(
        Delta(partition=partition, derivations=[DerivationRecord(name=REPORTS, identity="test/1", revision=revision)])
    )


async def _clusters(
    store: Store, hierarchy: Hierarchy = _COMMUNITIES, allowed: Filter | None = None
) -> dict[str, Cluster]:
    async with store.view(allowed) as view:
        return {cluster.id: cluster for cluster in await view.clusters(hierarchy)}


async def _reported(store: Store, allowed: Filter | None = None) -> list[str]:
    async with store.view(allowed) as view:
        return [report.cluster for report in await view.cluster_reports(["right", "all", "left", "nowhere"])]


async def _fill(store: Store) -> None:
    await store.set_embedder(MODEL, DIMENSION)
    await publish(store, _EAST, _WEST, _BOTH)
    await _divide(store, *_TREE)
    await store.commit(Delta(reports=[_report("all"), _report("left"), _report("right")]))


class ClustersContract:
    """What a store promises about clusters."""

    async def test_a_partition_is_read_as_it_was_written(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await _fill(store)
            clusters = await _clusters(store)
            assert list(clusters) == ["all", "left", "right"]
            assert [cluster.n_entities for cluster in clusters.values()] == [4, 2, 2]
            assert [cluster.members for cluster in clusters.values()] == [(), ("ada", "bo"), ("cy", "di")]
            assert [(cluster.level, cluster.parent) for cluster in clusters.values()] == [
                (0, ""),
                (1, "all"),
                (1, "all"),
            ]
            async with store.view() as view:
                chosen = await view.clusters(_COMMUNITIES, ["right", "nowhere", "all"])
                assert [cluster.id for cluster in chosen] == ["right", "all"]
                finest = await view.clusters(_COMMUNITIES, entities=["di", "eve", "ada"])
                assert finest == [
                    replace(clusters["left"], members=("ada",)),
                    replace(clusters["right"], members=("di",)),
                ]
                bare = [replace(cluster, members=()) for cluster in clusters.values()]
                assert await view.clusters(_COMMUNITIES, with_members=False) == bare
                assert await view.clusters(_COMMUNITIES, ["left"], with_members=False) == [bare[1]]
                assert await view.clusters(_AGGREGATES) == []
                assert await view.clusters(_AGGREGATES, entities=["ada"]) == []
                documents = await view.cluster_documents(["right", "all"])
            assert documents == {"right": ("both", "west"), "all": ("both", "east", "west")}
            assert await store.verify() == []

    async def test_a_partition_takes_the_place_of_the_one_before(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await _fill(store)
            await _divide(store, _cluster("first", "ada", level=1, of=_AGGREGATES), hierarchy=_AGGREGATES)
            await _divide(store, _cluster("left", "ada", "bo"), _cluster("new", "cy", "di"))
            clusters = await _clusters(store)
            assert {name: cluster.members for name, cluster in clusters.items()} == {
                "left": ("ada", "bo"),
                "new": ("cy", "di"),
            }
            assert list(await _clusters(store, _AGGREGATES)) == ["first"]
            assert await _reported(store) == ["left"]
            assert await store.verify() == []

    async def test_a_report_goes_where_an_entity_leaves_its_cluster(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await _fill(store)
            await _divide(
                store,
                _TREE[0],
                _cluster("left", "ada", parent="all", level=1),
                _cluster("right", "bo", "cy", "di", parent="all", level=1),
            )
            assert await _reported(store) == ["right", "all"]

    async def test_a_broken_partition_is_refused(self, open_store: OpenStore) -> None:
        broken = (
            [_cluster("a", "ada"), _cluster("a", "bo")],
            [_cluster("a", "ada"), _cluster("b", "ada")],
            [_cluster("a", "ada", parent="nowhere")],
            [_cluster("a", "ada", parent="b"), _cluster("b", parent="a")],
        )
        async with open_store() as store:
            await _fill(store)
            for clusters in broken:
                with pytest.raises(InvalidDelta):
                    await _divide(store, *clusters)
            assert list(await _clusters(store)) == ["all", "left", "right"]

    async def test_entities_that_went_meanwhile_are_left_out(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, _EAST, _WEST)
            async with store.view() as view:
                revision = view.revision
            await remove(store, "west")
            await store.commit(Delta(partition=Partition(hierarchy=_COMMUNITIES, clusters=_TREE, revision=revision)))
            clusters = await _clusters(store)
            assert {name: cluster.n_entities for name, cluster in clusters.items()} == {"all": 2, "left": 2}
            assert {cluster.inputs_hash for cluster in clusters.values()} == {""}
            assert await store.verify() == []

    async def test_reports_count_only_where_they_are_of_what_is_there(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, _EAST, _WEST)
            await _divide(store, *_TREE)
            written = [_report("left"), _report("right", inputs="others"), _report("nowhere")]
            committed = await store.commit(Delta(reports=written))
            assert committed.n_outdated == 2
            async with store.view() as view:
                assert await view.cluster_reports(["left", "right", "nowhere"]) == [_report("left")]
                assert await view.pending(REPORTS) == ["right", "all"]
                assert await view.pending(REPORTS, not_by="tests/reports") == ["left", "right", "all"]
            with pytest.raises(InvalidDelta):
                blank = ClusterReport(cluster="left", title=" ", summary="", inputs_hash="inputs of left")
                await store.commit(Delta(reports=[blank]))

    async def test_what_is_added_unsettles_the_clusters_that_hold_it_and_keeps_reports(
        self, open_store: OpenStore
    ) -> None:
        async with open_store() as store:
            await _fill(store)
            await publish(store, document("more", passage("Ada sang.", entity("Ada", description="A singer."))))
            clusters = await _clusters(store)
            assert {name for name, cluster in clusters.items() if not cluster.inputs_hash} == {"all", "left"}
            assert await _reported(store) == ["right", "all", "left"]
            async with store.view() as view:
                assert await view.pending(REPORTS) == ["left", "all"]
                counts = await view.derivation_counts(COMMUNITIES)
                assert (counts.n_items, counts.n_stale) == (3, 2)
                assert counts.levels == (
                    ClusterCount(level=0, n_clusters=1, n_entities=4, n_pending=1, n_reports=1, n_outdated=1),
                    ClusterCount(level=1, n_clusters=2, n_entities=4, n_pending=1, n_reports=2, n_outdated=1),
                )
            committed = await store.commit(Delta(reports=[_report("left", "Ada sings.")]))
            assert committed.n_outdated == 1

    async def test_a_partition_of_what_has_changed_since_is_unsettled(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, _EAST, _WEST)
            async with store.view() as view:
                revision = view.revision
            await publish(store, document("more", passage("Ada sang.", entity("Ada", description="A singer."))))
            await store.commit(Delta(partition=Partition(hierarchy=_COMMUNITIES, clusters=_TREE, revision=revision)))
            assert {cluster.inputs_hash for cluster in (await _clusters(store)).values()} == {""}

    @pytest.mark.parametrize("change", ["more", "gone", "back"])
    async def test_only_clusters_with_something_that_has_changed_since_are_unsettled(
        self, open_store: OpenStore, change: str
    ) -> None:
        async with open_store() as store:
            await _fill(store)
            async with store.view() as view:
                revision = view.revision
            if change == "more":
                await publish(store, document("more", passage("Di sang.", entity("Di", description="A singer."))))
            else:
                await remove(store, "west")
            if change == "back":
                await publish(store, _WEST)
            await publish(store, document("late", passage("Eve came.", entity("Eve"))))
            await store.commit(Delta(partition=Partition(hierarchy=_COMMUNITIES, clusters=_TREE, revision=revision)))
            clusters = await _clusters(store)
            assert {name for name, cluster in clusters.items() if not cluster.inputs_hash} == {"all", "right"}
            assert await store.verify() == []

    async def test_what_changed_before_it_was_in_a_cluster_unsettles_it(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await _fill(store)
            await publish(store, document("late", passage("Eve came.", entity("Eve"))))
            async with store.view() as view:
                revision = view.revision
            await publish(store, document("more", passage("Eve sang.", entity("Eve", description="A singer."))))
            clusters = [*_TREE, _cluster("new", "eve")]
            await store.commit(Delta(partition=Partition(hierarchy=_COMMUNITIES, clusters=clusters, revision=revision)))
            clusters_by_name = await _clusters(store)
            assert {name for name, cluster in clusters_by_name.items() if not cluster.inputs_hash} == {"new"}

    async def test_a_partition_of_an_earlier_revision_than_the_one_there_is_is_unsettled(
        self, open_store: OpenStore
    ) -> None:
        async with open_store() as store:
            await _fill(store)
            async with store.view() as view:
                revision = view.revision
            await publish(store, document("late", passage("Eve came.", entity("Eve"))))
            await _divide(store, *_TREE)
            await store.commit(Delta(partition=Partition(hierarchy=_COMMUNITIES, clusters=_TREE, revision=revision)))
            assert {cluster.inputs_hash for cluster in (await _clusters(store)).values()} == {""}

    async def test_a_summary_unsettles_the_clusters_of_what_it_is_of(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            passages = [passage(f"Ada {i}.", entity("Ada", description=f"Ada was {i}.")) for i in range(9)]
            await publish(store, document("many", *passages), _WEST)
            await _divide(store, _cluster("left", "ada"), _cluster("right", "cy", "di"))
            await summarise(store)
            clusters = await _clusters(store)
            assert {name for name, cluster in clusters.items() if not cluster.inputs_hash} == {"left"}

    async def test_what_is_taken_back_takes_reports_along_and_all_above(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await _fill(store)
            await _divide(store, _cluster("up", "cy", level=1, of=_AGGREGATES), hierarchy=_AGGREGATES)
            await store.commit(Delta(reports=[_report("up", "Cy is told of.")]))
            await embed(store)
            await remove(store, "west")
            assert await _reported(store) == ["left"]
            clusters = await _clusters(store)
            assert {name: cluster.members for name, cluster in clusters.items()} == {
                "all": (),
                "left": ("ada", "bo"),
                "right": ("cy",),
            }
            async with store.view() as view:
                assert await view.cluster_reports(["up"]) == []
                rows = (await view.vectors(VectorSpace.REPORT)).rows
                assert list((await view.vector_owners(VectorSpace.REPORT, rows.tolist())).values()) == [("left",)]
            assert await store.verify() == []
            await remove(store, "both")
            assert list(await _clusters(store)) == ["all", "left"]
            assert list(await _clusters(store, _AGGREGATES)) == []
            assert await store.verify() == []

    async def test_an_update_that_takes_something_back_drops_reports_too(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await _fill(store)
            await publish(store, document("west", passage("Di is here.", entity("Di"))))
            assert await _reported(store) == ["left"]
            assert await store.verify() == []

    async def test_reports_are_found_by_their_vectors(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await _fill(store)
            texts = await embed(store)
            assert {report_text(_report(name)) for name in ("all", "left", "right")} <= set(texts)
            async with store.view() as view:
                rows = await view.numbers(VectorSpace.REPORT, ["left", "all", "nowhere"])
                assert set(rows) == {"left", "all"}
                assert await view.vector_owners(VectorSpace.REPORT, [rows["left"]]) == {rows["left"]: ("left",)}
            await store.commit(Delta(reports=[_report("left", "Something else.")]))
            assert await embed(store) == [report_text(_report("left", "Something else."))]
            assert await store.verify() == []

    async def test_under_a_filter_only_what_is_allowed_is_seen(self, open_store: OpenStore) -> None:
        allowed = Filter(exclude=("west",))
        async with open_store() as store:
            await _fill(store)
            await embed(store)
            clusters = await _clusters(store, allowed=allowed)
            assert {name: cluster.n_entities for name, cluster in clusters.items()} == {"all": 3, "left": 2, "right": 1}
            assert clusters["right"].members == ("cy",)
            assert await _reported(store, allowed) == ["left"]
            async with store.view(allowed) as view:
                assert await report_ratings(view, ["right", "all", "left", "nowhere"]) == {"left": 4.5}
                bare = [replace(cluster, members=()) for cluster in clusters.values()]
                assert await view.clusters(_COMMUNITIES, with_members=False) == bare
                assert await view.clusters(_COMMUNITIES, entities=["cy", "di"]) == [clusters["right"]]
                rows = await view.allowed_numbers(VectorSpace.REPORT)
                assert rows is not None
                assert await view.vector_owners(VectorSpace.REPORT, rows.tolist()) == {int(rows[0]): ("left",)}
                assert set(await view.numbers(VectorSpace.REPORT, ["left", "right"])) == {"left"}
            only = await _clusters(store, allowed=Filter(documents=("east",)))
            assert {name: cluster.members for name, cluster in only.items()} == {"all": (), "left": ("ada", "bo")}
            assert await _reported(store, Filter(documents=("east",))) == []

    async def test_reports_are_rated(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await _fill(store)
            await store.commit(Delta(reports=[replace(_report("all"), rating=9.0)]))
            async with store.view() as view:
                ratings = await report_ratings(view, ["right", "nowhere", "all"])
            assert list(ratings.items()) == [("right", 4.5), ("all", 9.0)]

    async def test_a_filter_sees_clusters_of_several_depths_and_what_is_committed_meanwhile(
        self, open_store: OpenStore
    ) -> None:
        allowed = Filter(exclude=("west",))
        async with open_store() as store:
            await _fill(store)
            await _divide(
                store,
                *_TREE[:2],
                _cluster("right", parent="all", level=1),
                _cluster("deep", parent="right", level=2),
                _cluster("di", "di", parent="right", level=2),
                _cluster("cy", "cy", parent="deep", level=3),
            )
            sizes = {name: cluster.n_entities for name, cluster in (await _clusters(store, allowed=allowed)).items()}
            assert sizes == {"all": 3, "left": 2, "right": 1, "deep": 1, "cy": 1}
            await remove(store, "west")
            sizes = {name: cluster.n_entities for name, cluster in (await _clusters(store, allowed=allowed)).items()}
            assert sizes == {"all": 3, "left": 2, "right": 1, "deep": 1, "cy": 1}
            await _divide(store, *_TREE[:2], _cluster("new", "cy", parent="all", level=1))
            await store.commit(Delta(reports=[_report("all"), _report("new")]))
            sizes = {name: cluster.n_entities for name, cluster in (await _clusters(store, allowed=allowed)).items()}
            assert sizes == {"all": 3, "left": 2, "new": 1}
            async with store.view(allowed) as view:
                assert set(await report_ratings(view, ["all", "left", "new"])) == {"all", "left", "new"}

    async def test_clusters_and_their_reports_are_part_of_the_canonical_state(self, open_store: OpenStore) -> None:
        async with open_store() as store, open_store("second") as other:
            await _fill(store)
            await embed(store)
            await other.set_embedder(MODEL, DIMENSION)
            await publish(other, _EAST, _WEST, _BOTH)
            await embed(other)
            assert await dump(store) != await dump(other)
            await _divide(other, *reversed(_TREE))
            for name in ("right", "left", "all"):
                await other.commit(Delta(reports=[_report(name)]))
            await embed(other)
            assert await dump(store) == await dump(other)

    async def test_what_has_been_made_is_noted(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await store.commit(Delta(derivations=[DerivationRecord(name="b", identity="1", revision=1)]))
            await store.commit(Delta(derivations=[DerivationRecord(name="a", identity="1", revision=1)]))
            await store.commit(Delta(derivations=[DerivationRecord(name="b", identity="2", revision=2)]))
            async with store.view() as view:
                assert dict(await view.derivations()) == {
                    "a": DerivationRecord(name="a", identity="1", revision=1),
                    "b": DerivationRecord(name="b", identity="2", revision=2),
                }
