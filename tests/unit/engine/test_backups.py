"""Repair in the engine: rows and files that are derived are built again; damaged facts are named and left alone."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from quipu.engine import Quipu
from quipu.model.delta import Delta
from quipu.model.edit import Edit, EditKind
from tests.laws.derived_world import DERIVATIONS, NAMES, evidence, story
from tests.laws.world import engine

# The graph as it is, without communities: these depend on earlier ones.
KEPT = tuple(name for name in DERIVATIONS if name not in ("communities", "reports", "hierarchy"))
STRATEGIES = ("weave", "mix", "linear")
RETYPE = Edit(kind=EditKind.RETYPE, entities=("marco polo",), type="Place")


async def _state(kb: Quipu) -> tuple[list[str], list[str]]:
    return [line async for line in kb.dump()], await evidence(kb, STRATEGIES)


async def _fill(kb: Quipu, derivations: tuple[str, ...] = KEPT) -> None:
    await kb.add(*(story(name, 1) for name in NAMES[:4]))
    await kb._components.store.commit(Delta(edits=[RETYPE]))
    await kb.refresh(derivations)


def _damage(folder: Path, *statements: str) -> None:
    with closing(sqlite3.connect(folder / "index.sqlite")) as connection, connection:
        for statement in statements:
            assert connection.execute(statement).rowcount


@pytest.mark.parametrize(
    "statements",
    [
        (),
        ("DELETE FROM posting", "DELETE FROM link"),
        ("UPDATE entity SET name = 'x', degree = 9, n_mentions = 7", "DELETE FROM entity_type"),
        ("UPDATE vector SET data = zeroblob(length(data))",),
        ("DELETE FROM vector WHERE rid % 2", "UPDATE entity_name SET vector_hash = 'x'"),
        ("UPDATE sentence SET end_char = end_char + 1 WHERE ordinal = 0",),
        ("UPDATE synonym SET similarity = 3", "DELETE FROM edit_key", "DELETE FROM metadata_value"),
    ],
)
async def test_derived_rows_and_files_are_built_again(tmp_path: Path, statements: tuple[str, ...]) -> None:
    async with engine(tmp_path, exact_below=10) as kb:
        await _fill(kb)
        sound = await _state(kb)
    _damage(tmp_path, *statements)
    files = [path for place in ("vectors", "topology") for path in (tmp_path / place).rglob("*") if path.is_file()]
    for path in files:
        content = bytearray(path.read_bytes())
        content[len(content) // 2 :] = bytes(len(content) - len(content) // 2)
        path.write_bytes(content)
    async with engine(tmp_path, exact_below=10) as kb:
        assert bool(await kb.verify()) == bool(statements)
        result = await kb.repair()
        assert (result.is_sound, bool(result.repaired), result.stopped) == (True, bool(statements), "")
        assert await kb.verify() == []
        assert await _state(kb) == sound
    assert files


async def test_damaged_communities_are_computed_again(tmp_path: Path) -> None:
    async with engine(tmp_path) as kb:
        await _fill(kb, DERIVATIONS)
        n_reports = sum('"rating":' in line for line in [line async for line in kb.dump()])
    _damage(tmp_path, "UPDATE report SET summary = 'x'", "DELETE FROM membership WHERE entity % 2")
    async with engine(tmp_path) as kb:
        result = await kb.repair()
        assert (result.is_sound, result.faults) == (True, ())
        assert await kb.verify() == []
        assert n_reports == sum('"rating":' in line for line in [line async for line in kb.dump()]) > 0


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entity_mention SET surface = 'x' WHERE chunk = 1",
        "DELETE FROM entity_mention WHERE chunk = 1 AND ordinal = 0",
        "DELETE FROM entity WHERE rid IN (SELECT entity FROM entity_mention WHERE chunk = 1)",
        "DELETE FROM relation WHERE rid = 1",
        "UPDATE chunk SET text = 'x' || substr(text, 2) WHERE rid = 1",
        "DELETE FROM chunk WHERE rid = 1",
        "DELETE FROM document_content WHERE document = 1",
        "UPDATE reply SET payload = x'00' WHERE input_hash = (SELECT input_hash FROM chunk WHERE rid = 1)",
    ],
)
async def test_damaged_facts_are_named_and_cured_by_adding_the_documents_again(tmp_path: Path, statement: str) -> None:
    async with engine(tmp_path) as kb:
        await _fill(kb)
        sound = await _state(kb)
    _damage(tmp_path, statement)
    async with engine(tmp_path) as kb:
        before = [line async for line in kb.dump()]
        result = await kb.repair()
        assert result.faults or result.losses
        assert [line async for line in kb.dump()] == before
        named = [name for name in NAMES if any(repr(name) in fault for fault in (*result.faults, *result.losses))]
        assert named
        await kb.remove(named)
        await kb.add(*(story(name, 1) for name in named))
        result = await kb.repair(accept_losses=True)
        assert result.is_sound, result
        assert (await kb.verify(), await _state(kb)) == ([], sound)
