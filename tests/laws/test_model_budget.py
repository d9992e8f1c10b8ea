"""Law 7: a budget is never gone over, and work that it stopped goes on where it was, as if nothing had been."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

import pytest

from quipu.engine import Quipu
from quipu.errors import InvalidInput, OverBudget
from quipu.model.document import DocumentStatus
from quipu.model.usage import MICRO, Amount, Price, UsageRow
from quipu.settings.tables import ModelPrice
from quipu.testing.scripted.script import Latency, RequestKind
from quipu.testing.server.process import ServerHandle
from quipu.testing.server.request_log import LoggedRequest
from quipu.wrap.meter import SpendingBudget
from tests.laws.model_counts import asked_again, completed, differences
from tests.laws.model_world import dump_of, fresh, model_engine, model_settings, script, travels
from tests.spending import sums_of

DOCUMENTS = tuple(travels(f"{letter}.md", n_sentences=1) for letter in "abcdefg")
SCRIPT = script(latency=Latency(mean_s=0.002, sigma=0.5))
PRICE = ModelPrice(model="custom/*", price=Price(input=2.0, output=10.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """What an unlimited run comes to."""

    state: list[str]
    n_calls: int


@pytest.fixture(scope="module")
def whole(server: ServerHandle, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    server.configure(SCRIPT)
    server.reset()
    state = fresh(model_settings(tmp_path_factory.mktemp("whole") / "kb", server.base_url), *DOCUMENTS)
    return Whole(state=state, n_calls=n_calls(server.settled().requests))


def n_calls(served: tuple[LoggedRequest, ...]) -> int:
    """Return how many calls of the chat model were completed, but for those that only ask whether it is there."""
    return sum(each.kind not in (RequestKind.OTHER, RequestKind.EMBED) for each in completed(served))


def amounts(rows: list[UsageRow]) -> dict[str, float]:
    """Return what was spent, by the unit of a budget."""
    return {
        "calls": sum(row.n_calls for row in rows),
        "tokens": sum(row.tokens.input + row.tokens.output for row in rows),
        "": sum(row.cost for row in rows) / MICRO,
    }


async def run_within(kb: Quipu) -> bool:
    """Add the documents, or go on; say whether all is done. Nothing fails for want of money."""
    report = await kb.resume() if await kb.documents() else await kb.add(*DOCUMENTS)
    assert "budget" in report.stopped or not report.stopped
    assert not (report.failed or report.partial or report.summary_failures)
    statuses = {document.status for document in await kb.documents()}
    assert statuses <= {DocumentStatus.READY, *([DocumentStatus.QUEUED] if report.stopped else [])}
    assert bool(report.n_waiting) == (DocumentStatus.QUEUED in statuses)
    assert await kb.verify() == []
    return not report.stopped


async def spend_in_parts(folder: Path, server: ServerHandle, part: float, unit: str) -> tuple[list[str], int]:
    """Add the documents, a budget of `part` at a time; return the state at the end and how many runs it took."""
    spent, n_runs, is_done = amounts([]), 0, False
    while not is_done:
        n_runs += 1
        settings = model_settings(folder, server.base_url, budget=f"{part:g} {unit}".strip(), price=(PRICE,))
        async with model_engine(settings) as kb:
            is_done = await run_within(kb)
            now = amounts(await kb.usage())
            assert now[unit] - spent[unit] <= part, f"more than {part} {unit} spent"
            assert n_runs < 60 and (is_done or now[unit] > spent[unit]), "no budget this small leads anywhere"
            spent = now
            state, rows = await dump_of(kb), await kb.usage()
    served = (await asyncio.to_thread(server.settled)).requests
    assert differences(rows, served) == []
    assert asked_again(served) == []
    return state, n_runs


@pytest.mark.parametrize(("part", "unit"), [(5, "calls"), (7_000, "tokens"), (0.045, "")])
async def test_a_run_in_parts_ends_as_one_and_costs_no_more(
    part: float, unit: str, server: ServerHandle, whole: Whole, tmp_path: Path
) -> None:
    await asyncio.to_thread(server.reset)
    state, n_runs = await spend_in_parts(tmp_path / "kb", server, part, unit)
    assert n_runs > 2
    assert state == whole.state
    assert n_calls((await asyncio.to_thread(server.settled)).requests) == whole.n_calls


async def test_a_budget_that_is_used_up_by_looking_leaves_the_documents_waiting(
    server: ServerHandle, tmp_path: Path
) -> None:
    await asyncio.to_thread(server.configure, SCRIPT)
    async with model_engine(model_settings(tmp_path / "kb", server.base_url, budget="1 calls")) as kb:
        report = await kb.add(*DOCUMENTS)
        assert report.n_waiting == len(DOCUMENTS)
        assert report.stopped.startswith("The budget of 1 call")


async def test_a_budget_in_money_for_a_model_without_a_price_is_refused_before_anything_is_asked(
    server: ServerHandle, tmp_path: Path
) -> None:
    await asyncio.to_thread(server.configure, SCRIPT)
    await asyncio.to_thread(server.reset)
    with pytest.raises(InvalidInput, match="No price is known for custom/scripted") as caught:
        async with model_engine(model_settings(tmp_path / "kb", server.base_url, budget="5.00")) as kb:
            await kb.add(*DOCUMENTS)
    assert "[[price]]" in caught.value.remedy
    async with model_engine(model_settings(tmp_path / "kb", server.base_url)) as kb:
        assert await kb.documents() == []
    assert (await asyncio.to_thread(server.settled)).requests == ()


async def keeps_within(folder: Path, server: ServerHandle) -> bool:
    """Say whether a run in parts stays within its budget."""
    try:
        await spend_in_parts(folder, server, 7, "calls")
    except AssertionError:
        return False
    return True


async def test_the_law_fails_where_calls_in_flight_are_not_reserved(
    server: ServerHandle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def reserve(budget: SpendingBudget, most: Amount) -> None:
        if budget.limit.calls is not None and (await sums_of(budget)).spent.calls >= budget.limit.calls:
            raise OverBudget("The budget is used up.")

    await asyncio.to_thread(server.configure, SCRIPT)
    await asyncio.to_thread(server.reset)
    assert await keeps_within(tmp_path / "sound", server)
    monkeypatch.setattr(SpendingBudget, "reserve", reserve)
    assert not await keeps_within(tmp_path / "broken", server)
