"""Saved conversations over HTTP: whose they are, what they keep, and what they lose with a document."""

import asyncio
import json
import os
import signal
import sys
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import quipu
from quipu.engine.conversations import LOCAL_OWNER, Conversations
from quipu.server import ServerComponents, Workspaces
from quipu.server.access import KEYS_FILE, LOCAL_CALLER, KeyFile, Permission
from quipu.server.app import OPERATIONS
from tests.unit.server.conftest import LETTER, http_client
from tests.unit.server.test_serving import running

KB = "/api/v1/workspaces/default"
TALKS = f"{KB}/conversations"
QUESTION = {"question": "Whom did Ada Lovelace write to?"}
# The operation that does what a method of Conversations does.
OPERATION_OF = {
    "ask": "ask_in_conversation",
    "stream": "stream_in_conversation",
    "page": "list_conversations",
    "read": "show_conversation",
    "rename": "rename_conversation",
    "delete": "delete_conversation",
    "count_answers": "preview_removal",
}


@pytest.fixture
async def other_worker(index: Path) -> AsyncIterator[httpx.AsyncClient]:
    """Return a client of a second server of the same index."""
    async with http_client(ServerComponents.of(Workspaces(index=index))) as client:
        yield client


async def asked(client: httpx.AsyncClient, conversation: str = "", question: str = "") -> dict[str, Any]:
    """Ask in a conversation, and return the reply."""
    body = {"question": question or QUESTION["question"], "conversation": conversation}
    reply = await client.post(f"{TALKS}/query", json=body)
    assert reply.status_code == 200
    result: dict[str, Any] = reply.json()
    return result


async def read(client: httpx.AsyncClient, conversation: str) -> list[dict[str, Any]]:
    """Return the exchanges of a conversation."""
    reply = await client.get(f"{TALKS}/{conversation}")
    assert reply.status_code == 200
    exchanges: list[dict[str, Any]] = reply.json()["exchanges"]
    return exchanges


def events(text: str) -> list[tuple[str, Any]]:
    """Return the name and the data of each server-sent event."""
    parts = [part.partition("\n") for part in text.strip().split("\n\n")]
    return [(head.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for head, _, data in parts]


def test_what_python_can_do_in_conversations_the_api_can_do() -> None:
    methods = {name for name, value in vars(Conversations).items() if callable(value) and not name.startswith("_")}
    assert methods - {"of"} == OPERATION_OF.keys()
    assert {*OPERATION_OF.values()} <= {operation.function.__name__ for operation in OPERATIONS}
    assert LOCAL_CALLER.id == LOCAL_OWNER  # what Python saves, a server without keys shows


async def test_a_conversation_goes_on_in_another_worker_and_after_a_restart(
    client: httpx.AsyncClient, other_worker: httpx.AsyncClient, index: Path
) -> None:
    first = await asked(client)
    second = await asked(other_worker, first["conversation"], "And when?")
    assert (first["number"], second["number"]) == (1, 2)
    async with http_client(ServerComponents.of(Workspaces(index=index))) as restarted:
        third = await asked(restarted, first["conversation"], "And what about?")
        exchanges = await read(restarted, first["conversation"])
    assert third["number"] == 3
    assert [exchange["question"] for exchange in exchanges] == [QUESTION["question"], "And when?", "And what about?"]
    saved, citation = exchanges[0]["answer"], exchanges[0]["answer"]["citations"][0]
    assert saved["text"] == first["answer"]["text"]
    assert citation["document_id"] == "letters/1.md"
    assert LETTER[citation["start"] : citation["end"]] == citation["quote"]


async def test_a_streamed_answer_has_the_events_of_a_question_and_one_more(client: httpx.AsyncClient) -> None:
    streamed = events((await client.post(f"{TALKS}/query/stream", json=QUESTION)).text)
    plain = events((await client.post(f"{KB}/query/stream", json=QUESTION)).text)
    names = [name for name, _ in streamed]
    assert [name for name in names if name != "saved"] == [name for name, _ in plain]
    assert names[-2:] == ["saved", "answer"]
    saved = streamed[-2][1]
    assert saved["number"] == 1
    assert (await read(client, saved["conversation"]))[0]["answer"]["text"] == streamed[-1][1]["text"]


async def test_an_error_in_a_stream_saves_nothing(client: httpx.AsyncClient) -> None:
    for body in ({"question": " "}, {"question": "x", "conversation": "none"}, {"question": "x", "history": []}):
        streamed = events((await client.post(f"{TALKS}/query/stream", json=body)).text)
        assert [name for name, _ in streamed] == ["problem"]
    assert (await client.get(TALKS)).json() == {"conversations": [], "cursor": ""}


async def test_a_removal_by_another_process_takes_the_answer_but_not_the_question(
    client: httpx.AsyncClient, index: Path
) -> None:
    first = await asked(client)
    preview = (await client.get(f"{KB}/removal", params={"document": "letters/1.md"})).json()
    assert preview["n_answers"] == 1
    async with quipu.open(index) as kb:
        await kb.remove(["letters/1.md"])
    (exchange,) = await read(client, first["conversation"])
    assert (exchange["question"], exchange["answer"]) == (QUESTION["question"], None)
    assert (await asked(client, first["conversation"]))["number"] == 2


async def test_questions_asked_at_once_in_two_workers_are_all_saved(
    client: httpx.AsyncClient, other_worker: httpx.AsyncClient
) -> None:
    talk = (await asked(client))["conversation"]
    questions = [f"Whom did Ada Lovelace write to, {n}?" for n in range(10)]
    replies = await asyncio.gather(
        *(asked((client, other_worker)[n % 2], talk, question) for n, question in enumerate(questions))
    )
    exchanges = await read(client, talk)
    assert [exchange["number"] for exchange in exchanges] == [*range(1, 12)]
    by_number = {exchange["number"]: exchange["question"] for exchange in exchanges}
    assert [by_number[reply["number"]] for reply in replies] == questions


async def test_the_list_is_paged_and_begins_with_the_last_changed(client: httpx.AsyncClient) -> None:
    ids = [(await asked(client, question=f"Who is Ada, {n}?"))["conversation"] for n in range(3)]
    await asked(client, ids[0])
    first = (await client.get(TALKS, params={"k": 2})).json()
    second = (await client.get(TALKS, params={"k": 2, "cursor": first["cursor"]})).json()
    assert [row["id"] for row in first["conversations"] + second["conversations"]] == [ids[0], ids[2], ids[1]]
    assert second["cursor"] == ""
    assert first["conversations"][0]["title"] == "Who is Ada, 0?"
    assert first["conversations"][0]["n_exchanges"] == 2
    assert (await client.get(TALKS, params={"cursor": "nowhere"})).status_code == 422


async def test_a_conversation_is_renamed_and_deleted(client: httpx.AsyncClient) -> None:
    talk = (await asked(client))["conversation"]
    renamed = await client.patch(f"{TALKS}/{talk}", json={"title": "<b>Letters</b>\u202e\n1843"})
    assert renamed.json()["title"] == "<b>Letters</b> 1843"
    assert (await client.patch(f"{TALKS}/{talk}", json={"title": "\n"})).status_code == 422
    assert (await client.patch(f"{TALKS}/{talk}", json={"title": "x", "owner": "me"})).status_code == 422
    assert (await client.delete(f"{TALKS}/{talk}")).status_code == 204
    assert (await client.get(f"{TALKS}/{talk}")).status_code == 404
    assert (await client.delete(f"{TALKS}/{talk}")).status_code == 404


@pytest.mark.parametrize(
    "name", ["none", "query", "..%2F..%2Fetc", "%00", "'%20OR%201=1--", "a" * 5_000, "%F0%9F%98%80"]
)
async def test_an_unknown_id_is_not_found(client: httpx.AsyncClient, name: str) -> None:
    reply = await client.get(f"{TALKS}/{name}")
    assert reply.status_code == 404
    assert len(reply.text) < 1_000


async def test_a_key_sees_its_own_conversations_and_an_admin_all(client: httpx.AsyncClient, index: Path) -> None:
    keys = KeyFile(index / KEYS_FILE)
    names = ("read", "read", "admin")
    ada, bob, admin = ({"authorization": f"Bearer {keys.create(name, Permission(name)).text}"} for name in names)
    body = {**QUESTION, "conversation": ""}
    talk = (await client.post(f"{TALKS}/query", json=body, headers=ada)).json()["conversation"]
    assert [row["id"] for row in (await client.get(TALKS, headers=ada)).json()["conversations"]] == [talk]
    assert (await client.get(TALKS, headers=bob)).json()["conversations"] == []
    foreign = [
        await client.get(f"{TALKS}/{talk}", headers=bob),
        await client.patch(f"{TALKS}/{talk}", headers=bob, json={"title": "x"}),
        await client.delete(f"{TALKS}/{talk}", headers=bob),
        await client.post(f"{TALKS}/query", headers=bob, json={**QUESTION, "conversation": talk}),
    ]
    unknown = await client.get(f"{TALKS}/{'0' * len(talk)}", headers=bob)
    assert {reply.status_code for reply in (*foreign, unknown)} == {404}
    assert (await client.get(TALKS, headers=bob, params={"of_all_keys": True})).status_code == 403
    assert (await client.get(TALKS, headers=admin)).json()["conversations"] == []
    listed = (await client.get(TALKS, headers=admin, params={"of_all_keys": True})).json()["conversations"]
    assert [row["id"] for row in listed] == [talk]
    assert (await client.get(f"{TALKS}/{talk}", headers=admin)).status_code == 200


async def test_a_read_only_index_answers_and_says_that_nothing_was_saved(
    client: httpx.AsyncClient, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = (await asked(client))["conversation"]
    await client.delete(f"{TALKS}/none")  # nothing is left in the log
    async with quipu.open(index) as kb:
        await kb.purge()
    monkeypatch.setattr(os, "access", lambda *_: False)  # a test run as root could write anywhere
    async with http_client(ServerComponents.of(Workspaces(index=index))) as reader:
        reply = await asked(reader, talk)
        assert "Charles Babbage" in reply["answer"]["text"]
        assert (reply["conversation"], reply["number"]) == ("", 0)
        assert "not saved" in reply["answer"]["notes"][-1]
        assert str(index) not in json.dumps(reply)
        streamed = events((await reader.post(f"{TALKS}/query/stream", json=QUESTION)).text)
        assert "saved" not in [name for name, _ in streamed]
        assert len(await read(reader, talk)) == 1
        problem = await reader.delete(f"{TALKS}/{talk}")
        assert problem.status_code == 503


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL to send")
def test_a_conversation_outlives_a_killed_server_and_goes_on_in_two_processes(index: Path) -> None:
    talk = ""
    with running(index) as (address, process):
        for _ in range(2):
            talk = asked_process(address, talk)["conversation"]
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=60)
    with running(index, "--workers", "2") as (address, _):
        numbers = [asked_process(address, talk)["number"] for _ in range(4)]  # each on a connection of its own
        with urllib.request.urlopen(f"{address}{TALKS}/{talk}", timeout=60) as response:
            exchanges = json.load(response)["exchanges"]
    assert numbers == [3, 4, 5, 6]
    assert all("Charles Babbage" in exchange["answer"]["text"] for exchange in exchanges)


def asked_process(address: str, conversation: str) -> dict[str, Any]:
    """Ask a server that runs as a process, and return the reply."""
    body = json.dumps({**QUESTION, "conversation": conversation}).encode()
    headers = {"content-type": "application/json"}
    request = urllib.request.Request(f"{address}{TALKS}/query", body, headers)
    with urllib.request.urlopen(request, timeout=60) as response:
        reply: dict[str, Any] = json.load(response)
    return reply
