"""`quipu backup` and `quipu restore` on a real index."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from quipu import sync
from quipu.cli.app import run

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run command lines beside an index of one letter; return the exit code, output and messages."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    with sync.open(tmp_path / "kb") as kb:
        kb.add_text("Ada Lovelace wrote to Charles Babbage.", id="a.md")

    def ran(*words: str) -> tuple[int, str, str]:
        code = run(words)
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return ran


def test_an_index_is_backed_up_checked_and_restored(command: Command) -> None:
    assert command("--index", "kb", "backup", "kb.quipu")[1].startswith("kb.quipu: 1 document, 1 chunk, ")
    assert command("backup", "--check", "kb.quipu")[1].startswith("Whole: kb.quipu of ")
    assert command("--index", "again", "restore", "kb.quipu")[1].startswith("Restored as of ")
    assert command("--index", "again", "verify")[1].startswith("Sound")
    assert command("--index", "again", "dump") == command("--index", "kb", "dump")
    checked = json.loads(command("backup", "--check", "kb.quipu", "--json")[1])
    assert (checked["file"], checked["n_documents"]) == ("kb.quipu", 1)


def test_an_archive_that_is_not_whole_says_so_and_changes_nothing(command: Command) -> None:
    command("--index", "kb", "backup", "kb.quipu")
    content = Path("kb.quipu").read_bytes()
    Path("kb.quipu").write_bytes(content[:-1])
    for words in (("backup", "--check", "kb.quipu"), ("--index", "kb", "restore", "kb.quipu", "--replace")):
        code, _, err = command(*words)
        assert code == 1
        assert "truncated or altered" in err
    assert sorted(path.name for path in Path.cwd().iterdir()) == ["kb", "kb.quipu"]
    assert command("--index", "kb", "verify")[0] == 0


def test_an_earlier_archive_stays_if_a_backup_fails(command: Command) -> None:
    Path("kb.quipu").write_text("earlier")
    assert command("--index", "nowhere", "backup", "kb.quipu")[0] == 1
    assert Path("kb.quipu").read_text() == "earlier"
    assert "There is no folder" in command("--index", "kb", "backup", "nowhere/kb.quipu")[2]
    code, _, err = command("--index", "kb", "restore", "kb.quipu")
    assert code == 2
    assert "--replace" in err
