"""The graph over HTTP: pages of entities and relations, neighbours, subgraphs and paths; and texts and originals."""

import json
import struct
from pathlib import Path

import httpx
import numpy as np
import pytest

import quipu
from quipu.engine.graph_export import FORMATS
from quipu.engine.graph_map import MapLevel, MapQuery
from quipu.model.chat import Role
from quipu.model.document import SourceDocument
from quipu.settings.tables import RoleSettings
from quipu.testing.server import serving
from tests.unit.parse.files import pdf, prose
from tests.unit.parse.images import png

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
        ("pages/none", 404),
        ("boxes/letters/1.md", 422),
        ("boxes/letters/1.md?page=0", 422),
        ("graph/map/far?box=1,2,3", 422),
        ("graph/map/far?box=1,2,x,4", 422),
        ("graph/map/far?box=nan,0,1,1", 422),
        ("graph/map/middle?box=5,0,1,1", 422),
        ("graph/map/far?max_nodes=2001", 422),
        ("graph/map/far?community=nowhere", 404),
        ("graph/map/far?name=Ada", 422),
        ("graph/map/near", 422),
        ("graph/map/near?name=Nobody", 404),
        ("graph/map/nearer", 404),
        ("graph/export?format=pdf", 404),
        ("graph/export?community=nowhere", 404),
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


async def test_a_page_of_a_pdf_is_shown_with_a_quote_marked(client: httpx.AsyncClient) -> None:
    content = pdf([prose("Ada Lovelace wrote this letter.", "Charles Babbage answered.")])
    reply = (await client.put(f"{KB}/documents/letters/a.pdf", content=content)).json()
    await client.get(f"{KB}/jobs/{reply['job']['id']}/events")
    place = (await client.get(f"{KB}/boxes/letters/a.pdf?page=1&quote=Babbage answered")).json()
    assert (place["page"], place["n_pages"], len(place["boxes"])) == (1, 1, 1)
    assert all(0 < edge < 1 for edge in place["boxes"][0])
    picture = await client.get(f"{KB}/pages/letters/a.pdf?page=1&quote=Babbage answered")
    assert (picture.headers["content-type"], picture.content[:4]) == ("image/png", b"\x89PNG")
    missing = await client.get(f"{KB}/pages/letters/a.pdf?page=2")
    assert missing.status_code == 422
    assert "no page 2" in missing.text


async def test_a_picture_is_sent_as_one_so_that_the_page_shows_it(client: httpx.AsyncClient, index: Path) -> None:
    content = png("A map of Nordhaven.")
    with serving() as model:
        role = RoleSettings(role=Role.VISION, llm="custom/eyes", llm_base_url=model.base_url)
        async with quipu.open(index, role=(role,)) as kb:  # type: ignore[arg-type]
            await kb.add(SourceDocument(id="map.png", content=content, media_type="image/png"))
    original = await client.get(f"{KB}/originals/map.png")
    assert (original.headers["content-type"], original.content) == ("image/png", content)


def _read_map(content: bytes) -> tuple[dict[str, object], dict[str, np.ndarray], dict[str, list[str]]]:
    """Read the binary layout as docs/graph_map.md describes it."""
    magic, version, n_header, n_text = struct.unpack_from("<4sIII", content)
    assert (magic, version, n_header % 4) == (b"QMAP", 1, 0)
    header = json.loads(content[16 : 16 + n_header])
    arrays, end = {}, 16 + n_header
    for array in header.pop("arrays"):
        start = 16 + n_header + array["offset"]
        assert start == end
        values = np.frombuffer(content, f"<{array['type'][0]}4", count=array["length"], offset=start)
        arrays[f"{array['of']}.{array['name']}"] = values
        end = start + 4 * array["length"]
    assert end + n_text == len(content)
    return header, arrays, json.loads(content[end:])


@pytest.mark.parametrize("level", ["far", "middle", "near?name=Ada Lovelace"])
async def test_a_map_is_the_same_in_bytes_as_json_and_in_python(
    client: httpx.AsyncClient, index: Path, level: str
) -> None:
    binary = await client.get(f"{KB}/graph/map/{level}")
    assert binary.headers["content-type"] == "application/octet-stream"
    header, arrays, texts = _read_map(binary.content)
    reply = (await client.get(f"{KB}/graph/map/{level}", headers={"accept": "application/json"})).json()
    assert {name: reply[name] for name in (*header, *texts)} == header | texts
    listed = {f"{of}.{name}": values for of in ("nodes", "edges") for name, values in reply[of].items()}
    assert {name: values.tolist() for name, values in arrays.items()} == listed
    async with quipu.open(index) as kb:
        names = ["Ada Lovelace"] if "near" in level else []
        drawn = await kb.graph_map(MapQuery(level=MapLevel(level.partition("?")[0]), names=names))
    assert (list(drawn.ids), list(drawn.labels)) == (texts["ids"], texts["labels"])
    assert texts["labels"]
    np.testing.assert_array_equal(drawn.nodes["x"], arrays["nodes.x"])


async def test_a_map_that_the_client_has_is_not_sent_again(client: httpx.AsyncClient) -> None:
    first = await client.get(f"{KB}/graph/map/middle", headers={"accept-encoding": "identity"})
    packed = await client.get(f"{KB}/graph/map/middle", headers={"accept-encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.content == first.content
    headers = {"if-none-match": first.headers["etag"]}
    again = await client.get(f"{KB}/graph/map/middle", headers=headers)
    assert (again.status_code, again.content) == (304, b"")
    job = (await client.put(f"{KB}/documents/new.md", content=b"Grace Hopper met Howard Aiken.")).json()["job"]
    await client.get(f"{KB}/jobs/{job['id']}/events")
    assert (await client.get(f"{KB}/graph/map/middle", headers=headers)).status_code == 200


async def test_a_map_shows_only_the_types_asked_for(client: httpx.AsyncClient) -> None:
    people = await client.get(f"{KB}/graph/map/middle?type=Person", headers={"accept": "application/json"})
    assert set(people.json()["labels"]) == {"Ada Lovelace", "Charles Babbage"}


@pytest.mark.parametrize("name", FORMATS)
async def test_the_graph_is_saved_as_a_file(client: httpx.AsyncClient, index: Path, name: str) -> None:
    reply = await client.get(f"{KB}/graph/export?format={name}&type=Person")
    suffix = ".zip" if FORMATS[name].is_folder else FORMATS[name].suffix
    assert reply.headers["content-disposition"] == f'attachment; filename="graph{suffix}"'
    assert reply.headers["x-content-type-options"] == "nosniff"
    async with quipu.open(index) as kb:
        assert reply.content == b"".join([piece async for piece in kb.export_graph(name, types=["Person"])])
    assert FORMATS[name].is_folder or "Ada Lovelace" in reply.text


async def test_an_export_takes_the_filter_of_a_question(client: httpx.AsyncClient) -> None:
    everything = (await client.get(f"{KB}/graph/export")).json()["nodes"]
    nothing = await client.get(f"{KB}/graph/export", params={"filter": '{"exclude": ["*"]}'})
    assert everything
    assert nothing.json()["nodes"] == []
    for wrong in ("{", "[]", '{"documents": "a"}', '{"where": [{"field": "year"}]}'):
        reply = await client.get(f"{KB}/graph/export", params={"filter": wrong})
        assert reply.status_code == 422, wrong
        assert reply.json()["detail"]


async def test_a_graph_that_is_given_as_data_is_added_once(client: httpx.AsyncClient) -> None:
    graph = {
        "chunks": [{"content": "Mary Somerville taught Ada.", "source_id": "somerville"}],
        "entities": [{"entity_name": "Mary Somerville", "entity_type": "Person", "source_id": "somerville"}],
        "relationships": [{"src_id": "Mary Somerville", "tgt_id": "Jedburgh", "description": "She was born there."}],
        "name": "people",
    }
    planned = (await client.post(f"{KB}/graph", json={**graph, "dry_run": True})).json()
    assert (planned["n_added"], planned["n_entities"], planned["is_dry_run"]) == (2, 2, True)
    assert (await client.get(f"{KB}/documents/people%23Mary Somerville")).status_code == 404
    assert (await client.post(f"{KB}/graph", json=graph)).json()["n_added"] == 2
    assert (await client.post(f"{KB}/graph", json=graph)).json()["n_unchanged"] == 2
    entity = (await client.get(f"{KB}/entities/Mary Somerville")).json()["entity"]
    assert entity["type"] == "Person"
    text = await client.get(f"{KB}/texts/people%23Mary Somerville")
    assert text.text == "Mary Somerville – Jedburgh: She was born there."


async def test_a_graph_that_cannot_be_read_is_refused_with_the_place(client: httpx.AsyncClient) -> None:
    entities = [{"entity_name": "Ada"}, {"entity_name": "?"}]
    response = await client.post(f"{KB}/graph", json={"entities": entities})
    assert response.status_code == 422
    assert "`entity_name` of item 2 of `entities`" in response.text


async def test_a_weight_beyond_all_measure_is_refused(client: httpx.AsyncClient) -> None:
    relation = {"src_id": "Ada", "tgt_id": "Bob", "description": "friends", "weight": 1e308}
    response = await client.post(f"{KB}/graph", json={"relationships": [relation]})
    assert response.status_code == 422, response.text
    assert response.json()["errors"][0]["field"] == "relationships.0.weight"
