"""Law 2: killed anywhere, nothing is lost, nothing half-done is visible, and finishing ends the same."""

import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random

import pytest
from sqlalchemy import Engine, event, inspect
from sqlalchemy.exc import IntegrityError

from quipu.engine import Quipu
from quipu.errors import NotFound, Unavailable
from quipu.model.document import SourceDocument
from quipu.stores.relational.store import RelationalStore
from quipu.testing.postgres_server import PostgresServer
from tests.laws.child import EXACT_BELOW, NAMES, CountingExtractor, history, live
from tests.laws.mortal import Mortal, mortal_of
from tests.laws.world import chunk_texts, document, engine, fresh_state, open_backend, run, state

SOUND = "sound"


@pytest.fixture(scope="module")
def mortal() -> Iterator[Mortal]:
    """One that lives through the history."""
    with mortal_of("tests.laws.child", "live") as ready:
        yield ready


def survivors() -> list[SourceDocument]:
    """Return the documents that are live when the whole history is done."""
    return list(alive_after(len(history())).values())


def alive_after(n_steps: int) -> dict[str, SourceDocument]:
    """Return the documents that are live after some steps of the history."""
    alive: dict[str, SourceDocument] = {}
    for added, removed in history()[:n_steps]:
        alive |= {source.id: source for source in added}
        for name in removed:
            del alive[name]
    return alive


async def check_nothing_is_lost_or_half_done(kb: Quipu, n_done: int) -> None:
    """Assert that every live document is whole, at the version acknowledged or the one under way."""
    acknowledged = alive_after(n_done)
    added, removed = history()[n_done] if n_done < len(history()) else ([], [])
    under_way = {source.id: source for source in added}
    for name in NAMES:
        try:
            report = await kb.document(name)
        except NotFound:
            report = None
        texts = [chunk.text for chunk in report.chunks] if report else []
        versions = [source for source in (acknowledged.get(name), under_way.get(name)) if source]
        allowed = [chunk_texts(source) for source in versions]
        if name not in acknowledged or name in removed:
            allowed.append([])
        assert texts in allowed, f"{name}: {texts} is none of {allowed}"
    assert await kb.verify() == []


def kept_replies(folder: Path) -> set[str]:
    """Return the inputs whose replies are committed."""
    backend = open_backend(folder)
    try:
        with backend.reading() as connection:
            if not inspect(connection).has_table("reply"):
                return set()
            return {row[0] for row in connection.exec_driver_sql("SELECT input_hash FROM reply")}
    finally:
        backend.close()


async def check_recovery(folder: Path, expected: object) -> None:
    """Assert the law on what a killed child left in `folder`, finish its work, and compare the end."""
    acks, resumed, finished = (folder.parent / f"{folder.name}.{what}" for what in ("acks", "resumed", "finished"))
    n_done = len(acks.read_text().split()) if acks.exists() else 0
    kept = kept_replies(folder)
    async with engine(folder, extractor=CountingExtractor(resumed), exact_below=EXACT_BELOW) as kb:
        await check_nothing_is_lost_or_half_done(kb, n_done)
        await kb.resume()
        assert await kb.verify() == []
    assert not kept & asked(resumed), "an extraction that was committed was done again"
    kept = kept_replies(folder)  # fewer, where a removal was resumed
    await live(folder, extractor=CountingExtractor(finished), first_step=n_done)
    assert not kept & asked(finished), "an extraction that was committed was done again"
    async with engine(folder, exact_below=EXACT_BELOW) as kb:
        assert await state(kb) == expected


def asked(log: Path) -> set[str]:
    """Return the inputs a CountingExtractor was asked for."""
    return set(log.read_text().split()) if log.exists() else set()


def crash_and_recover(mortal: Mortal, folder: Path, kind: str, point: int, expected: object) -> None:
    """Kill a run at one point, then check what it left and that its work can be finished."""
    assert mortal.live(folder, kind, point, SOUND).code == -signal.SIGKILL
    run(lambda: check_recovery(folder, expected))


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> object:
    """The state of an index that was never killed."""
    folder = tmp_path_factory.mktemp("fresh")
    return run(lambda: fresh_state(folder, survivors(), exact_below=EXACT_BELOW))


@pytest.mark.parametrize(("kind", "n"), [("statement", 30), ("file", 8)])
def test_a_killed_run_loses_nothing_and_finishes_as_if_never_killed(
    kind: str, n: int, mortal: Mortal, tmp_path: Path, laws_scale: int, expected: object
) -> None:
    undisturbed = mortal.live(tmp_path / "count", kind, 0, SOUND)
    assert undisturbed.code == 0
    total = undisturbed.n_points
    assert total >= n, f"only {total} points of kind {kind}"
    for point in sorted(Random(20).sample(range(1, total + 1), min(n * laws_scale, total))):
        crash_and_recover(mortal, tmp_path / f"kill {point}", kind, point, expected)


def test_a_process_killed_while_it_writes_to_postgresql_loses_nothing(
    on_postgres: PostgresServer, mortal: Mortal, tmp_path: Path, laws_scale: int, expected: object
) -> None:
    server = on_postgres.uri()
    total = mortal.live(tmp_path / "count", "statement", 0, SOUND, server).n_points
    for point in sorted(Random(21).sample(range(1, total + 1), 4 * laws_scale)):
        folder = tmp_path / f"kill {point}"
        assert mortal.live(folder, "statement", point, SOUND, server).code == -signal.SIGKILL
        run(partial(check_recovery, folder, expected))


def test_a_killed_database_server_loses_nothing(
    on_postgres: PostgresServer, tmp_path: Path, laws_scale: int, expected: object
) -> None:
    """The server dies at a statement of this process, and is started again; what was acknowledged is there."""
    total = run(lambda: _live_until_the_server_dies(tmp_path / "count", on_postgres, 0))
    for point in sorted(Random(22).sample(range(1, total + 1), 2 * laws_scale)):
        folder = tmp_path / f"kill {point}"
        try:
            run(partial(_live_until_the_server_dies, folder, on_postgres, point))
        finally:
            on_postgres.start()
        run(partial(check_recovery, folder, expected))


async def _live_until_the_server_dies(folder: Path, server: PostgresServer, n: int) -> int:
    """Live through the history; kill the server at the n-th statement. Return how many statements there were."""
    n_statements = 0

    def kill(*_: object) -> None:
        nonlocal n_statements
        n_statements += 1
        if n_statements == n:
            server.kill()

    event.listen(Engine, "before_cursor_execute", kill)
    try:
        extractor = CountingExtractor(folder.parent / f"{folder.name}.asked")
        await live(folder, extractor=extractor, acknowledged=folder.parent / f"{folder.name}.acks")
        assert not n, "the server was not missed"
    except Unavailable:
        assert n
    finally:
        event.remove(Engine, "before_cursor_execute", kill)
    return n_statements


@pytest.mark.parametrize("fault", ["no write transaction"])
def test_the_law_fails_where_writes_are_not_one_transaction(
    fault: str, mortal: Mortal, tmp_path: Path, expected: object
) -> None:
    for point in range(150, 400, 9):
        folder = tmp_path / f"kill {point}"
        assert mortal.live(folder, "statement", point, fault).code == -signal.SIGKILL
        try:
            run(lambda folder=folder: check_recovery(folder, expected))  # type: ignore[misc]
        except (AssertionError, IntegrityError):
            return
    pytest.fail("no kill was noticed")


async def test_the_law_fails_where_kept_replies_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def forgetful(*_: object) -> dict[str, str]:
        return {}

    first, again, forgotten = (tmp_path / name for name in ("first", "again", "forgotten"))
    versions = [document("a.md", 0), document("a.md", 1), document("a.md", 0)]
    for log in (first, again, forgotten):
        if log is forgotten:
            monkeypatch.setattr(RelationalStore, "find_replies", forgetful)
        async with engine(tmp_path / "kb", extractor=CountingExtractor(log)) as kb:
            for version in versions:
                await kb.add(version)
    assert asked(first)
    assert not asked(again)
    assert asked(forgotten)
