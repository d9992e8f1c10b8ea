"""What all processes of a server spend together stays within the budget of a workspace."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from quipu import sync
from quipu.model.usage import LedgerSums
from quipu.server.listening import SharedLedger
from quipu.testing.scripted.script import Script
from quipu.testing.server import serving
from tests.spending import CALL, check_one_budget, check_waiting
from tests.unit.server.conftest import LETTER
from tests.unit.server.test_serving import running


def ledgers(folder: Path) -> tuple[SharedLedger, SharedLedger]:
    """Return the ledger of a workspace as two processes have it."""
    return SharedLedger(folder / "kb.spending", 0), SharedLedger(folder / "kb.spending", 1)


async def test_what_one_process_spends_is_missing_in_another(tmp_path: Path) -> None:
    await check_one_budget(*ledgers(tmp_path))


async def test_a_call_waits_for_one_of_another_process_that_may_cost_less(tmp_path: Path) -> None:
    await check_waiting(*ledgers(tmp_path))


async def test_what_a_process_reserved_that_died_counts_as_spent(tmp_path: Path) -> None:
    first, second = ledgers(tmp_path)
    await first.add(LedgerSums(reserved=CALL))
    SharedLedger(tmp_path / "kb.spending", 0)  # it is started again
    assert await second.add(LedgerSums()) == LedgerSums(spent=CALL)


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
