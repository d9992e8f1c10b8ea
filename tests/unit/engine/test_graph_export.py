"""Exports of the graph: complete, well-formed, and without any markup of the documents."""

import json
import re
from base64 import b64encode
from collections.abc import AsyncIterator
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from quipu.engine import Quipu
from quipu.engine.graph_export import FORMATS
from quipu.errors import NotFound
from quipu.testing.contract.steps import publish
from quipu.testing.facts import alias, document, entity, passage, relation
from tests.laws.world import engine

_SCRIPT = "</script><script>alert(1)</script>"
_COMMENT = "<!--<script>\"'&amp; ]]>"
_GRAPHML = "{http://graphml.graphdrawing.org/xmlns}"


@pytest.fixture
async def kb(tmp_path: Path) -> AsyncIterator[Quipu]:
    async with engine(tmp_path / "kb") as kb:
        await publish(
            kb._components.store,
            document(
                "letters<b>.md",
                passage(
                    f"It was late. Ada knew {_SCRIPT} well. She left.",
                    entity("Ada", "Person", f"A <i>countess</i> & {_COMMENT}"),
                    entity(_SCRIPT, "Person"),
                    alias("Ada", "Countess <u>"),
                    relation("Ada", _SCRIPT, "knew <img src=x onerror=alert(1)>", keywords=("a", "b")),
                ),
            ),
            document("2", passage("Ada saw Лхаса\x01.", entity("Ada", "Person"), entity("Лхаса\x01", "Place"))),
        )
        yield kb


async def _exported(kb: Quipu, name: str, **options: list[str]) -> str:
    return "".join([piece async for piece in kb.export_graph(name, **options)])


async def test_json_has_every_entity_and_relation_with_its_place(kb: Quipu) -> None:
    exported = json.loads(await _exported(kb, "json"))
    assert {node["label"] for node in exported["nodes"]} == {entity.name for entity in (await kb.entities()).entities}
    ada = next(node for node in exported["nodes"] if node["id"] == "ada")
    drawn = await kb.graph_map()
    assert (ada["type"], ada["aliases"], ada["mentions"]) == ("Person", ["Countess <u>"], 2)
    assert ada["community"] in drawn.communities
    [edge] = exported["edges"]
    assert "ada" in (edge["source"], edge["target"])
    assert edge["keywords"] == ["a", "b"]
    assert exported["graph"] == {"revision": drawn.revision}


async def test_graphml_is_well_formed_and_declares_its_values(kb: Quipu) -> None:
    root = ElementTree.fromstring(await _exported(kb, "graphml"))
    keys = {key.get("id") for key in root.findall(f"{_GRAPHML}key")}
    assert {value.get("key") for value in root.iter(f"{_GRAPHML}data")} <= keys
    nodes = root.findall(f"{_GRAPHML}graph/{_GRAPHML}node")
    labels = {node.findtext(f"{_GRAPHML}data[@key='node_label']") for node in nodes}
    assert labels == {"Ada", _SCRIPT, "Лхаса"}  # without the character that XML does not allow
    [edge] = root.findall(f"{_GRAPHML}graph/{_GRAPHML}edge")
    assert {edge.get("source"), edge.get("target")} < {node.get("id") for node in nodes}
    assert edge.findtext(f"{_GRAPHML}data[@key='edge_keywords']") == "a; b"


async def test_a_type_or_community_limits_an_export(kb: Quipu) -> None:
    people = json.loads(await _exported(kb, "json", types=["Person"]))
    assert {node["type"] for node in people["nodes"]} == {"Person"}
    assert len(people["edges"]) == 1
    community = people["nodes"][0]["community"]
    part = json.loads(await _exported(kb, "json", communities=[community]))
    assert {node["community"] for node in part["nodes"]} == {community}
    places = json.loads(await _exported(kb, "json", types=["Place"]))
    assert (len(places["nodes"]), places["edges"]) == (1, [])


async def test_an_unknown_format_or_community_is_named(kb: Quipu) -> None:
    with pytest.raises(NotFound, match="'pdf'"):
        await _exported(kb, "pdf")
    with pytest.raises(NotFound, match="'nowhere'"):
        await _exported(kb, "json", communities=["nowhere"])


@pytest.mark.parametrize("name", FORMATS)
async def test_an_empty_graph_is_exported(tmp_path: Path, name: str) -> None:
    async with engine(tmp_path / "empty") as kb:
        exported = await _exported(kb, name)
    if name == "json":
        assert json.loads(exported)["nodes"] == []
    elif name == "graphml":
        assert ElementTree.fromstring(exported).find(f"{_GRAPHML}graph/{_GRAPHML}node") is None
    else:
        assert _Page(exported).graph["nodes"] == []


class _Page(HTMLParser):
    """The elements of a page, and the texts of its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {"script": [], "style": []}
        self._open = ""
        self.feed(text)
        self.close()
        self.graph = json.loads(self.texts["script"][0])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._open = tag
        if tag in self.texts:
            self.texts[tag].append("")

    def handle_endtag(self, tag: str) -> None:
        self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open in self.texts:
            self.texts[self._open][-1] += data


async def test_a_page_shows_names_full_of_markup_as_they_are(kb: Quipu) -> None:
    text = await _exported(kb, "html")
    page = _Page(text)
    assert {node["label"] for node in page.graph["nodes"]} == {"Ada", _SCRIPT, "Лхаса\x01"}
    ada = next(node for node in page.graph["nodes"] if node["id"] == "ada")
    assert ada["description"] == f"A <i>countess</i> & {_COMMENT}"
    first = next(quote for quote in ada["quotes"] if quote["document"] == "letters<b>.md")
    assert first["text"] == f"Ada knew {_SCRIPT} well."
    assert len(page.texts["script"]) == 2
    assert "alert" not in page.texts["script"][1]
    assert "<" not in page.texts["script"][0]
    assert page.graph["totals"] == {"n_entities": 3, "n_relations": 1}


async def test_a_page_runs_only_its_own_script_and_asks_no_other_host(kb: Quipu) -> None:
    text = await _exported(kb, "html")
    page = _Page(text)
    assert not [
        attributes for _, attributes in page.elements if {"src", "href", "style", "onclick"} & attributes.keys()
    ]
    assert not re.search(r"innerHTML|insertAdjacent|document\.write|eval\(|https?://|fetch\(", text)
    policy = next(attributes["content"] for _, attributes in page.elements if attributes.get("http-equiv"))
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    for content in (page.texts["script"][1], page.texts["style"][0]):
        assert f"'sha256-{b64encode(sha256(content.encode()).digest()).decode()}'" in policy
