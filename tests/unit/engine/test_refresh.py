"""Tests of refreshing: the derivation lease is always given back, and what was done before a stop is counted."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from quipu.engine import refresh
from quipu.engine.components import Models
from quipu.engine.refresh import derivation_lease
from quipu.errors import OverBudget, Overloaded, QuipuError, Unavailable
from quipu.model.chat import Role
from quipu.stores.relational import jobs
from quipu.stores.relational.store import RelationalStore
from quipu.testing.llm import ScriptedEmbedder, ScriptedLLM
from quipu.wrap.chain import LLMChain, ModelLink
from quipu.wrap.meter import ModelPricing
from tests.children import PATIENCE_S
from tests.laws.model_world import script, scripted_engine, travels
from tests.unit.stores.opening import open_index


def models(store: RelationalStore) -> Models:
    """Return models that have one."""
    link = ModelLink(llm=ScriptedLLM(), pricing=ModelPricing(model="tests/model", price=None, count_tokens=len))
    return Models(chains={Role.SUMMARISE: LLMChain([link], store)})


async def test_the_second_begins_when_the_first_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refresh, "POLL_S", 0.001)
    seen: list[str] = []
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def second(store: RelationalStore) -> None:
        await begun.wait()
        async with derivation_lease(store, models(store)):
            seen.append("second")

    async with open_index(tmp_path / "index.sqlite") as one, open_index(tmp_path / "index.sqlite") as other:
        waiting = asyncio.create_task(second(other))
        async with derivation_lease(one, models(one)):
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
        derivation_lease(one, Models()),
        derivation_lease(other, Models()),
        other.derivation_lease() as is_held,
    ):
        assert is_held


async def test_it_is_renewed_meanwhile_and_given_back_after_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    renewed, n_renewals = asyncio.Event(), 0
    async with (
        open_index(tmp_path / "index.sqlite", lease_s=1.0) as one,
        open_index(tmp_path / "index.sqlite") as other,
    ):
        renew = one.renew_leases

        async def noted() -> float:
            nonlocal n_renewals
            pause_s = await renew()
            n_renewals += 1
            if n_renewals > 1:
                renewed.set()
            return pause_s

        monkeypatch.setattr(one, "renew_leases", noted)
        with pytest.raises(ZeroDivisionError):
            async with asyncio.timeout(PATIENCE_S), derivation_lease(one, models(one)):
                await renewed.wait()
                raise ZeroDivisionError
        async with other.derivation_lease() as is_held:
            assert is_held


async def test_who_is_cancelled_while_taking_it_gives_it_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_index(tmp_path / "index.sqlite") as one, open_index(tmp_path / "index.sqlite") as other:
        acquire, loop = jobs.acquire_derivation_lease, asyncio.get_running_loop()

        def interrupted(*args: Any, **kwargs: Any) -> bool:
            is_held = acquire(*args, **kwargs)
            loop.call_soon_threadsafe(task.cancel)  # before the result comes
            return is_held

        async def derive() -> None:
            async with derivation_lease(one, models(one)):
                pytest.fail("was not cancelled")

        monkeypatch.setattr(jobs, "acquire_derivation_lease", interrupted)
        task = asyncio.create_task(derive())
        with pytest.raises(asyncio.CancelledError):
            await task
        async with other.derivation_lease() as is_held:
            assert is_held


class Ending(ScriptedEmbedder):
    """An embedder that ends with an error at its second call."""

    def __init__(self, error: QuipuError) -> None:
        super().__init__()
        self.error: QuipuError | None = error
        self.n_failed = 0

    async def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return a vector for each text, or raise."""
        if self.n_calls and self.error:
            self.n_failed += 1
            raise self.error
        return await super().embed(texts)


async def test_vectors_computed_while_something_is_derived_are_counted(tmp_path: Path) -> None:
    async with scripted_engine(tmp_path, ScriptedLLM(script())) as kb:
        await kb.add(*(travels(f"n{n}.md") for n in range(3)))
        before = (await kb.status()).n_vectors
        report = await kb.refresh(["names", "sentences", "hierarchy"])
        assert report.n_embedded == (await kb.status()).n_vectors - before > 0


@pytest.mark.parametrize("error", [OverBudget("All is spent."), Overloaded("Too busy."), Unavailable("It is gone.")])
async def test_vectors_that_were_kept_before_a_stop_are_counted(tmp_path: Path, error: QuipuError) -> None:
    embedder = Ending(error)
    async with scripted_engine(tmp_path, ScriptedLLM(script()), embedder=embedder) as kb:
        report = await kb.add(*(travels(f"n{n}.md") for n in range(80)))
        n_kept = (await kb.status()).n_vectors
        assert (report.stopped, report.n_embedded) == (str(error), n_kept)
        assert n_kept > 0
        embedder.error = None
        rest = await kb.refresh()
        assert (rest.stopped, rest.n_embedded) == ("", (await kb.status()).n_vectors - n_kept)


async def test_an_embedder_that_is_gone_is_asked_once_a_run(tmp_path: Path) -> None:
    embedder = Ending(Unavailable("It is gone."))
    async with scripted_engine(tmp_path, ScriptedLLM(script()), embedder=embedder) as kb:
        embedder.error = None
        await kb.add(*(travels(f"n{n}.md") for n in range(3)))
        await kb.refresh(["names", "communities"])
        embedder.error, n_before = Unavailable("It is gone."), embedder.n_failed
        report = await kb.add(travels("later.md"))
        assert report.stopped == "It is gone."
        assert embedder.n_failed - n_before == 1
