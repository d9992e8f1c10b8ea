"""`quipu mirror` on a real folder."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from quipu.cli.app import run

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run command lines in a folder with two notes; return the exit code, the output and the messages."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    Path("notes").mkdir()
    for name in "ab":
        Path("notes", f"{name}.md").write_text(f"Keeper {name} Olsen tends the lamp of Vardø.")

    def ran(*words: str) -> tuple[int, str, str]:
        code = run(["--index", "kb", "mirror", *words])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return ran


def test_a_folder_is_mirrored(command: Command) -> None:
    code, out, _ = command("notes")
    assert code == 0
    assert out.startswith("2 documents added, 0 updated, 0 removed, 0 unchanged.")
    Path("notes/a.md").rename("notes/c.md")
    code, out, _ = command("notes")
    assert out.startswith("0 documents added, 0 updated, 0 removed, 1 moved, 1 unchanged.")
    assert json.loads(command("notes", "--json")[1])["added"]["n_added"] == 0


def test_a_dry_run_lists_what_would_change(command: Command) -> None:
    command("notes")
    Path("notes/a.md").unlink()
    Path("notes/d.md").write_text("Keeper d Olsen.")
    code, out, _ = command("notes", "--dry-run")
    assert code == 0
    assert out.startswith("1 to add:\n  notes/d.md\n1 to remove:\n  notes/a.md\n")
    assert out.endswith("Nothing was changed.\n")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("nowhere",), 2, "There is no folder nowhere."),
        (("notes", "--watch", "--dry-run"), 2, "--watch does not go with --dry-run"),
        ((), 2, "Missing argument 'FOLDER'"),
    ],
)
def test_a_wrong_command_says_what_is_wrong(command: Command, words: tuple[str, ...], code: int, message: str) -> None:
    ran = command(*words)
    assert message in ran[2]
    assert ran[0] in (code, 1)


def test_a_folder_that_looks_empty_removes_nothing(command: Command) -> None:
    command("notes")
    for name in "ab":
        Path("notes", f"{name}.md").unlink()
    code, _, err = command("notes")
    assert code == 2
    assert "2 documents of 2 would be removed" in err
    assert "--allow-removals" in err
    assert command("notes", "--allow-removals")[1].startswith("0 documents added, 0 updated, 2 removed")
