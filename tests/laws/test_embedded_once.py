"""Law: two that bring one index up to date at once have each text embedded once, wherever the first is at.

The meeting is forced: the first is held while it embeds, until the second waits for its turn or embeds as well.
"""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from quipu import engine as engines
from quipu.engine import Quipu, turn
from quipu.engine.models import Models
from quipu.model.delta import Delta
from quipu.ports.store import Store
from quipu.testing.facts import document, entity, passage
from tests.laws.derived_world import DERIVATIONS, story
from tests.laws.derived_world import NAMES as DOCUMENTS
from tests.laws.paying import LOCAL, Meeting, PaidEmbedder, paying_engine
from tests.laws.world import engine

Deed = Callable[[Quipu], Awaitable[object]]

ROOT = Path(__file__).parents[2]
CALLS = range(4)  # of the first: names, sentences, reports, aggregates
DEEDS: Mapping[str, Deed] = {
    "a refresh": lambda kb: kb.refresh(DERIVATIONS),
    "a rebuild": lambda kb: kb.refresh(DERIVATIONS, rebuild=True),
    "a question": lambda kb: kb.retrieve("Who met Marco Polo?", strategy="linear", auto_refresh=True),
    "the same added": lambda kb: kb.add(story(DOCUMENTS[0], 0)),
}


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have each look often what the other does."""
    for module in (engines, turn):
        monkeypatch.setattr(module, "POLL_S", 0.002)


@asynccontextmanager
async def at_once(_store: Store, _models: Models) -> AsyncIterator[None]:
    """Wait for nobody."""
    yield


def note_waiting(kb: Quipu, waiting: asyncio.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set an event when an engine finds that it is another's turn."""
    begin = kb._store.begin_deriving

    async def noted() -> bool:
        has_turn = await begin()
        if not has_turn:
            waiting.set()
        return has_turn

    monkeypatch.setattr(kb._store, "begin_deriving", noted)


async def paid_by_both(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    first: Deed,
    second: Deed,
    *,
    held_at: int = 0,
    identity: str = LOCAL.identity,
) -> list[str]:
    """Have one engine held within its work while another begins; return the texts that were embedded, by whom ever."""
    meeting = Meeting(held_at=held_at)
    async with engine(folder) as kb:
        await kb.add(*(story(name, 0) for name in DOCUMENTS[:3]))
    async with (
        paying_engine(folder, PaidEmbedder(meeting, is_first=True, identity=identity)) as one,
        paying_engine(folder, PaidEmbedder(meeting, identity=identity)) as other,
    ):
        note_waiting(other, meeting.released, monkeypatch)
        work = asyncio.ensure_future(first(one))
        held = asyncio.ensure_future(meeting.begun.wait())
        await asyncio.wait({work, held}, return_when=asyncio.FIRST_COMPLETED)
        assert held.done(), f"fewer than {held_at + 1} calls"
        waiting = asyncio.ensure_future(second(other))
        waiting.add_done_callback(lambda _: meeting.released.set())  # it may find all it needs
        await asyncio.gather(work, waiting)
        assert await one.verify() == []
        assert not [each for each in await one.plan() if each.cost.n_texts]
    return meeting.paid


@pytest.mark.parametrize(("deed", "held_at"), [*((deed, 0) for deed in DEEDS), *(("a refresh", n) for n in CALLS[1:])])
async def test_what_the_first_embeds_is_not_paid_again(
    deed: str, held_at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paid = await paid_by_both(tmp_path / "kb", monkeypatch, DEEDS["a refresh"], DEEDS[deed], held_at=held_at)
    assert len(paid) == len(set(paid)) > len(CALLS)


async def test_two_that_compute_all_vectors_anew_pay_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paid = await paid_by_both(tmp_path / "kb", monkeypatch, Quipu.reembed, Quipu.reembed, identity="another/1")
    assert len(paid) == len(set(paid)) > len(CALLS)


@pytest.mark.parametrize("deed", ["a refresh", "a question"])
async def test_the_law_fails_where_nobody_waits_for_the_turn(
    deed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "turn_to_derive", at_once)
    paid = await paid_by_both(tmp_path / "kb", monkeypatch, DEEDS["a refresh"], DEEDS[deed])
    assert len(paid) > len(set(paid))


@pytest.mark.parametrize(("end", "lease_s"), [(signal.SIGKILL, 3600.0), (signal.SIGSTOP, 0.5)])
async def test_the_turn_of_one_that_is_gone_is_anothers_who_embeds_the_rest(
    end: signal.Signals, lease_s: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was killed is known to be dead; of one that stands still the lease ends."""
    folder, meeting, waiting = tmp_path / "kb", Meeting(), asyncio.Event()
    async with paying_engine(folder, PaidEmbedder(meeting)) as kb:
        await kb._store.commit(
            Delta(publish=[document("a", *[passage(f"Venice {n}.", entity("Venice")) for n in range(9)])])
        )
        note_waiting(kb, waiting, monkeypatch)
        command = [sys.executable, "-m", "tests.laws.embedding_child", str(folder), str(lease_s)]
        child = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
        try:
            assert child.stdout is not None
            assert await child.stdout.readline() == b"embedding\n"
            work = asyncio.ensure_future(kb.refresh())
            await waiting.wait()
            assert not meeting.paid
            child.send_signal(end)
            report = await work
        finally:
            if child.returncode is None:
                child.kill()
            await child.wait()
        assert report.n_embedded == len(meeting.paid) == len(set(meeting.paid)) > 0
        assert await kb.verify() == []
