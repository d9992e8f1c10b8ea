"""Law: two that bring one index up to date at once have each text embedded once, wherever the first is at.

The meeting is forced: the first is held while it embeds, until the second waits for its turn or embeds as well.
"""

import asyncio
import signal
from asyncio.subprocess import Process
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

import pytest

from quipu.engine import Quipu
from quipu.model.delta import Delta
from quipu.stores.relational import jobs
from quipu.testing.facts import document, entity, passage
from tests.children import PATIENCE_S, heard, running
from tests.laws.derived_world import DERIVATIONS, story
from tests.laws.derived_world import NAMES as DOCUMENTS
from tests.laws.held import comes_before_the_end, open_when_waiting, under_way
from tests.laws.paying import LOCAL, Meeting, PaidEmbedder, paying_engine
from tests.laws.world import engine

Deed = Callable[[Quipu], Coroutine[Any, Any, object]]

pytestmark = pytest.mark.usefixtures("quick_looks")
CALLS = range(4)  # of the first: names, sentences, reports, aggregates
DEEDS: Mapping[str, Deed] = {
    "a refresh": lambda kb: kb.refresh(DERIVATIONS),
    "a rebuild": lambda kb: kb.refresh(DERIVATIONS, rebuild=True),
    "a question": lambda kb: kb.retrieve("Who met Marco Polo?", strategy="linear", auto_refresh=True),
    "the same added": lambda kb: kb.add(story(DOCUMENTS[0], 0)),
}


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
    open_when_waiting(meeting.released, monkeypatch)
    async with (
        asyncio.timeout(PATIENCE_S),
        paying_engine(folder, PaidEmbedder(meeting, is_first=True, identity=identity)) as one,
        paying_engine(folder, PaidEmbedder(meeting, identity=identity)) as other,
        under_way(first(one)) as work,
    ):
        assert await comes_before_the_end(meeting.begun, work), f"fewer than {held_at + 1} calls"
        await second(other)
        meeting.released.set()  # it may have found all it needed
        await work
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


@pytest.mark.usefixtures("nobody_waits")
@pytest.mark.parametrize("deed", ["a refresh", "a question"])
async def test_the_law_fails_where_nobody_waits_for_the_turn(
    deed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paid = await paid_by_both(tmp_path / "kb", monkeypatch, DEEDS["a refresh"], DEEDS[deed])
    assert len(paid) > len(set(paid))


async def kill(child: Process, _kb: Quipu) -> None:
    """End a child, which is known to be dead then."""
    child.kill()
    await child.wait()


async def stop(child: Process, kb: Quipu) -> None:
    """Have a child stand still, and the lease of its turn be over."""
    child.send_signal(signal.SIGSTOP)
    await kb._store._write(  # type: ignore[attr-defined]
        lambda connection: jobs._write_derivation_lease(connection, jobs._derivation_lease(connection)[1], 0.0)
    )


@pytest.mark.parametrize("be_gone", [kill, stop])
async def test_the_turn_of_one_that_is_gone_is_anothers_who_embeds_the_rest(
    be_gone: Callable[[Process, Quipu], Coroutine[Any, Any, None]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, meeting, waiting = tmp_path / "kb", Meeting(), asyncio.Event()
    open_when_waiting(waiting, monkeypatch)
    async with asyncio.timeout(PATIENCE_S), paying_engine(folder, PaidEmbedder(meeting)) as kb:
        await kb._store.commit(
            Delta(publish=[document("a", *[passage(f"Venice {n}.", entity("Venice")) for n in range(9)])])
        )
        async with running("tests.laws.embedding_child", str(folder)) as child:
            assert await heard(child) == "embedding"
            async with under_way(kb.refresh()) as work:
                assert await comes_before_the_end(waiting, work)
                assert not meeting.paid
                await be_gone(child, kb)
                for _ in range(2):  # one look may have begun before
                    waiting.clear()
                    is_in_vain = await comes_before_the_end(waiting, work)
                assert not is_in_vain
                report = await work
        assert report.n_embedded == len(meeting.paid) == len(set(meeting.paid)) > 0
        assert await kb.verify() == []
