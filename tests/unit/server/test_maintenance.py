"""Maintenance over HTTP; and every method of the engine has an operation, or a reason to have none."""

import json
from pathlib import Path

import httpx
import pytest

from quipu.engine import Quipu
from quipu.server.app import OPERATIONS

KB = "/api/v1/workspaces/default"
# The operation that does what a method of the engine does, where it has another name.
OTHER_NAMES = {
    "add": "upload_documents",
    "backup": "download_backup",
    "embed": "openai_embeddings",
    "enqueue": "put_document",
    "cancel": "cancel_job",
    "chunk": "show_chunk",
    "chunks": "list_chunks",
    "damage": "verify",
    "document": "show_document",
    "documents": "list_documents",
    "drop": "drop_derivation",
    "entities": "list_entities",
    "entity": "show_entity",
    "graph_map": "show_far_map",
    "neighbours": "list_neighbours",
    "original": "download_original",
    "earlier_versions": "list_versions",
    "page_picture": "show_page",
    "paths": "show_paths",
    "relation": "show_relation",
    "relations": "list_relations",
    "remove": "remove_document",
    "report": "show_report",
    "retrieve": "evidence",
    "retry": "retry_documents",
    "stream": "stream_query",
    "subgraph": "show_subgraph",
    "text": "show_text",
}
NOT_OVER_HTTP = {
    "complete": "it sends any prompt to a model; the server answers questions",
    "close": "a server closes a workspace when nobody uses it",
    "mirror": "it reads paths",
    "watch": "it reads paths",
    "prepare": "a question with auto_refresh does the same",
    "work": "it is a worker that runs until it is stopped; the server's own processes read what is queued",
}


def test_what_python_can_do_the_api_can_do() -> None:
    methods = {name for name in dir(Quipu) if not name.startswith("_")}
    operations = {operation.function.__name__ for operation in OPERATIONS}
    missing = {name for name in methods if OTHER_NAMES.get(name, name) not in operations}
    assert missing == set(NOT_OVER_HTTP)


async def test_an_estimate_adds_nothing(client: httpx.AsyncClient) -> None:
    response = await client.post(f"{KB}/estimate", json={"text": "Ada wrote to Babbage. " * 50})
    assert response.status_code == 200
    assert (await client.get(f"{KB}/status")).json()["n_documents"] == 1


async def test_a_derivation_is_planned_computed_and_dropped(client: httpx.AsyncClient) -> None:
    states = (await client.get(f"{KB}/plan?name=sentences")).json()
    assert "sentences" in [state["name"] for state in states]
    job = (await client.post(f"{KB}/refresh", json={"names": ["sentences"]})).json()
    await client.get(f"{KB}/jobs/{job['id']}/events")
    assert (await client.delete(f"{KB}/derivations/sentences")).json() == ["sentences"]
    assert (await client.delete(f"{KB}/derivations/nothing")).status_code == 404


async def test_the_index_is_checked_and_dumped(client: httpx.AsyncClient) -> None:
    assert (await client.post(f"{KB}/verify")).json() == {"differences": []}
    assert (await client.post(f"{KB}/verify?files_only=true")).json() == {"differences": []}
    repaired = {"faults": [], "losses": [], "repaired": [], "left": [], "stopped": ""}
    assert (await client.post(f"{KB}/repair?accept_losses=true")).json() == repaired
    lines = (await client.get(f"{KB}/dump")).text.splitlines()
    assert all(json.loads(line) for line in lines)
    archive = await client.get(f"{KB}/backup")
    assert archive.headers["content-disposition"] == 'attachment; filename="backup.quipu"'
    assert archive.content.endswith(b"QUIPU ARCHIVE 2\n")
    assert (await client.post(f"{KB}/purge?dry_run=true")).json() == {"versions": [], "n_rows": 0}
    assert (await client.post(f"{KB}/purge?before=2020")).json()["n_rows"] >= 0
    assert (await client.post(f"{KB}/purge?before=soon")).status_code == 422
    assert (await client.post(f"{KB}/reembed")).json() == {"n": 0}  # the embedder is the same


async def test_the_queue_is_worked_through_on_demand(client: httpx.AsyncClient) -> None:
    job = (await client.post(f"{KB}/resume")).json()
    events = (await client.get(f"{KB}/jobs/{job['id']}/events")).text
    assert '"status":"finished"' in events


async def test_settings_in_force_have_no_keys_and_no_paths(
    client: httpx.AsyncClient, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("QUIPU_LLM_BASE_URL", "https://user:sk-secret@models.example/v1")
    monkeypatch.setenv("QUIPU_CONFIG", str(index.parent / "quipu.toml"))
    (index.parent / "quipu.toml").write_text("top_k = 7\n")
    text = (await client.get(f"{KB}/settings")).text
    assert "sk-secret" not in text
    assert str(index.parent) not in text
    origins = {setting["name"]: setting["origin"] for setting in json.loads(text)}
    assert origins["top_k"] == "quipu.toml:1"
