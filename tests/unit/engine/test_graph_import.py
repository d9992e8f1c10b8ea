"""A recorded graph becomes an index: documents, entities, relations, communities and reports."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import quipu
from quipu.derive.imported_communities import MAX_ATTEMPTS, import_communities, is_imported
from quipu.derive.report_writer import IMPORTED_MODEL
from quipu.engine import Quipu
from quipu.errors import Busy, InvalidInput
from quipu.ingest.graph_import import read_graph
from quipu.model.cluster import Hierarchy
from quipu.model.delta import CommitResult, Delta
from quipu.model.derivation import Freshness
from quipu.ports.store import Store
from quipu.retrieve import STRATEGIES
from tests.unit.engine.recorded_run import told, write_run
from tests.unit.ingest.graph_import.graphrag_folder import write_folder, write_recorded
from tests.unit.ingest.graph_import.lightrag_directory import write_directory

DULCE = Path(os.environ.get("QUIPU_DATA") or Path(__file__).resolve().parents[4] / "shared/data") / "dulce"


class Dying:
    """A store whose process dies when it is to commit once more than `n_left` times."""

    def __init__(self, store: Store, n_left: int) -> None:
        self._store = store
        self.n_left = n_left

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def commit(self, delta: Delta) -> CommitResult:
        """Commit, or die."""
        self.n_left -= 1
        if self.n_left < 0:
            raise KeyboardInterrupt
        return await self._store.commit(delta)


class Meanwhile:
    """A store to which something is done just before communities are adopted, once or the first few times."""

    def __init__(self, store: Store, do: Callable[[], Awaitable[object]], n_times: int = 1) -> None:
        self._store = store
        self._todo = [do] * n_times

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def commit(self, delta: Delta) -> CommitResult:
        """Commit, after what is done meanwhile."""
        if delta.partition is not None and self._todo:
            await self._todo.pop()()
        return await self._store.commit(delta)


async def test_an_import_brings_documents_entities_communities_and_reports(tmp_path: Path) -> None:
    async with quipu.open(tmp_path / "k") as kb:
        report = await kb.import_graph(write_run(tmp_path / "run"))
        assert (report.n_added, report.n_communities, report.n_reports, report.failed) == (3, 4, 2, ())
        assert report.unknown == ("Nobody",)
        found = await kb.entity("Alice Kober")
        assert found.entity.name == "Alice Kober"
        assert {each.target_name for each in found.relations} == {"Brooklyn College", "Linear B"}
        async with kb._store.view() as view:
            clusters = await view.clusters(Hierarchy.COMMUNITIES)
            reports = {each.title: each for each in await view.cluster_reports([c.id for c in clusters])}
        assert reports["Alice Kober"].model == IMPORTED_MODEL
        assert reports["Alice Kober"].rating == 8.0
        assert reports["Alice Kober"].chunks
        members = {key for cluster in clusters for key in cluster.members}
        assert members == {"alice kober", "linear b", "brooklyn college", "michael ventris", "john chadwick"} | {
            "arthur evans",
            "knossos",
        }
        assert await kb.verify() == []


async def test_the_same_again_does_nothing_and_other_records_are_an_update(tmp_path: Path) -> None:
    async with quipu.open(tmp_path / "k") as kb:
        await kb.import_graph(write_run(tmp_path / "run"))
        before = [line async for line in kb.dump()]
        again = await kb.import_graph(write_run(tmp_path / "run"))
        assert (again.n_added, again.n_updated, again.n_unchanged) == (0, 0, 3)
        assert [line async for line in kb.dump()] == before
        other = await kb.import_graph(write_run(tmp_path / "run", weight=5.0))
        assert (other.n_added, other.n_updated, other.n_unchanged) == (0, 3, 0)
        assert (await kb.relation("Alice Kober", "Linear B")).relation.weight == 5.0


async def test_a_wrong_line_leaves_the_index_as_it_was(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    with (folder / "reports.jsonl").open("a") as file:
        file.write('{"community": 99, "title": "None", "summary": "Of nothing."}\n')
    async with quipu.open(tmp_path / "k") as kb:
        with pytest.raises(InvalidInput, match="community 99, which is missing"):
            await kb.import_graph(folder)
        assert await kb.documents() == []


async def test_what_is_added_later_finds_its_place_and_imported_reports_stay(tmp_path: Path) -> None:
    async with quipu.open(tmp_path / "k") as kb:
        await kb.import_graph(write_run(tmp_path / "run"))
        await kb.add_text("Emmett Bennett sorted the signs of Pylos. Emmett Bennett taught at Yale.", id="later")
        states = {state.name: state for state in (await kb.status()).derivations}
        assert states["communities"].freshness is states["reports"].freshness is Freshness.FRESH
        async with kb._store.view() as view:
            clusters = await view.clusters(Hierarchy.COMMUNITIES)
            reports = {each.title: each for each in await view.cluster_reports([c.id for c in clusters])}
        assert reports["Alice Kober"].model == reports["Readers of Linear B"].model == IMPORTED_MODEL
        assert any("emmett bennett" in cluster.members for cluster in clusters)


@pytest.mark.parametrize("kept", [(), ("reports",)])
async def test_documents_that_were_there_are_in_communities_at_once(tmp_path: Path, kept: tuple[str, ...]) -> None:
    async with quipu.open(tmp_path / "k") as kb:
        await kb.add_text("Emmett Bennett taught Alice Brown at Yale. Alice Brown met Arthur Evans.", id="before")
        await kb.refresh(kept)
        report = await kb.import_graph(write_run(tmp_path / "run"))
        assert (report.n_communities, report.n_reports) == (4, 2)
        clusters, reports, _ = await told(kb)
        keys = [key for cluster in clusters for key in cluster.members]
        assert len(keys) == len(set(keys)) == (await kb.status()).n_entities
        assert {each.title for each in reports if each.model == IMPORTED_MODEL} == {
            "Alice Kober",
            "Readers of Linear B",
        }
        states = {state.name: state for state in (await kb.status()).derivations}
        assert states["communities"].freshness is states["reports"].freshness is Freshness.FRESH
        answer = await kb.query("Who was at Yale with Emmett Bennett?", strategy="community_global")
        own = {each.cluster for each in reports if "Emmett Bennett" in each.title + each.summary}
        assert own & {hit.id for hit in answer.trace.evidence.reports}
        assert await kb.verify() == []


async def test_communities_that_an_import_does_not_touch_keep_their_reports(tmp_path: Path) -> None:
    async with quipu.open(tmp_path / "k") as kb:
        await kb.add_text("Emmett Bennett taught Alice Brown at Yale. Alice Brown met Emmett Bennett.", id="before")
        await kb.refresh(["reports"])
        before = {each.cluster: each for each in (await told(kb))[1]}
        assert before
        await kb.import_graph(write_run(tmp_path / "run"))
        after = {each.cluster: each for each in (await told(kb))[1]}
        assert before == {name: each for name, each in after.items() if name in before}


async def test_what_an_import_leaves_out_is_told_and_its_entities_stay(tmp_path: Path) -> None:
    record = {"id": "p1", "text": "Pylos is in Greece.", "triples": [["Pylos", "is", "Pylos"], ["Alice", "knew"]]}
    file = tmp_path / "graph.jsonl"
    file.write_text(json.dumps(record))
    async with quipu.open(tmp_path / "k") as kb:
        report = await kb.import_graph(file)
        assert report.omissions == (
            f'{file}, line 1: ["Alice", "knew"] is not a triple',
            f'{file}, line 1: "Pylos" is related to itself',
        )
        assert (await kb.entity("Pylos")).entity.name == "Pylos"


@pytest.mark.parametrize("text", ["A\0B", ""])
async def test_a_passage_that_cannot_be_read_is_refused_before_others_are_added(tmp_path: Path, text: str) -> None:
    folder = write_run(tmp_path / "run")
    with (folder / "graph.jsonl").open("a") as file:
        file.write(json.dumps({"id": "p4", "text": text}))
    async with quipu.open(tmp_path / "k") as kb:
        with pytest.raises(InvalidInput, match=r"graph.jsonl, line 4: `text` holds"):
            await kb.import_graph(folder)
        assert await kb.documents() == []


async def test_every_strategy_runs_on_an_imported_graph(tmp_path: Path) -> None:
    async with quipu.open(tmp_path / "k") as kb:
        await kb.import_graph(write_run(tmp_path / "run"))
        await kb.refresh(["names", "synonyms", "sentences", "hierarchy"])
        for name, strategy in STRATEGIES.items():
            answer = await kb.query("Who studied Linear B at Brooklyn College?", strategy=name)
            evidence = answer.trace.evidence
            if strategy.searches_index:
                assert evidence.chunks or evidence.reports, name


async def test_an_import_that_died_anywhere_is_finished_by_the_same_again(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    async with quipu.open(tmp_path / "whole") as kb:
        await kb.import_graph(run)
        whole = await told(kb)
    n_died = 0
    while True:
        async with quipu.open(tmp_path / str(n_died)) as kb:
            dying = Quipu(replace(kb._components, store=Dying(kb._store, n_died)))
            try:
                await dying.import_graph(run)
            except KeyboardInterrupt:
                await kb.import_graph(run)
            else:
                break
            assert await told(kb) == whole
            assert await kb.verify() == []
        n_died += 1
    assert n_died > 3


async def test_a_removed_document_that_comes_back_brings_its_reports_though_the_first_try_dies(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    async with quipu.open(tmp_path / "k") as kb:
        await kb.import_graph(run)
        whole = await told(kb)
        await kb.remove(["p1"])
        assert "Alice Kober" not in {each.title for each in (await told(kb))[1]}
        dying = Quipu(replace(kb._components, store=Dying(kb._store, 1)))
        with pytest.raises(KeyboardInterrupt):
            await dying.import_graph(run)
        again = await kb.import_graph(run)
        assert (again.n_unchanged, again.n_reports) == (3, 2)
        assert (await told(kb))[:2] == whole[:2]


async def test_the_same_again_leaves_what_has_grown_since(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    async with quipu.open(tmp_path / "k") as kb:
        await kb.import_graph(run)
        await kb.add_text("Emmett Bennett sorted the signs of Pylos. Emmett Bennett taught at Yale.", id="later")
        grown = await told(kb)
        again = await kb.import_graph(run)
        assert (again.n_communities, again.n_reports) == (0, 0)
        assert await told(kb) == grown


async def test_communities_that_were_dropped_are_adopted_again(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    async with quipu.open(tmp_path / "k") as kb:
        await kb.import_graph(run)
        whole = await told(kb)
        await kb.drop(["communities"])
        again = await kb.import_graph(run)
        assert (again.n_unchanged, again.n_communities, again.n_reports) == (3, 4, 2)
        assert (await told(kb))[:2] == whole[:2]


async def test_communities_alone_are_adopted_onto_the_documents_that_are_there(tmp_path: Path) -> None:
    alone = write_run(tmp_path / "alone", only=("communities", "reports"))
    async with quipu.open(tmp_path / "whole") as kb:
        await kb.import_graph(write_run(tmp_path / "run"))
        whole = await told(kb)
    async with quipu.open(tmp_path / "k") as kb:
        await kb.import_graph(write_run(tmp_path / "graph", only=("graph",)))
        report = await kb.import_graph(alone)
        assert (report.n_added, report.n_communities, report.n_reports, report.unknown) == (0, 4, 2, ("NOBODY",))
        assert (await told(kb))[:2] == whole[:2]
        again = await kb.import_graph(alone)
        assert (again.n_communities, again.n_reports) == (0, 0)


async def test_communities_of_which_nothing_is_there_are_refused(tmp_path: Path) -> None:
    alone = write_run(tmp_path / "alone", only=("communities", "reports"))
    async with quipu.open(tmp_path / "k") as kb:
        await kb.add_text("Emmett Bennett sorted the signs of Pylos with Alice Brown.", id="other")
        await kb.refresh(["communities"])
        before = await told(kb)
        with pytest.raises(
            InvalidInput, match=r"\.jsonl, line 1: none of the entities in the communities is in the index"
        ):
            await kb.import_graph(alone)
        assert await told(kb) == before


async def test_communities_are_adopted_while_nothing_else_is_derived(tmp_path: Path) -> None:
    seen: list[bool] = []

    async def look() -> None:
        seen.append(importing._deriving.locked())

    async with quipu.open(tmp_path / "k") as kb:
        importing = Quipu(replace(kb._components, store=Meanwhile(kb._store, look)))
        await importing.import_graph(write_run(tmp_path / "run"))
        assert seen == [True]


async def test_what_another_process_adds_while_communities_are_adopted_costs_no_report(tmp_path: Path) -> None:
    graph = read_graph([write_run(tmp_path / "run")])
    async with quipu.open(tmp_path / "k") as kb:
        await kb.import_graph(write_run(tmp_path / "graph", only=("graph",)))
        context = kb._components.derivation_context()
        add = partial(kb.add_text, "Alice Kober wrote of Linear B to John Myres.", id="later")
        adopted = await import_communities(replace(context, store=Meanwhile(context.store, add)), graph)
        assert (adopted.n_communities, adopted.n_reports) == (4, 2)
        assert {each.title for each in (await told(kb))[1]} == {"Alice Kober", "Readers of Linear B"}


async def test_where_others_never_stop_the_reports_are_not_taken_for_adopted(tmp_path: Path) -> None:
    graph = read_graph([write_run(tmp_path / "run")])
    numbers = count()
    async with quipu.open(tmp_path / "k") as kb:
        await kb.import_graph(write_run(tmp_path / "graph", only=("graph",)))
        context = kb._components.derivation_context()

        async def add() -> object:
            return await kb.add_text(f"Alice Kober wrote of Linear B to John Myres in 19{next(numbers)}.", id="later")

        with pytest.raises(Busy) as caught:
            await import_communities(replace(context, store=Meanwhile(context.store, add, MAX_ATTEMPTS)), graph)
        assert caught.value.remedy
        assert not await is_imported(graph, context.store)
        assert (await import_communities(context, graph)).n_reports == 2
        assert await is_imported(graph, context.store)


async def test_added_as_a_file_an_imported_document_stays_as_recorded_until_it_is_to_be_read(tmp_path: Path) -> None:
    graph = await asyncio.to_thread(read_graph, [write_run(tmp_path / "run")])
    async with quipu.open(tmp_path / "k") as kb:
        await kb.import_graph(tmp_path / "run")
        before = (await told(kb))[-1]
        report = await kb.add(*graph.documents)
        assert (report.n_unchanged, report.n_other_extractor) == (3, 3)
        assert report.other_extractors == ("a recorded graph",)
        assert (await told(kb))[-1] == before
        assert (await kb.add(*graph.documents, reread=True)).n_updated == 3
        assert [name for name, _ in (await kb.status()).extractors] == ["local rules, no language model"]
        assert (await kb.import_graph(tmp_path / "run")).n_updated == 3  # it is asked for, and takes over again


async def test_a_working_directory_of_lightrag_is_asked_and_removed_from_like_any_other_index(tmp_path: Path) -> None:
    folder = write_directory(tmp_path / "rag_storage")
    async with quipu.open(tmp_path / "k", chunk_tokens=32) as kb:
        result = await kb.import_graph(folder)
        assert (result.n_added, result.failed, len(result.omissions)) == (2, (), 3)
        linear_b = await kb.entity("Linear B")
        assert linear_b.entity.description.splitlines() == [
            "A script that Kober sorted.",
            "A script that Ventris deciphered.",
        ]
        weights = {tuple(sorted((r.source_name, r.target_name))): r.weight for r in linear_b.relations}
        assert weights == {
            ("Alice Kober", "Linear B"): 1.0,
            ("Linear B", "Michael Ventris"): 3.0,
            ("Knossos", "Linear B"): 1.0,
        }
        answer = await kb.query("Who deciphered Linear B?", strategy="mix")
        assert "Ventris" in answer.text
        assert (await kb.import_graph(folder)).n_unchanged == 2
        await kb.remove(["doc-1"])
        assert (await kb.entity("Linear B")).entity.description == ""


async def test_an_output_folder_of_graphrag_answers_with_its_own_reports_and_without_a_model(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "output")
    async with quipu.open(tmp_path / "k") as kb:
        result = await kb.import_graph(folder)
        assert (result.n_added, result.n_communities, result.n_reports, result.failed) == (2, 2, 2, ())
        (claim,) = (await kb.entity("Michael Ventris")).claims
        assert claim.description == "He deciphered Linear B in 1952."
        for strategy in ("community_global", "community_local", "drift"):
            answer = await kb.query("Who deciphered Linear B?", strategy=strategy)
            assert "Ventris" in answer.text, strategy
        assert not result.usage
        assert (await kb.import_graph(folder)).n_unchanged == 2


@pytest.mark.skipif(not DULCE.is_dir(), reason="the recorded run of GraphRAG is not here")
async def test_a_whole_run_of_graphrag_is_carried_over_from_its_tables(tmp_path: Path) -> None:
    folder = write_recorded(tmp_path / "output", DULCE)
    async with quipu.open(tmp_path / "k") as kb:
        result = await kb.import_graph(folder)
        status = await kb.status()
        assert (result.n_added, result.n_communities, result.n_reports) == (1, 10, 10)
        assert (result.failed, result.unknown, result.omissions) == ((), (), ())
        assert status.n_entities == 39 + 2  # two relations name an end that is not among the entities
        assert status.n_relations == 107 - 5  # five pairs are related in both directions
        for strategy in ("community_global", "community_local", "drift"):
            answer = await kb.query("What is Operation Dulce about?", strategy=strategy)
            assert "Dulce" in answer.text, strategy


async def test_triples_without_a_text_are_found_cited_and_removed_like_documents(tmp_path: Path) -> None:
    file = tmp_path / "scripts.csv"
    file.write_text("Alice Kober,studied,Linear B\nMichael Ventris,deciphered,Linear B\n")
    async with quipu.open(tmp_path / "k") as kb:
        assert (await kb.import_graph(file)).n_added == 2
        answer = await kb.query("Who deciphered Linear B?")
        assert {citation.document_id for citation in answer.citations} >= {"scripts.csv#Michael Ventris"}
        assert "Michael Ventris deciphered Linear B" in answer.text
        await kb.remove(["scripts.csv#Michael Ventris"])
        assert [r.source_name for r in (await kb.entity("Linear B")).relations] == ["Alice Kober"]


async def test_a_graph_that_is_given_as_data_is_found_cited_and_removed_like_documents(tmp_path: Path) -> None:
    graph = {
        "entities": [{"entity_name": "Linear B", "entity_type": "Script", "description": "The script of Knossos."}],
        "relationships": [{"src_id": "Michael Ventris", "tgt_id": "Linear B", "keywords": "deciphered"}],
    }
    async with quipu.open(tmp_path / "k") as kb:
        planned = await kb.import_graph(graph, name="notes", dry_run=True)
        assert (planned.n_added, planned.n_entities, planned.n_relations, planned.is_dry_run) == (2, 2, 1, True)
        assert (await kb.status()).n_documents == 0
        result = await kb.import_graph(graph, name="notes")
        assert (result.n_added, result.n_entities, result.n_relations) == (2, 2, 1)
        answer = await kb.query("What is Linear B?")
        assert "notes#Linear B" in {citation.document_id for citation in answer.citations}
        await kb.remove(["notes#Linear B"])
        assert (await kb.entity("Linear B")).entity.description == ""
        assert (await kb.import_graph(graph, name="notes", dry_run=True)).n_added == 1


@pytest.mark.parametrize("write", [write_directory, write_folder])
async def test_documents_that_are_removed_and_imported_again_give_the_same_index(
    tmp_path: Path, write: Callable[[Path], Path]
) -> None:
    folder = write(tmp_path / "source")
    async with quipu.open(tmp_path / "k") as kb:
        await kb.import_graph(folder)
        whole = [line async for line in kb.dump()]
        names = [document.id for document in await kb.documents()]
        await kb.remove(names[:1])
        assert (await kb.import_graph(folder)).n_added == 1
        assert [line async for line in kb.dump()] == whole
        await kb.remove(names)
        assert [line async for line in kb.dump()] == []
