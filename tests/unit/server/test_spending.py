"""What all processes of a server spend together stays within the budget of a workspace."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from quipu import OverBudget, sync
from quipu.model.usage import NOTHING, Amount, LedgerSums, SpendingLimit
from quipu.server.listening import SharedLedger
from quipu.testing.scripted.script import Script
from quipu.testing.server import serving
from quipu.wrap.meter import SpendingBudget
from tests.spending import sums_of
from tests.unit.server.conftest import LETTER
from tests.unit.server.test_serving import running

CALL = Amount(cost=10, tokens=100, calls=1)


def budgets(folder: Path, calls: int) -> tuple[SpendingBudget, SpendingBudget]:
    """Return the budget of a workspace as two processes have it."""
    limit = SpendingLimit(calls=calls)
    first, second = (SharedLedger(folder / "kb.spending", number) for number in range(2))
    return SpendingBudget(limit, first), SpendingBudget(limit, second)


async def test_what_one_process_spends_is_missing_in_another(tmp_path: Path) -> None:
    first, second = budgets(tmp_path, calls=2)
    await first.reserve(CALL)
    assert await sums_of(second) == LedgerSums(spent=NOTHING, reserved=CALL)
    await first.settle(CALL, Amount(cost=3, tokens=5, calls=1))
    assert await sums_of(second) == LedgerSums(spent=Amount(cost=3, tokens=5, calls=1), reserved=NOTHING)
    await second.reserve(CALL)
    await second.settle(CALL, CALL)
    for budget in (first, second):
        with pytest.raises(OverBudget, match="2 calls is used up"):
            await budget.reserve(CALL)


async def test_a_call_waits_for_one_of_another_process_that_may_cost_less(tmp_path: Path) -> None:
    first, second = budgets(tmp_path, calls=1)
    await first.reserve(CALL)
    waiting = asyncio.create_task(second.reserve(CALL))
    await first.settle(CALL, NOTHING)
    async with asyncio.timeout(60):
        await waiting
    assert (await sums_of(first)).reserved == CALL


async def test_what_a_process_reserved_that_died_counts_as_spent(tmp_path: Path) -> None:
    first, second = budgets(tmp_path, calls=1)
    await first.reserve(CALL)
    SharedLedger(tmp_path / "kb.spending", 0)  # it is started again
    assert await sums_of(second) == LedgerSums(spent=CALL, reserved=NOTHING)


def test_two_workers_keep_one_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with sync.open(tmp_path / "kb") as kb:
        kb.add_text(LETTER, id="letters/1.md")

    def ask(year: int) -> httpx.Response:
        question = {"question": f"Whom did Ada Lovelace write to in {year}?"}
        return httpx.post(f"{address}/api/v1/workspaces/default/query", json=question, timeout=60)

    with serving(Script()) as model, ThreadPoolExecutor(8) as pool:
        monkeypatch.setenv("QUIPU_LLM", "custom/test")
        monkeypatch.setenv("QUIPU_LLM_BASE_URL", model.base_url)
        monkeypatch.setenv("QUIPU_BUDGET", "5 calls")
        with running(tmp_path / "kb", "--workers", "2") as (address, _):
            answers = [reply.json() for reply in pool.map(ask, range(1_840, 1_864))]
        n_calls = len(model.settled().requests)
    assert n_calls == 5
    written = [answer for answer in answers if answer["generator"] != "extractive"]
    assert len(written) == 5
    assert len(answers) - len(written) == 19  # the others quote the documents
