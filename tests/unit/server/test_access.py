"""Who may call: keys, what they allow, cookies, other sites, and too many calls."""

import asyncio
import os
import re
import stat
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from quipu.errors import Corrupt, InvalidInput, NotFound
from quipu.model.usage import Stage, UsageRow
from quipu.server import ServerComponents, ServerOptions, Workspaces
from quipu.server.access import KEYS_FILE, KeyFile, Permission, RateLimit
from quipu.server.app import OPERATIONS
from quipu.server.operations import Operation
from quipu.server.wire import RequestRefused
from tests.unit.server.conftest import http_client

KB = "/api/v1/workspaces/default"
Authorize = Callable[..., dict[str, str]]


@pytest.fixture
def authorize(index: Path) -> Authorize:
    """Return what creates a key and returns the header that sends it."""
    keys = KeyFile(index / KEYS_FILE)

    def header(permission: str = "read", workspaces: tuple[str, ...] = (), expires: str = "") -> dict[str, str]:
        return {"authorization": f"Bearer {keys.create('test', Permission(permission), workspaces, expires).text}"}

    return header


@asynccontextmanager
async def client_of_one_of_two(root: Path) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client of a server of the workspaces a and b, whose key opens only a."""
    key = KeyFile(root / KEYS_FILE).create("a", Permission.ADMIN, ("a",)).text
    workspaces = Workspaces(root=root)
    for name in ("a", "b"):
        await workspaces.create(name)
    async with http_client(ServerComponents.of(workspaces)) as client:
        client.headers["authorization"] = f"Bearer {key}"
        yield client


def example_path(operation: Operation, workspace: str) -> str:
    """Return a path of an operation, in which each part but the workspace is its own name."""
    return re.sub(r"\{(\w+)(?::path)?\}", r"\1", operation.path.replace("{workspace}", workspace))


async def test_without_keys_this_machine_may_do_everything(client: httpx.AsyncClient) -> None:
    assert (await client.delete(f"{KB}/documents/letters/1.md")).status_code == 200


@pytest.mark.parametrize(
    "authorization", ["", "Bearer ", "Bearer x", "Bearer quipu_00000000_x", "Basic eDp4", "Bearer \u00fc"]
)
async def test_as_soon_as_there_is_a_key_every_request_needs_one(
    client: httpx.AsyncClient, authorize: Authorize, authorization: str
) -> None:
    header = authorize()
    refused = await client.get(f"{KB}/status", headers={b"authorization": authorization.encode("latin-1")})
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"] == "Bearer"
    assert (await client.get(f"{KB}/status", headers=header)).status_code == 200
    assert (await client.get("/health")).status_code == 200


async def test_a_server_that_had_keys_does_not_open_when_they_are_gone(
    client: httpx.AsyncClient, authorize: Authorize, index: Path
) -> None:
    authorize()
    assert (await client.get(f"{KB}/status")).status_code == 401
    (index / KEYS_FILE).unlink()
    assert (await client.get(f"{KB}/status")).status_code == 401


async def test_a_server_on_the_network_never_opens_without_a_key(index: Path) -> None:
    options = ServerOptions(host="0.0.0.0", hosts=("localhost",))
    async with http_client(ServerComponents.of(Workspaces(index=index), options)) as client:
        assert (await client.get(f"{KB}/status")).status_code == 401


@pytest.mark.parametrize("held", list(Permission))
async def test_an_operation_answers_only_keys_with_its_permission(
    client: httpx.AsyncClient, authorize: Authorize, held: Permission
) -> None:
    """Every operation is called with every permission; only what is refused before it runs is looked at."""
    header = authorize(held.value)
    for operation in OPERATIONS:
        if operation.permission is None or held.includes(operation.permission):
            continue
        response = await client.request(operation.method, example_path(operation, "default"), headers=header)
        assert response.status_code == 403, operation.path
        assert operation.permission.value in response.json()["detail"]


async def test_a_key_for_one_workspace_sees_no_other(tmp_path: Path) -> None:
    async with client_of_one_of_two(tmp_path) as client:
        assert (await client.get("/api/v1/workspaces")).json() == [{"name": "a"}]
        assert (await client.post("/api/v1/workspaces", json={"name": "c"})).status_code == 404
        for operation in OPERATIONS:
            if "{workspace}" in operation.path:
                foreign = await client.request(operation.method, example_path(operation, "b"))
                missing = await client.request(operation.method, example_path(operation, "none"))
                assert foreign.status_code == missing.status_code == 404, operation.path
        assert (await client.get("/api/v1/workspaces/a/status")).status_code == 200


async def test_an_expired_and_a_revoked_key_are_refused(
    client: httpx.AsyncClient, authorize: Authorize, index: Path
) -> None:
    assert (await client.get(f"{KB}/status", headers=authorize(expires="2020-01-01"))).status_code == 401
    header = authorize()
    assert (await client.get(f"{KB}/status", headers=header)).status_code == 200
    KeyFile(index / KEYS_FILE).revoke(header["authorization"].split("_")[1])
    assert (await client.get(f"{KB}/status", headers=header)).status_code == 401


async def test_a_browser_gets_a_cookie_that_no_script_can_read(client: httpx.AsyncClient, authorize: Authorize) -> None:
    key = authorize("write")["authorization"].removeprefix("Bearer ")
    assert (await client.post("/api/v1/session", json={"key": "wrong"})).status_code == 401
    opened = await client.post("/api/v1/session", json={"key": key})
    assert "HttpOnly" in opened.headers["set-cookie"]
    assert "SameSite=strict" in opened.headers["set-cookie"]
    assert (await client.get("/api/v1/session")).json()["permission"] == "write"
    await client.delete("/api/v1/session")
    assert (await client.get("/api/v1/session")).status_code == 401


@pytest.mark.parametrize(
    "headers", [{"origin": "https://attacker.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}]
)
async def test_a_page_of_another_site_cannot_change_anything(
    client: httpx.AsyncClient, headers: dict[str, str]
) -> None:
    assert (await client.delete(f"{KB}/documents/letters/1.md", headers=headers)).status_code == 403
    own = {"origin": "http://localhost", "sec-fetch-site": "same-origin"}
    assert (await client.delete(f"{KB}/documents/letters/1.md", headers=own)).status_code == 200


async def test_no_other_site_may_read_replies(client: httpx.AsyncClient) -> None:
    response = await client.get("/api/v1/workspaces", headers={"origin": "https://attacker.example"})
    assert not [name for name in response.headers if name.startswith("access-control")]


async def test_wrong_keys_are_counted_and_slowed_down(index: Path) -> None:
    KeyFile(index / KEYS_FILE).create("a", Permission.READ)
    server = ServerComponents.of(Workspaces(index=index), ServerOptions(failures_per_minute=10))
    async with http_client(server) as client:
        codes = [(await client.get(f"{KB}/status", headers={"authorization": "Bearer x"})).status_code for _ in "123"]
    assert codes == [401, 429, 429]


def test_a_bucket_refills_with_time() -> None:
    time_s = 0.0
    limit = RateLimit(60, now=lambda: time_s)
    for _ in range(6):
        limit.check("a")
    with pytest.raises(RequestRefused, match="60 calls a minute") as refused:
        limit.check("a")
    limit.check("b")
    assert refused.value.headers["retry-after"] == "1"
    time_s = 1.0
    limit.check("a")
    with pytest.raises(RequestRefused):
        limit.check("a")


def test_a_key_is_stored_as_its_digest_for_its_owner_alone(tmp_path: Path) -> None:
    file = KeyFile(tmp_path / "keys.json")
    new = file.create("a", Permission.READ)
    text = (tmp_path / "keys.json").read_text(encoding="utf-8")
    assert new.text.split("_", 2)[2] not in text
    assert new.key.digest in text
    assert file.holder(new.text) == new.key
    if sys.platform != "win32":
        assert stat.S_IMODE((tmp_path / "keys.json").stat().st_mode) == 0o600


def test_a_key_file_of_another_kind_is_named(tmp_path: Path) -> None:
    (tmp_path / "keys.json").write_text("{}", encoding="utf-8")
    with pytest.raises(Corrupt, match=r"keys\.json"):
        KeyFile(tmp_path / "keys.json").keys()


def test_wrong_words_for_a_key_are_refused(tmp_path: Path) -> None:
    file = KeyFile(tmp_path / "keys.json", now=lambda: datetime(2026, 1, 1, tzinfo=UTC))
    with pytest.raises(InvalidInput, match="tomorrow"):
        file.create("a", Permission.READ, expires="tomorrow")
    with pytest.raises(NotFound, match="abc"):
        file.revoke("abc")
    assert os.listdir(tmp_path) == []  # noqa: PTH208


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", {"model": "{}/quipu", "messages": [{"role": "user", "content": "Who?"}]}),
        ("/v1/responses", {"model": "{}/quipu", "input": "Who?"}),
        ("/v1/embeddings", {"model": "{}/quipu", "input": "Who?"}),
        ("/api/chat", {"model": "{}/quipu", "messages": [{"role": "user", "content": "Who?"}], "stream": False}),
        ("/api/generate", {"model": "{}/quipu", "prompt": "Who?", "stream": False}),
        ("/api/embed", {"model": "{}/quipu", "input": "Who?"}),
        ("/api/show", {"model": "{}/quipu"}),
    ],
)
async def test_a_model_name_leads_to_no_workspace_that_the_key_does_not_open(
    tmp_path: Path, path: str, body: dict[str, object]
) -> None:
    async with client_of_one_of_two(tmp_path) as client:
        replies = [
            await client.post(path, json={**body, "model": str(body["model"]).format(name)}) for name in ("b", "none")
        ]
        assert [reply.status_code for reply in replies] == [404, 404]
        assert replies[0].text.replace("b/quipu", "none/quipu").replace("'b'", "'none'") == replies[1].text
        own = await client.post(path, json={**body, "model": "a/quipu"})
        assert own.status_code == 200
        listed = (await client.get("/v1/models")).text + (await client.get("/api/tags")).text
        assert "a/quipu" in listed
        assert "b/quipu" not in listed


async def test_only_a_key_that_may_write_refreshes_derivations_for_a_question(
    client: httpx.AsyncClient, authorize: Authorize
) -> None:
    body = {"question": "Who?", "strategy": "linear", "auto_refresh": True}
    assert (await client.post(f"{KB}/query", json=body, headers=authorize("read"))).status_code == 403
    assert (await client.post(f"{KB}/query", json=body, headers=authorize("write"))).status_code == 200


async def test_questions_of_others_are_shown_to_an_admin_only(
    client: httpx.AsyncClient, authorize: Authorize, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def two_questions(*_: object) -> list[UsageRow]:
        row = UsageRow(day="2026-01-01", stage=Stage.ANSWER, model="m", n_calls=1)
        return [replace(row, subject=subject) for subject in ("secret one", "secret two")]

    monkeypatch.setattr("quipu.engine.Quipu.usage", two_questions)
    [row] = (await client.get(f"{KB}/usage", headers=authorize("write"))).json()
    assert (row["subject"], row["n_calls"]) == ("", 2)
    assert len((await client.get(f"{KB}/usage", headers=authorize("admin"))).json()) == 2
    assert len((await client.get(f"{KB}/usage?subjects=false", headers=authorize("admin"))).json()) == 1


async def test_metrics_of_a_key_name_no_workspace_that_it_does_not_open(tmp_path: Path) -> None:
    admin = KeyFile(tmp_path / KEYS_FILE).create("all", Permission.ADMIN).text
    async with client_of_one_of_two(tmp_path) as client:
        everything = (await client.get("/metrics", headers={"authorization": f"Bearer {admin}"})).text
        assert 'quipu_documents{workspace="a"}' in everything
        assert 'quipu_documents{workspace="b"}' in everything
        own = (await client.get("/metrics")).text
    assert 'quipu_documents{workspace="a"}' in own
    assert 'workspace="b"' not in own


async def test_two_keys_may_use_the_same_idempotency_key(client: httpx.AsyncClient, authorize: Authorize) -> None:
    """Otherwise a key could learn what another one sent, or take its Idempotency-Keys."""
    first, second = authorize("write"), authorize("write")
    for header, text in ((first, "One."), (second, "Two.")):
        headers = {**header, "idempotency-key": "1"}
        reply = await client.post(f"{KB}/texts", json={"text": text, "id": text}, headers=headers)
        assert reply.status_code == 202, reply.text
        assert "idempotent-replayed" not in reply.headers


async def test_one_key_cannot_keep_all_connections(index: Path, authorize: Authorize) -> None:
    server = ServerComponents.of(Workspaces(index=index), ServerOptions(max_open_requests=2))
    greedy, other = authorize(), authorize()
    has_begun, may_end = asyncio.Semaphore(0), asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        has_begun.release()
        yield b"{"
        await may_end.wait()
        yield b'"question": "Who wrote?"}'

    async with http_client(server) as client:
        headers = greedy | {"content-type": "application/json"}
        waiting = [asyncio.create_task(client.post(f"{KB}/query", content=body(), headers=headers)) for _ in range(2)]
        for _ in waiting:
            await has_begun.acquire()
        refused = await client.get(f"{KB}/status", headers=greedy)
        assert refused.status_code == 429
        assert "open at once" in refused.json()["detail"]
        assert (await client.get(f"{KB}/status", headers=other)).status_code == 200
        may_end.set()
        assert [reply.status_code for reply in await asyncio.gather(*waiting)] == [200, 200]
        assert (await client.get(f"{KB}/status", headers=greedy)).status_code == 200
