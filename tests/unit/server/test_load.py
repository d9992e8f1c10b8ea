"""Load: many callers at once get their own answers, or are told when to come back; none is lost."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

import quipu
from quipu.server import ServerComponents, Workspaces
from quipu.settings import Settings
from tests.unit.server.conftest import http_client
from tests.unit.server.test_documents import KB

PEOPLE = ("Ada Lovelace", "Mary Somerville", "Charles Babbage", "Alice Kober")


@pytest.fixture
async def people(tmp_path: Path) -> Path:
    """Return the folder of an index with a document about each person."""
    async with quipu.open(tmp_path / "kb") as kb:
        for person in PEOPLE:
            await kb.add_text(f"{person} lived in London and wrote many letters.", id=person)
    return tmp_path / "kb"


@pytest.fixture
async def crowded(people: Path) -> AsyncIterator[httpx.AsyncClient]:
    """Return a client of a server in which two questions may wait."""
    workspaces = Workspaces(index=people, make_settings=lambda path: Settings(index=path, max_waiting_questions=2))
    async with http_client(ServerComponents.of(workspaces)) as client:
        yield client


async def test_of_many_callers_each_gets_its_own_answer(people: Path) -> None:
    async def ask(client: httpx.AsyncClient, person: str) -> str:
        reply = await client.post(f"{KB}/query", json={"question": f"Where did {person} live?"})
        document: str = reply.raise_for_status().json()["citations"][0]["document_id"]
        return document

    async with http_client(ServerComponents.of(Workspaces(index=people))) as client:
        asked = PEOPLE * 8
        assert await asyncio.gather(*(ask(client, person) for person in asked)) == list(asked)


async def test_callers_beyond_the_queue_are_told_when_to_come_back_and_the_others_are_answered(
    crowded: httpx.AsyncClient,
) -> None:
    asked = [crowded.post(f"{KB}/query", json={"question": "Who wrote letters?"}) for _ in range(32)]
    replies = await asyncio.gather(*asked)
    counts = Counter(reply.status_code for reply in replies)
    assert counts.keys() == {200, 503} and counts[200] >= 3
    refused = [reply for reply in replies if reply.status_code == 503]
    assert {reply.headers["retry-after"] for reply in refused} == {"1"}
    assert all("already wait" in reply.json()["detail"] for reply in refused)
    assert (await crowded.post(f"{KB}/query", json={"question": "Who wrote letters?"})).status_code == 200
    assert (await crowded.get("/health")).status_code == 200
