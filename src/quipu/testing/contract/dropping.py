"""Dropping: a derivation that is kept no longer leaves nothing behind, and can be made again."""

from quipu.model.cluster import Cluster, ClusterReport, Hierarchy, Partition
from quipu.model.delta import Delta
from quipu.model.derivation import NAMES, SENTENCES, SYNONYMS
from quipu.model.made import Made
from quipu.model.sentences import ChunkSentences
from quipu.model.synonyms import Compared
from quipu.ports.store import Space, Store
from quipu.testing.contract.steps import DIMENSION, MODEL, OpenStore, dump, embed, pair_of, publish
from quipu.testing.facts import document, entity, passage

_MADE = (NAMES, SYNONYMS, SENTENCES, "communities", "reports", "hierarchy")
_FACTS = document("a", passage("Ada met Ida. Bo was there.", entity("Ada"), entity("Ida"), entity("Bo")))
_SPACES = (Space.NAME, Space.SENTENCE, Space.REPORT)


async def _make(store: Store) -> None:
    """Make a little of each derivation."""
    chunk = _FACTS.chunks[0].chunk.id
    await store.commit(Delta(made=[Made(name=name, identity="test/1", revision=1) for name in _MADE]))
    async with store.view() as view:
        revision = view.revision
    for hierarchy, level in ((Hierarchy.COMMUNITIES, 0), (Hierarchy.AGGREGATES, 1)):
        cluster = Cluster(
            id=f"the {hierarchy}", hierarchy=hierarchy, level=level, members=("ada", "ida"), inputs_hash=hierarchy
        )
        await store.commit(Delta(partition=Partition(hierarchy=hierarchy, clusters=(cluster,), revision=revision)))
        report = ClusterReport(
            cluster=cluster.id, title="Ada", summary=f"Of {hierarchy}.", inputs_hash=hierarchy, model="test/1"
        )
        await store.commit(Delta(reports=[report]))
    await store.commit(Delta(sentences=[ChunkSentences(chunk=chunk, spans=[(0, 12), (13, 26)])]))
    await embed(store)
    pair = await pair_of(store, "ada", "ida")
    await store.commit(Delta(synonyms=Compared(revision=revision + 1, names=["ada", "ida", "bo"], pairs=[pair])))


async def _held(store: Store) -> dict[str, int]:
    """Return how much there is of each."""
    async with store.view() as view:
        clusters = {each: await view.clusters(each) for each in Hierarchy}
        reports = {each: await view.cluster_reports([cluster.id for cluster in clusters[each]]) for each in Hierarchy}
        return {
            "names": len((await view.vectors_after(Space.NAME, -1)).rows),
            "synonyms": sum(map(len, (await view.synonyms(["ada"])).values())),
            "sentences": sum(map(len, (await view.sentences([_FACTS.chunks[0].chunk.id])).values())),
            "communities": len(clusters[Hierarchy.COMMUNITIES]),
            "reports": len(reports[Hierarchy.COMMUNITIES]),
            "hierarchy": len(clusters[Hierarchy.AGGREGATES]) + len(reports[Hierarchy.AGGREGATES]),
        }


class Dropping:
    """What is promised of derivations that are kept no longer."""

    async def test_what_is_dropped_goes_whole_and_nothing_else_does(self, open_store: OpenStore) -> None:
        alone = {name: (name,) for name in ("synonyms", "sentences", "reports", "hierarchy")}
        together = {"names": ("names", "synonyms"), "communities": ("communities", "reports")}
        async with open_store() as store:
            await store.use_embedder(MODEL, DIMENSION)
            await publish(store, _FACTS)
            await _make(store)
            whole, kept = await _held(store), await dump(store)
            assert all(whole.values()), whole
            for dropped in {**alone, **together}.values():
                await store.commit(Delta(drop=dropped))
                gone = {name: 0 if name in dropped else n for name, n in whole.items()}
                assert await _held(store) == gone
                async with store.view() as view:
                    assert set(await view.derivations()) == set(_MADE).difference(dropped)
                assert await store.verify() == []
                await _make(store)
                assert await _held(store) == whole
                assert await dump(store) == kept

    async def test_no_vector_stays_of_what_is_dropped(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await store.use_embedder(MODEL, DIMENSION)
            await publish(store, _FACTS)
            await _make(store)
            await store.commit(Delta(drop=_MADE))
            async with store.view() as view:
                assert [len((await view.vectors_after(space, -1)).rows) for space in _SPACES] == [0, 0, 0]
                assert dict(await view.derivations()) == {}
            assert set(await _held(store)) == set(_MADE)
            assert not any((await _held(store)).values())
