"""A real run of Microsoft GraphRAG, imported: every strategy works on it. Skipped where the data is not there."""

import os
from pathlib import Path

import pytest

import quipu
from quipu.derive.catalog import CATALOG
from quipu.derive.report_writer import IMPORTED_MODEL
from quipu.model.cluster import Cluster, ClusterReport, Hierarchy
from quipu.retrieve import STRATEGIES

FOLDER = Path(os.environ.get("QUIPU_DATA") or Path(__file__).parents[2] / "../shared/data") / "dulce"


@pytest.mark.skipif(not FOLDER.is_dir(), reason="the data set dulce is not there: set QUIPU_DATA")
async def test_a_recorded_run_is_imported_whole_and_every_strategy_works_on_it(tmp_path: Path) -> None:
    async with quipu.open(tmp_path / "k") as kb:
        report = await kb.import_graph(FOLDER)
        assert (report.n_added, report.failed, report.n_communities, report.n_reports) == (5, (), 10, 10)
        assert report.unknown == ()
        mercer = await kb.entity("Alex Mercer")
        assert mercer.entity.type == "Person"
        assert {each.target_name for each in mercer.relations} >= {"Sam Rivera"}
        async with kb._store.view() as view:
            clusters = await view.clusters(Hierarchy.COMMUNITIES)
            reports = await view.cluster_reports([each.id for each in clusters])
        assert len([each for each in reports if each.model == IMPORTED_MODEL]) == 10
        assert sum(len(each.members) for each in clusters) == (await kb.status()).n_entities
        assert all(each.chunks for each in reports)
        await kb.refresh([each.name for each in CATALOG])
        for name, strategy in STRATEGIES.items():
            answer = await kb.query("Who leads the Paranormal Military Squad at the Dulce base?", strategy=name)
            if strategy.searches_index:
                assert answer.trace.evidence.chunks or answer.trace.evidence.reports, name
        told = await kb.query("What threatens Dulce base?", strategy="community_global")
        assert {each.id for each in told.trace.evidence.reports} <= {each.id for each in clusters}
        assert await kb.verify() == []


@pytest.mark.skipif(not FOLDER.is_dir(), reason="the data set dulce is not there: set QUIPU_DATA")
async def test_a_rebuild_leaves_a_recorded_run_byte_for_byte(tmp_path: Path) -> None:
    async with quipu.open(tmp_path / "k") as kb:
        await kb.import_graph(FOLDER)
        whole = await _told(kb)
        assert [each.model for each in whole[1]].count(IMPORTED_MODEL) == 10
        await kb.refresh(rebuild=True)
        assert await _told(kb) == whole


async def _told(kb: quipu.Quipu) -> tuple[list[Cluster], list[ClusterReport], list[str]]:
    async with kb._store.view() as view:
        clusters = await view.clusters(Hierarchy.COMMUNITIES)
        reports = await view.cluster_reports([each.id for each in clusters])
    return clusters, reports, [line async for line in kb.dump()]
