"""Faults that servers of this kind had, each with the test that ours does not have it; then the OWASP API list of 2023.

| fault elsewhere | test |
|---|---|
| listens on all addresses without a key | `test_commands`: --host needs a key; `test_access` |
| default secrets, unsigned tokens, guest tokens | here: forged tokens |
| paths that need no key, health that tells models and folders | here: no exemptions |
| a header chooses the workspace, and an unknown one is created | here: the path alone |
| names that lead out of the folder, deletion of any file | here: names are ids |
| any site may read, keys can be guessed, raw exceptions | `test_access`: origins, wrong keys; here: errors |
| scripts in documents run in the page | here: originals and texts; `ui/tests/timed/document.test.mjs` |
| files of the same name replace or refuse each other | here: names with folders |
| absolute addresses break behind a proxy | here: relative; `ui/tests/frame.test.mjs` |
| reading documents stops answers | here: a question while a job waits for a model |
| the server fetches what a field names | here: no address is fetched |
| answers from a cache after a removal | here: an answer after a removal |

| OWASP API 2023 | test |
|---|---|
| 1 objects of others | `test_access`: a key for one workspace; `test_conversations` |
| 2 authentication | `test_access`: expired, revoked, wrong keys; here: forged tokens |
| 3 properties of objects | `test_contract`: unknown fields; `test_access`: questions of others |
| 4 consumption of resources | `test_app`, `test_documents`: size, time; `test_serving`: calls, headers, connections |
| 5 functions of others | `test_access`: every operation with every permission |
| 6 flows that cost | `test_app`: spending of a request |
| 7 requests to other servers | here: no address is fetched |
| 8 configuration | here: headers of every reply; `test_access`: Host, Origin |
| 9 inventory | `test_contract`: operations and their description |
| 10 services that lie | here: what a model server does wrong |
"""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import quipu
from quipu.server import ServerComponents, Workspaces
from quipu.server.access import KEYS_FILE, KeyFile, Permission
from quipu.server.app import OPERATIONS
from quipu.testing.scripted.script import Fault, FaultName, RequestKind, Script
from quipu.testing.server import serving
from tests.unit.server.conftest import LETTER, http_client

KB = "/api/v1/workspaces/default"
QUESTION = {"question": "Whom did Ada Lovelace write to?"}


@pytest.fixture
async def index(tmp_path: Path) -> Path:
    async with quipu.open(tmp_path / "kb") as kb:
        await kb.add_text(LETTER, id="letters/1.md")
    return tmp_path / "kb"


@pytest.fixture
async def client(index: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with http_client(ServerComponents.of(Workspaces(index=index))) as client:
        yield client


async def finished(client: httpx.AsyncClient, reply: httpx.Response) -> dict[str, Any]:
    """Return the job of a reply when it has ended."""
    assert reply.status_code == 202, reply.text
    job = reply.json()["job"]["id"]
    await client.get(f"{KB}/jobs/{job}/events")  # ends with the job
    state: dict[str, Any] = (await client.get(f"{KB}/jobs/{job}")).json()
    return state


def _token(claims: dict[str, str], algorithm: str) -> str:
    parts = ({"alg": algorithm, "typ": "JWT"}, claims)
    return ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts) + "."


@pytest.mark.parametrize(
    "forged",
    [_token({"sub": "admin"}, "none"), _token({"sub": "guest", "role": "guest"}, "HS256"), "", "quipu__", "null"],
)
async def test_forged_tokens_open_nothing(index: Path, client: httpx.AsyncClient, forged: str) -> None:
    KeyFile(index / KEYS_FILE).create("a", Permission.READ)
    for headers in ({"authorization": f"Bearer {forged}"}, {"cookie": f"quipu_key={forged}"}, {"x-api-key": forged}):
        assert (await client.get(f"{KB}/status", headers=headers)).status_code == 401


async def test_only_what_says_nothing_needs_no_key(index: Path, client: httpx.AsyncClient) -> None:
    KeyFile(index / KEYS_FILE).create("a", Permission.READ)
    silent = {
        ("GET", "/"),
        ("GET", "/health"),
        ("GET", "/ready"),
        ("POST", "/api/v1/session"),
        ("DELETE", "/api/v1/session"),
    }
    assert {(part.method, part.path) for part in OPERATIONS if part.permission is None} == silent
    assert (await client.get("/health")).json() == {"status": "ok"}
    for path in ("/mcp", "/api/tags", "/api/version", "/v1/models", "/metrics"):
        assert (await client.get(path)).status_code == 401, path


async def test_the_path_alone_chooses_the_workspace(tmp_path: Path) -> None:
    workspaces = Workspaces(root=tmp_path)
    await workspaces.create("letters")
    async with http_client(ServerComponents.of(workspaces)) as client:
        for name in ("Workspace", "LIGHTRAG-WORKSPACE", "X-Workspace", "X-Forwarded-Workspace"):
            reply = await client.get("/api/v1/workspaces/other/status", headers={name: "letters"})
            assert reply.status_code == 404
        assert workspaces.names() == ["letters"]


@pytest.mark.parametrize(
    "name", ["../../outside.md", "/etc/passwd.md", "..\\..\\outside.md", "C:\\outside.md", "a/../../b.md"]
)
async def test_a_name_is_an_id_and_leads_to_no_file(index: Path, client: httpx.AsyncClient, name: str) -> None:
    secret = index.parent / "outside.md"
    secret.write_text("secret", encoding="utf-8")
    before = {path for path in index.parent.rglob("*") if "index" not in path.name}
    await finished(client, await client.post(f"{KB}/documents", files={"files": (name, b"Some text.")}))
    ids = [document["id"] for document in (await client.get(f"{KB}/documents")).json()["documents"]]
    assert not any(id_.startswith(("/", "..")) or "\\" in id_ or ":" in id_ for id_ in ids)
    for path in ("../outside.md", "%2e%2e/outside.md", str(secret), f"%2F{secret}"):
        assert (await client.delete(f"{KB}/documents/{path}")).status_code in (404, 405)
        assert "secret" not in (await client.get(f"{KB}/originals/{path}")).text
    assert secret.read_text(encoding="utf-8") == "secret"
    assert {path for path in index.parent.rglob("*") if "index" not in path.name} >= before


async def test_an_error_that_nobody_expected_shows_only_its_id(
    client: httpx.AsyncClient, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise RuntimeError(f"cannot open {index}/secret with key sk-12345")

    monkeypatch.setattr("quipu.engine.Quipu.query", fail)
    reply = await client.post(f"{KB}/query", json=QUESTION)
    assert reply.status_code == 500
    assert not any(word in reply.text for word in (str(index), "sk-12345", "RuntimeError", "Traceback"))
    assert reply.json()["request_id"] == reply.headers["x-request-id"]


async def test_scripts_in_a_document_reach_no_browser_as_a_page(client: httpx.AsyncClient) -> None:
    page = b"<html><script>alert(1)</script><p>Ada Lovelace wrote a page.</p></html>"
    await finished(client, await client.put(f"{KB}/documents/page.html", content=page))
    original = await client.get(f"{KB}/originals/page.html")
    assert original.content == page
    assert original.headers["content-disposition"].startswith("attachment")
    assert original.headers["content-type"] == "application/octet-stream"
    text = await client.get(f"{KB}/texts/page.html")
    assert text.headers["content-type"] == "text/plain; charset=utf-8"
    for reply in (
        original,
        text,
        await client.get("/", headers={"accept": "text/html"}),
        await client.get(f"{KB}/none"),
    ):
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'self'" in reply.headers["content-security-policy"]
        assert reply.headers["x-frame-options"] == "DENY"
        assert "access-control-allow-origin" not in reply.headers


async def test_files_of_one_name_are_kept_apart_and_the_same_file_again_is_an_update(client: httpx.AsyncClient) -> None:
    files = [("files", (f"{folder}/notes.md", f"Notes of {folder}.".encode())) for folder in ("a", "b")]
    await finished(client, await client.post(f"{KB}/documents", files=files))
    again = await client.post(f"{KB}/documents", files=[files[0], ("files", ("b/notes.md", b"Other notes."))])
    assert (again.json()["unchanged"], again.json()["updated"]) == (["a/notes.md"], ["b/notes.md"])
    await finished(client, again)
    assert (await client.get(f"{KB}/texts/a/notes.md")).text.strip() == "Notes of a."
    assert (await client.get(f"{KB}/texts/b/notes.md")).text.strip() == "Other notes."


async def test_no_reply_holds_an_absolute_address_of_the_server(client: httpx.AsyncClient) -> None:
    for path in ("/api/v1/openapi.json", f"{KB}/status", f"{KB}/documents", "/api/v1/workspaces", f"{KB}/entities"):
        assert "http://localhost" not in (await client.get(path)).text


async def test_no_address_in_a_field_is_fetched(client: httpx.AsyncClient) -> None:
    asked: list[bytes] = []

    async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.read(100))
        writer.close()

    listener = await asyncio.start_server(note, "127.0.0.1", 0)
    async with listener:
        url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/x.md"
        text = f"See {url} and ![picture]({url}) and <img src='{url}'>."
        await finished(client, await client.post(f"{KB}/texts", json={"text": text, "id": url, "title": url}))
        await finished(client, await client.put(f"{KB}/documents/page.html", content=text.encode()))
        await client.put(f"{KB}/documents/x.md", params={"metadata": json.dumps({"source": url})}, content=b"x")
        await client.post(f"{KB}/query", json=QUESTION | {"user_prompt": url})
        refused = await client.post(f"{KB}/texts", json={"text": "x", "url": url})
    assert refused.status_code == 422
    assert asked == []


async def test_an_answer_does_not_outlive_its_document(client: httpx.AsyncClient) -> None:
    assert "Babbage" in (await client.post(f"{KB}/query", json=QUESTION)).json()["text"]
    assert (await client.delete(f"{KB}/documents/letters/1.md")).status_code == 200
    after = (await client.post(f"{KB}/query", json=QUESTION)).text
    assert "Charles Babbage" not in after


async def test_a_question_is_answered_while_a_job_waits_for_its_model(
    index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = Fault(name=FaultName.TIMEOUT, kinds=(RequestKind.EXTRACT,))
    with serving(Script(faults=(waits,))) as model:
        monkeypatch.setenv("QUIPU_LLM", "custom/test")
        monkeypatch.setenv("QUIPU_LLM_BASE_URL", model.base_url)
        async with http_client(ServerComponents.of(Workspaces(index=index))) as client:
            reply = await client.put(f"{KB}/documents/new.md", content=b"Alan Turing wrote a paper in 1936.")
            assert reply.status_code == 202
            evidence = await client.post(
                f"{KB}/evidence", json=QUESTION | {"rewrite_question": False, "strategy": "lexical"}
            )
            assert evidence.status_code == 200
            assert evidence.json()["chunks"]
            job = (await client.get(f"{KB}/jobs/{reply.json()['job']['id']}")).json()
            assert job["status"] != "finished"


@pytest.mark.parametrize(
    "fault", [FaultName.NOT_JSON, FaultName.RESET, FaultName.RESET_MIDWAY, FaultName.EMPTY, FaultName.STALL]
)
async def test_a_model_server_that_fails_costs_an_answer_of_the_model_and_nothing_else(
    index: Path, monkeypatch: pytest.MonkeyPatch, fault: FaultName
) -> None:
    faults = (Fault(name=fault, kinds=(RequestKind.ANSWER,)),)
    with serving(Script(faults=faults)) as model:
        monkeypatch.setenv("QUIPU_LLM", "custom/test")
        monkeypatch.setenv("QUIPU_LLM_BASE_URL", model.base_url)
        monkeypatch.setenv("QUIPU_LLM_TIMEOUT_S", "1")
        async with http_client(ServerComponents.of(Workspaces(index=index))) as client:
            answer = await client.post(f"{KB}/query", json=QUESTION, timeout=60)
            assert answer.status_code == 200
            assert answer.json()["text"]  # quoted, or as far as the model came
            assert answer.json()["notes"]
            assert model.base_url not in answer.text
            assert (await client.get("/health")).status_code == 200
