"""The tools of MCP, by the real client: in this process, over standard input and output, and on a live port."""

import asyncio
import json
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client, StdioServerParameters
from mcp.types import CallToolResult, TextContent, TextResourceContents

import quipu
from quipu import sync
from quipu.engine import Quipu
from quipu.server import ServerComponents, ServerOptions, Workspaces
from quipu.server.access import KEYS_FILE, KeyFile, Permission
from quipu.server.app import make_app
from quipu.server.mcp_results import MAX_CHARS, IndexForTools, document_uri
from quipu.server.mcp_tools import tool_server
from tests.unit.server.conftest import LETTER
from tests.unit.server.test_serving import running

READING = ["search", "fetch", "evidence", "ask", "entity", "documents", "explain"]
LONG = "".join(f"The mill number {n} of Orsk belongs to the miller Ivan{n} Petrov{n}.\n\n" for n in range(1_500))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kb")
    with sync.open(folder) as kb:
        kb.add_text(LETTER, id="letters/1.md", title="A letter")
        kb.add_text(LONG, id="long.md")
    return folder


@pytest.fixture
async def kb(folder: Path) -> AsyncIterator[Quipu]:
    async with quipu.open(folder) as kb:
        yield kb


def in_process(kb: Quipu, *, may_write: bool = False) -> Client:
    @asynccontextmanager
    async def index(_: object) -> AsyncIterator[IndexForTools]:
        yield IndexForTools(kb=kb, link=document_uri)

    return Client(tool_server(index, may_write=may_write))


def content(result: CallToolResult) -> dict[str, Any]:
    """Return what a tool returned, as data; the text beside it says the same."""
    (block,) = result.content
    assert isinstance(block, TextContent)
    assert not result.is_error, block.text
    returned: dict[str, Any] = json.loads(block.text)
    assert result.structured_content == returned
    assert len(block.text) <= MAX_CHARS
    return returned


def message(result: CallToolResult) -> str:
    """Return what a model reads about a call that failed."""
    (block,) = result.content
    assert isinstance(block, TextContent)
    assert result.is_error
    return block.text


async def test_every_tool_says_what_it_does_and_that_it_only_reads(kb: Quipu) -> None:
    async with in_process(kb) as client:
        tools = (await client.list_tools()).tools
    assert [tool.name for tool in tools] == READING
    for tool in tools:
        assert tool.annotations is not None
        assert (tool.annotations.read_only_hint, tool.annotations.open_world_hint) == (True, False)
        assert tool.description
        assert tool.output_schema is not None
        assert "Example: " in tool.description or not tool.input_schema.get("required")
        assert "\n  " not in tool.description
        assert "ctx" not in tool.input_schema["properties"]
        assert all(parameter["description"] for parameter in tool.input_schema["properties"].values())


async def test_a_document_is_searched_fetched_and_cited(kb: Quipu) -> None:
    async with in_process(kb) as client:
        hits = content(await client.call_tool("search", {"query": "Whom did Ada Lovelace write to?", "limit": 1}))
        (hit,) = hits["results"]
        assert (hit["id"], hit["title"]) == ("letters/1.md", "A letter")
        document = content(await client.call_tool("fetch", {"id": hit["id"]}))
        assert document["text"] == LETTER
        assert document["cursor"] == ""
        answer = content(await client.call_tool("ask", {"question": "Whom did Ada Lovelace write to?"}))
        assert answer["is_supported"]
        source = answer["sources"][0]
        assert LETTER[source["start"] : source["end"]] == source["text"]
        evidence = content(await client.call_tool("evidence", {"question": "Whom did Ada Lovelace write to?"}))
        assert evidence["passages"][0]["document"] == "letters/1.md"
        reasons = content(await client.call_tool("explain", {"question": "Whom did Ada Lovelace write to?", "rank": 1}))
        assert [passage["rank"] for passage in reasons["passages"]] == [1]
        listed = content(await client.call_tool("documents", {}))
        assert [line["id"] for line in listed["documents"]] == ["letters/1.md", "long.md"]
        entity = content(await client.call_tool("entity", {"name": "Ada Lovelace"}))
        assert entity["documents"] == ["letters/1.md"]
        resource = await client.read_resource(document_uri("letters/1.md"))
        (text,) = resource.contents
        assert isinstance(text, TextResourceContents)
        assert text.text == LETTER
        cited = await client.read_resource(source["url"])
        assert [part.text for part in cited.contents if isinstance(part, TextResourceContents)] == [source["text"]]
        part = content(await client.call_tool("fetch", {"id": hit["id"], "cursor": str(source["start"])}))
        assert part["text"] == LETTER[source["start"] :]


async def test_sentences_that_differ_in_a_detail_come_with_their_dates(tmp_path: Path) -> None:
    async with quipu.open(tmp_path / "kb") as kb:
        for year, fee in ((2021, 100), (2023, 120)):
            text = f"Ada Lovelace paid Mary Somerville {fee} pounds."
            await kb.add_text(text, id=f"{year}.md", metadata={"valid_from": str(year), "valid_until": str(year + 5)})
        async with in_process(kb) as client:
            entity = content(await client.call_tool("entity", {"name": "Ada Lovelace"}))
            then = {"as_of": "2022"}
            assert content(await client.call_tool("entity", {"name": "Ada Lovelace", **then}))["differing"] == []
            question = {"question": "What did Ada Lovelace pay?", **then}
            for tool, arguments, name in (
                ("documents", then, "documents"),
                ("search", {"query": "pounds", **then}, "results"),
                ("evidence", question, "passages"),
                ("ask", question, "sources"),
                ("explain", question, "passages"),
            ):
                results = content(await client.call_tool(tool, arguments))[name]
                assert {result.get("document") or result["id"] for result in results} == {"2021.md"}, tool
            assert "100 pounds" in content(await client.call_tool("fetch", {"id": "2021.md", **then}))["text"]
            assert "2023.md" in message(await client.call_tool("fetch", {"id": "2023.md", **then}))
            assert "is not a date" in message(await client.call_tool("documents", {"as_of": "soon"}))
    assert entity["differing"] == [
        "2023 until 2028, 2023.md: Ada Lovelace paid Mary Somerville 120 pounds.",
        "2021 until 2026, 2021.md: Ada Lovelace paid Mary Somerville 100 pounds.",
    ]


async def test_a_long_result_comes_in_parts_that_fit(kb: Quipu) -> None:
    async with in_process(kb) as client:
        parts: list[str] = []
        cursor = ""
        while not parts or cursor:
            document = content(await client.call_tool("fetch", {"id": "long.md", "cursor": cursor}))
            assert len(document["text"]) <= MAX_CHARS
            parts.append(document["text"])
            cursor = document["cursor"]
        assert "".join(parts) == LONG
        assert all(len(part) > MAX_CHARS // 2 for part in parts[:-1])
        places: list[tuple[str, int]] = []
        cursor = ""
        while not places or cursor:
            page = content(await client.call_tool("evidence", {"question": "the mills of Orsk", "cursor": cursor}))
            places += [(passage["document"], passage["start"]) for passage in page["passages"]]
            cursor = page["cursor"]
        passages = await kb.passages("the mills of Orsk")
        assert places == [(passage.document.id, passage.chunk.start) for passage in passages]


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("fetch", {"id": "none.md"}, "none.md"),
        ("fetch", {"id": "long.md", "cursor": "x"}, "is not a cursor"),
        ("fetch", {"id": "long.md", "cursor": "99999999"}, "is not a cursor"),
        ("entity", {"name": "Nobody"}, "Nobody"),
        ("ask", {"question": ""}, "question"),
        ("ask", {"question": "x", "strategy": "magic"}, "magic"),
        ("explain", {"question": "Ada Lovelace", "rank": 999}, "rank"),
        ("documents", {"cursor": "\x00"}, ""),
        ("change", {"id": "x"}, "change"),
        ("fetch", {"id": "q"}, "Call `search`"),
        ("entity", {"name": "Nobody"}, "Call `search`"),
    ],
)
async def test_a_wrong_call_gets_a_message_that_a_model_can_act_on(
    kb: Quipu, tool: str, arguments: dict[str, Any], said: str
) -> None:
    async with in_process(kb) as client:
        result = await client.call_tool(tool, arguments)
        if said or result.is_error:
            assert said in message(result)
        with pytest.raises(Exception, match=r"none\.md"):
            await client.read_resource(document_uri("none.md"))


async def test_a_tool_that_writes_adds_replaces_and_removes(tmp_path: Path) -> None:
    async with quipu.open(tmp_path / "kb") as kb, in_process(kb, may_write=True) as client:
        for text, outcome in (
            ("Ada wrote.", "added"),
            ("Ada wrote.", "unchanged"),
            ("No.", "replaced"),
        ):
            change = content(await client.call_tool("change", {"id": "a.md", "text": text}))
            assert change == {"id": "a.md", "outcome": outcome}
        for unclear in ({}, {"text": " "}, {"text": "No.", "remove": True}):
            assert "a.md" in message(await client.call_tool("change", {"id": "a.md", **unclear}))
        assert [document.id for document in await kb.documents()] == ["a.md"]
        change = content(await client.call_tool("change", {"id": "a.md", "remove": True}))
        assert change == {"id": "a.md", "outcome": "removed"}
        assert not await kb.documents()
        assert "a.md" in message(await client.call_tool("change", {"id": "a.md", "remove": True}))


async def test_every_result_fits_whatever_is_in_the_documents(tmp_path: Path) -> None:
    quoted = 'Zoë "Ω" Müller wrote to "Ada" \\ in Paris.\t' * 60
    async with quipu.open(tmp_path / "kb") as kb, in_process(kb) as client:
        for n in range(30):
            metadata = {f"field{m}": quoted for m in range(30)}
            await kb.add_text(f"{n} {quoted}", id=f"{n:03}-{'d' * 200}", title=quoted[:900], metadata=metadata)
        listed: list[str] = []
        cursor = ""
        while not listed or cursor:
            page = content(await client.call_tool("documents", {"cursor": cursor}))
            listed += [line["id"] for line in page["documents"]]
            cursor = page["cursor"]
        assert listed == sorted(document.id for document in await kb.documents())
        assert len(listed) == 30
        for tool, arguments in (
            ("search", {"query": "Who wrote to Ada in Paris?", "limit": 50}),
            ("fetch", {"id": listed[0]}),
            ("evidence", {"question": "Who wrote to Ada in Paris?"}),
            ("ask", {"question": "Who wrote to Ada in Paris?"}),
            ("explain", {"question": "Who wrote to Ada in Paris?"}),
            ("entity", {"name": "Paris"}),
        ):
            assert content(await client.call_tool(tool, arguments))


async def test_the_log_of_the_process_is_left_alone(kb: Quipu, capfd: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    root.handlers.clear()  # those of pytest, as in a server
    try:
        async with in_process(kb) as client:
            assert "secret.md" in message(await client.call_tool("fetch", {"id": "secret.md"}))
        assert (root.handlers, root.level) == ([], level)
    finally:
        root.handlers[:] = handlers
    assert "secret" not in capfd.readouterr().err


async def test_an_error_of_the_engine_itself_is_not_shown(tmp_path: Path) -> None:
    @asynccontextmanager
    async def broken(_: object) -> AsyncIterator[IndexForTools]:
        raise OSError("/home/ada/secret")
        yield

    async with Client(tool_server(broken, may_write=False)) as client:
        assert message(await client.call_tool("fetch", {"id": "x"})).endswith("Quipu failed. Its log tells more.")


async def test_a_server_with_open_clients_ends_on_sigterm(folder: Path) -> None:
    with running(folder) as (address, process):
        async with Client(f"{address}/mcp", mode="legacy") as client, httpx.AsyncClient(timeout=60) as listener:
            assert content(await client.call_tool("documents", {}))["documents"]
            headers = {"accept": "text/event-stream"}
            async with listener.stream("GET", f"{address}/mcp", headers=headers):
                process.send_signal(signal.SIGTERM)
                ended = await asyncio.to_thread(process.wait, 60)
    assert ended in (0, -signal.SIGTERM)


async def test_the_command_speaks_over_standard_input_and_output(folder: Path) -> None:
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "quipu", "--index", str(folder), "mcp"], env=dict(os.environ)
    )
    async with Client(command) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == READING
        answer = content(await client.call_tool("ask", {"question": "Whom did Ada Lovelace write to?"}))
    assert answer["sources"][0]["url"].startswith("quipu://documents/letters%2F1.md?start=")


@pytest.mark.parametrize("mode", ["auto", "legacy", "2026-07-28"])
async def test_every_version_of_the_protocol_is_answered_by_any_worker(folder: Path, mode: Any) -> None:
    with running(folder, "--workers", "2") as (address, _):
        for _ in range(3):
            async with Client(f"{address}/mcp", mode=mode) as client:
                answer = content(await client.call_tool("ask", {"question": "Whom did Ada Lovelace write to?"}))
        url = answer["sources"][0]["url"]
    assert url.startswith(f"{address}/#/workspaces/default/documents/letters%2F1.md?start=")


CALL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "change", "arguments": {"id": "new.md", "text": "New."}},
}
HEADERS = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}


@asynccontextmanager
async def served(server: ServerComponents) -> AsyncIterator[httpx.AsyncClient]:
    app = make_app(server)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="http://localhost", headers=HEADERS, timeout=60
        ) as client,
    ):
        yield client


async def called(client: httpx.AsyncClient, path: str, key: str = "") -> str:
    """Call the tool that writes, and return the body of the reply."""
    headers = {"authorization": f"Bearer {key}"} if key else {}
    response = await client.post(path, json=CALL, headers=headers)
    return f"{response.status_code} {response.text}"


async def test_keys_hosts_and_origins_are_checked_as_everywhere(tmp_path: Path) -> None:
    keys = KeyFile(tmp_path / KEYS_FILE)
    reader = keys.create("reader", Permission.READ).text
    stranger = keys.create("stranger", Permission.ADMIN, ("other",)).text
    writer = keys.create("writer", Permission.WRITE).text
    workspaces = Workspaces(index=tmp_path)
    async with served(ServerComponents.of(workspaces, ServerOptions(mcp_may_write=True))) as client:
        assert (await called(client, "/mcp")).startswith("401")
        assert (await called(client, "/mcp", "quipu_00_wrong")).startswith("401")
        assert (await called(client, "/mcp", stranger)).startswith("404")
        assert (await called(client, "/mcp/other", writer)).startswith("404")
        assert "needs the permission" in await called(client, "/mcp", reader)
        assert "added" in await called(client, "/mcp", writer)
        foreign = {"authorization": f"Bearer {writer}"}
        assert (await client.post("/mcp", json=CALL, headers=foreign | {"host": "evil.example"})).status_code == 421
        evil = foreign | {"origin": "http://evil.example"}
        assert (await client.post("/mcp", json=CALL, headers=evil)).status_code == 403


async def test_without_the_flag_no_key_may_write(tmp_path: Path) -> None:
    async with served(ServerComponents.of(Workspaces(index=tmp_path))) as client:
        reply = await called(client, "/mcp")
        assert "change" in reply
        assert "added" not in reply
        documents = (await client.get("/api/v1/workspaces/default/documents")).json()
    assert documents["documents"] == []


async def test_a_message_names_no_folder_of_the_server(tmp_path: Path) -> None:
    folder = tmp_path / "kb"
    async with quipu.open(folder):
        pass
    async with served(ServerComponents.of(Workspaces(index=folder))) as client:
        for tool, arguments in (("ask", {"question": "x"}), ("fetch", {"id": str(folder)}), ("entity", {"name": "/"})):
            body = CALL | {"params": {"name": tool, "arguments": arguments}}
            assert str(tmp_path) not in (await client.post("/mcp", json=body)).text.replace(f"'{folder}'", "")


async def test_without_the_library_the_endpoint_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "quipu.server.mcp_tools")
    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)
    async with served(ServerComponents.of(Workspaces(index=tmp_path))) as client:
        reply = await called(client, "/mcp")
    assert reply.startswith("503")
    assert "pip install" in reply


async def test_a_message_that_comes_too_slowly_or_is_too_large_is_refused(tmp_path: Path) -> None:
    never = asyncio.Event()

    async def slowly() -> AsyncIterator[bytes]:
        yield b"{"
        await never.wait()

    options = ServerOptions(body_s=0.05, max_body_bytes=1_000)
    async with served(ServerComponents.of(Workspaces(index=tmp_path), options)) as client:
        late = await client.post("/mcp", content=slowly(), headers={"content-type": "application/json"})
        assert late.status_code == 408
        large = await client.post("/mcp", json={**CALL, "padding": "x" * 1_000})
        assert large.status_code == 413
