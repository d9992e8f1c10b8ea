"""Dropping: a derivation that is kept no longer leaves nothing behind, and can be made again."""

from quipu.model.cluster import Cluster, ClusterReport, Hierarchy, Partition
from quipu.model.delta import ChunkSentences, Delta, SynonymUpdate
from quipu.model.derivation import NAMES, REPORTS, SENTENCES, SYNONYMS, DerivationRecord
from quipu.ports.store import Store, VectorSpace
from quipu.testing.contract.steps import DIMENSION, MODEL, OpenStore, dump, embed, pair_of, publish, synonyms
from quipu.testing.facts import document, entity, passage

_MADE = (NAMES, SYNONYMS, SENTENCES, "communities", "reports", "hierarchy")
_FACTS = document("a", passage("Ada met Ida. Bo was there.", entity("Ada"), entity("Ida"), entity("Bo")))
_SPACES = (VectorSpace.NAME, VectorSpace.SENTENCE, VectorSpace.REPORT)


async def _make(store: Store) -> None:
    """Make a little of each derivation."""
    chunk = _FACTS.chunks[0].chunk.id
    await store.commit(
        Delta(derivations=[DerivationRecord(name=name, identity="test/1", revision=1) for name in _MADE])
    )
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
    await store.commit(Delta(synonyms=SynonymUpdate(revision=revision + 1, names=["ada", "ida", "bo"], pairs=[pair])))


async def _held(store: Store) -> dict[str, int]:
    """Return how much there is of each."""
    async with store.view() as view:
        clusters = {hierarchy: await view.clusters(hierarchy) for hierarchy in Hierarchy}
        reports = {
            hierarchy: await view.cluster_reports([cluster.id for cluster in clusters[hierarchy]])
            for hierarchy in Hierarchy
        }
        return {
            "names": len((await view.vectors(VectorSpace.NAME)).rows),
            "synonyms": sum(map(len, (await synonyms(view, ["ada"])).values())),
            "sentences": sum(map(len, (await view.sentences([_FACTS.chunks[0].chunk.id])).values())),
            "communities": len(clusters[Hierarchy.COMMUNITIES]),
            "reports": len(reports[Hierarchy.COMMUNITIES]),
            "hierarchy": len(clusters[Hierarchy.AGGREGATES]) + len(reports[Hierarchy.AGGREGATES]),
        }


class DroppingContract:
    """What is promised of derivations that are kept no longer."""

    async def test_what_is_dropped_goes_whole_and_nothing_else_does(self, open_store: OpenStore) -> None:
        alone = {name: (name,) for name in ("synonyms", "sentences", "reports", "hierarchy")}
        together = {"names": ("names", "synonyms"), "communities": ("communities", "reports")}
        async with open_store() as store:
            await store.set_embedder(MODEL, DIMENSION)
            await publish(store, _FACTS)
            await _make(store)
            counts_before, dump_before = await _held(store), await dump(store)
            assert all(counts_before.values()), counts_before
            for dropped in {**alone, **together}.values():
                await store.commit(Delta(drop=dropped))
                expected_counts = {name: 0 if name in dropped else n for name, n in counts_before.items()}
                assert await _held(store) == expected_counts
                async with store.view() as view:
                    assert set(await view.derivations()) == set(_MADE).difference(dropped)
                assert await store.verify() == []
                await _make(store)
                assert await _held(store) == counts_before
                assert await dump(store) == dump_before

    async def test_what_arrives_after_a_drop_is_not_kept(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await store.set_embedder(MODEL, DIMENSION)
            await publish(store, _FACTS)
            await _make(store)
            pair = await pair_of(store, "ada", "ida")
            async with store.view() as view:
                revision = view.revision
            await store.commit(Delta(drop=[SENTENCES, SYNONYMS]))
            late = ChunkSentences(chunk=_FACTS.chunks[0].chunk.id, spans=[(0, 12), (13, 26)])
            update = SynonymUpdate(revision=revision, names=["ada", "ida", "bo"], pairs=[pair])
            await store.commit(Delta(sentences=[late], synonyms=update))
            counts = await _held(store)
            assert (counts[SENTENCES], counts[SYNONYMS]) == (0, 0)
            assert await embed(store) == []
            assert await store.verify() == []

    async def test_a_report_that_arrives_when_reports_are_kept_no_longer_is_left_out(
        self, open_store: OpenStore
    ) -> None:
        async with open_store() as store:
            await store.set_embedder(MODEL, DIMENSION)
            await publish(store, _FACTS)
            await _make(store)
            await store.commit(Delta(drop=[REPORTS]))
            hashes = Hierarchy.COMMUNITIES, Hierarchy.AGGREGATES
            late = [ClusterReport(cluster=f"the {of}", title="Ada", summary="Late.", inputs_hash=of) for of in hashes]
            assert (await store.commit(Delta(reports=late))).n_outdated == 1
            counts = await _held(store)
            assert (counts[REPORTS], counts["hierarchy"]) == (0, 2)
            noted = DerivationRecord(name=REPORTS, identity="test/2", revision=1)
            assert (await store.commit(Delta(reports=late, derivations=[noted]))).n_outdated == 0
            assert (await _held(store))[REPORTS] == 1

    async def test_synonyms_go_with_names(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await store.set_embedder(MODEL, DIMENSION)
            await publish(store, _FACTS)
            await _make(store)
            await store.commit(Delta(drop=[NAMES]))
            counts = await _held(store)
            assert (counts[NAMES], counts[SYNONYMS]) == (0, 0)
            async with store.view() as view:
                assert set(await view.derivations()) == set(_MADE) - {NAMES, SYNONYMS}

    async def test_no_vector_stays_of_what_is_dropped(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await store.set_embedder(MODEL, DIMENSION)
            await publish(store, _FACTS)
            await _make(store)
            await store.commit(Delta(drop=_MADE))
            async with store.view() as view:
                assert [len((await view.vectors(space)).rows) for space in _SPACES] == [0, 0, 0]
                assert dict(await view.derivations()) == {}
            assert set(await _held(store)) == set(_MADE)
            assert not any((await _held(store)).values())
