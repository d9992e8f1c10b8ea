"""What was imported outlives a rebuild: communities as they came, and reports of which nothing has changed."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import quipu
from quipu.derive import reports
from quipu.derive.imported_communities import load_reports
from quipu.derive.report_writer import IMPORTED_MODEL
from quipu.engine import Quipu
from quipu.model.cluster import Cluster
from quipu.model.delta import Delta
from quipu.ports.store import ReplyCache
from tests.unit.derive.writer import Writer
from tests.unit.engine.recorded_run import told, write_run

LATER = "Emmett Bennett sorted the signs of Pylos. Emmett Bennett taught at Yale."
COMMUNITY = '"kind":"community"'
IMPORTED = {"Alice Kober", "Readers of Linear B"}


async def _imported(kb: Quipu) -> set[str]:
    """Return the titles of the imported reports that stand."""
    clusters, reports, _ = await told(kb)
    hashes = {each.id: each.inputs_hash for each in clusters}
    return {each.title for each in reports if each.model == IMPORTED_MODEL and each.inputs_hash == hashes[each.cluster]}


def _groups(clusters: list[Cluster]) -> set[tuple[int, tuple[str, ...]]]:
    """Return what is in each finest community, with its level."""
    return {(each.level, each.members) for each in clusters if each.members}


@pytest.mark.parametrize("names", [(), ("communities",), ("reports",), ("communities", "reports")])
async def test_a_rebuild_leaves_what_was_imported_as_it_came(tmp_path: Path, names: tuple[str, ...]) -> None:
    async with quipu.open(tmp_path / "k") as kb:
        await kb.import_graph(write_run(tmp_path / "run"))
        whole = await told(kb)
        for _ in range(2):
            await kb.refresh(names, rebuild=True)
            assert await told(kb) == whole
        assert (await kb.import_graph(tmp_path / "run")).n_communities == 0
        assert await kb.verify() == []


async def test_a_rebuild_asks_no_model_for_imported_reports(tmp_path: Path) -> None:
    async with quipu.open(tmp_path / "k") as kb:
        await kb.import_graph(write_run(tmp_path / "run"))
        context = replace(kb._components.derivation_context(), llm=Writer())
        async with kb._store.view() as view:
            planned = (await reports.estimate_rebuild(view, context)).cost.n_calls
        made = await reports.refresh(context, True)
        assert await _imported(kb) == IMPORTED
        assert (planned, made.n_built, made.n_unchanged) == (2, 2, 2)


async def test_a_rebuild_puts_back_the_imported_communities_and_divides_the_rest(tmp_path: Path) -> None:
    async with quipu.open(tmp_path / "k") as kb:
        await kb.import_graph(write_run(tmp_path / "run"))
        whole = _groups((await told(kb))[0])
        await kb.add_text(f"{LATER} Emmett Bennett met Alice Kober.", id="later")
        await kb.refresh(rebuild=True)
        rebuilt = await told(kb)
        assert whole < _groups(rebuilt[0])
        assert sum(len(each.members) for each in rebuilt[0]) == (await kb.status()).n_entities
        await kb.add_text("Alice Kober wrote to John Chadwick in Cambridge.", id="passing")
        await kb.remove(["passing"])
        await kb.refresh(rebuild=True)
        again = await told(kb)
        assert _groups(again[0]) == _groups(rebuilt[0])
        assert again[2] == rebuilt[2]


async def test_a_report_of_which_something_changed_is_stale_and_the_others_stay(tmp_path: Path) -> None:
    more = {"id": "p4", "text": "Alice Kober wrote.", "entities": [{"name": "ALICE KOBER", "description": "A reader."}]}
    (tmp_path / "more.jsonl").write_text(json.dumps(more))
    async with quipu.open(tmp_path / "k") as kb:
        await kb.import_graph(write_run(tmp_path / "run"))
        await kb.import_graph(tmp_path / "more.jsonl")
        assert "Alice Kober" not in await _imported(kb)
        await kb.refresh(rebuild=True)
        assert await _imported(kb) == {"Readers of Linear B"}
        await kb.remove(["p4"])
        await kb.refresh(rebuild=True)
        assert await _imported(kb) == IMPORTED


async def test_a_removal_takes_the_reports_on_what_it_spoke_of_and_leaves_the_others(tmp_path: Path) -> None:
    async with quipu.open(tmp_path / "k") as kb:
        await kb.import_graph(write_run(tmp_path / "run"))
        before, _, _ = await told(kb)
        assert {each.title for each in (await load_reports(before, kb._store)).values()} == IMPORTED
        await kb.remove(["p1"])
        assert {each.title for each in (await load_reports(before, kb._store)).values()} == {"Readers of Linear B"}
        assert "Alice Kober" not in await _imported(kb)
        await kb.refresh(rebuild=True)
        clusters, reports, _ = await told(kb)
        assert {each.title for each in reports if each.model == IMPORTED_MODEL} == {"Readers of Linear B"}
        assert {members for _, members in _groups(clusters)} == {
            ("linear b",),
            ("john chadwick", "michael ventris"),
            ("arthur evans", "knossos"),
        }
        assert not any("kober" in f"{each.title} {each.summary}".casefold() for each in reports)
        await kb.purge()
        await kb.refresh(rebuild=True)
        assert await _imported(kb) == {"Readers of Linear B"}


async def test_two_imports_outlive_a_rebuild_side_by_side(tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    lines = [
        {"id": "q1", "text": LATER, "entities": ["Emmett Bennett", "Yale", "Pylos"]},
        {"community": 0, "level": 0, "entities": ["Emmett Bennett", "Yale"]},
        {"community": 1, "level": 0, "entities": ["Pylos", "Linear B"]},
        {"community": 0, "title": "Yale", "summary": "Bennett taught there."},
    ]
    other.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    async with quipu.open(tmp_path / "k") as kb:
        await kb.import_graph(write_run(tmp_path / "run"))
        await kb.import_graph(other)
        await kb.refresh(rebuild=True)
        assert await _imported(kb) == {"Readers of Linear B", "Yale"}  # Linear B has left the community of Alice Kober
        assert {members for _, members in _groups((await told(kb))[0])} == {
            ("emmett bennett", "yale"),
            ("linear b", "pylos"),
            ("alice kober", "brooklyn college"),
            ("john chadwick", "michael ventris"),
            ("arthur evans", "knossos"),
        }


async def test_what_is_dropped_is_given_up_until_it_is_imported_again(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    async with quipu.open(tmp_path / "k") as kb:
        await kb.import_graph(run)
        whole = await told(kb)
        await kb.drop(["communities"])
        await kb.refresh(["communities"])
        assert _groups((await told(kb))[0]) != _groups(whole[0])
        assert (await kb.import_graph(run)).n_reports == 2
        assert (await told(kb))[:2] == whole[:2]


async def test_dropped_reports_are_imported_again_and_their_communities_stay(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    async with quipu.open(tmp_path / "k") as kb:
        await kb.import_graph(run)
        whole = await told(kb)
        await kb.drop(["reports"])
        await kb.refresh(["communities"], rebuild=True)
        clusters, reports, lines = await told(kb)
        assert (clusters, reports) == (whole[0], [])
        assert [line for line in lines if COMMUNITY not in line] == [line for line in whole[2] if COMMUNITY not in line]
        assert (await kb.import_graph(run)).n_reports == 2
        assert (await told(kb))[:2] == whole[:2]


async def test_the_plan_says_that_imported_communities_and_reports_stay(tmp_path: Path) -> None:
    async with quipu.open(tmp_path / "k") as kb:
        await kb.import_graph(write_run(tmp_path / "run"))
        holds = {each.name: each.contents for each in await kb.plan(rebuild=True)}
        assert holds["communities"].endswith("; imported communities are kept")
        assert holds["reports"].endswith("; 2 imported reports kept")
        report = await kb.refresh(rebuild=True)
        notes = {each.name: each.notes for each in report.derivations}
        assert "4 imported communities kept" in notes["communities"]
        assert "2 imported reports kept" in notes["reports"]


async def test_where_it_is_no_longer_known_what_was_imported_the_plan_says_what_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with quipu.open(tmp_path / "k") as kb:
        await kb.import_graph(write_run(tmp_path / "run"))

        find = kb._store.find_replies

        async def find_reports_only(_: ReplyCache, input_hashes: Sequence[str]) -> dict[str, str]:
            return await find(input_hashes) if len(input_hashes) > 1 else {}

        monkeypatch.setattr(type(kb._store), "find_replies", find_reports_only)
        holds = {each.name: each.contents for each in await kb.plan(["communities"], rebuild=True)}
        assert "lost: 2 imported reports" in holds["communities"]
        report = await kb.refresh(["communities"], rebuild=True)
        (notes,) = [each.notes for each in report.derivations if each.name == "communities"]
        assert any(each.startswith("lost: ") for each in notes)


async def test_a_report_that_fits_again_is_put_back_and_no_model_is_asked(tmp_path: Path) -> None:
    async with quipu.open(tmp_path / "k") as kb:
        await kb.import_graph(write_run(tmp_path / "run"))
        clusters, _, _ = await told(kb)
        ((inputs_hash, came),) = [
            (inputs_hash, each)
            for inputs_hash, each in (await load_reports(clusters, kb._store)).items()
            if each.title == "Alice Kober"
        ]
        (cluster,) = [each.id for each in clusters if each.inputs_hash == inputs_hash]
        other = replace(came, cluster=cluster, title="Another", model="another")
        await kb._store.commit(Delta(reports=[other]))
        assert await _imported(kb) == {"Readers of Linear B"}
        made = await reports.refresh(replace(kb._components.derivation_context(), llm=Writer()), True)
        assert await _imported(kb) == IMPORTED
        assert made.notes == (
            "1 imported report kept",
            "1 imported report restored: facts are as they were at the import",
        )
        assert not any("Kober" in each.title for each in (await told(kb))[1] if each.model != IMPORTED_MODEL)
