"""Edits over HTTP: who made them, what is refused, and undoing them."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from quipu.engine.edits import Edits
from quipu.server import ServerComponents, Workspaces
from quipu.server.access import KEYS_FILE, KeyFile, Permission
from quipu.server.app import OPERATIONS
from tests.unit.server.conftest import http_client

KB = "/api/v1/workspaces/default"
EDITS = f"{KB}/edits"
RENAME = {"kind": "rename", "entities": ["Ada Lovelace"], "name": "Ada King", "author": "me"}
# The operation that does what a method of Edits does.
OPERATION_OF = {
    "make": "make_edit",
    "preview": "make_edit",
    "undo": "undo_edit",
    "history": "list_edits",
    "edit": "show_edit",
}
OPERATION_OF |= {"duplicates": "list_duplicates", "decide": "make_edit", "losing": "preview_removal"}
OPERATION_OF |= {"merge_duplicates": "upload_documents"}  # by the setting merge_duplicates_above


@pytest.fixture
async def keyed(index: Path) -> AsyncIterator[tuple[httpx.AsyncClient, str, str]]:
    """Return a client of a server with keys, a key that may write, and one that may read."""
    keys = KeyFile(index / KEYS_FILE)
    writer, reader = keys.create("charles", Permission.WRITE), keys.create("reader", Permission.READ)
    async with http_client(ServerComponents.of(Workspaces(index=index))) as client:
        yield client, writer.text, reader.text


def test_what_python_can_do_the_api_can_do() -> None:
    methods = {name for name in dir(Edits) if not name.startswith("_")} - {"components", "lease", "finder"}
    assert methods == OPERATION_OF.keys()
    assert set(OPERATION_OF.values()) <= {operation.function.__name__ for operation in OPERATIONS}


async def test_an_edit_is_made_shown_and_undone(client: httpx.AsyncClient) -> None:
    made = (await client.post(EDITS, json=RENAME)).json()
    assert (made["id"], made["edit"]["author"], made["has_effect"]) == (1, "me", True)
    entity = (await client.get(f"{KB}/entities/Ada Lovelace")).json()["entity"]
    assert (entity["name"], entity["aliases"]) == ("Ada King", ["Ada Lovelace"])
    assert (await client.get(f"{EDITS}/1")).json() == made
    assert (await client.get(EDITS, params={"entity": "Ada King"})).json()["edits"] == [made]
    undone = (await client.delete(f"{EDITS}/1")).json()
    assert [edit["id"] for edit in undone["undone"]] == [1]
    assert (await client.get(EDITS, params={"with_undone": "false"})).json() == {"edits": [], "cursor": ""}
    assert (await client.post(f"{KB}/verify")).json() == {"differences": []}


async def test_a_dry_run_only_tells_what_would_change(client: httpx.AsyncClient) -> None:
    preview = (await client.post(EDITS, json={**RENAME, "dry_run": True})).json()
    assert (preview["id"], preview["n_chunks"]) == (0, 1)
    assert (await client.get(EDITS)).json()["edits"] == []


async def test_an_edit_names_the_key_that_made_it(keyed: tuple[httpx.AsyncClient, str, str]) -> None:
    client, writer, _ = keyed
    made = await client.post(EDITS, json=RENAME, headers={"authorization": f"Bearer {writer}"})
    assert made.json()["edit"]["author"] == "charles"


async def test_a_key_that_may_only_read_cannot_edit(keyed: tuple[httpx.AsyncClient, str, str]) -> None:
    client, writer, reader = keyed
    headers = {"authorization": f"Bearer {reader}"}
    assert (await client.post(EDITS, json=RENAME, headers=headers)).status_code == 403
    await client.post(EDITS, json=RENAME, headers={"authorization": f"Bearer {writer}"})
    assert (await client.delete(f"{EDITS}/1", headers=headers)).status_code == 403
    assert len((await client.get(EDITS, headers=headers)).json()["edits"]) == 1


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"kind": "burn", "entities": ["Ada Lovelace"]}, 422),
        ({"kind": "hide"}, 422),
        ({"kind": "hide", "entities": ["Nobody"]}, 404),
        ({"kind": "hide", "entities": "Ada Lovelace"}, 422),
        ({"kind": "rename", "entities": ["Ada Lovelace"]}, 422),
        ({"kind": "rename", "entities": ["Ada Lovelace"], "name": "x\u0000"}, 422),
    ],
)
async def test_an_edit_that_makes_no_sense_is_refused(
    client: httpx.AsyncClient, body: dict[str, object], status: int
) -> None:
    reply = await client.post(EDITS, json=body)
    assert reply.status_code == status, reply.text
    assert (await client.get(EDITS)).json()["edits"] == []


@pytest.mark.parametrize("number", ["0", "1", "99999999999999999999999999", "-1", "x"])
async def test_an_unknown_edit_is_named(client: httpx.AsyncClient, number: str) -> None:
    assert (await client.get(f"{EDITS}/{number}")).status_code == 404
    assert (await client.delete(f"{EDITS}/{number}")).status_code == 404


async def test_the_same_request_with_the_same_key_makes_one_edit(client: httpx.AsyncClient) -> None:
    headers = {"idempotency-key": "k1"}
    first = await client.post(EDITS, json=RENAME, headers=headers)
    second = await client.post(EDITS, json=RENAME, headers=headers)
    assert first.json() == second.json()
    assert len((await client.get(EDITS)).json()["edits"]) == 1


async def test_possible_duplicates_are_listed_with_reasons(client: httpx.AsyncClient) -> None:
    await client.post(EDITS, json={"kind": "create", "entities": ["AdaLovelace"], "type": "Person"})
    (pair,) = (await client.get(f"{KB}/duplicates", params={"entity": "Ada Lovelace"})).json()
    assert pair["candidate"]["reasons"] == ["equal without spaces"]
    assert {pair["first"]["name"], pair["second"]["name"]} == {"Ada Lovelace", "AdaLovelace"}
    await client.post(EDITS, json={"kind": "distinct", "entities": ["Ada Lovelace", "AdaLovelace"]})
    assert (await client.get(f"{KB}/duplicates")).json() == []
    assert (await client.get(f"{KB}/duplicates", params={"entity": "Nobody"})).status_code == 404
