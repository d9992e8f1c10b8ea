"""Every command over an index of one document with one of each: no output says "1 documents"."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from quipu.cli.app import run
from quipu.retrieve import STRATEGIES

TEXT = "Alice Kober taught at Brooklyn College."
QUESTION = "Where did Alice Kober teach?"
Say = Callable[..., str]

NAMES = ["names", "synonyms", "sentences", "reports", "hierarchy"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("one")


@pytest.fixture
def say(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Say:
    """Run a command line and return all it prints; lines are long enough not to break."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "400")

    def said(*words: str) -> str:
        run(words)
        printed = capsys.readouterr()
        return printed.out + printed.err

    return said


def test_no_command_says_one_of_many(say: Say, folder: Path) -> None:
    (folder / "notes").mkdir()
    (folder / "notes" / "kober.md").write_text(TEXT)
    (folder / "notes" / "photo.xyz").write_bytes(b"\0")
    (folder / "broken.pdf").write_text("no PDF")
    commands = [
        ["add", "notes", "--dry-run"],
        ["add", "notes"],
        ["add", "broken.pdf"],
        ["refresh", *NAMES, "--dry-run"],
        ["refresh", *NAMES],
        ["refresh", "--rebuild", "--dry-run"],
        ["status"],
        ["docs"],
        ["show", "document", "notes/kober.md"],
        ["show", "entity", "Alice Kober"],
        ["show", "relation", "Alice Kober", "Brooklyn College"],
        ["search", "Kober"],
        *(["ask", QUESTION, "-s", name, "--trace", "--top-k", "1"] for name in STRATEGIES),
        *(["ask", QUESTION, "-s", name, "--trace", "--report-tokens", "1"] for name in STRATEGIES),
        *(["explain", QUESTION, "-s", name] for name in STRATEGIES),
        ["compare", QUESTION],
        ["tune", "--dry-run"],
        ["tune"],
        ["verify"],
        ["usage"],
        ["doctor"],
        ["retry"],
        ["cancel", "broken.pdf"],
        ["reembed"],
        ["purge"],
        ["remove", "notes/kober.md", "--dry-run"],
        ["remove", "notes/kober.md"],
    ]
    wrong = {}
    for words in commands:
        said = say(*words)
        assert "Traceback" not in said, words
        if found := re.findall(r"(?<![\d.,])\b1 (?!ms\b|is\b|was\b|has\b|as\b|across\b)\w+s\b[^\n]*", said):
            wrong[" ".join(words)] = found
    assert not wrong
