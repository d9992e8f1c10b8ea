"""The command line on a real index: the demo, and a document's life from add to remove."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from quipu.cli.app import run
from quipu.testing.server import serving

Quipu = Callable[..., str]


@pytest.fixture
def quipu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Quipu:
    """Run a command line that must succeed, in a folder of its own; return what it printed to stdout."""
    monkeypatch.chdir(tmp_path)

    def ran(*words: str) -> str:
        code = run(words)
        printed = capsys.readouterr()
        assert (code, printed.err) == (0, "")
        return printed.out

    return ran


def test_the_demo_answers_its_six_questions_and_cites_the_page(quipu: Quipu) -> None:
    added, *asked = map(json.loads, quipu("demo", "--json").splitlines())
    assert (added["n_added"], added["failed"], len(asked)) == (42, [], 6)
    expected = ["khipukamayuq", "Mainz Psalter", "Brooklyn College", "Константин Острожский", "梦溪园", "halmi"]
    answers = [each["answers"][-1] for each in asked]
    assert [answer["trace"]["strategy"] for answer in answers] == ["weave"] * 6
    assert [word for word, answer in zip(expected, answers, strict=True) if word not in answer["text"]] == []
    assert all(answer["citations"] for answer in answers)
    [halmi] = [each for each in answers[-1]["citations"] if "halmi" in each["quote"]]
    assert (halmi["document_id"], halmi["page"]) == ("royal-road.pdf", 3)
    page = ("show", "page", "royal-road.pdf", "3", "--quote", halmi["quote"], "--output", "page.png")
    boxes = json.loads(quipu("--index", ".quipu-demo", *page, "--json"))["boxes"]
    assert all(0 < left < right < 1 and 0 < top < bottom < 1 for left, top, right, bottom in boxes)
    assert len(boxes) == quipu("--index", ".quipu-demo", *page).count("from the top") > 0
    assert Path("page.png").read_bytes().startswith(b"\x89PNG")


def test_a_document_is_added_changed_asked_and_removed(quipu: Quipu, tmp_path: Path) -> None:
    note = tmp_path / "notes" / "kober.md"
    note.parent.mkdir()
    note.write_text("Alice Kober taught classics at Brooklyn College.")
    assert "1 document added" in quipu("add", "notes")
    assert "1 unchanged" in quipu("add", "notes")
    note.write_text("Alice Kober taught classics at Hunter College.")
    assert "1 updated" in quipu("add", "notes")
    assert quipu("show", "text", "notes/kober.md") == "Alice Kober taught classics at Hunter College.\n"
    assert json.loads(quipu("show", "text", "notes/kober.md", "--json")) == note.read_text()
    assert quipu("show", "original", "notes/kober.md") == note.read_text()
    assert quipu("show", "original", "notes/kober.md", "--output", "copy.md") == ""
    assert (tmp_path / "copy.md").read_bytes() == note.read_bytes()
    assert "Hunter College" in quipu("ask", "Where did Alice Kober teach classics?")
    assert "Alice Kober" in quipu("show", "entity", "alice kober")
    assert "bytes of html" in quipu("export", "graph.html")
    assert "Hunter College" in (tmp_path / "graph.html").read_text(encoding="utf-8")
    assert quipu("verify").startswith("Sound")
    assert "1 document removed" in quipu("remove", "notes/kober.md")
    assert quipu("dump") == ""
    assert "Nothing found." in quipu("search", "Kober")


def test_the_graph_is_listed_page_by_page_and_searched_for_paths(quipu: Quipu, tmp_path: Path) -> None:
    (tmp_path / "kober.md").write_text("Alice Kober wrote to John Myres.\n\nJohn Myres taught Michael Ventris.")
    quipu("add", "kober.md")
    people = json.loads(quipu("show", "entities", "--json"))
    names = [entity["name"] for entity in people["entities"]]
    assert {"Alice Kober", "John Myres", "Michael Ventris"} <= set(names)
    assert f"1 of {len(names):,}" in quipu("show", "entities", "-k", "1")
    first = json.loads(quipu("show", "entities", "-k", "1", "--json"))
    second = json.loads(quipu("show", "entities", "-k", "1", "--after", first["cursor"], "--json"))
    assert [page["entities"][0]["name"] for page in (first, second)] == names[:2]
    assert "Alice Kober" in quipu("show", "entities", "--prefix", "ALI")
    assert "Michael Ventris" in quipu("show", "neighbours", "John Myres", "--type", "Person")
    assert "Alice Kober – John Myres – Michael Ventris" in quipu("show", "path", "Alice Kober", "Michael Ventris")
    near = json.loads(quipu("show", "subgraph", "Alice Kober", "--hops", "1", "--json"))
    assert near["distances"][0] == 0
    assert set(near["distances"][1:]) == {1}
    assert "distance" in quipu("show", "subgraph", "Alice Kober")
    relations = json.loads(quipu("show", "relations", "--json"))
    assert relations["n_total"] == len(relations["relations"]) > 1
    assert quipu("show", "relations").count("John Myres") > 1


def test_a_model_reads_answers_is_counted_and_stopped_by_a_budget(
    quipu: Quipu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    for name in ("Alice Kober", "Michael Ventris", "Arthur Evans"):
        (notes / f"{name}.md").write_text(f"{name} studied Linear B. {name} was a friend of Emmett Bennett.")
    with serving() as server:
        monkeypatch.setenv("QUIPU_LLM", "custom/test")
        monkeypatch.setenv("QUIPU_LLM_BASE_URL", server.base_url)
        assert json.loads(quipu("add", "notes", "--dry-run", "--json"))["n_chunks"] == 3
        assert run(("add", "notes", "--budget", "4 calls", "-q")) == 1
        assert "The budget of 4 calls is used up" in capsys.readouterr().out
        assert "1 document finished" in quipu("resume")
        assert "custom" in quipu("status")
        asked = json.loads(quipu("ask", "Who studied Linear B?", "--json"))["answers"][0]
        assert asked["generator"].startswith("custom") and asked["citations"]
        rows = json.loads(quipu("usage", "--by", "stage", "--json"))["groups"]
        served = server.stats().total()
        assert sum(row["n_calls"] for row in rows.values()) == served.n_completed
        assert sum(row["tokens"]["input"] for row in rows.values()) == served.tokens.input
        assert quipu("verify").startswith("Sound")


def test_a_recorded_graph_is_imported_and_asked_by_every_way_it_allows(quipu: Quipu, tmp_path: Path) -> None:
    passage = {
        "id": "p1",
        "title": "Scripts",
        "text": "Alice Kober studied Linear B at Brooklyn College.",
        "entities": ["Alice Kober", "Linear B", "Brooklyn College"],
        "triples": [
            ["Alice Kober", "studied", "Linear B"],
            ["Alice Kober", "taught at", "Brooklyn College"],
            ["Alice"],
        ],
    }
    community = {"community": 0, "level": 0, "entities": ["Alice Kober", "Linear B", "Brooklyn College"]}
    report = {"community": 0, "title": "Alice Kober", "summary": "She studied Linear B.", "rank": 8}
    run_folder = tmp_path / "run"
    run_folder.mkdir()
    (run_folder / "graph.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in (passage, community, report)))
    told = quipu("import", "run")
    assert "1 document added" in told
    assert "1 community and 1 report adopted." in told
    assert 'line 1: ["Alice"] is not a triple.' in " ".join(told.split())
    assert "1 unchanged" in quipu("import", "run")
    (asked,) = json.loads(quipu("ask", "--json", "-s", "community_global", "Who studied Linear B?"))["answers"]
    assert len(asked["trace"]["evidence"]["reports"]) == 1
    assert "Kober" in asked["text"]


def test_a_dry_run_of_an_import_says_what_would_come_and_leaves_nothing_behind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, index = tmp_path / "facts.csv", tmp_path / "kb"
    file.write_text("Alice Kober,studied,Linear B\nAlice Kober,taught at,Brooklyn College\n")
    assert run(("--index", str(index), "import", str(file), "--dry-run")) == 0
    told = capsys.readouterr().out
    assert told.startswith("1 document would be added, 0 updated, 0 unchanged.")
    assert "3 entities, 2 relations and 0 claims in the graph." in told
    assert not index.exists()
    assert run(("--index", str(index), "import", str(file))) == 0
    capsys.readouterr()
    assert run(("--json", "--index", str(index), "import", str(file), "--dry-run")) == 0
    counts = json.loads(capsys.readouterr().out)
    assert (counts["n_added"], counts["n_unchanged"], counts["n_entities"], counts["is_dry_run"]) == (0, 1, 3, True)


@pytest.mark.parametrize("written", ["no JSON", '{"community": 0, "level": 0, "entities": ["Alice Kober"]}', None])
def test_an_import_that_fails_leaves_no_index_behind(tmp_path: Path, written: str | None) -> None:
    file, index = tmp_path / "graph.jsonl", tmp_path / "kb"
    if written is not None:
        file.write_text(f"{written}\n")
    assert run(("--index", str(index), "import", str(file))) == (1 if written is None else 2)
    assert not index.exists()


@pytest.mark.parametrize("name", ["", "  "])
def test_an_id_that_is_empty_is_refused_before_an_index_is_made(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(("--index", str(tmp_path / "kb"), "add", "--text", "A text.", "--id", name)) == 2
    assert "cannot be the id of a document" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_an_export_that_fails_leaves_the_file_as_it_was(
    quipu: Quipu, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    quipu("add", "--text", "Alice Kober taught classics at Hunter College.")
    exported = json.loads(quipu("export", "g.json", "--json"))
    before = (tmp_path / "g.json").read_bytes()
    assert exported == {"file": "g.json", "format": "json", "bytes": len(before)}
    for words in (
        ["g.json", "--community", "nowhere"],
        ["graph.txt"],
        ["no/folder.json"],
        ["g.json", "--format", "pdf"],
    ):
        assert run(["export", *words]) != 0
    assert "is not one of 'html', 'json', 'graphml'" in capsys.readouterr().err
    assert (tmp_path / "g.json").read_bytes() == before
    assert not list(tmp_path.rglob("*unfinished*"))


def test_a_question_about_the_past_is_answered_from_what_held_then(
    quipu: Quipu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUIPU_HISTORY", "true")
    policy = tmp_path / "policy.md"
    for year, head in ((2018, "Alice Kober"), (2021, "Emmett Bennett")):
        policy.write_text(f"---\ndate: {year}-01-01\n---\n{head} leads the Acme Corporation in Boston.")
        quipu("add", "policy.md")
    question = "Who leads the Acme Corporation?"
    assert "Emmett Bennett leads" in quipu("ask", question)
    then = quipu("ask", question, "--as-of", "2019", "--trace")
    assert "Alice Kober leads" in then
    assert "Bennett" not in then
    assert "as of 2019: with 1 earlier version" in then
    assert "Alice Kober" in quipu("show", "entity", "Acme Corporation", "--as-of", "2019")
    assert "Alice Kober leads" in quipu("show", "text", "policy.md", "--as-of", "2019")
    assert "Emmett Bennett" not in quipu("show", "entities", "--as-of", "2019")
    assert "Alice Kober" in quipu("show", "neighbours", "Acme Corporation", "--as-of", "2019")
    assert "Alice Kober" in quipu("show", "relations", "--as-of", "2019")
    assert "1 document" in quipu("docs", "--as-of", "2019")
    assert "0 documents" in quipu("docs", "--as-of", "2017")
    quipu("export", "then.json", "--as-of", "2019")
    assert "Alice Kober" in (exported := Path("then.json").read_text())
    assert "Bennett" not in exported
    assert "holds: since 2018-01-01" in quipu("show", "document", "policy.md", "--as-of", "2019")
    assert "Nothing found." in quipu("search", "leads", "--as-of", "2017")
    assert "Nothing found." in quipu("search", "Kober")
    assert "stays in the history" in quipu("remove", "policy.md")
    preview = " ".join(quipu("purge", "--dry-run").split())
    assert preview.endswith("2 earlier versions would go, with cached replies that nothing needs. Nothing was deleted.")
    assert len(json.loads(quipu("purge", "--json"))["versions"]) == 2
    assert "Nothing found." in quipu("search", "leads", "--as-of", "2019")
