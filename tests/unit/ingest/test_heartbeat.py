"""The heartbeat: it goes on whatever a renewal runs into, and ends with the work."""

import asyncio
from pathlib import Path

import pytest

from quipu.errors import Busy, Corrupt, QuipuError, Unavailable
from quipu.ingest.heartbeat import heartbeat
from tests.unit.stores.opening import open_index


@pytest.mark.parametrize("error", [Busy("taken"), Unavailable("The disk is full."), Corrupt("A page cannot be read.")])
async def test_a_renewal_that_fails_is_followed_by_others(
    error: QuipuError, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes = asyncio.Queue[QuipuError | None]()
    async with open_index(tmp_path / "index.sqlite", lease_s=0.003) as store:

        async def renew() -> None:
            failure = error if outcomes.empty() else None
            outcomes.put_nowait(failure)
            if failure:
                raise failure
            has_gone_on.set()

        has_gone_on = asyncio.Event()
        monkeypatch.setattr(store, "renew", renew)
        async with heartbeat(store), asyncio.timeout(10):
            await has_gone_on.wait()
    assert outcomes.get_nowait() is error
