"""`quipu edit`, `history` and `undo` on a real index."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from quipu import sync
from quipu.cli.app import run

Command = Callable[..., tuple[int, str]]


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run command lines on an index with one document; return the exit code and all output."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    with sync.open(tmp_path / "kb") as kb:
        kb.add_text("Ada Lovelace wrote to Charles Babbage about the Analytical Engine.", id="a.md")

    def ran(*words: str) -> tuple[int, str]:
        code = run(["--index", "kb", *words])
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    return ran


def test_an_edit_is_made_listed_and_undone(command: Command) -> None:
    code, out = command("edit", "rename", "Ada Lovelace", "--name", "Ada King", "--author", "me", "--reason", "married")
    assert code == 0
    assert "Edit 1: rename ada lovelace → Ada King" in out
    assert "1 chunk changed." in out
    assert "To undo it: quipu --index kb undo 1" in out
    _, out = command("history", "Ada King")
    assert "rename ada lovelace → Ada King (married)" in out
    assert "1 chunk" in out
    code, out = command("undo", "1")
    assert (code, out) == (0, "Undone: rename ada lovelace → Ada King\n")
    assert "undone" in command("history")[1]
    assert command("history", "--active")[1] == "There are no edits.\n"


def test_a_dry_run_only_tells_what_would_change(command: Command) -> None:
    code, out = command("edit", "hide", "Ada Lovelace", "Charles Babbage", "--dry-run")
    assert code == 0
    assert out == "Would hide ada lovelace -- charles babbage\n1 chunk may change. Nothing was changed.\n"
    assert json.loads(command("history", "--json")[1]) == {"edits": [], "cursor": ""}


def test_older_edits_are_one_command_away(command: Command) -> None:
    for kind in ("A", "B", "C"):
        command("edit", "retype", "Ada Lovelace", "--type", kind)
    _, out = command("history", "-k", "2")
    assert "Older ones: quipu --index kb history --cursor 2" in out
    assert "retype ada lovelace: A" in command("history", "--cursor", "2")[1]


def test_an_undo_names_what_lacks_its_target(command: Command) -> None:
    command("edit", "rename", "Ada Lovelace", "--name", "Ada King")
    command("edit", "retype", "Ada King", "--type", "Writer")
    assert "Edit 2 has no target now: retype ada king: Writer" in command("undo", "1")[1]
    assert "no target" in command("history")[1]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("edit", "burn", "Ada Lovelace"), 2, "'burn' is not one of 'create'"),
        (("edit", "hide"), 2, "Missing argument 'NAME...'"),
        (("edit", "hide", "Nobody"), 1, "There is no entity 'Nobody'."),
        (("edit", "rename", "Ada Lovelace"), 2, "needs a value for 'name'"),
        (("undo", "7"), 1, "There is no edit 7."),
        (("undo", "seven"), 2, "not a valid integer"),
    ],
)
def test_a_wrong_command_says_what_is_wrong(command: Command, words: tuple[str, ...], code: int, message: str) -> None:
    ran = command(*words)
    assert ran[0] == code
    assert message in ran[1]
