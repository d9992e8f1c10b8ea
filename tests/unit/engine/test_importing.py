"""A recorded graph becomes an index: documents, entities, relations, communities and reports."""

import json
from pathlib import Path

import pytest

import quipu
from quipu.derive.adopting import MODEL
from quipu.errors import InvalidInput
from quipu.model.cluster import Hierarchy
from quipu.model.derivation import Freshness
from quipu.retrieve import STRATEGIES

TEXTS = {
    "p1": "Alice Kober studied Linear B at Brooklyn College. She kept cards in cigarette boxes.",
    "p2": "Michael Ventris read Linear B as Greek. John Chadwick helped Michael Ventris.",
    "p3": "Arthur Evans dug at Knossos. Arthur Evans named Linear B.",
}
RELATIONS = {
    "p1": [("ALICE KOBER", "LINEAR B"), ("ALICE KOBER", "BROOKLYN COLLEGE")],
    "p2": [("MICHAEL VENTRIS", "LINEAR B"), ("JOHN CHADWICK", "MICHAEL VENTRIS")],
    "p3": [("ARTHUR EVANS", "KNOSSOS"), ("ARTHUR EVANS", "LINEAR B")],
}
COMMUNITIES: list[dict[str, object]] = [
    {"community": 0, "level": 0, "entities": ["ALICE KOBER", "LINEAR B", "BROOKLYN COLLEGE", "NOBODY"]},
    {"community": 1, "level": 0, "entities": ["MICHAEL VENTRIS", "JOHN CHADWICK", "ARTHUR EVANS", "KNOSSOS"]},
    {"community": 2, "level": 1, "parent": 1, "entities": ["MICHAEL VENTRIS", "JOHN CHADWICK"]},
    {"community": 3, "level": 1, "parent": 1, "entities": ["ARTHUR EVANS", "KNOSSOS"]},
]
REPORTS = [
    {"community": 0, "title": "Alice Kober", "summary": "She studied Linear B.", "rank": 8.0, "findings": []},
    {"community": 1, "title": "Readers of Linear B", "summary": "They came after.", "rank": 6.0},
]


def _write(folder: Path, *, weight: float = 1.0) -> Path:
    folder.mkdir(exist_ok=True)
    passages = [
        {
            "id": name,
            "title": f"Page {name}",
            "text": text,
            "entities": sorted({end for pair in RELATIONS[name] for end in pair}),
            "relations": [
                {"source": a, "target": b, "description": f"{a} and {b}.", "weight": weight} for a, b in RELATIONS[name]
            ],
        }
        for name, text in TEXTS.items()
    ]
    for name, lines in (("graph", passages), ("communities", COMMUNITIES), ("reports", REPORTS)):
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return folder


async def test_an_import_brings_documents_entities_communities_and_reports(tmp_path: Path) -> None:
    async with quipu.open(tmp_path / "k") as kb:
        report = await kb.import_graph(_write(tmp_path / "run"))
        assert (report.n_added, report.n_communities, report.n_reports, report.failed) == (3, 4, 2, ())
        assert report.unknown == ("Nobody",)
        found = await kb.entity("Alice Kober")
        assert found.entity.name == "Alice Kober"
        assert {each.target_name for each in found.relations} == {"Brooklyn College", "Linear B"}
        async with kb._store.view() as view:
            clusters = await view.clusters(Hierarchy.COMMUNITIES)
            reports = {each.title: each for each in await view.cluster_reports([c.id for c in clusters])}
        assert reports["Alice Kober"].model == MODEL
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
        await kb.import_graph(_write(tmp_path / "run"))
        before = [line async for line in kb.dump()]
        again = await kb.import_graph(_write(tmp_path / "run"))
        assert (again.n_added, again.n_updated, again.n_unchanged) == (0, 0, 3)
        assert [line async for line in kb.dump()] == before
        other = await kb.import_graph(_write(tmp_path / "run", weight=5.0))
        assert (other.n_added, other.n_updated, other.n_unchanged) == (0, 3, 0)
        assert (await kb.relation("Alice Kober", "Linear B")).relation.weight == 5.0


async def test_a_wrong_line_leaves_the_index_as_it_was(tmp_path: Path) -> None:
    folder = _write(tmp_path / "run")
    with (folder / "reports.jsonl").open("a") as file:
        file.write('{"community": 99, "title": "None", "summary": "Of nothing."}\n')
    async with quipu.open(tmp_path / "k") as kb:
        with pytest.raises(InvalidInput, match="community 99, which is recorded nowhere"):
            await kb.import_graph(folder)
        assert await kb.documents() == []


async def test_what_is_added_later_finds_its_place_and_imported_reports_stay(tmp_path: Path) -> None:
    async with quipu.open(tmp_path / "k") as kb:
        await kb.import_graph(_write(tmp_path / "run"))
        await kb.add_text("Emmett Bennett sorted the signs of Pylos. Emmett Bennett taught at Yale.", id="later")
        states = {state.name: state for state in (await kb.status()).derivations}
        assert states["communities"].freshness is states["reports"].freshness is Freshness.FRESH
        async with kb._store.view() as view:
            clusters = await view.clusters(Hierarchy.COMMUNITIES)
            reports = {each.title: each for each in await view.cluster_reports([c.id for c in clusters])}
        assert reports["Alice Kober"].model == reports["Readers of Linear B"].model == MODEL
        assert any("emmett bennett" in cluster.members for cluster in clusters)


async def test_every_strategy_runs_on_an_imported_graph(tmp_path: Path) -> None:
    async with quipu.open(tmp_path / "k") as kb:
        await kb.import_graph(_write(tmp_path / "run"))
        await kb.refresh(["names", "synonyms", "sentences", "hierarchy"])
        for name, strategy in STRATEGIES.items():
            answer = await kb.query("Who studied Linear B at Brooklyn College?", strategy=name)
            evidence = answer.trace.evidence
            if strategy.looks_up:
                assert evidence.chunks or evidence.reports, name
