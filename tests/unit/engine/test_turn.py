"""Turns to derive: where models cost something one engine after the other, and given back whatever happens."""

import asyncio
from pathlib import Path

import pytest

from quipu.engine import turn
from quipu.engine.components import Models
from quipu.engine.turn import turn_to_derive
from quipu.model.chat import Role
from quipu.stores.relational.store import RelationalStore
from quipu.testing.llm import ScriptedLLM
from quipu.wrap.chain import LLMChain, ModelLink
from quipu.wrap.meter import ModelPricing
from tests.children import PATIENCE_S
from tests.unit.stores.opening import open_index


def models(store: RelationalStore) -> Models:
    """Return models that have one."""
    link = ModelLink(llm=ScriptedLLM(), pricing=ModelPricing(model="tests/model", price=None, count_tokens=len))
    return Models(chains={Role.SUMMARISE: LLMChain([link], store)})


async def test_the_second_begins_when_the_first_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn, "POLL_S", 0.001)
    seen: list[str] = []
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def second(store: RelationalStore) -> None:
        await begun.wait()
        async with turn_to_derive(store, models(store)):
            seen.append("second")

    async with open_index(tmp_path / "index.sqlite") as one, open_index(tmp_path / "index.sqlite") as other:
        waiting = asyncio.create_task(second(other))
        async with turn_to_derive(one, models(one)):
            begun.set()
            asyncio.get_running_loop().call_later(0.05, may_end.set)
            await may_end.wait()
            seen.append("first")
        await waiting
    assert seen == ["first", "second"]


async def test_without_models_nobody_waits_and_nothing_is_written(tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite"
    async with (
        open_index(path) as one,
        open_index(path) as other,
        turn_to_derive(one, Models()),
        turn_to_derive(other, Models()),
    ):
        assert await other.begin_deriving()


async def test_it_is_renewed_meanwhile_and_given_back_after_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    renewed = asyncio.Event()
    async with (
        open_index(tmp_path / "index.sqlite", lease_s=0.03) as one,
        open_index(tmp_path / "index.sqlite") as other,
    ):
        renew = one.renew

        async def noted() -> None:
            await renew()
            renewed.set()

        monkeypatch.setattr(one, "renew", noted)
        with pytest.raises(ZeroDivisionError):
            async with asyncio.timeout(PATIENCE_S), turn_to_derive(one, models(one)):
                await renewed.wait()
                raise ZeroDivisionError
        assert await other.begin_deriving()


async def test_who_is_cancelled_while_taking_it_gives_it_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_index(tmp_path / "index.sqlite") as one, open_index(tmp_path / "index.sqlite") as other:
        begin_deriving = one.begin_deriving

        async def interrupted() -> bool:
            has_begun = await begin_deriving()
            task.cancel()
            await asyncio.sleep(0)  # raises, with the turn taken
            return has_begun

        async def derive() -> None:
            async with turn_to_derive(one, models(one)):
                pytest.fail("was not cancelled")

        monkeypatch.setattr(one, "begin_deriving", interrupted)
        task = asyncio.create_task(derive())
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await other.begin_deriving()
