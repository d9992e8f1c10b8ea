"""Relations between clusters: written in place of those before, gone with either end and with what is said of it."""

from quipu.model.cluster import Cluster, ClusterRelation, ClusterRelationUpdate, ClusterReport, Hierarchy, Partition
from quipu.model.delta import Delta
from quipu.model.query import Filter
from quipu.ports.store import Store
from quipu.testing.contract.steps import OpenStore, dump, publish, remove
from quipu.testing.facts import document, entity, passage, relation

_NAMES = ("left", "middle", "right")
_DOCUMENTS = [
    document(name, passage(f"On {name}.", entity(f"{name} one"), entity(f"{name} two", description=f"It is {name}.")))
    for name in _NAMES
]


def _relation(source: str, target: str, description: str = "") -> ClusterRelation:
    return ClusterRelation(
        source=source,
        target=target,
        level=1,
        description=description or f"{source} and {target}",
        weight=2.5,
        n_relations=2,
        inputs_hash="inputs",
        model="tests/relations",
    )


async def _revision(store: Store) -> int:
    async with store.view() as view:
        return view.revision


async def _fill(store: Store) -> None:
    """Put two entities in each of three clusters under a fourth, and relate the three."""
    await publish(store, *_DOCUMENTS)
    clusters = [Cluster(id="top", hierarchy=Hierarchy.AGGREGATES, level=2, inputs_hash="of top")]
    clusters += [
        Cluster(
            id=name,
            hierarchy=Hierarchy.AGGREGATES,
            level=1,
            parent="top",
            members=(f"{name} one", f"{name} two"),
            inputs_hash=f"of {name}",
        )
        for name in _NAMES
    ]
    revision = await _revision(store)
    related = [_relation("middle", "right"), _relation("left", "middle"), _relation("left", "right")]
    await store.commit(
        Delta(
            partition=Partition(hierarchy=Hierarchy.AGGREGATES, clusters=clusters, revision=revision),
            reports=[ClusterReport(cluster="left", title="Left", summary="It is left.", inputs_hash="of left")],
            cluster_relations=ClusterRelationUpdate(relations=related, revision=revision),
        )
    )


async def _related(store: Store, allowed: Filter | None = None) -> list[tuple[str, str]]:
    async with store.view(allowed) as view:
        return [
            (relation.source, relation.target)
            for relation in await view.cluster_relations(["right", "left", "middle", "top"])
        ]


class ClusterRelationsContract:
    """What a store promises about relations between clusters."""

    async def test_relations_between_clusters_are_read_by_their_ends(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await _fill(store)
            assert await _related(store) == [("left", "middle"), ("left", "right"), ("middle", "right")]
            async with store.view() as view:
                assert await view.cluster_relations(["right", "left", "nowhere"]) == [_relation("left", "right")]
                assert await view.cluster_relations(["left"]) == []
            assert await store.verify() == []

    async def test_a_relation_takes_the_place_of_that_with_the_same_ends(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await _fill(store)
            crossings = ClusterRelationUpdate(
                relations=[_relation("left", "right", "New.")],
                removed=[("left", "middle"), ("no", "where")],
                revision=await _revision(store),
            )
            assert (await store.commit(Delta(cluster_relations=crossings))).n_outdated == 0
            async with store.view() as view:
                relations = await view.cluster_relations(list(_NAMES))
            assert relations == [_relation("left", "right", "New."), _relation("middle", "right")]

    async def test_what_was_made_of_other_facts_is_not_written(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await _fill(store)
            revision = await _revision(store)
            await publish(store, document("more", passage("More.", entity("left one", description="It grew."))))
            related = [_relation("left", "right", "Old."), _relation("middle", "right", "New.")]
            crossings = ClusterRelationUpdate(relations=related, revision=revision)
            assert (await store.commit(Delta(cluster_relations=crossings))).n_outdated == 1
            lines = "".join(await dump(store))
            assert ("Old." in lines, "New." in lines) == (False, True)

    async def test_what_was_made_before_the_clusters_is_not_written(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            revision = await _revision(store)
            await _fill(store)
            crossings = ClusterRelationUpdate(relations=[_relation("left", "right", "Old.")], revision=revision)
            assert (await store.commit(Delta(cluster_relations=crossings))).n_outdated == 1
            assert "Old." not in "".join(await dump(store))

    async def test_an_end_that_is_not_there_is_left_out(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await _fill(store)
            crossings = ClusterRelationUpdate(relations=[_relation("left", "nowhere")], revision=await _revision(store))
            assert (await store.commit(Delta(cluster_relations=crossings))).n_outdated == 1
            assert len(await _related(store)) == 3

    async def test_what_is_taken_back_takes_the_relations_of_its_cluster_along(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await _fill(store)
            await publish(
                store,
                document(
                    "more", passage("More.", entity("left one"), relation("left one", "left two"), entity("left two"))
                ),
            )
            assert len(await _related(store)) == 3
            await remove(store, "more")
            assert await _related(store) == [("middle", "right")]
            await remove(store, "right")
            assert await _related(store) == []
            assert await store.verify() == []

    async def test_relations_go_with_a_cluster_that_goes(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await _fill(store)
            clusters = [
                Cluster(id="left", hierarchy=Hierarchy.AGGREGATES, level=1, members=("left one", "left two")),
                Cluster(id="right", hierarchy=Hierarchy.AGGREGATES, level=1, members=("right one", "right two")),
            ]
            revision = await _revision(store)
            await store.commit(
                Delta(partition=Partition(hierarchy=Hierarchy.AGGREGATES, clusters=clusters, revision=revision))
            )
            assert await _related(store) == [("left", "right")]
            assert await store.verify() == []

    async def test_under_a_filter_relations_are_shown_where_both_ends_may_be_told_of(
        self, open_store: OpenStore
    ) -> None:
        async with open_store() as store:
            await _fill(store)
            assert await _related(store, Filter(exclude=("middle",))) == [("left", "right")]
            await publish(store, document("more", passage("More.", entity("left one"))))
            assert await _related(store, Filter(documents=("left", "right"))) == []

    async def test_aggregates_and_what_is_said_of_them_are_part_of_the_canonical_state(
        self, open_store: OpenStore
    ) -> None:
        async with open_store() as store:
            await _fill(store)
            lines = "\n".join(await dump(store))
            assert lines.count('"kind":"aggregate"') == 4
            assert lines.count('"kind":"aggregate_relation"') == 3
            assert '"summary":"It is left."' in lines
