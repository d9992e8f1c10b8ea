"""What every route has: its contract in the OpenAPI document, clear errors, and protection."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import get_origin

import httpx
import pytest
from pydantic_core import to_json

import quipu
from quipu.model.evidence import Timing
from quipu.server import ServerComponents, ServerOptions, Workspaces, app
from quipu.server.app import OPERATIONS
from quipu.server.openapi import openapi_document
from quipu.server.wire import json_bytes
from tests.unit.server.conftest import http_client

KB = "/api/v1/workspaces/default"


async def test_a_question_is_answered_with_citations(client: httpx.AsyncClient) -> None:
    answer = (await client.post(f"{KB}/query", json={"question": "Whom did Ada Lovelace write to?"})).json()
    assert "Charles Babbage" in answer["text"]
    assert answer["citations"][0]["document_id"] == "letters/1.md"


async def test_a_stream_ends_with_the_answer_that_a_query_gives(client: httpx.AsyncClient) -> None:
    body = {"question": "Whom did Ada Lovelace write to?"}
    streamed = (await client.post(f"{KB}/query/stream", json=body)).text
    events = [part.partition("\n")[0] for part in streamed.strip().split("\n\n")]
    assert events[0] == "event: stage"
    assert events[-1] == "event: answer"
    assert (await client.post(f"{KB}/query", json=body)).json()["text"].split()[0] in streamed


async def test_an_error_in_a_stream_is_its_last_event(client: httpx.AsyncClient) -> None:
    streamed = (await client.post(f"{KB}/query/stream", json={"question": " "})).text
    assert streamed.startswith("event: problem\n")
    assert "The question is empty." in streamed


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"question": "x", "topk": 5}, "topk"),
        ({"question": "x", "top_k": "5"}, "top_k"),
        ({"question": "x", "top_k": 5_000}, "top_k"),
        ({"question": "x", "budget": {"totl": 5}}, "budget.totl"),
        ({"question": "x", "filter": {"where": [{"field": "a", "operator": "~"}]}}, "filter.where.0.operator"),
        ({}, "question"),
    ],
)
async def test_a_wrong_field_is_named(client: httpx.AsyncClient, body: object, field: str) -> None:
    response = await client.post(f"{KB}/query", json=body)
    assert response.status_code == 422
    assert response.headers["content-type"] == "application/problem+json"
    assert [error["field"] for error in response.json()["errors"]] == [field]


async def test_an_engine_error_keeps_its_remedy(client: httpx.AsyncClient) -> None:
    problem = (await client.post(f"{KB}/query", json={"question": "x", "strategy": "mixx"})).json()
    assert problem["type"] == "urn:quipu:invalid-input"
    assert "Did you mean 'mix'?" in problem["remedy"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nowhere", 404),
        ("PATCH", "/health", 405),
        ("GET", "/api/v1/workspaces/other/status", 404),
        ("GET", f"{KB}/documents/none", 404),
        ("GET", f"{KB}/search?text=a&k=0", 422),
        ("GET", f"{KB}/search?text=a&limit=3", 422),
        ("GET", f"{KB}/status?verbose=1", 422),
        ("POST", "/api/v1/workspaces", 415),
    ],
)
async def test_errors_are_problem_details(client: httpx.AsyncClient, method: str, path: str, status: int) -> None:
    response = await client.request(method, path)
    assert response.status_code == status
    problem = response.json()
    assert problem["status"] == status
    assert problem["detail"]
    assert problem["request_id"] == response.headers["x-request-id"]


async def test_a_body_that_is_no_json_is_refused(client: httpx.AsyncClient) -> None:
    response = await client.post(f"{KB}/query", content=b"{", headers={"content-type": "application/json"})
    assert response.status_code == 422


async def test_a_body_that_is_too_large_is_refused(client: httpx.AsyncClient) -> None:
    response = await client.post(f"{KB}/query", json={"question": "x" * (1 << 20)})
    assert response.status_code == 413


async def test_a_foreign_host_is_refused(client: httpx.AsyncClient) -> None:
    response = await client.get("/health", headers={"host": "attacker.example:8787"})
    assert response.status_code == 421
    assert response.headers["x-content-type-options"] == "nosniff"


async def test_a_document_whose_id_has_slashes_is_read_and_removed(client: httpx.AsyncClient) -> None:
    path = f"{KB}/documents/letters/1.md"
    assert (await client.get(path)).json()["document"]["id"] == "letters/1.md"
    assert (await client.delete(path)).json()["removed"] == ["letters/1.md"]
    assert (await client.get(path)).status_code == 404


async def test_an_entity_is_found_by_name(client: httpx.AsyncClient) -> None:
    entity = (await client.get(f"{KB}/entities/Ada Lovelace")).json()
    assert entity["entity"]["name"] == "Ada Lovelace"


async def test_every_operation_is_described_and_needs_a_permission() -> None:
    document = openapi_document(OPERATIONS, "1")
    described = {
        (method.upper(), path): entry
        for path, methods in document["paths"].items()
        for method, entry in methods.items()
    }
    assert set(described) == {(operation.method, operation.path.replace(":path}", "}")) for operation in OPERATIONS}
    assert all(entry["summary"] for entry in described.values())
    without_key = {key for key, entry in described.items() if "security" not in entry}
    session = "/api/v1/session"
    assert without_key == {("GET", "/"), ("GET", "/health"), ("GET", "/ready"), ("POST", session), ("DELETE", session)}


async def test_workspaces_are_created_listed_and_deleted(tmp_path: Path) -> None:
    async with http_client(ServerComponents.of(Workspaces(root=tmp_path))) as client:
        assert (await client.get("/api/v1/workspaces")).json() == []
        assert (await client.post("/api/v1/workspaces", json={"name": "letters"})).status_code == 201
        assert (await client.post("/api/v1/workspaces", json={"name": "letters"})).status_code == 422
        assert (await client.get("/api/v1/workspaces")).json() == [{"name": "letters"}]
        assert (await client.get("/api/v1/workspaces/letters/status")).json()["n_documents"] == 0
        assert (await client.delete("/api/v1/workspaces/letters")).status_code == 200
        assert (await client.get("/api/v1/workspaces/letters/status")).status_code == 404
    assert Workspaces(root=tmp_path).names() == []


@pytest.mark.parametrize("name", ["..", "a/b", "A", "", ".hidden", "x" * 65, "con fig"])
async def test_a_workspace_cannot_have_a_name_that_leads_elsewhere(tmp_path: Path, name: str) -> None:
    async with http_client(ServerComponents.of(Workspaces(root=tmp_path))) as client:
        assert (await client.post("/api/v1/workspaces", json={"name": name})).status_code == 422
    assert Workspaces(root=tmp_path).names() == []


async def test_metrics_count_requests_and_answers_without_their_words(client: httpx.AsyncClient) -> None:
    await client.post(f"{KB}/query", json={"question": "Whom did Ada Lovelace write to?"})
    await client.get(f"{KB}/documents/secret-name")
    metrics = (await client.get("/metrics")).text
    assert 'quipu_answers_total{generator="extractive",strategy="weave"} 1.0' in metrics
    assert 'quipu_request_seconds_count{operation="show_document",status="404"} 1.0' in metrics
    assert 'quipu_documents{workspace="default"} 1.0' in metrics
    assert 'quipu_questions_waiting{workspace="default"} 0.0' in metrics
    assert "Lovelace" not in metrics
    assert "secret-name" not in metrics


async def test_requests_are_logged_by_operation_without_their_words(
    client: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", logger="quipu.server"):
        await client.get(f"{KB}/search?text=secret", headers={"authorization": "Bearer secret-key"})
        await client.get(f"{KB}/documents/secret-name")
    assert [record.__dict__["operation"] for record in caplog.records] == ["search", "show_document"]
    assert not [record for record in caplog.records if "secret" in str(record.__dict__)]


async def test_no_reply_says_where_the_index_is(client: httpx.AsyncClient, index: Path) -> None:
    for path in ("status", "documents", "documents/letters/1.md", "usage", "entities/Ada Lovelace"):
        assert str(index.parent) not in (await client.get(f"{KB}/{path}")).text


async def test_an_error_of_the_engine_does_not_say_where_the_index_is(index: Path) -> None:
    workspaces = Workspaces(index=index / "deeper")
    (index / "deeper").write_text("no folder", encoding="utf-8")
    async with http_client(ServerComponents.of(workspaces)) as client:
        response = await client.get(f"{KB}/status")
        assert response.status_code >= 400
        assert str(index) not in response.text


async def test_an_error_nobody_raised_on_purpose_says_only_its_request(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(*_: object) -> None:
        raise RuntimeError("inside /srv/secret")

    monkeypatch.setattr("quipu.engine.Quipu.usage", fail)
    response = await client.get(f"{KB}/usage")
    assert response.status_code == 500
    assert "secret" not in response.text
    assert response.json()["request_id"] in caplog.text


async def test_a_request_spends_no_more_than_the_settings_allow(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUIPU_MAX_COST", "2")
    limits: list[object] = []

    async def note(*_: object, **options: object) -> None:
        limits.append(options["max_cost"])

    monkeypatch.setattr("quipu.engine.Quipu.retrieve", note)
    async with http_client(ServerComponents.of(Workspaces(index=index))) as client:
        for asked in ({"max_cost": 0.0}, {"max_cost": 5.0}, {"max_cost": 1.0}, {}):
            await client.post(f"{KB}/evidence", json={"question": "x", **asked})
    assert limits == [2.0, 2.0, 1.0, 2.0]


async def test_a_method_that_a_path_does_not_have_is_refused_with_those_it_has(client: httpx.AsyncClient) -> None:
    response = await client.put("/api/v1/session")
    assert (response.status_code, response.headers["allow"]) == (405, "DELETE, GET, HEAD, POST")
    assert (await client.put("/api/v1/nothing")).status_code == 404


async def test_strategies_come_with_their_options_which_a_question_takes(client: httpx.AsyncClient) -> None:
    listed = (await client.get("/api/v1/strategies")).json()
    mix = next(strategy for strategy in listed["strategies"] if strategy["name"] == "mix")
    for option in (*mix["options"], *listed["options"]):
        *groups, name = option["field"].split(".")
        value: object = {name: option["default"]}
        for group in reversed(groups):
            value = {group: value}
        asked = {"question": "Who was Alice Kober?", "strategy": "mix"} | value  # type: ignore[operator]
        response = await client.post(f"{KB}/evidence", json=asked)
        assert response.status_code == 200, (option, response.text)
    preset = next(option for option in listed["options"] if option["field"] == "preset")
    assert preset["choices"] == ["default", "faithful"]
    top_k = next(option for option in listed["options"] if option["field"] == "top_k")
    assert (top_k["minimum"], top_k["maximum"], top_k["default"]) == (1, 1000, 40)


@pytest.mark.parametrize("path", ["events", "dump", "export"])
async def test_the_headers_of_a_stream_can_be_asked_for_alone(client: httpx.AsyncClient, path: str) -> None:
    path = {"export": "graph/export"}.get(path, path)
    async with asyncio.timeout(30):
        response = await client.head(f"{KB}/{path}")
    assert (response.status_code, response.content) == (200, b"")
    assert response.headers["content-type"]


async def test_the_address_in_a_browser_says_what_answers(client: httpx.AsyncClient) -> None:
    response = await client.get("/")
    assert response.text.startswith("Quipu is running.")
    assert (await client.head("/")).status_code == 200  # as Ollama's command asks


async def test_a_body_that_comes_too_slowly_is_refused(index: Path) -> None:
    async def endless() -> AsyncIterator[bytes]:
        yield b'{"question": '
        await asyncio.Event().wait()

    server = ServerComponents.of(Workspaces(index=index), ServerOptions(body_s=0.01))
    async with http_client(server) as client:
        json_type = {"content-type": "application/json"}
        response = await client.post(f"{KB}/query", content=endless(), headers=json_type)
    assert response.status_code == 408


async def test_a_reply_that_is_not_ready_in_time_is_given_up(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    is_cancelled = False

    async def never(*_: object) -> None:
        nonlocal is_cancelled
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            is_cancelled = True
            raise

    monkeypatch.setattr("quipu.engine.Quipu.usage", never)
    server = ServerComponents.of(Workspaces(index=index), ServerOptions(reply_s=0.01))
    async with http_client(server) as client:
        assert (await client.get(f"{KB}/usage")).status_code == 504
    assert is_cancelled


WHOLE_LISTS = {
    "list_workspaces": "names alone, as many as there are folders",
    "list_settings": "a part of the program",
    "usage": "bounded by its days",
    "plan": "as many as there are derivations",
    "drop_derivation": "as many as there are derivations",
    "passages": "bounded by the options of the question",
    "show_paths": "bounded by k",
    "list_duplicates": "bounded by k",
}


def test_every_list_has_the_same_paging_fields() -> None:
    """`k` and `cursor` in the query; the reply is a page with the `cursor` of the next one."""
    whole = set()
    for operation in OPERATIONS:
        name, result = operation.function.__name__, operation.hints["return"]
        if get_origin(result) in (list, tuple):
            whole.add(name)
        parameters = operation.query_parameters.model_fields if operation.query_parameters else {}
        fields = getattr(result, "__dataclass_fields__", {})
        assert ("cursor" in parameters) == ("cursor" in fields), name
        if "cursor" in parameters:
            assert "k" in parameters, name
            assert result.__name__.endswith("Page"), name
    assert whole == set(WHOLE_LISTS)


async def _addresses(client: httpx.AsyncClient, path: str = "") -> dict[str, str]:
    """Return every address that the server writes."""
    body = {"model": "quipu", "messages": [{"role": "user", "content": "Whom did Ada Lovelace write to?"}]}
    chat = (await client.post(f"{path}/v1/chat/completions", json=body)).json()["choices"][0]["message"]
    ollama = (await client.post(f"{path}/api/chat", json={**body, "stream": False})).json()["message"]["content"]
    key = await client.post(f"{path}/api/v1/session", json={"key": "none"})
    return {
        "openai": chat["annotations"][0]["url_citation"]["url"],
        "ollama": ollama.rpartition("](")[2].partition(")")[0],
        "openapi": (await client.get(f"{path}/api/v1/openapi.json")).json()["servers"][0]["url"],
        "location": (await client.get(f"{path}/api/v1/version/")).headers["location"],
        "cookie": key.headers["set-cookie"].partition("Path=")[2].partition(";")[0],
    }


LINK = "#/workspaces/default/documents/letters%2F1.md?"


@pytest.mark.parametrize("is_stripped", [True, False], ids=["stripped", "as it came"])
@pytest.mark.parametrize("is_option", [True, False], ids=["option", "header"])
async def test_addresses_are_right_behind_a_proxy_under_a_sub_path(
    index: Path, is_stripped: bool, is_option: bool
) -> None:
    options = ServerOptions(prefix="/tools/quipu" if is_option else "", hosts=("kb.example.org",))
    async with http_client(ServerComponents.of(Workspaces(index=index), options)) as client:
        client.headers["host"] = "kb.example.org"
        if not is_option:
            client.headers["x-forwarded-prefix"] = "/tools/quipu/"
        addresses = await _addresses(client, "" if is_stripped else "/tools/quipu")
        assert (await client.get("/tools/quipu")).headers["location"] == "/tools/quipu/"
        assert (await client.get("/tools/quipu/")).status_code == 200
    base = "http://kb.example.org/tools/quipu/"
    assert addresses["openai"].startswith(base + LINK)
    assert addresses["ollama"].startswith(base + LINK)
    assert addresses["location"] == base + "api/v1/version"
    assert (addresses["openapi"], addresses["cookie"]) == ("/tools/quipu", "/tools/quipu/")


async def test_addresses_without_a_proxy_have_no_sub_path(client: httpx.AsyncClient) -> None:
    addresses = await _addresses(client)
    assert addresses["openai"].startswith("http://localhost/" + LINK)
    assert (addresses["openapi"], addresses["cookie"]) == ("/", "/")


@pytest.mark.parametrize(
    "prefix", ["//attacker.example", "/a b", "quipu", "/../x", "/api", "/v1/x", "/a?b", '/"onload', "/" + "x" * 99]
)
async def test_a_sub_path_that_is_none_is_ignored(client: httpx.AsyncClient, prefix: str) -> None:
    client.headers["x-forwarded-prefix"] = prefix
    assert (await client.get("/api/v1/openapi.json")).json()["servers"] == [{"url": "/"}]
    assert (await client.get("/api/v1/version")).status_code == 200


async def test_the_description_of_the_api_is_made_once(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It needs no key and takes long to make: a stranger could keep the server busy."""
    first = (await client.get("/api/v1/openapi.json")).json()

    def make(*_: object) -> None:
        raise AssertionError("made again")

    monkeypatch.setattr(app, "openapi_document", make)
    assert (await client.get("/api/v1/openapi.json")).json() == first


@pytest.mark.parametrize("strategy", ["weave", "mix", "bypass"])
async def test_an_answer_is_written_as_every_other_result(index: Path, strategy: str) -> None:
    async with quipu.open(index) as kb:
        answer = await kb.query("Whom did Ada Lovelace write to?", strategy=strategy)
    infinite = replace(answer, trace=replace(answer.trace, timings=(Timing(stage="x", ms=float("inf")),)))
    for written in (answer, infinite):
        assert json_bytes(written) == to_json(written, inf_nan_mode="null")
