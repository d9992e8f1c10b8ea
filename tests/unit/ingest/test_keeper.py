"""Tests of committing replies as they arrive."""

import asyncio
from typing import cast

import pytest

from quipu.ingest.keeper import ReplyKeeper
from quipu.model.delta import CommitResult, Delta, ExtractionReply
from quipu.ports.store import Store


class SlowStore:
    """A store whose commits wait to be let through, and remember what they held."""

    def __init__(self) -> None:
        self.committed: list[list[str]] = []
        self.gate = asyncio.Event()

    async def commit(self, delta: Delta) -> CommitResult:
        """Wait, then remember."""
        await self.gate.wait()
        self.committed.append([reply.input_hash for reply in delta.replies])
        return CommitResult(revision=1)


def _reply(name: str) -> ExtractionReply:
    return ExtractionReply(input_hash=name, document_id="d", payload="{}")


async def test_replies_that_arrive_during_a_commit_share_the_next_one() -> None:
    store = SlowStore()
    async with ReplyKeeper(cast("Store", store)) as keeper:
        keeper.put([_reply("a")])
        await asyncio.sleep(0)
        keeper.put([_reply("b")])
        keeper.put([_reply("c")])
        store.gate.set()
    assert store.committed == [["a"], ["b", "c"]]


async def test_what_has_arrived_is_committed_when_the_work_is_interrupted() -> None:
    store = SlowStore()
    store.gate.set()
    with pytest.raises(KeyError):
        async with ReplyKeeper(cast("Store", store)) as keeper:
            keeper.put([_reply("a")])
            raise KeyError
    assert store.committed == [["a"]]
