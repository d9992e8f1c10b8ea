"""Law 5 with every derivation kept: killed while one is made, no report that is committed is paid for again."""

import asyncio
import shutil
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from quipu.model.cluster import Hierarchy
from quipu.stores.relational.store import RelationalStore
from quipu.testing.server.process import ServerHandle
from quipu.testing.server.request_log import LoggedRequest
from tests.laws.derived_child import REPORTING, lines_of, live
from tests.laws.derived_world import told_of
from tests.laws.model_counts import completed
from tests.laws.model_world import dump_of, model_engine, model_settings, script
from tests.laws.mortal import Mortal, mortal_of
from tests.laws.test_model_crash import kept_replies, points

N_REPORTING = 200  # points of a run at which reports or aggregates are written: now 270, now 340
SURE = 0.9  # share of the points of one run that another, which writes more at once, has too
ONE_KEPT = "kept-report:1"  # then it is not yet recorded what was reported


@pytest.fixture(scope="module")
def mortal() -> Iterator[Mortal]:
    """One that lives through a short history with a model."""
    with mortal_of("tests.laws.derived_child") as ready:
        yield ready


async def ended(folder: Path, server: ServerHandle) -> object:
    """Return the state at the end of the history, which has no faults."""
    async with model_engine(model_settings(folder, server.base_url)) as kb:
        assert await kb.verify() == []
        assert await kb.plan() == ()
        return await dump_of(kb), *[await told_of(kb, hierarchy) for hierarchy in Hierarchy]


@pytest.fixture(scope="module")
def undisturbed(server: ServerHandle, mortal: Mortal, tmp_path_factory: pytest.TempPathFactory) -> tuple[object, int]:
    """The state at the end of a run that nobody kills, and how many points it has."""
    folder = tmp_path_factory.mktemp("undisturbed") / "kb"
    server.configure(script())
    life = mortal.live(folder, server.base_url, 0)
    assert life.code == 0
    return asyncio.run(ended(folder, server)), life.n_points


async def kill_and_finish(folder: Path, server: ServerHandle, mortal: Mortal, point: int | str, whole: object) -> None:
    """Kill a run at a point, finish it, and assert the law."""
    server.reset()
    assert mortal.live(folder, server.base_url, point).code == -signal.SIGKILL
    before = (await asyncio.to_thread(server.settled)).requests
    asked_by_hash = dict(line.split() for line in lines_of(Path(f"{folder}.keys")))
    kept = {asked_by_hash[each] for each in kept_replies(folder) if each in asked_by_hash}
    assert kept <= what(completed(before))
    done = Path(f"{folder}.done")
    async with model_engine(model_settings(folder, server.base_url)) as kb:
        assert await kb.verify() == []
        await kb.resume()
    await live(folder, server.base_url, done, first=len(lines_of(done)))
    served = (await asyncio.to_thread(server.settled)).requests
    assert not kept & what(served[len(before) :]), "a reply that was kept was asked for again"
    assert await ended(folder, server) == whole


def what(served: Sequence[LoggedRequest]) -> set[str]:
    """Return what requests asked, and of which text."""
    return {f"{each.kind}:{each.text_hash}" for each in served}


async def test_killed_at_any_point_the_work_can_be_finished_and_nothing_kept_is_paid_again(
    server: ServerHandle, mortal: Mortal, undisturbed: tuple[object, int], laws_scale: int, tmp_path: Path
) -> None:
    whole, n_points = undisturbed
    server.configure(script())
    everywhere = points(2 * laws_scale, round(SURE * n_points), "derived kills")
    reporting = [f"{REPORTING}:{point}" for point in points(3 * laws_scale, N_REPORTING, "kills of reports")]
    chosen: list[int | str] = [*everywhere, *reporting]
    for number, point in enumerate(chosen):
        folder = tmp_path / f"kill {number}"
        await kill_and_finish(folder, server, mortal, point, whole)
        shutil.rmtree(folder)


async def test_the_law_fails_where_kept_replies_are_not_looked_for(
    server: ServerHandle,
    mortal: Mortal,
    undisturbed: tuple[object, int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def find(_store: RelationalStore, _input_hashes: Sequence[str]) -> dict[str, str]:
        return {}

    whole, _ = undisturbed
    server.configure(script())
    await kill_and_finish(tmp_path / "sound", server, mortal, ONE_KEPT, whole)
    monkeypatch.setattr(RelationalStore, "find_replies", find)
    with pytest.raises(AssertionError, match="asked for again"):
        await kill_and_finish(tmp_path / "broken", server, mortal, ONE_KEPT, whole)
