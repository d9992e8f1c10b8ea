"""Workspaces: opened when used, shared by requests, closed when many others are."""

import asyncio
import shutil
from pathlib import Path

import pytest

from quipu.errors import InvalidInput, NotFound
from quipu.server import Workspaces


async def test_requests_share_one_engine(tmp_path: Path) -> None:
    workspaces = Workspaces(root=tmp_path)
    await workspaces.create("a")
    async with workspaces.use("a") as first, workspaces.use("a") as second:
        assert first is second
    await workspaces.close()


async def test_the_least_recently_used_index_is_closed(tmp_path: Path) -> None:
    workspaces = Workspaces(root=tmp_path, max_open=2)
    for name in ("a", "b", "c"):
        await workspaces.create(name)
    async with workspaces.use("a") as first:
        async with workspaces.use("b"):
            pass
        assert (await first.status()).n_documents == 0  # in use, so it stays open
    async with workspaces.use("c"):
        pass
    async with workspaces.use("a") as again:
        assert (await again.status()).n_documents == 0
    await workspaces.close()


async def test_a_workspace_in_use_is_not_deleted(tmp_path: Path) -> None:
    workspaces = Workspaces(root=tmp_path)
    await workspaces.create("a")
    async with workspaces.use("a"):
        with pytest.raises(InvalidInput, match="in use"):
            await workspaces.delete("a")
    await workspaces.delete("a")
    with pytest.raises(NotFound):
        async with workspaces.use("a"):
            pass
    await workspaces.close()


async def test_folders_that_are_no_index_are_no_workspaces(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    workspaces = Workspaces(root=tmp_path)
    assert workspaces.names() == []
    with pytest.raises(NotFound):
        async with workspaces.use("notes"):
            pass


async def test_a_server_of_one_index_makes_no_other(tmp_path: Path) -> None:
    workspaces = Workspaces(index=tmp_path / "kb")
    with pytest.raises(InvalidInput, match="one index"):
        await workspaces.create("b")
    with pytest.raises(NotFound):
        await workspaces.delete("default")


async def test_a_workspace_that_another_process_deletes_and_makes_again_is_opened_anew(tmp_path: Path) -> None:
    here, there = Workspaces(root=tmp_path), Workspaces(root=tmp_path)
    await here.create("a")
    async with there.use("a"):
        pass
    await here.delete("a")
    with pytest.raises(NotFound):
        async with there.use("a"):
            pass
    await here.create("a")
    async with there.use("a") as kb:
        assert (await kb.add_text("Ada wrote.", id="one")).n_added == 1
    for workspaces in (here, there):
        await workspaces.close()


async def test_no_empty_index_takes_the_place_of_one_that_was_deleted(tmp_path: Path) -> None:
    workspaces = Workspaces(index=tmp_path / "kb")
    async with workspaces.use("default") as kb:
        await kb.add_text("Ada wrote.", id="one")
    await asyncio.to_thread(shutil.rmtree, tmp_path / "kb")
    with pytest.raises(NotFound):
        async with workspaces.use("default"):
            pass
    assert not await asyncio.to_thread((tmp_path / "kb").exists)
    await workspaces.close()


async def test_an_index_that_was_only_looked_into_is_closed_again(tmp_path: Path) -> None:
    workspaces = Workspaces(root=tmp_path)
    for name in ("a", "b"):
        await workspaces.create(name)
    await workspaces.close()
    async with workspaces.use("a"):
        pass
    for name in ("a", "b"):
        async with workspaces.look_into(name) as engine:
            assert (await engine.status()).n_documents == 0
    assert [name for name, _ in workspaces.open_engines()] == ["a"]
    async with workspaces.look_into("b"), workspaces.use("b"):
        pass
    async with workspaces.use("b"), workspaces.look_into("b"):
        pass
    assert [name for name, _ in workspaces.open_engines()] == ["a", "b"]
    await workspaces.close()
