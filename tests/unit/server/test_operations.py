"""Every operation is called over HTTP at least once, and replies with what its signature says."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

import quipu
from quipu.model.document import SourceDocument
from quipu.server import ServerComponents, Workspaces, events
from quipu.server.app import OPERATIONS
from quipu.server.operations import Operation
from tests.unit.parse.files import pdf, prose
from tests.unit.server.conftest import LETTER, http_client

KB = "/api/v1/workspaces/letters"
QUESTION = {"question": "Whom did Ada Lovelace write to?"}
MESSAGES = [{"role": "user", "content": "Whom did Ada Lovelace write to?"}]
# What each operation is asked: the parts of its path, its query string, and its body. Others take none of these.
REQUESTS: Mapping[str, dict[str, Any]] = {
    "open_session": {"json": {"key": "none"}},
    "create_workspace": {"json": {"name": "other"}},
    "query": {"json": QUESTION},
    "stream_query": {"json": QUESTION},
    "evidence": {"json": QUESTION},
    "passages": {"json": QUESTION},
    "compare": {"json": {**QUESTION, "strategies": ["naive", "lexical"]}},
    "explain": {"json": {**QUESTION, "rank": 1}},
    "search": {"params": {"text": "Babbage"}},
    "ask_in_conversation": {"json": QUESTION},
    "stream_in_conversation": {"json": QUESTION},
    "rename_conversation": {"json": {"title": "Letters"}},
    "add_text": {"json": {"text": "Mary Somerville taught Ada.", "id": "new.md"}},
    "upload_documents": {"files": [("files", ("b.md", b"Mary Somerville wrote."))]},
    "estimate_documents": {"files": [("files", ("c.md", b"Mary Somerville wrote."))]},
    "show_page": {"path": {"document": "a.pdf"}},
    "show_boxes": {"path": {"document": "a.pdf"}},
    "put_document": {"path": {"document": "c.md"}, "content": b"Ada read it."},
    "preview_removal": {"params": {"document": "letters/1.md"}},
    "list_chunks": {"params": {"document": "letters/1.md"}},
    "retry_documents": {"json": {}},
    "refresh": {"json": {"names": ["sentences"]}},
    "show_relation": {"params": {"first": "Ada Lovelace", "second": "Charles Babbage"}},
    "show_subgraph": {"params": {"name": "Ada Lovelace"}},
    "show_paths": {"params": {"first": "Ada Lovelace", "second": "Charles Babbage"}},
    "show_near_map": {"params": {"name": "Ada Lovelace"}},
    "make_edit": {"json": {"kind": "retype", "entities": ["Ada Lovelace"], "type": "Writer"}},
    "import_graph": {"json": {"entities": [{"entity_name": "Mary Somerville"}]}},
    "export_graph": {"params": {"format": "graphml"}},
    "estimate": {"json": {"text": "Ada wrote to Babbage."}},
    "tune": {"json": {"dry_run": True}},
    "drop_derivation": {"path": {"name": "communities"}},
    "openai_model": {"path": {"model": "letters/quipu"}},
    "chat_completions": {"json": {"model": "letters/quipu", "messages": MESSAGES}},
    "responses": {"json": {"model": "letters/quipu", "input": QUESTION["question"]}},
    "openai_embeddings": {"json": {"model": "letters/quipu", "input": ["Ada"]}},
    "ollama_show": {"json": {"model": "letters/quipu"}},
    "ollama_chat": {"json": {"model": "letters/quipu", "messages": MESSAGES}},
    "ollama_generate": {"json": {"model": "letters/quipu", "prompt": QUESTION["question"]}},
    "ollama_embed": {"json": {"model": "letters/quipu", "input": "Ada"}},
}


@pytest.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ServerComponents]:
    """Return a server of a folder with one index, which has a document, reports, a conversation and a job."""
    monkeypatch.setattr(events, "_MAX_STREAM_S", 0.0)  # a stream of events ends at once
    async with quipu.open(tmp_path / "letters") as kb:
        await kb.add_text(LETTER, id="letters/1.md")
        await kb.refresh(["communities", "reports"])
    yield ServerComponents.of(Workspaces(root=tmp_path))


async def _path_parts(client: httpx.AsyncClient, operation: Operation, tmp_path: Path) -> dict[str, str]:
    """Return the parts of the path of an operation: things that exist."""
    parts = {"workspace": "letters", "document": "letters/1.md", "name": "Ada Lovelace"}
    if "job" in operation.path_parameters:
        parts["job"] = (await client.post(f"{KB}/refresh", json={})).json()["id"]
    if "chunk" in operation.path_parameters:
        parts["chunk"] = (await client.get(f"{KB}/chunks?document=letters/1.md")).json()["chunks"][0]["id"]
    if "conversation" in operation.path_parameters:
        parts["conversation"] = (await client.post(f"{KB}/conversations/query", json=QUESTION)).json()["conversation"]
    if "edit_id" in operation.path_parameters:
        edit = {"kind": "retype", "entities": ["Ada Lovelace"], "type": "Writer"}
        parts["edit_id"] = (await client.post(f"{KB}/edits", json=edit)).json()["id"]
    if "report" in operation.path_parameters:
        async with quipu.open(tmp_path / "letters") as index:
            preview = await index.preview_removal(["letters/1.md"])
        parts["report"] = preview.reports[0][0]
    own: dict[str, str] = REQUESTS.get(operation.function.__name__, {}).get("path", {})
    if own.get("document") == "a.pdf":
        async with quipu.open(tmp_path / "letters") as index:
            await index.add(
                SourceDocument(id="a.pdf", content=pdf([prose("Ada wrote.")]), media_type="application/pdf")
            )
    return parts | own


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.function.__name__)
async def test_every_operation_replies_as_its_signature_says(
    server: ServerComponents, operation: Operation, tmp_path: Path
) -> None:
    async with http_client(server) as client:
        parts = await _path_parts(client, operation, tmp_path)
        path = operation.path.replace(":path}", "}").format(**parts)
        request = {
            name: value for name, value in REQUESTS.get(operation.function.__name__, {}).items() if name != "path"
        }
        reply = await client.request(operation.method, path, **request)
    assert reply.status_code == operation.status, reply.text
    name = operation.function.__name__
    assert f'operation="{name}",status="{operation.status}"' in server.metrics.text({}).decode()  # and no other one
    if is_dataclass(result := operation.hints["return"]):
        assert reply.json().keys() == {field.name for field in fields(result)}


def test_nothing_is_asked_of_an_operation_that_does_not_exist() -> None:
    assert REQUESTS.keys() <= {operation.function.__name__ for operation in OPERATIONS}


async def test_evidence_passages_and_explanations_name_the_same_chunk(server: ServerComponents) -> None:
    async with http_client(server) as client:
        [chunk] = (await client.get(f"{KB}/chunks?document=letters/1.md")).json()["chunks"]
        evidence = (await client.post(f"{KB}/evidence", json=QUESTION)).json()
        assert [hit["id"] for hit in evidence["chunks"]] == [chunk["id"]]
        [passage] = (await client.post(f"{KB}/passages", json=QUESTION)).json()
        assert (passage["chunk"], passage["document"]["id"]) == (chunk, "letters/1.md")
        explained = (await client.post(f"{KB}/explain", json={**QUESTION, "chunk": chunk["id"]})).json()
        assert chunk["id"] in str(explained)
        facts = (await client.get(f"{KB}/chunks/{chunk['id']}")).json()
        assert facts["chunk"] == chunk
        assert "Ada Lovelace" in [mention["surface"] for mention in facts["entities"]]
        for body, status in (({"rank": 9}, 404), ({"chunk": "none"}, 404), ({"chunk": chunk["id"], "rank": 1}, 422)):
            assert (await client.post(f"{KB}/explain", json=QUESTION | body)).status_code == status
        assert (await client.get(f"{KB}/chunks/none")).status_code == 404


async def test_strategies_are_listed_and_compared_by_name(server: ServerComponents) -> None:
    async with http_client(server) as client:
        names = [strategy["name"] for strategy in (await client.get("/api/v1/strategies")).json()["strategies"]]
        assert {"weave", "lexical", "naive"} <= set(names)
        body = {**QUESTION, "strategies": ["lexical", "naive"]}
        compared = (await client.post(f"{KB}/compare", json=body)).json()
        assert [result["strategy"] for result in compared["results"]] == ["lexical", "naive"]
        wrong = await client.post(f"{KB}/compare", json={**QUESTION, "strategies": ["none"]})
        assert wrong.status_code == 422


async def test_a_relation_and_a_report_are_shown_with_the_chunks_behind_them(
    server: ServerComponents, tmp_path: Path
) -> None:
    async with http_client(server) as client:
        ends = {"first": "charles babbage", "second": "Ada Lovelace"}
        relation = (await client.get(f"{KB}/relation", params=ends)).json()
        assert relation["relation"]["id"] == "ada lovelace -- charles babbage"
        assert [facts["chunk"]["document_id"] for facts in relation["chunks"]] == ["letters/1.md"]
        [(report_id, title), *_] = (await client.get(f"{KB}/removal?document=letters/1.md")).json()["reports"]
        report = (await client.get(f"{KB}/reports/{report_id}")).json()
        assert (report["report"]["title"], report["is_current"]) == (title, True)
        assert [chunk["document_id"] for chunk in report["chunks"]] == ["letters/1.md"]
        assert (await client.get(f"{KB}/reports/none")).status_code == 404
        nobody = await client.get(f"{KB}/relation", params={"first": "Ada Lovelace", "second": "Nobody"})
        assert (nobody.status_code, "charles babbage" in nobody.text.lower()) == (404, True)


async def test_tuning_suggests_the_types_that_the_documents_have(server: ServerComponents) -> None:
    async with http_client(server) as client:
        dry = await client.post(f"{KB}/tune", json={"dry_run": True, "n_sample": 1, "n_compare": 0})
        assert dry.status_code == 200
        assert dry.json()["ontology"]["types"] == []
        suggested = await client.post(f"{KB}/tune", json={"n_sample": 1, "n_compare": 0})
        assert [kind["name"] for kind in suggested.json()["ontology"]["types"]] == ["Person"]
        assert "  Person:" in suggested.json()["file"]
        assert (await client.post(f"{KB}/tune", json={"n_sample": 0})).status_code == 422
