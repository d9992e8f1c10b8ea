"""What Quipu has written into a folder is not taken for a document; what merely looks a little like it is."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from quipu.ingest.ours import INDEX, TAPE, is_tape, of_index
from quipu.model.chat import ChatRequest, Message, Role
from quipu.settings import Settings
from quipu.testing.llm import ScriptedLLM
from quipu.wiring import open_engine
from quipu.wrap.recording import RecordedLLM

REQUEST = ChatRequest(messages=(Message("user", "Say OK. " * 99),), role=Role.EXTRACT, max_output_tokens=9)


async def test_a_tape_and_an_index_in_the_folder_are_left_out_and_reported(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("Alice Kober taught classics at Brooklyn College.")
    (tmp_path / "own.jsonl").write_text('{"model": "T", "colour": "black"}\n')
    await RecordedLLM(ScriptedLLM(), tmp_path / "tape").complete(REQUEST)
    settings = Settings(index=tmp_path / "kb", exact_below=0)
    async with await open_engine(settings) as kb:
        await kb.add_text("Alice Kober taught.", id="kober")
        await kb.retrieve("Who taught?")
        assert list((tmp_path / "kb").rglob("*.json")), "an index holds files that a parser would read"
        report = await kb.add(tmp_path)
        found = {each.id for each in await kb.documents()}
    assert found == {"kober", "notes.md", "own.jsonl"}
    assert report.skipped == ((INDEX, 1), (TAPE, 1))
    assert report.failed == ()


async def test_a_tape_that_is_named_is_added(tmp_path: Path) -> None:
    await RecordedLLM(ScriptedLLM(), tmp_path / "tape").complete(REQUEST)
    async with await open_engine(Settings(index=tmp_path / "kb")) as kb:
        await kb.add(tmp_path / "tape" / "extract.jsonl")
        assert [each.id for each in await kb.documents()] == ["tape/extract.jsonl"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no json",
        "[]",
        '{"model": "x"}',
        '{"model": "x", "messages": [], "reply": ""}',
        '{"model": ' + "[" * 100_000,
        '{"model": ',
    ],
)
def test_other_lines_are_no_tape(text: str, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(text)
    assert not is_tape(file)


async def test_only_lines_of_json_are_looked_at(tmp_path: Path) -> None:
    await RecordedLLM(ScriptedLLM(), tmp_path).complete(REQUEST)
    tape = tmp_path / "extract.jsonl"
    assert is_tape(tape) and "reply" in json.loads(tape.read_text())
    assert not is_tape(tape.rename(tmp_path / "extract.md"))
    assert not is_tape(tmp_path / "gone.jsonl")


def test_only_what_an_index_is_made_of_is_left_out_beside_it(tmp_path: Path) -> None:
    own = {"index.sqlite", "index.sqlite-wal", "index.sqlite-shm", "index.sqlite-journal", "vectors", "topology"}
    names = (*own, "index.sqlite.md", "index.sqlite-notes.md", "vectors.md", "notes.md")
    asked: list[Path] = []

    def is_index(file: Path) -> bool:
        asked.append(file)
        return True

    assert of_index(tmp_path, names, is_index) == own
    assert asked == [tmp_path / "index.sqlite"]
    assert of_index(tmp_path, names, lambda _: False) == frozenset()
    assert of_index(tmp_path, ("vectors", "index.sqlite-wal"), is_index) == frozenset()
    assert len(asked) == 1


async def test_folders_beside_a_database_of_the_users_own_are_read(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    for name in ("vectors/algebra.md", "topology/sets.md", "index.sqlite.md"):
        (notes / name).parent.mkdir(parents=True, exist_ok=True)
        (notes / name).write_text(f"Felix Hausdorff taught {name}.")
    with closing(sqlite3.connect(notes / "index.sqlite")) as connection:
        connection.execute("CREATE TABLE mine (x)")
    async with await open_engine(Settings(index=tmp_path / "kb")) as kb:
        report = await kb.add(notes)
        found = {each.id for each in await kb.documents()}
    assert found == {"notes/vectors/algebra.md", "notes/topology/sets.md", "notes/index.sqlite.md"}
    assert report.skipped == ((".sqlite", 1),)
