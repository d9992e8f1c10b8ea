"""Tests of an index whose folder is deleted or replaced while it is open: writing fails at once, nothing is lost."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import quipu
from quipu.errors import Unavailable
from quipu.model.delta import Delta
from quipu.testing.contract.steps import dump, publish
from quipu.testing.facts import document
from tests.unit.stores.opening import EXAMPLE, open_index


def _delete_folder(folder: Path) -> None:
    shutil.rmtree(folder)


def _delete_file(folder: Path) -> None:
    (folder / "index.sqlite").unlink()


def _move_folder(folder: Path) -> None:
    folder.rename(folder.with_name("moved"))


def _replace_by_copy(folder: Path) -> None:
    copy = shutil.copytree(folder, folder.with_name("copy"))
    shutil.rmtree(folder)
    copy.rename(folder)


def _replace_by_file(folder: Path) -> None:
    _move_folder(folder)
    folder.write_text("no folder")


_LOSSES = (_delete_folder, _delete_file, _move_folder, _replace_by_copy, _replace_by_file)
Loss = Callable[[Path], None]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "kb"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("lose", _LOSSES)
async def test_who_has_only_read_cannot_write_to_an_index_that_is_gone(folder: Path, lose: Loss) -> None:
    async with open_index(folder / "index.sqlite") as store:
        await publish(store, *EXAMPLE)
    async with open_index(folder / "index.sqlite") as store:
        await dump(store)
        lose(folder)
        files = sorted(folder.parent.rglob("*"))
        for write in (
            lambda: publish(store, document("c", "Three.")),
            lambda: store.claim_jobs(1),
            lambda: store.record_call([]),
            store.purge,
        ):
            with pytest.raises(Unavailable, match="deleted or replaced") as caught:
                await write()
            assert "open the index again" in caught.value.remedy
        assert sorted(folder.parent.rglob("*")) == files


@pytest.mark.parametrize("lose", _LOSSES)
async def test_an_index_that_is_gone_answers_no_more(folder: Path, lose: Loss) -> None:
    async with open_index(folder / "index.sqlite") as store:
        await publish(store, *EXAMPLE)
        lose(folder)
        with pytest.raises(Unavailable, match="deleted or replaced"):
            await dump(store)


async def test_an_index_that_goes_while_a_change_is_made_does_not_take_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(*_: object) -> None:
        _delete_folder(folder)

    async with open_index(folder / "index.sqlite") as store:
        await publish(store, *EXAMPLE)
        monkeypatch.setattr("quipu.stores.relational.store.commit.apply", lose)
        with pytest.raises(Unavailable, match="deleted or replaced"):
            await store.commit(Delta())


@pytest.mark.parametrize("lose", _LOSSES)
async def test_adding_a_text_to_an_index_that_is_gone_fails_at_once(folder: Path, lose: Loss) -> None:
    async with quipu.open(folder) as kb:
        await kb.add_text("Marie Curie lived in Paris.", id="a")
    async with quipu.open(folder) as kb:
        await asyncio.gather(*(kb.query("Where did Marie Curie live?") for _ in range(3)))
        lose(folder)
        with pytest.raises(Unavailable, match="deleted or replaced"):
            await asyncio.wait_for(kb.add_text("Bern is a town.", id="b"), timeout=30)
