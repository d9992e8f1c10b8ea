"""Edits and the laws: any history of documents, edits and undone edits ends in the state of a fresh build.

The fresh build gets the surviving documents and then, in their order, the edits that hold. A commit that is stopped
anywhere leaves nothing, engines that edit at once lose nothing, and hash seeds change nothing.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, event

from quipu.derive.derivation import embed_stale
from quipu.engine import Quipu
from quipu.model.delta import Delta
from quipu.model.document import SourceDocument
from quipu.model.edit import Edit, EditKind, EditRules, Statements
from quipu.model.event import ignore_event
from quipu.stores.relational import edits
from tests.children import PATIENCE_S, ROOT
from tests.laws.world import document, engine, run, state

NAMES = ("a.md", "b.md", "c.md", "d.md")
KEYS = ("marco polo", "venice", "kublai khan", "silk road", "geneva", "WHO", "world health organization", "новгород")
NEW_NAMES = ("Marco Polo", "Il Milione", "Serenissima")

keys = st.sampled_from(KEYS)
pairs = st.lists(keys, min_size=2, max_size=2, unique=True).map(tuple)
new_names = st.sampled_from(NEW_NAMES).map(lambda name: {"key": name.casefold(), "name": name})
documents = st.lists(st.sampled_from(NAMES), min_size=1, max_size=2, unique=True).map(tuple)


def _edits(kind: EditKind, entities: st.SearchStrategy[tuple[str, ...]], **values: object) -> st.SearchStrategy[Edit]:
    return st.builds(Edit, kind=st.just(kind), entities=entities, **values)  # type: ignore[arg-type]


one = keys.map(lambda key: (key,))
some_edit = st.one_of(
    st.builds(lambda entities, to: Edit(kind=EditKind.RENAME, entities=entities, **to), one, new_names),
    st.builds(lambda entities, to: Edit(kind=EditKind.MERGE, entities=entities, **to), pairs, new_names),
    st.builds(
        lambda entities, to, where: Edit(kind=EditKind.SPLIT, entities=entities, documents=where, **to),
        one,
        new_names,
        documents,
    ),
    _edits(EditKind.RETYPE, one, type=st.sampled_from(("Person", "Place"))),
    _edits(EditKind.REDESCRIBE, st.one_of(one, pairs), description=st.sampled_from(("", "A new one.", "另一个"))),
    _edits(EditKind.HIDE, st.one_of(one, pairs)),
)


@dataclass(frozen=True)
class Step:
    """Documents are added (at these versions) and removed, an edit is made, and one that holds is undone."""

    added: tuple[tuple[str, int], ...] = ()
    removed: tuple[str, ...] = ()
    edits: tuple[Edit, ...] = ()
    undone: int | None = None


steps = st.builds(
    Step,
    added=st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, 3)), max_size=3).map(tuple),
    removed=st.lists(st.sampled_from(NAMES), max_size=1).map(tuple),
    edits=st.lists(some_edit, max_size=2).map(tuple),
    undone=st.one_of(st.none(), st.integers(0, 9)),
)
histories = st.lists(steps, min_size=1, max_size=5)


async def _commit(kb: Quipu, delta: Delta) -> Sequence[int]:
    components = kb._components
    committed = await components.store.commit(delta)
    await embed_stale(components.store, components.embedder, ignore_event)
    return committed.edits


async def differs(history: Sequence[Step]) -> bool:
    """Say whether an index that lived through `history` differs from a fresh one, or from its own facts."""
    alive: dict[str, SourceDocument] = {}
    active: dict[int, Edit] = {}
    with tempfile.TemporaryDirectory() as folder:
        async with engine(Path(folder) / "lived") as kb:
            for step in history:
                added = {name: document(name, seed) for name, seed in step.added}
                await kb.add(*added.values())
                alive |= added
                active |= zip(await _commit(kb, Delta(edits=step.edits)), step.edits, strict=True)
                removed = [name for name in step.removed if name in alive]
                if removed:
                    await kb.remove(removed)
                alive = {name: source for name, source in alive.items() if name not in removed}
                if step.undone is not None and active:
                    number = sorted(active)[step.undone % len(active)]
                    await _commit(kb, Delta(undo=[number]))
                    del active[number]
            lived = await state(kb, ("lexical", "mix", "weave"))
            if await kb.verify():
                return True
        async with engine(Path(folder) / "fresh") as kb:
            await kb.add(*(alive[name] for name in sorted(alive, reverse=True)))
            await _commit(kb, Delta(edits=[active[number] for number in sorted(active)]))
            return lived != await state(kb, ("lexical", "mix", "weave"))


def test_every_history_with_edits_ends_in_the_state_of_a_fresh_build(laws_scale: int) -> None:
    @settings(max_examples=40 if laws_scale == 1 else 170 * laws_scale, derandomize=True)
    @given(histories)
    def check(history: list[Step]) -> None:
        assert not run(lambda: differs(history))

    check()


RETYPE = Edit(kind=EditKind.RETYPE, entities=("marco polo",), type="Place")
MERGE = Edit(kind=EditKind.MERGE, entities=("marco polo", "kublai khan"), key="il milione", name="Il Milione")
ALL = tuple((name, seed) for name in NAMES for seed in range(4))


async def test_the_law_fails_where_later_documents_pass_no_edit(monkeypatch: pytest.MonkeyPatch) -> None:
    history = [Step(edits=(RETYPE,)), Step(added=ALL)]
    assert not await differs(history)
    monkeypatch.setattr(edits, "_rules_for", lambda *_: EditRules())
    assert await differs(history)


async def test_the_law_fails_where_an_undo_starts_from_what_was_edited(monkeypatch: pytest.MonkeyPatch) -> None:
    history = [Step(added=ALL), Step(edits=(MERGE, RETYPE)), Step(undone=0)]
    assert not await differs(history)
    before = edits._decode_statements
    monkeypatch.setattr(edits, "_decode_statements", lambda payload: Statements(entities=before(payload).entities[:1]))
    assert await differs(history)


async def test_the_law_fails_where_edits_apply_in_another_order(monkeypatch: pytest.MonkeyPatch) -> None:
    again = Edit(kind=EditKind.RETYPE, entities=("marco polo",), type="Person")
    history = [Step(edits=(RETYPE,)), Step(added=ALL), Step(edits=(again,))]
    assert not await differs(history)
    monkeypatch.setattr(edits, "_affected", lambda *_: set())  # the second edit does not reach the documents
    assert await differs(history)


class _Stop(Exception):
    """Ends a commit in the middle, as a crash does."""


@contextmanager
def stopping_at(kb: Quipu, n: int) -> Iterator[list[int]]:
    """Let the n-th statement of the database that writes fail; the list holds how many there were."""
    database = kb._components.store._backend._engine  # type: ignore[attr-defined]
    n_written = [0]

    def count(*arguments: object) -> None:
        if str(arguments[2]).lstrip().upper().startswith(("INSERT", "UPDATE", "DELETE")):
            n_written[0] += 1
            if n_written[0] == n:
                raise _Stop

    event.listen(database, "before_cursor_execute", count)
    try:
        yield n_written
    finally:
        event.remove(database, "before_cursor_execute", count)


async def half_done(folder: Path, make: Delta) -> bool:
    """Say whether a commit that stops at any of its writes leaves something, or ends otherwise when it is repeated."""
    async with engine(folder) as kb:
        await kb.add(*(document(name, seed) for name, seed in ALL))
        await _commit(kb, Delta(edits=[RETYPE]))
        before = await state(kb, ())
        n = 1
        while True:
            with stopping_at(kb, n) as n_written, suppress(_Stop):
                await kb._components.store.commit(make)
            if n_written[0] < n:
                break
            if await state(kb, ()) != before or await kb.verify():
                return True
            n += 1
        assert n > 3
        return bool(await kb.verify()) or await state(kb, ()) == before


@pytest.mark.parametrize("make", [Delta(edits=[MERGE]), Delta(undo=[1])], ids=["edit", "undo"])
async def test_an_edit_that_is_stopped_anywhere_leaves_nothing(tmp_path: Path, make: Delta) -> None:
    assert not await half_done(tmp_path, make)


async def test_the_law_fails_where_an_edit_is_kept_although_its_commit_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    affected = edits._affected

    def committing(connection: Connection, *arguments: Any) -> set[int]:
        connection.exec_driver_sql("COMMIT")
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        return affected(connection, *arguments)

    monkeypatch.setattr(edits, "_affected", committing)
    assert await half_done(tmp_path, Delta(edits=[MERGE]))


async def differ_after_two_editors(folder: Path) -> bool:
    """Say whether an index that two engines edit and fill at once differs from one that was built alone."""
    own = [
        [RETYPE, MERGE],
        [
            Edit(kind=EditKind.HIDE, entities=("venice",)),
            Edit(kind=EditKind.RENAME, entities=("geneva",), key="genève", name="Genève"),
        ],
    ]
    async with engine(folder / "kb") as first, engine(folder / "kb") as second:

        async def work(kb: Quipu, number: int) -> None:
            for name, edit in zip(NAMES[2 * number : 2 * number + 2], own[number], strict=True):
                await kb.add(document(name, 1))
                await _commit(kb, Delta(edits=[edit]))

        await asyncio.gather(work(first, 0), work(second, 1))
        listed = await first._components.edits.edits(with_undone=False)  # type: ignore[union-attr]
        together = await state(first, ("lexical", "mix"))
        if await second.verify() or len(listed) != 4:
            return True
    async with engine(folder / "fresh") as kb:
        await kb.add(*(document(name, 1) for name in NAMES))
        await _commit(kb, Delta(edits=[recorded.edit for recorded in reversed(listed)]))
        return together != await state(kb, ("lexical", "mix"))


async def test_two_editors_at_once_lose_no_edit(tmp_path: Path) -> None:
    assert not await differ_after_two_editors(tmp_path)


async def test_the_law_fails_where_an_edit_forgets_what_another_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edits, "_rules_for", lambda *_: EditRules())
    assert await differ_after_two_editors(tmp_path)


STATE = """
import asyncio, json, sys
from pathlib import Path
from quipu.model.delta import Delta
from tests.laws.test_edits import ALL, MERGE, RETYPE, _commit
from tests.laws.world import document, engine, state

async def main():
    async with engine(Path(sys.argv[1])) as kb:
        await kb.add(*(document(name, seed) for name, seed in ALL))
        made = await _commit(kb, Delta(edits=[RETYPE, MERGE]))
        await _commit(kb, Delta(undo=[made[0]]))
        print(json.dumps(await state(kb, ("lexical", "mix"))))

asyncio.run(main())
"""


def test_hash_seeds_change_nothing_of_what_edits_make(tmp_path: Path) -> None:
    states = {
        subprocess.run(
            [sys.executable, "-c", STATE, str(tmp_path / seed)],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=PATIENCE_S,
        ).stdout
        for seed in ("0", "4711")
    }
    assert len(states) == 1
    assert "Il Milione" in states.pop()
