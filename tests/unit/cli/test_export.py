"""`quipu export` on a real index: files, folders and archives, and what is left after a failure."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from quipu import SourceDocument, sync
from quipu.cli.app import run
from quipu.engine.graph_export import FORMATS

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run command lines on an index of two letters; return the exit code, output and messages."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    with sync.open(tmp_path / "kb") as kb:
        kb.add(
            SourceDocument(id="1.md", content=b"Ada Lovelace wrote to Charles Babbage.", metadata={"year": 1843}),
            SourceDocument(id="2.md", content=b"Grace Hopper wrote to Howard Aiken.", metadata={"year": 1944}),
        )

    def ran(*words: str) -> tuple[int, str, str]:
        code = run(["--index", "kb", *words])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return ran


def test_the_format_follows_from_the_name_of_the_file(command: Command) -> None:
    for name in ("graph.graphml", "graph.gexf", "graph.ttl", "graph.CYPHER", "graph.jsonl"):
        code, out, _ = command("export", name)
        assert code == 0
        assert out.startswith(f"{name}: ")
        assert "Lovelace" in Path(name).read_text(encoding="utf-8")
    code, _, err = command("export", "notes.md")
    assert code == 2
    assert "obsidian" in err


def test_a_format_of_several_files_becomes_a_folder_or_an_archive(command: Command) -> None:
    assert command("export", "tables", "--format", "csv")[0] == 0
    assert command("export", "tables.csv.zip")[0] == 0
    with zipfile.ZipFile("tables.csv.zip") as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    assert {path.name: path.read_bytes() for path in Path("tables").iterdir()} == files
    assert command("export", "vault", "--format", "obsidian")[0] == 0
    assert Path("vault/Entities/Ada Lovelace.md").is_file()
    assert [path.name for path in Path.cwd().iterdir() if path.name.startswith(".")] == []


def test_a_filter_is_that_of_a_question(command: Command) -> None:
    assert command("export", "late.json", "--where", "year > 1900")[0] == 0
    labels = [node["label"] for node in json.loads(Path("late.json").read_text())["nodes"]]
    assert "Grace Hopper" in labels
    assert "Ada Lovelace" not in labels
    code, _, err = command("export", "late.json", "--where", "year")
    assert code == 2
    assert "is not a condition" in err


def test_files_of_a_person_are_never_overwritten_by_a_folder(command: Command) -> None:
    Path("mine").mkdir()
    Path("mine/letter.txt").write_text("mine")
    code, _, err = command("export", "mine", "--format", "obsidian")
    assert code == 2
    assert "is not an empty folder" in err
    assert [path.name for path in Path("mine").iterdir()] == ["letter.txt"]
    assert command("export", "mine", "--format", "json")[2].startswith("Error: 'mine' is a folder.")


def test_a_failure_leaves_the_earlier_file_and_nothing_else(command: Command) -> None:
    Path("graph.json").write_text("earlier")
    code, _, err = command("export", "graph.json", "--community", "nowhere")
    assert code == 1
    assert "'nowhere'" in err
    assert Path("graph.json").read_text() == "earlier"
    assert sorted(path.name for path in Path.cwd().iterdir()) == ["graph.json", "kb"]
    assert "There is no folder" in command("export", "nowhere/graph.json")[2]


def test_a_folder_next_to_the_export_stays_and_a_link_to_an_empty_one_is_followed(command: Command) -> None:
    Path(".vault.folder").mkdir()
    Path(".vault.folder/letter.txt").write_text("mine")
    assert command("export", "vault", "--format", "obsidian")[0] == 0
    assert Path(".vault.folder/letter.txt").read_text() == "mine"
    Path("elsewhere").mkdir()
    Path("link").symlink_to("elsewhere", target_is_directory=True)
    assert command("export", "link", "--format", "obsidian")[0] == 0
    assert Path("link").is_symlink()
    assert Path("elsewhere/Entities/Ada Lovelace.md").is_file()
    assert [path.name for path in Path.cwd().iterdir() if path.name.startswith(".")] == [".vault.folder"]


def test_the_help_lists_every_format(command: Command) -> None:
    out = command("export", "--help")[1]
    assert all(f"  {name} " in out for name in FORMATS)
