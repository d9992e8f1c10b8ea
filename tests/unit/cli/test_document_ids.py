"""Commands take documents by id, and by the path that a person types in any folder."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from quipu.cli.app import run

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run command lines in a folder two levels below that of the index; return exit code, output and messages."""
    folder = tmp_path / "notes" / "sub"
    folder.mkdir(parents=True)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("QUIPU_INDEX", str(tmp_path / "kb"))
    for name in ("notes/a.md", "notes/sub/a.md", "notes/sub/b.md", "notes/sub/[c].md", "notes/subtle.md"):
        (tmp_path / name).write_text(f"Keeper of {name} Olsen tends the lamp of Vardø.")
    monkeypatch.chdir(folder)

    def ran(*words: str) -> tuple[int, str, str]:
        code = run(list(words))
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    assert ran("add", "..")[0] == 0
    return ran


@pytest.mark.parametrize("typed", ["a.md", "./a.md", "../sub/a.md", "notes/sub/a.md", "{folder}/a.md"])
def test_a_document_is_named_by_its_id_or_by_a_path(command: Command, typed: str) -> None:
    typed = typed.format(folder=Path.cwd())
    assert command("show", "text", typed)[1].startswith("Keeper of notes/sub/a.md")
    printed = command("show", "document", typed)[1]
    assert "id: notes/sub/a.md" in printed
    assert re.search(r"holds: since \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00\n", printed)
    assert "This would remove 1 document" in command("remove", typed, "--dry-run")[1]
    assert "notes/sub/a.md" in command("ask", "Who tends the lamp?", "--doc", typed)[1]
    assert command("cancel", typed)[0] == 0


@pytest.mark.parametrize(
    ("pattern", "n"),
    [
        ("*", 3),
        ("*.md", 3),
        ("./*.md", 3),
        ("**", 3),
        ("**/*.md", 3),
        ("?.md", 2),
        ("[!a].md", 1),
        ("../*.md", 2),
        ("../**/*.md", 5),
        ("../**/sub/**/a.md", 1),
        ("{folder}/*.md", 3),
        ("notes/*.md", 2),
        ("notes/s*b/*.md", 3),
        ("notes/**", 5),
    ],
)
def test_a_pattern_is_that_of_a_shell_in_the_current_folder(command: Command, pattern: str, n: int) -> None:
    code, out, _ = command("remove", pattern.format(folder=Path.cwd()), "--dry-run")
    assert (code, out.splitlines()[0].split(", ")[0]) == (0, f"This would remove {n} document{'s' * (n > 1)}")


def test_a_pattern_without_a_folder_never_leaves_the_current_one(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "notes" / "[empty]*").mkdir()
    monkeypatch.chdir(tmp_path / "notes" / "[empty]*")
    for pattern in ("*", "*.md", "**", "**/*.md", "*/*.md"):
        assert f"No document matches '{pattern}'." in command("remove", pattern, "--yes")[2]
    assert command("docs", "--json")[1].count('"source"') == 5
    assert command("remove", "*.md", "../s*.md", "--yes")[0] == 1, "half of it was done"
    assert command("docs", "--json")[1].count('"source"') == 5


def test_outside_the_folder_of_the_index_a_pattern_is_one_of_ids(
    command: Command, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert "No document matches '*.md'." in command("remove", "*.md", "--dry-run")[2]
    assert command("remove", "*/*.md", "--dry-run")[1].startswith("This would remove 2 documents")
    assert command("remove", "**/[ab].md", "--dry-run")[1].startswith("This would remove 3 documents")


def test_a_name_with_the_signs_of_patterns_names_its_file(command: Command) -> None:
    assert command("remove", "[c].md", "--yes")[1].startswith("removed notes/sub/[c].md")


def test_a_file_of_the_current_folder_comes_before_an_id(command: Command, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("A keeper of the top Olsen tends the lamp of Vardø.")
    assert command("add", str(tmp_path / "a.md"))[0] == 0
    assert command("show", "text", "a.md")[1].startswith("Keeper of notes/sub/a.md")
    assert command("remove", "a.md")[1].startswith("removed notes/sub/a.md")
    assert command("remove", "a.md")[1].startswith("removed a.md")


def test_one_document_that_is_named_by_its_path_is_removed_without_a_question(command: Command) -> None:
    assert command("remove", "b.md")[1].startswith("removed notes/sub/b.md")
    assert "add --yes" in command("remove", "a*")[2]


def test_a_folder_is_listed_without_what_only_begins_like_it(command: Command) -> None:
    assert command("docs", ".", "--json")[1].count('"source"') == 3
    assert command("docs", "../sub", "--json")[1].count('"source"') == 3
    assert command("docs", "notes/sub", "--json")[1].count('"source"') == 4  # no folder here: ids that begin so
    assert command("docs", "b.md", "--json")[1].count('"source"') == 1
    assert command("docs", "nowhere")[1] == "0 documents\n"
    assert command("docs", "a.md", "--prefix", "notes")[2].startswith("Error: Give a path or --prefix.")


@pytest.mark.parametrize("typed", ["nowhere.md", "\0", "x" * 5_000, "~nobody/a.md", ""])
def test_an_unknown_document_is_named_as_it_was_typed(command: Command, typed: str) -> None:
    code, _, err = command("show", "document", typed)
    assert code == 1
    assert "There is no document" in err


def test_a_file_that_cannot_be_read_must_be_added_again(command: Command, tmp_path: Path) -> None:
    bad = tmp_path / "notes" / "bad.pdf"
    bad.write_bytes(b"%PDF-1.7 " + b"\xff" * 300_000)
    assert command("add", str(bad))[0] == 1
    assert b"%PDF-1.7 " not in (tmp_path / "kb" / "index.sqlite").read_bytes()
    assert "Nothing can be tried again." in command("retry")[2]
    assert command("docs", "--status", "failed", "--json")[1].count('"source"') == 1
