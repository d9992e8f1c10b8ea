"""Files of graph programs: complete, well-formed, and read back by networkx."""

import io
import json
from pathlib import Path
from xml.etree import ElementTree

import networkx
import pytest

from quipu.engine import Quipu
from tests.laws.world import engine
from tests.unit.engine.graph_export.world import COMMENT, ESCAPES, FORMULA, SCRIPT, WIKI, exported, exported_bytes

_GRAPHML = "{http://graphml.graphdrawing.org/xmlns}"
_READ = {"graphml": networkx.read_graphml, "gexf": networkx.read_gexf}


async def test_json_has_every_entity_and_relation_with_its_place(kb: Quipu) -> None:
    graph = json.loads(await exported(kb, "json"))
    assert {node["label"] for node in graph["nodes"]} == {entity.name for entity in (await kb.entities()).entities}
    ada = next(node for node in graph["nodes"] if node["id"] == "ada")
    drawn = await kb.graph_map()
    assert (ada["type"], ada["aliases"], ada["mentions"]) == ("Person", ["Countess <u>"], 2)
    assert ada["community"] in drawn.communities
    [edge] = [edge for edge in graph["edges"] if "ada" in (edge["source"], edge["target"])]
    assert edge["keywords"] == ["a", "b"]
    read = networkx.node_link_graph(graph, edges="edges")
    assert (len(read), read.number_of_edges()) == (5, 2)


async def test_graphml_is_well_formed_and_declares_its_values(kb: Quipu) -> None:
    root = ElementTree.fromstring(await exported(kb, "graphml"))
    keys = {key.get("id") for key in root.findall(f"{_GRAPHML}key")}
    assert {value.get("key") for value in root.iter(f"{_GRAPHML}data")} <= keys


@pytest.mark.parametrize("name", ["graphml", "gexf"])
async def test_networkx_reads_names_full_of_markup_as_they_are(kb: Quipu, name: str) -> None:
    graph = _READ[name](io.BytesIO(await exported_bytes(kb, name)))
    labels = {values["label"]: values for _, values in graph.nodes(data=True)}
    assert labels.keys() == {"Ada", SCRIPT, "Лхаса", WIKI, FORMULA}  # without a character that XML does not allow
    assert labels["Ada"]["description"] == f"A <i>countess</i> & {COMMENT}"
    assert (labels["Ada"]["aliases"], labels["Ada"]["mentions"]) == ("Countess <u>", 2)
    assert labels[WIKI]["description"] == ESCAPES
    relations = {values["description"]: values for *_, values in graph.edges(data=True)}
    assert relations[ESCAPES]["weight"] == 2.5
    assert relations["knew <img src=x onerror=alert(1)>"]["keywords"] == "a; b"


@pytest.mark.parametrize("name", ["graphml", "gexf"])
async def test_an_empty_graph_is_a_file_without_nodes(tmp_path: Path, name: str) -> None:
    async with engine(tmp_path / "empty") as kb:
        assert len(_READ[name](io.BytesIO(await exported_bytes(kb, name)))) == 0


async def test_an_empty_graph_has_no_nodes_in_json(tmp_path: Path) -> None:
    async with engine(tmp_path / "empty") as kb:
        assert json.loads(await exported(kb, "json"))["nodes"] == []
