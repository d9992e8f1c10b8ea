"""Events: one stream tells what changes in a workspace, whoever changes it, and costs nothing while nothing does."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import Message

import quipu
from quipu.errors import NotFound
from quipu.server import ServerComponents, Workspaces, events
from quipu.server.events import WorkspaceState, WorkspaceWatch
from quipu.server.wire import BEAT, event_stream
from quipu.stores.sqlite.server_state import ServerJob
from tests.unit.server.conftest import http_client

KB = "/api/v1/workspaces/default"


@pytest.fixture(autouse=True)
def _eager(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "LOOK_S", 0.001)
    monkeypatch.setattr(events, "_MAX_SHARE", 1.0)


@pytest.fixture
async def server(index: Path) -> AsyncIterator[ServerComponents]:
    """Return a server of an index with one document."""
    components = ServerComponents.of(Workspaces(index=index))
    yield components
    await components.jobs.close()
    await components.workspaces.close()


class Stream:
    """A stream of events of a workspace, read one by one."""

    def __init__(self, changes: AsyncGenerator[bytes, None]) -> None:
        self._changes = changes
        self._events: list[tuple[str, Any, str]] = []

    async def next(self, *kinds: str) -> tuple[str, Any, str]:
        """Return the kind, the data and the id of the next event of one of these kinds."""
        while True:
            while not self._events:
                async with asyncio.timeout(60):
                    self._events = [_parsed(event) for event in (await anext(self._changes)).split(b"\n\n") if event]
            event = self._events.pop(0)
            if not kinds or event[0] in kinds:
                return event


def _parsed(event: bytes) -> tuple[str, Any, str]:
    fields = dict(line.split(": ", 1) for line in event.decode().strip().splitlines())
    return fields["event"], json.loads(fields["data"]), fields.get("id", "")


async def _watch(server: ServerComponents) -> WorkspaceWatch:
    return await server.watches.ready("default")


async def test_another_process_is_seen_that_adds_updates_and_removes(server: ServerComponents, index: Path) -> None:
    async with aclosing((await _watch(server)).changes()) as changes, quipu.open(index) as other:
        stream = Stream(changes)
        kind, state, _ = await stream.next()
        assert (kind, state["n_documents"], state["jobs"]) == ("state", 1, [])
        assert {derivation["name"] for derivation in state["derivations"]} >= {"vectors", "communities"}

        async def follow(field: str) -> Any:
            """Read on until a change has this field and the queue is empty; one add may be several changes."""
            values = None
            while True:
                _, change, _ = await stream.next("index")
                values = change[field] or values
                if values and not change["queue"]:
                    return values, change["n_documents"]

        await other.add_text("Ada met Mary Somerville.", id="new")
        assert await follow("added") == (["new"], 2)
        await other.add_text("Ada met Mary Somerville in 1834.", id="new")
        assert await follow("updated") == (["new"], 2)
        await other.remove(["new"])
        assert await follow("n_removed") == (1, 1)


def _reading(n_documents: int, documents: dict[str, tuple[int, str]]) -> events._Reading:
    state = WorkspaceState(revision=1, n_documents=n_documents, queue={}, derivations=(), jobs=())
    return events._Reading(state, {}, documents)


def test_a_document_that_is_listed_because_others_went_has_not_changed() -> None:
    before = _reading(3, {"new": (1, "2026-02"), "newer": (1, "2026-03")})
    change = events._index_change(before, _reading(2, {"old": (1, "2026-01"), "newer": (1, "2026-03")}))
    assert change is not None
    assert (change.added, change.updated, change.n_removed) == ((), (), 1)


def test_a_change_of_too_many_documents_says_that_it_is_not_complete() -> None:
    documents = {str(n): (1, "2026-01") for n in range(events._MAX_NAMED)}
    change = events._index_change(_reading(0, {}), _reading(500, documents))
    assert change is not None
    assert not change.is_complete
    assert events._index_change(_reading(500, documents), _reading(500, documents)) is None


async def test_a_commit_between_two_reads_of_a_look_is_not_taken_for_a_removal(
    server: ServerComponents, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch, documents, n_reads = await _watch(server), quipu.Quipu.documents, 0
    async with quipu.open(index) as other:

        async def late(kb: quipu.Quipu, *arguments: Any, **options: Any) -> Any:
            nonlocal n_reads
            n_reads += 1
            if n_reads == 1:  # a commit after the status was read, and before the documents are
                monkeypatch.setattr("quipu.engine.Quipu.documents", documents)
                await other.add_text("Ada met Mary Somerville.", id="new")
            return await documents(kb, *arguments, **options)

        monkeypatch.setattr("quipu.engine.Quipu.documents", late)
        await other.enqueue(quipu.SourceDocument(id="queued.md", content=b"Ada."))
        before = watch._reading
        await watch._look()
    assert before is not None and watch._reading is not None
    change = events._index_change(before, watch._reading)
    assert change is not None
    assert ("new" in change.added, change.n_removed, change.is_complete) == (True, 0, True)


async def test_a_derivation_that_is_computed_or_dropped_is_told(server: ServerComponents, index: Path) -> None:
    async with aclosing((await _watch(server)).changes()) as changes, quipu.open(index) as other:
        stream = Stream(changes)
        await stream.next("state")

        async def freshness() -> str:
            while (state := (await stream.next("derivation"))[1])["name"] != "sentences":
                pass
            return str(state["freshness"])

        await other.refresh(["sentences"])
        while (last := await freshness()) == "stale":  # while it is computed
            pass
        assert last == "fresh"
        await other.drop(["sentences"])
        assert await freshness() == "missing"


async def test_a_job_is_told_from_its_beginning_to_its_end(server: ServerComponents) -> None:
    async with http_client(server) as client, aclosing((await _watch(server)).changes()) as changes:
        stream = Stream(changes)
        await stream.next("state")
        job = (await client.post(f"{KB}/texts", json={"text": "Ada met Mary.", "id": "new"})).json()["job"]
        seen: list[str] = []
        while not seen or seen[-1] != "finished":
            _, status, _ = await stream.next("job")
            assert status["id"] == job["id"]
            seen.append(status["status"])
        assert status["documents"] == {"ready": 1}


async def test_a_job_of_another_worker_is_told_and_can_be_cancelled_here(
    server: ServerComponents, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other worker refreshes without end, until this one is asked to cancel it."""

    async def endless(*_: Any, **__: Any) -> Any:
        await asyncio.Event().wait()

    monkeypatch.setattr("quipu.engine.Quipu.refresh", endless)
    monkeypatch.setattr("quipu.server.job_runners._POLL_S", 0.001)
    other = ServerComponents.of(Workspaces(index=index))
    async with http_client(server) as here, http_client(other) as there:
        async with aclosing((await _watch(server)).changes()) as changes:
            stream = Stream(changes)
            await stream.next("state")
            job = (await there.post(f"{KB}/refresh", json={})).json()["id"]
            while (status := (await stream.next("job"))[1])["status"] != "running":
                assert status["id"] == job
            await here.post(f"{KB}/jobs/{job}/cancel")
            while (status := (await stream.next("job"))[1])["status"] == "running":
                pass
        assert status["status"] == "cancelled"
        await asyncio.wait_for(other.jobs._tasks["default"], 60)  # its work has ended


async def test_a_client_that_comes_back_gets_what_it_missed_and_nothing_else(
    server: ServerComponents, index: Path
) -> None:
    watch = await _watch(server)
    async with aclosing(watch.changes()) as changes:
        _, _, before = await Stream(changes).next("state")
    async with quipu.open(index) as other:
        await other.add_text("Ada met Mary Somerville.", id="new")
    await watch.ready()
    async with aclosing(watch.changes(before)) as changes:
        stream = Stream(changes)
        kind, change, after = await stream.next("index")
        while not after:
            _, _, after = await stream.next()
        assert change["added"] == ["new"]
    async with aclosing(watch.changes(after)) as changes:
        stream = Stream(changes)
        async with quipu.open(index) as other:
            await other.remove(["new"])
        kind, change, _ = await stream.next()
        assert kind == "index"
        assert change["added"] == []
    async with aclosing(watch.changes("from another server")) as changes:
        assert (await Stream(changes).next())[0] == "state"


async def test_a_client_that_missed_too_much_gets_the_state(
    server: ServerComponents, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = await _watch(server)
    async with aclosing(watch.changes()) as changes, quipu.open(index) as other:
        stream = Stream(changes)
        await stream.next("state")
        for n in range(events._MAX_CHANGES + 1):  # the client reads nothing meanwhile
            await other.enqueue(quipu.SourceDocument(id=f"{n}.md", content=b"Ada."))
            await watch._look()
        kind, state, _ = await stream.next()
        while kind != "state":
            kind, state, _ = await stream.next()
        assert state["queue"] == {"queued": events._MAX_CHANGES + 1}


async def test_all_streams_share_one_reader_and_an_idle_workspace_is_not_read(
    server: ServerComponents, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    n_reads, n_stamps = 0, 0
    read, stamps = WorkspaceWatch._read, Workspaces.stamps
    enough = asyncio.Event()

    async def counted_read(watch: WorkspaceWatch) -> Any:
        nonlocal n_reads
        n_reads += 1
        return await read(watch)

    def settled(workspaces: Workspaces, name: str) -> Any:
        nonlocal n_stamps
        n_stamps += 1
        if n_stamps > 50:
            enough.set()
        return tuple((max(changed_at - 10**10, 0), size) for changed_at, size in stamps(workspaces, name))

    monkeypatch.setattr(WorkspaceWatch, "_read", counted_read)
    monkeypatch.setattr(Workspaces, "stamps", settled)
    watch = await _watch(server)
    streams = [watch.changes() for _ in range(20)]
    try:
        for changes in streams:
            await Stream(changes).next("state")
        n_before = n_reads
        await enough.wait()
        assert n_reads - n_before <= 1  # files that opening the index has written
        async with quipu.open(index) as other:
            await other.add_text("Ada met Mary Somerville.", id="new")
        for changes in streams:
            await Stream(changes).next("index")
        assert n_reads - n_before < 20
    finally:
        for changes in streams:
            await changes.aclose()
    assert watch._task is None


async def test_a_change_right_after_a_look_is_seen_although_the_time_stamps_are_equal(
    server: ServerComponents, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time_ns()
    monkeypatch.setattr(Workspaces, "stamps", lambda *_: ((now, 1),))
    monkeypatch.setattr(events, "_SETTLED_NS", 10**12)
    watch = await _watch(server)
    async with quipu.open(index) as other:
        await other.add_text("Ada met Mary Somerville.", id="new")
    async with aclosing(watch.changes()) as changes:
        stream = Stream(changes)
        await stream.next("state")
        await _seen(watch, 2)


async def _seen(watch: WorkspaceWatch, n_documents: int) -> None:
    """Wait until the watch has seen so many documents."""
    async with asyncio.timeout(60):
        while watch._reading is None or watch._reading.state.n_documents != n_documents:
            await watch._looked.wait()


async def test_a_workspace_that_is_deleted_ends_its_streams(tmp_path: Path) -> None:
    workspaces = Workspaces(root=tmp_path)
    async with http_client(server := ServerComponents.of(workspaces)):
        await workspaces.create("letters")
        watch = await server.watches.ready("letters")
        async with aclosing(watch.changes()) as changes:
            await Stream(changes).next("state")
            await workspaces.delete("letters")
            with pytest.raises(NotFound):
                await Stream(changes).next()
        with pytest.raises(NotFound):
            await server.watches.ready("letters")


async def test_a_stream_ends_after_an_hour_so_that_its_key_is_checked_again(
    server: ServerComponents, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "_MAX_STREAM_S", 0.0)
    text = [piece async for piece in (await _watch(server)).changes()]
    assert [_parsed(event)[0] for event in text] == ["state"]


async def test_a_comment_comes_while_nothing_happens(
    server: ServerComponents, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "HEARTBEAT_S", 0.001)
    async with aclosing((await _watch(server)).changes()) as changes:
        assert _parsed(await anext(changes))[0] == "state"
        pieces = [await anext(changes) for _ in range(3)]
        assert pieces[-1] == b": waiting\n\n"


async def test_the_events_of_a_workspace_need_one_that_exists(client: httpx.AsyncClient) -> None:
    assert (await client.get("/api/v1/workspaces/other/events")).status_code == 404


async def test_the_events_over_http_end_with_the_problem(
    server: ServerComponents, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def gone(*_: object) -> Any:
        raise NotFound("There is no workspace 'default'.")

    ready = WorkspaceWatch.ready

    async def ready_once(watch: WorkspaceWatch) -> None:
        await ready(watch)
        monkeypatch.setattr(WorkspaceWatch, "_look", gone)

    monkeypatch.setattr(WorkspaceWatch, "ready", ready_once)
    async with http_client(server) as client:
        response = await client.get(f"{KB}/events")
    assert response.headers["content-type"].startswith("text/event-stream")
    kinds = [_parsed(part.encode())[0] for part in response.text.strip().split("\n\n")]
    assert kinds == ["state", "problem"]


async def test_the_state_of_an_ended_job_is_read_once(server: ServerComponents, index: Path) -> None:
    async with http_client(server) as client:
        job = (await client.post(f"{KB}/texts", json={"text": "Ada met Mary.", "id": "new"})).json()["job"]
        await client.get(f"{KB}/jobs/{job['id']}/events")
        first = (await client.get(f"{KB}/jobs/{job['id']}")).json()
        await client.delete(f"{KB}/documents/new")
        assert (await client.get(f"{KB}/jobs/{job['id']}")).json() == first


async def test_a_job_of_many_documents_names_a_hundred_and_reads_only_those_that_wait(
    server: ServerComponents, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = tuple(f"{n:03}.md" for n in range(250))
    async with quipu.open(index) as kb:
        await kb.add(*(quipu.SourceDocument(id=name, content=name.encode()) for name in names[:150]))
        await kb.enqueue(*(quipu.SourceDocument(id=name, content=name.encode()) for name in names[150:]))
    n_read: list[int] = []
    documents = quipu.Quipu.documents

    async def counted(kb: quipu.Quipu, *arguments: Any, ids: Any = None) -> Any:
        n_read.append(len(ids))
        return await documents(kb, *arguments, ids=ids)

    monkeypatch.setattr("quipu.engine.Quipu.documents", counted)
    async with server.workspaces.use("default") as kb:
        state = await server.workspaces.state("default")
        job = ServerJob(
            id="j", kind="add", subjects=names, created_at="2026-01-01", started_at="2026-01-01T00:00:00+00:00"
        )
        await asyncio.to_thread(state.add_job, job)
        for _ in range(2):
            [status] = await server.watches.of("default").states.read(kb, [job])
            assert status.documents == {"queued": 100, "ready": 150}
    assert n_read == [250, 100]
    assert (status.n_subjects, len(status.subjects)) == (250, 100)


async def test_a_stream_ends_with_the_first_event_after_its_client_is_gone() -> None:
    is_closed = False

    async def events() -> AsyncIterator[bytes]:
        nonlocal is_closed
        try:
            while True:
                yield BEAT
        finally:
            is_closed = True

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    await event_stream(events(), heartbeat_s=0)({"type": "http"}, receive, send)
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
    assert is_closed
