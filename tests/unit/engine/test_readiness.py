"""Readiness: models are checked once, and never again where the budget has ended that."""

from pathlib import Path

import pytest

from quipu.engine.components import Models
from quipu.engine.readiness import Readiness
from quipu.errors import OverBudget, Unavailable
from quipu.ingest.local import LocalExtractor
from quipu.model.chat import TokenCount
from quipu.model.delta import Delta
from quipu.model.usage import SpendingLimit, Stage
from quipu.testing.facts import source
from quipu.wrap.meter import Meter, MeteredCall, ModelPricing, SpendingBudget
from tests.unit.stores.opening import open_index

PING = MeteredCall(
    stage=Stage.EXTRACT,
    pricing=ModelPricing(model="tests/model", price=None, count_tokens=len),
    max_tokens=lambda: TokenCount(input=1),
)


class Pings:
    """A check of so many calls, which are counted; or one that fails."""

    def __init__(self, n: int, error: Exception | None = None) -> None:
        self.n_asked = 0
        self._n, self._error = n, error

    async def __call__(self, meter: Meter) -> tuple[str, ...]:
        """Ask, one after the other."""
        for _ in range(self._n):
            await meter.run(self._ask, PING, lambda tokens: tokens)
        return ("a note",)

    async def _ask(self) -> TokenCount:
        self.n_asked += 1
        if self._error:
            raise self._error
        return TokenCount(input=1)


def models(check: Pings, max_calls: int) -> Models:
    """Return models that are checked so, under a budget of calls."""
    return Models(meter=Meter(budget=SpendingBudget(SpendingLimit(calls=max_calls))), check=check)


async def test_models_are_checked_once() -> None:
    readiness, pings = Readiness(), Pings(2)
    for _ in range(2):
        await readiness.make_sure(models(pings, 9), LocalExtractor())
    assert (pings.n_asked, readiness.notes) == (2, ("a note",))


async def test_a_budget_that_ends_within_the_check_is_not_spent_on_it_again(tmp_path: Path) -> None:
    readiness, pings = Readiness(), Pings(2)
    asked = models(pings, 1)
    await readiness.make_sure(asked, LocalExtractor())
    async with open_index(tmp_path / "index.sqlite") as store:
        await store.commit(Delta(enqueue=[source("a")]))
        await readiness.make_sure_of_waiting(store, models(pings, 1), LocalExtractor())
    assert pings.n_asked == 1


async def test_a_budget_that_allows_no_call_is_told_before_anything_is_queued() -> None:
    with pytest.raises(OverBudget):
        await Readiness().make_sure(models(Pings(1), 0), LocalExtractor())


async def test_a_model_that_cannot_be_had_is_checked_again_the_next_time() -> None:
    readiness, pings = Readiness(), Pings(1, Unavailable("gone"))
    for _ in range(2):
        with pytest.raises(Unavailable):
            await readiness.make_sure(models(pings, 9), LocalExtractor())
    assert pings.n_asked == 2
