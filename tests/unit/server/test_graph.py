"""The graph over HTTP: pages of entities and relations, neighbours, subgraphs and paths; and texts and originals."""

import httpx
import pytest

KB = "/api/v1/workspaces/default"


async def test_entities_are_listed_by_prefix_and_page(client: httpx.AsyncClient) -> None:
    everything = (await client.get(f"{KB}/entities")).json()
    assert everything["n_total"] == len(everything["entities"]) >= 2
    first = (await client.get(f"{KB}/entities?k=1")).json()
    second = (await client.get(f"{KB}/entities", params={"k": 1, "cursor": first["cursor"]})).json()
    assert first["entities"] + second["entities"] == everything["entities"][:2]
    named = (await client.get(f"{KB}/entities?prefix=ada")).json()["entities"]
    assert [entity["name"] for entity in named] == ["Ada Lovelace"]


async def test_neighbours_subgraph_and_paths_lead_from_one_entity_to_another(client: httpx.AsyncClient) -> None:
    neighbours = (await client.get(f"{KB}/neighbours/Ada Lovelace")).json()["neighbours"]
    assert "Charles Babbage" in [entity["name"] for _, entity in neighbours]
    subgraph = (await client.get(f"{KB}/subgraph?name=Ada Lovelace&name=Charles Babbage&hops=1")).json()
    assert subgraph["distances"][:2] == [0, 0]
    [path] = (await client.get(f"{KB}/paths?first=Ada Lovelace&second=Charles Babbage")).json()
    assert [entity["name"] for entity in path["entities"]] == ["Ada Lovelace", "Charles Babbage"]
    relations = (await client.get(f"{KB}/relations?k=1")).json()
    assert len(relations["relations"]) == 1


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("entities?k=0", 422),
        ("entities?cursor=x", 422),
        ("neighbours/Nobody", 404),
        ("subgraph", 422),
        ("subgraph?name=Ada Lovelace&hops=99", 422),
        ("paths?first=Ada Lovelace", 422),
        ("paths?first=Ada Lovelace&second=Nobody", 404),
        ("texts/none", 404),
        ("originals/none", 404),
    ],
)
async def test_wrong_requests_say_what_is_wrong(client: httpx.AsyncClient, path: str, status: int) -> None:
    response = await client.get(f"{KB}/{path}")
    assert response.status_code == status, response.text
    assert response.json()["detail"]


async def test_a_citation_stands_in_the_text_at_its_offsets(client: httpx.AsyncClient) -> None:
    answer = (await client.post(f"{KB}/query", json={"question": "Whom did Ada Lovelace write to?"})).json()
    citation = answer["citations"][0]
    text = (await client.get(f"{KB}/texts/{citation['document_id']}")).text
    assert text[citation["start"] : citation["end"]] == citation["quote"]


async def test_an_original_is_saved_by_a_browser_and_never_opened(client: httpx.AsyncClient) -> None:
    page = b"<script>alert(1)</script><p>Ada wrote this."
    reply = (await client.put(f"{KB}/documents/pages/ü.html", content=page)).json()
    await client.get(f"{KB}/jobs/{reply['job']['id']}/events")
    original = await client.get(f"{KB}/originals/pages/ü.html")
    assert original.content == page
    assert original.headers["content-type"] == "application/octet-stream"
    assert original.headers["content-disposition"] == "attachment; filename*=UTF-8''%C3%BC.html"
    assert original.headers["x-content-type-options"] == "nosniff"
