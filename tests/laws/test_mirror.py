"""The law of mirrors: after any changes of a folder, a mirror ends in the state of one mirror of the last folder.

Edits between the changes are kept: the fresh index gets them, with the names that moved files have then.
"""

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quipu.engine import mirroring
from quipu.model.delta import Delta
from quipu.model.edit import Edit, EditKind
from quipu.model.results import MirrorResult
from tests.laws.test_edits import _commit, some_edit
from tests.laws.world import document, engine, run, state

NAMES = ("a.md", "b.md", "sub/a.md", "sub/c.md")


@dataclass(frozen=True)
class Change:
    """A file is written (at a version), moved, or deleted; then the folder may be mirrored, and the graph edited."""

    name: str
    seed: int | None = None
    to: str = ""
    is_mirrored: bool = True
    edits: tuple[Edit, ...] = ()


def _in_folder(edit: Edit) -> Edit:
    return replace(edit, documents=tuple(f"notes/{name}" for name in edit.documents))


changes = st.builds(
    Change,
    name=st.sampled_from(NAMES),
    seed=st.one_of(st.none(), st.integers(0, 3)),
    to=st.sampled_from(("", *NAMES)),
    is_mirrored=st.booleans(),
    edits=st.lists(some_edit.map(_in_folder), max_size=1).map(tuple),
)
histories = st.lists(changes, min_size=1, max_size=8)


def _apply(folder: Path, change: Change, number: int) -> None:
    file = folder / change.name
    if change.seed is not None:
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(document(change.name, change.seed).content)
        os.utime(file, (number, number))
    elif change.to and file.exists():
        (folder / change.to).parent.mkdir(exist_ok=True)
        file.replace(folder / change.to)
    else:
        file.unlink(missing_ok=True)


async def differs(history: Sequence[Change]) -> bool:
    """Say whether an index that mirrored a folder through `history` differs from one that mirrored it once."""
    with tempfile.TemporaryDirectory() as place, patch.object(mirroring, "_RACY_NS", 0):
        folder = Path(place) / "notes"
        folder.mkdir()
        edits: list[Edit] = []
        async with engine(Path(place) / "lived") as kb:
            for number, change in enumerate(history):
                _apply(folder, change, number)
                if change.is_mirrored:
                    edits = _followed(edits, await kb.mirror(folder, allow_removals=True))
                await _commit(kb, Delta(edits=change.edits))
                edits += change.edits
            edits = _followed(edits, await kb.mirror(folder, allow_removals=True))
            if await kb.verify():
                return True
            lived = await state(kb, ("lexical", "mix"))
        async with engine(Path(place) / "fresh") as kb:
            await kb.mirror(folder)
            await _commit(kb, Delta(edits=edits))
            return lived != await state(kb, ("lexical", "mix"))


def _followed(edits: Sequence[Edit], mirrored: MirrorResult) -> list[Edit]:
    """Return edits with the names that files have after a mirror."""
    moved = dict(mirrored.renamed)
    return [replace(edit, documents=tuple(dict.fromkeys(moved.get(n, n) for n in edit.documents))) for edit in edits]


def test_every_history_of_a_folder_ends_in_the_state_of_its_last_files(laws_scale: int) -> None:
    @settings(max_examples=30 if laws_scale == 1 else 170 * laws_scale, derandomize=True)
    @given(histories)
    def check(history: list[Change]) -> None:
        assert not run(lambda: differs(history))

    check()


async def test_the_law_fails_where_only_the_size_of_a_file_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    history = [Change("a.md", 0), Change("a.md", 1)]
    assert not await differs(history)
    monkeypatch.setattr(mirroring, "_stamp", lambda *_: "equal")
    assert await differs(history)


SPLIT = Edit(kind=EditKind.SPLIT, entities=("marco polo",), key="polo", name="Polo", documents=("notes/a.md",))


async def test_the_law_fails_where_edits_do_not_follow_a_moved_file(monkeypatch: pytest.MonkeyPatch) -> None:
    seed = next(n for n in range(20) if b"Marco Polo" in document("a.md", n).content)
    history = [Change("a.md", seed, edits=(SPLIT,)), Change("a.md", to="b.md")]
    assert not await differs(history)

    async def stay(_mirror: object) -> None:
        return None

    monkeypatch.setattr(mirroring, "_follow_moves", stay)
    assert await differs(history)
