"""Tests of several processes on one index: a second writer waits, readers never do, the dead hold nothing."""

import asyncio
import json
from asyncio.subprocess import Process
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from quipu.errors import Busy
from quipu.model.delta import Delta
from quipu.testing.contract.steps import dump, publish
from quipu.testing.facts import document, entity, passage, source
from tests.children import end, go_on, heard, running
from tests.unit.stores.opening import EXAMPLE, open_index


def _child(*arguments: str) -> AbstractAsyncContextManager[Process]:
    return running("tests.unit.stores.child", *arguments)


async def _hear(process: Process) -> object:
    """Return the next thing the child says."""
    said: object = json.loads(await heard(process))
    return said


async def _let_go(process: Process) -> None:
    """Tell the child to end, and wait for it."""
    await go_on(process)
    assert await end(process) == 0


async def test_a_second_writer_waits_until_the_first_is_done(database: Path) -> None:
    async with open_index(database, busy_timeout_s=60.0) as store:
        await publish(store, *EXAMPLE)
        async with _child("hold", str(database)) as writer:
            assert await _hear(writer) == "holding"
            waiting = asyncio.create_task(publish(store, document("c", "Three.")))
            for _ in range(20):
                async with store.view() as view:
                    assert view.revision == 1
            assert not waiting.done()
            await _let_go(writer)
            assert (await waiting).revision == 2


async def test_a_writer_that_has_waited_long_enough_is_told_why(database: Path) -> None:
    async with open_index(database) as store:
        await publish(store, *EXAMPLE)
        before = await dump(store)
    async with _child("hold", str(database)) as writer:
        assert await _hear(writer) == "holding"
        async with open_index(database, busy_timeout_s=0.05) as store:
            with pytest.raises(Busy) as caught:
                await publish(store, document("c", "Three."))
            assert str(database) in caught.value.message
            assert "0.05 s" in caught.value.message
            assert "busy_timeout_s" in caught.value.remedy
            with pytest.raises(Busy):
                await store.claim_jobs(1)
            assert await dump(store) == before
            await _let_go(writer)
            assert (await publish(store, document("c", "Three."))).revision == 2


async def test_readers_open_and_read_while_another_process_writes(database: Path) -> None:
    async with open_index(database) as store:
        await publish(store, *EXAMPLE)
        before = await dump(store)
    async with _child("hold", str(database)) as writer:
        assert await _hear(writer) == "holding"
        async with open_index(database, busy_timeout_s=0.0) as store:
            assert await dump(store) == before
            assert await store.verify() == []
        await _let_go(writer)


async def test_readers_in_another_process_see_whole_snapshots_only(database: Path) -> None:
    n_commits = 12

    def version(name: str, number: int) -> Delta:
        said = passage(f"Venice {number}.", entity("Venice"))
        return Delta(publish=[document(f"{name}{n}", *[said] * number, title=f"{number}") for n in range(3)])

    async with open_index(database) as store, _child("watch", str(database), str(n_commits)) as reader:
        assert await _hear(reader) == "watching"
        for number in range(1, n_commits + 1):
            await store.commit(version("d", number))
        seen = await _hear(reader)
        assert await end(reader) == 0
    assert isinstance(seen, list)
    expected = {n: [[str(n)] * 3, [3 * n], 3 * n] if n else [[], [], 0] for n in range(n_commits + 1)}
    assert all(rest == expected[revision] for revision, *rest in seen), seen
    revisions = [revision for revision, *_ in seen]
    assert revisions == sorted(revisions)
    assert revisions[-1] == n_commits


async def test_what_a_killed_process_held_is_free_at_once(database: Path) -> None:
    async with open_index(database) as store:
        await store.commit(Delta(enqueue=[source("a"), source("b")]))
        async with _child("claim", str(database)) as worker:
            assert await _hear(worker) == ["a", "b"]
            assert await store.claim_jobs(10) == []
            async with store.derivation_lease() as is_held:
                assert not is_held
            worker.kill()
            await worker.wait()
            async with store.derivation_lease() as is_held:
                assert is_held
            assert [job.document_id for job in await store.claim_jobs(10)] == ["a", "b"]
