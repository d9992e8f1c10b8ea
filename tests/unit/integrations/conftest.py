"""A small index for the retrievers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import quipu
from quipu import sync

LETTERS = (
    (
        "letters/1",
        "First letter",
        1500,
        "# First letter\n\nAnna Brandt sold the printing press to Marco Polo.",
    ),
    ("letters/2", "Second letter", 2001, "# Second letter\n\nAnna Brandt of Porto bought the printing press back."),
    ("notes/1", "Weather", 2001, "# Weather\n\nIt rained in the valley of the Tagus for a week."),
)
QUESTION = "Who sold the printing press?"


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an index of three documents."""
    index = tmp_path_factory.mktemp("bridges") / "kb"
    with sync.open(index, embedder="wordllama") as kb:
        kb.add(
            *(
                quipu.SourceDocument(id=id_, title=title, content=text.encode(), metadata={"year": year})
                for id_, title, year, text in LETTERS
            )
        )
    return index


@pytest.fixture(autouse=True)
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """No framework reports its use."""
    monkeypatch.setenv("HAYSTACK_TELEMETRY_ENABLED", "False")
    monkeypatch.setenv("LANGSMITH_TRACING", "false")


@pytest.fixture
def kb(folder: Path) -> Iterator[sync.BlockingQuipu]:
    """The index, open."""
    with sync.open(folder) as opened:
        yield opened
