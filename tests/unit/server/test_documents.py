"""Documents over HTTP: uploads in every form, jobs, listings, and what wrong requests get."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

import quipu
from quipu.server import ServerComponents, ServerOptions, Workspaces
from quipu.server.app import make_app
from quipu.server.wire import with_heartbeat
from tests.unit.server.conftest import http_client

KB = "/api/v1/workspaces/default"


async def finished(client: httpx.AsyncClient, job: dict[str, Any]) -> dict[str, Any]:
    """Follow a job to its end, and return its last state."""
    text = (await client.get(f"{KB}/jobs/{job['id']}/events")).text
    state: dict[str, Any] = json.loads(text.strip().split("\n\n")[-1].partition("data: ")[2])
    return state


async def test_a_text_is_added_by_a_job(client: httpx.AsyncClient) -> None:
    reply = await client.post(f"{KB}/texts", json={"text": "Mary Somerville taught Ada.", "id": "somerville"})
    assert reply.status_code == 202
    assert reply.json()["added"] == ["somerville"]
    job = await finished(client, reply.json()["job"])
    assert (job["status"], job["documents"]) == ("finished", {"ready": 1})
    assert job["finished_at"]
    answer = (await client.post(f"{KB}/query", json={"question": "Who taught Ada?"})).json()
    assert "Mary Somerville" in answer["text"]


async def test_files_are_uploaded_with_their_names_types_and_metadata(client: httpx.AsyncClient) -> None:
    reply = await client.post(
        f"{KB}/documents",
        files=[
            ("files", ("notes/a.html", b"<h1>Engines</h1><p>Babbage built the Difference Engine.</p>")),
            ("files", ("b.csv", b"name,year\nAda,1815\n")),
            ("files", ("c.png", b"\x89PNG\r\n\x1a\n\0\0")),
        ],
        data={"metadata": json.dumps({"project": "engines"})},
    )
    assert reply.status_code == 202
    assert reply.json()["added"] == ["notes/a.html", "b.csv"]
    assert [name for name, _ in reply.json()["unreadable"]] == ["c.png"]
    await finished(client, reply.json()["job"])
    document = (await client.get(f"{KB}/documents/notes/a.html")).json()["document"]
    assert (document["title"], document["media_type"]) == ("Engines", "text/html")
    assert document["metadata"]["project"] == "engines"


async def test_an_upload_is_estimated_without_adding_it(client: httpx.AsyncClient) -> None:
    files = [("files", ("a.md", b"Ada wrote to Babbage.")), ("files", ("c.png", b"\x89PNG\r\n\x1a\n\0\0"))]
    estimate = (await client.post(f"{KB}/documents/estimate", files=files)).json()
    assert (estimate["n_documents"], estimate["n_unreadable"]) == (1, 1)
    ids = [document["id"] for document in (await client.get(f"{KB}/documents")).json()["documents"]]
    assert ids == ["letters/1.md"]


@pytest.mark.parametrize(
    ("name", "document_id"),
    [
        ("../../etc/passwd", "etc/passwd"),
        ("/etc/passwd", "etc/passwd"),
        ("C:\\etc\\passwd", "passwd"),  # the parser of forms keeps what follows the last backslash
        ("./etc/../passwd", "etc/passwd"),
    ],
)
async def test_the_name_of_an_upload_leads_nowhere(client: httpx.AsyncClient, name: str, document_id: str) -> None:
    reply = await client.post(f"{KB}/documents", files=[("files", (name, b"root:x"))])
    assert reply.json()["added"] == [document_id]


async def test_put_replaces_a_document_by_its_id(client: httpx.AsyncClient) -> None:
    for text, field in (("Ada met Babbage.", "updated"), ("Ada met Babbage.", "unchanged")):
        reply = (await client.put(f"{KB}/documents/letters/1.md", content=text.encode())).json()
        assert reply[field] == ["letters/1.md"]
        if reply["job"]:
            await finished(client, reply["job"])
    chunks = (await client.get(f"{KB}/documents/letters/1.md")).json()["chunks"]
    assert [chunk["text"] for chunk in chunks] == ["Ada met Babbage."]


async def test_a_request_with_the_same_idempotency_key_is_done_once(client: httpx.AsyncClient) -> None:
    headers = {"idempotency-key": "k1"}
    first = await client.post(f"{KB}/texts", json={"text": "One.", "id": "one"}, headers=headers)
    again = await client.post(f"{KB}/texts", json={"text": "One.", "id": "one"}, headers=headers)
    assert again.json() == first.json()
    assert again.headers["idempotent-replayed"] == "true"
    other = await client.post(f"{KB}/texts", json={"text": "Two.", "id": "two"}, headers=headers)
    assert other.status_code == 422


async def test_an_upload_that_is_too_large_is_refused_however_it_is_sent(index: Path) -> None:
    server = ServerComponents.of(Workspaces(index=index), ServerOptions(max_upload_bytes=1_000))

    async def chunked() -> Any:
        for _ in range(10):
            yield b"x" * 500

    async with http_client(server) as client:
        assert (await client.put(f"{KB}/documents/a.md", content=b"x" * 1_001)).status_code == 413
        assert (await client.put(f"{KB}/documents/a.md", content=chunked())).status_code == 413
        files = [("files", ("a.md", b"x" * 1_001))]
        assert (await client.post(f"{KB}/documents", files=files)).status_code == 413
        assert (await client.get(f"{KB}/documents/a.md")).status_code == 404


@pytest.mark.parametrize(
    ("method", "path", "arguments", "status"),
    [
        ("POST", "documents", {"data": {"metadata": "{}"}}, 422),
        ("POST", "documents", {"content": b"x"}, 422),
        ("POST", "documents", {"files": [("files", ("a.md", b"x"))], "data": {"metadata": "[1]"}}, 422),
        ("PUT", "documents/a.md?metadata=%7B", {"content": b"x"}, 422),
        ("PUT", "documents/a.md?metadata=%7B%22a%22%3A%7B%7D%7D", {"content": b"x"}, 422),
        ("PUT", "documents/a.png", {"content": b"\x89PNG\0"}, 422),
        ("POST", "texts", {"json": {"text": "x", "id": ""}}, 422),
        ("POST", "texts", {"json": {"text": "x", "url": "http://localhost/"}}, 422),
        ("GET", "documents?k=0", {}, 422),
        ("GET", "documents?order=date", {}, 422),
        ("GET", "documents?order=title&cursor=x", {}, 422),
        ("GET", "jobs/none", {}, 404),
        ("GET", "jobs/none/events", {}, 404),
        ("POST", "documents/retry", {"json": {"documents": ["none"]}}, 404),
        ("DELETE", "documents/none", {}, 404),
    ],
)
async def test_a_wrong_request_changes_nothing(
    client: httpx.AsyncClient, method: str, path: str, arguments: dict[str, Any], status: int
) -> None:
    reply = await client.request(method, f"{KB}/{path}", **arguments)
    assert reply.status_code == status, reply.text
    assert reply.json()["detail"]
    assert (await client.get(f"{KB}/status")).json()["n_documents"] == 1


async def test_documents_are_listed_page_by_page(client: httpx.AsyncClient) -> None:
    for name in "abc":
        await client.post(f"{KB}/texts", json={"text": f"Text {name}.", "id": name})
    page = (await client.get(f"{KB}/documents?k=2")).json()
    assert [document["id"] for document in page["documents"]] == ["a", "b"]
    rest = (await client.get(f"{KB}/documents", params={"k": 2, "cursor": page["cursor"]})).json()
    assert [document["id"] for document in rest["documents"]] == ["c", "letters/1.md"]
    ready = (await client.get(f"{KB}/documents?status=ready&status=partial&prefix=letters")).json()
    assert [document["id"] for document in ready["documents"]] == ["letters/1.md"]


async def test_what_a_removal_takes_is_shown_before(client: httpx.AsyncClient) -> None:
    await finished(
        client, (await client.post(f"{KB}/texts", json={"text": "Ada met Ada King.", "id": "b"})).json()["job"]
    )
    preview = (await client.get(f"{KB}/removal?document=letters/1.md&k=2")).json()
    assert (preview["documents"], preview["n_chunks"]) == (["letters/1.md"], 1)
    assert preview["n_entities"] > len(preview["entities"]) == 2
    both = (await client.get(f"{KB}/removal?document=letters/1.md&document=b")).json()
    n_before = (await client.get(f"{KB}/status")).json()["n_entities"]
    assert both["n_entities"] == n_before
    await client.delete(f"{KB}/documents/letters/1.md")
    assert (await client.get(f"{KB}/status")).json()["n_entities"] == n_before - preview["n_entities"]
    assert (await client.get(f"{KB}/removal?document=letters/1.md")).status_code == 404
    assert (await client.get(f"{KB}/removal")).status_code == 422


async def test_chunks_of_a_document_are_listed_page_by_page(client: httpx.AsyncClient) -> None:
    text = "\n\n".join(f"# Part {n}\n\n" + f"Ada wrote letter {n} to Babbage. " * 60 for n in range(5))
    await finished(client, (await client.post(f"{KB}/texts", json={"text": text, "id": "long"})).json()["job"])
    chunks = (await client.get(f"{KB}/documents/long")).json()["chunks"]
    pages, cursor = list[Any](), ""
    while cursor or not pages:
        page = (await client.get(f"{KB}/chunks", params={"document": "long", "k": 2, "cursor": cursor})).json()
        assert page["n_total"] == len(chunks) > 2
        pages, cursor = pages + page["chunks"], page["cursor"]
    assert pages == chunks
    assert (await client.get(f"{KB}/chunks?document=long&cursor=99")).json()["chunks"] == []
    assert (await client.get(f"{KB}/chunks?document=long&cursor=x")).status_code == 422
    assert (await client.get(f"{KB}/chunks?document=none")).status_code == 404


async def test_jobs_are_listed_page_by_page(client: httpx.AsyncClient) -> None:
    ids = [(await client.post(f"{KB}/refresh", json={})).json()["id"] for _ in range(3)]
    first = (await client.get(f"{KB}/jobs?k=2")).json()
    assert [job["id"] for job in first["jobs"]] == [ids[2], ids[1]]
    rest = (await client.get(f"{KB}/jobs", params={"k": 2, "cursor": first["cursor"]})).json()
    assert ([job["id"] for job in rest["jobs"]], rest["cursor"]) == ([ids[0]], "")
    assert (await client.get(f"{KB}/jobs?cursor=none")).status_code == 404


async def test_a_client_that_comes_back_gets_no_state_twice(client: httpx.AsyncClient) -> None:
    job = (await client.post(f"{KB}/texts", json={"text": "One.", "id": "one"})).json()["job"]
    await finished(client, job)
    events = (await client.get(f"{KB}/jobs/{job['id']}/events")).text
    last = events.partition("id: ")[2].partition("\n")[0]
    again = await client.get(f"{KB}/jobs/{job['id']}/events", headers={"last-event-id": last})
    assert again.text == ""


async def test_work_that_another_server_left_continues_at_the_start(index: Path) -> None:
    async with quipu.open(index) as kb:
        await kb.enqueue(quipu.SourceDocument(id="left.md", content=b"Ada left this."))
    server = ServerComponents.of(Workspaces(index=index))
    app = make_app(server)
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            status = ""
            while status != "ready":  # each look gives the work a turn
                status = (await client.get(f"{KB}/documents/left.md")).json()["document"]["status"]


async def test_a_job_that_a_model_stops_says_why(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def unavailable(*_: object) -> None:
        raise quipu.Unavailable("The model is away.", remedy="Start it.")

    monkeypatch.setattr("quipu.engine.Quipu.resume", unavailable)
    async with http_client(ServerComponents.of(Workspaces(index=index))) as client:
        job = (await client.post(f"{KB}/texts", json={"text": "One.", "id": "one"})).json()["job"]
        state = await finished(client, job)
        assert (state["status"], state["stopped"]) == ("stopped", "The model is away. Start it.")
        assert state["documents"] == {"queued": 1}
        cancelled = (await client.post(f"{KB}/jobs/{job['id']}/cancel")).json()
        assert cancelled["documents"] == {}


async def test_derivations_are_refreshed_by_a_job(client: httpx.AsyncClient) -> None:
    job = (await client.post(f"{KB}/refresh", json={"names": ["sentences"]})).json()
    assert (await finished(client, job))["status"] == "finished"
    status = (await client.get(f"{KB}/status")).json()
    assert {state["name"]: state["freshness"] for state in status["derivations"]}["sentences"] == "fresh"
    unknown = (await client.post(f"{KB}/refresh", json={"names": ["nothing"]})).json()
    assert "nothing" in (await finished(client, unknown))["stopped"]


async def test_a_silent_stream_is_kept_open_by_heartbeats() -> None:
    async def slow() -> Any:
        await asyncio.sleep(0.05)
        yield b"piece"

    pieces = [piece async for piece in with_heartbeat(slow(), b"beat", 0.01)]
    assert pieces[0] == b"beat"
    assert pieces[-1] == b"piece"


async def test_of_many_requests_with_one_idempotency_key_one_is_done(client: httpx.AsyncClient) -> None:
    async def add() -> httpx.Response:
        return await client.post(f"{KB}/texts", json={"text": "One.", "id": "one"}, headers={"idempotency-key": "k"})

    replies = await asyncio.gather(*(add() for _ in range(4)))
    done = {reply.json()["job"]["id"] for reply in replies if reply.status_code == 202}
    assert len(done) == 1
    assert {reply.status_code for reply in replies} <= {202, 409}
    assert len((await client.get(f"{KB}/jobs")).json()["jobs"]) == 1


async def test_a_request_that_failed_leaves_its_idempotency_key_free(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def busy(*_: object) -> None:
        raise quipu.Busy("Another process writes.")

    headers = {"idempotency-key": "k"}
    with monkeypatch.context() as patch:
        patch.setattr("quipu.engine.Quipu.enqueue", busy)
        assert (await client.post(f"{KB}/texts", json={"text": "One."}, headers=headers)).status_code == 503
    assert (await client.post(f"{KB}/texts", json={"text": "One."}, headers=headers)).status_code == 202


async def test_a_key_stays_reserved_while_its_request_is_worked_on(
    client: httpx.AsyncClient, server: ServerComponents, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = await server.workspaces.state("default")
    monkeypatch.setattr("quipu.server.operations._RENEW_S", 0)
    enqueue = quipu.Quipu.enqueue

    async def slow(kb: quipu.Quipu, *sources: Any) -> Any:
        reserved = await asyncio.to_thread(state.reply, "local k")
        async with asyncio.timeout(30):
            while await asyncio.to_thread(state.reply, "local k") == reserved:
                pass
        return await enqueue(kb, *sources)

    monkeypatch.setattr("quipu.engine.Quipu.enqueue", slow)
    reply = await client.post(f"{KB}/texts", json={"text": "One."}, headers={"idempotency-key": "k"})
    assert reply.status_code == 202
    stored = state.reply("local k")
    assert stored is not None
    assert stored.status == 202


async def test_documents_chunks_and_graph_are_shown_as_of_a_date(client: httpx.AsyncClient) -> None:
    for name, year, text in (("old", 2018, "Alice Kober wrote to Emmett Bennett."), ("new", 2022, "Eve met Bo Smith.")):
        body = {"text": text, "id": name, "metadata": {"date": f"{year}-01-01"}}
        await finished(client, (await client.post(f"{KB}/texts", json=body)).json()["job"])
    listed = (await client.get(f"{KB}/documents?as_of=2019&k=10&status=ready")).json()["documents"]
    assert "old" in [document["id"] for document in listed]
    assert "new" not in [document["id"] for document in listed]
    assert (await client.get(f"{KB}/chunks?document=old&as_of=2019")).json()["n_total"] == 1
    as_json = {"accept": "application/json"}
    for path in (
        "chunks?document=new",
        "subgraph?name=Bo Smith",
        "paths?first=Bo Smith&second=Bo Smith",
        "graph/map/near?name=Bo Smith",
    ):
        assert (await client.get(f"{KB}/{path}", headers=as_json)).status_code == 200
        assert (await client.get(f"{KB}/{path}&as_of=2019", headers=as_json)).status_code == 404
        assert (await client.get(f"{KB}/{path}&as_of=yesterday")).status_code == 422
    n_entities = [
        (await client.get(f"{KB}/graph/map/middle{date}", headers=as_json)).json()["n_entities"]
        for date in ("", "?as_of=2019", "")
    ]
    assert n_entities[0] == n_entities[2] > n_entities[1] > 0


async def test_a_job_has_not_finished_while_another_process_reads_its_documents(
    index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other process holds the document for two calls of resume, and gives it back."""
    resume = quipu.Quipu.resume
    n_calls = 0

    async def held_at_first(kb: quipu.Quipu, *arguments: Any) -> Any:
        nonlocal n_calls
        n_calls += 1
        return quipu.AddResult() if n_calls < 3 else await resume(kb, *arguments)

    monkeypatch.setattr("quipu.engine.Quipu.resume", held_at_first)
    monkeypatch.setattr("quipu.server.job_runners._POLL_S", 0)
    async with http_client(ServerComponents.of(Workspaces(index=index))) as client:
        job = (await client.post(f"{KB}/texts", json={"text": "One.", "id": "one"})).json()["job"]
        state = await finished(client, job)
    assert (state["status"], state["documents"]) == ("finished", {"ready": 1})


async def test_a_refresh_that_is_cancelled_ends_and_others_go_on(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    began, calls = asyncio.Event(), list[list[str]]()

    async def endless(_: quipu.Quipu, names: Any, **__: Any) -> Any:
        calls.append(list(names))
        if "reports" in names:
            began.set()
            await asyncio.Event().wait()
        return quipu.RefreshResult()

    monkeypatch.setattr("quipu.engine.Quipu.refresh", endless)
    monkeypatch.setattr("quipu.server.job_runners._POLL_S", 0.001)
    async with http_client(ServerComponents.of(Workspaces(index=index))) as client:
        reports, names = [
            (await client.post(f"{KB}/refresh", json={"names": [name]})).json() for name in ("reports", "names")
        ]
        await began.wait()
        cancelled = (await client.post(f"{KB}/jobs/{reports['id']}/cancel")).json()
        assert (cancelled["status"], cancelled["stopped"]) == ("cancelled", "It was cancelled.")
        assert (await finished(client, names))["status"] == "finished"
        assert (await finished(client, reports))["status"] == "cancelled"
        assert calls[-1] == ["names"]
        again = (await client.post(f"{KB}/jobs/{names['id']}/cancel")).json()
        assert again["status"] == "finished"


async def test_a_job_that_works_through_the_queue_of_others_cannot_be_cancelled(client: httpx.AsyncClient) -> None:
    job = (await client.post(f"{KB}/resume")).json()
    assert (await client.post(f"{KB}/jobs/{job['id']}/cancel")).status_code == 422
    await finished(client, job)


@pytest.mark.parametrize(
    ("path", "body", "other"),
    [
        ("refresh", {"names": ["names"]}, {}),
        ("documents/retry", {"documents": ["letters/1.md"]}, {}),
        ("resume", None, None),
    ],
)
async def test_a_job_with_an_idempotency_key_begins_once(
    client: httpx.AsyncClient, path: str, body: object, other: object
) -> None:
    headers = {"idempotency-key": "k"}
    first = await client.post(f"{KB}/{path}", json=body, headers=headers)
    again = await client.post(f"{KB}/{path}", json=body, headers=headers)
    assert (first.status_code, again.json()) == (202, first.json())
    assert again.headers["idempotent-replayed"] == "true"
    changed = await client.post(f"{KB}/texts", json={"text": "One."}, headers=headers)
    assert changed.status_code == 422
    if other is not None:
        assert (await client.post(f"{KB}/{path}", json=other, headers=headers)).status_code == 422
    assert len((await client.get(f"{KB}/jobs")).json()["jobs"]) == 1
    await finished(client, first.json())


@pytest.mark.parametrize(
    "content_type", ["multipart/form-data", "multipart/form-data; boundary", "multipart/form-data; boundary="]
)
async def test_an_upload_without_a_boundary_is_refused(client: httpx.AsyncClient, content_type: str) -> None:
    response = await client.post(f"{KB}/documents", content=b"x", headers={"content-type": content_type})
    assert response.status_code == 400
    assert "boundary" in response.json()["detail"]


PART = b'--x\r\nContent-Disposition: form-data; name="files"; filename="a.md"\r\n'


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"--x\r\n" * 10, "multipart"),
        (PART + b"X: y\r\n" * 10_000, "multipart"),
        ((PART + b"\r\nx\r\n") * 1_001 + b"--x--", "files"),
    ],
)
async def test_a_form_that_cannot_be_read_is_refused(client: httpx.AsyncClient, content: bytes, reason: str) -> None:
    headers = {"content-type": "multipart/form-data; boundary=x"}
    response = await client.post(f"{KB}/documents", content=content, headers=headers)
    assert response.status_code == 400, response.text
    assert reason in response.json()["detail"]
