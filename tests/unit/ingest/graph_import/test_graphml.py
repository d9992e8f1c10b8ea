"""GraphML is read element by element; what is not a graph is refused with the line."""

from pathlib import Path

import pytest

from quipu.errors import InvalidInput
from quipu.ingest.graph_import.graphml import read_graphml

HEAD = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'


def _write(folder: Path, body: str, head: str = HEAD) -> Path:
    file = folder / "graph.graphml"
    file.write_text(f"{head}{body}</graphml>", "utf-8")
    return file


def test_attributes_have_the_names_of_their_keys_and_defaults(tmp_path: Path) -> None:
    keys = '<key id="d0" for="node" attr.name="type"><default>Script</default></key><key id="d1" attr.name="weight"/>'
    nodes = '<node id="a"><data key="d0">Person</data></node><node id="b"/>'
    edge = '<edge source="a" target="b"><data key="d1"> 2.5 </data></edge>'
    graph = read_graphml(_write(tmp_path, f"{keys}<graph>\n{nodes}\n{edge}</graph>"))
    assert {name: dict(node.attributes) for name, node in graph.nodes.items()} == {
        "a": {"type": "Person"},
        "b": {"type": "Script"},
    }
    (read,) = graph.edges
    assert (read.source, read.target, dict(read.attributes), read.line) == ("a", "b", {"weight": " 2.5 "}, 4)


def test_graphs_within_nodes_and_labels_of_editors_are_read(tmp_path: Path) -> None:
    key = '<key id="d6" for="node" yfiles.type="nodegraphics"/>'
    label = '<data key="d6"><y:ShapeNode><y:NodeLabel>Pylos</y:NodeLabel></y:ShapeNode></data>'
    inner = f'<graph id="a:"><node id="a::b">{label}</node></graph>'
    graph = read_graphml(_write(tmp_path, f'{key}<graph><node id="a">{inner}</node></graph>'))
    assert graph.nodes["a::b"].attributes == {"nodegraphics": "Pylos"}
    assert set(graph.nodes) == {"a", "a::b"}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('<graph>\n<node/></graph>', r"line 3: the node has no `id`"),
        ('<graph><node id="a"/>\n<node id="a"/></graph>', r"line 3: there is a second node 'a'"),
        ('<graph>\n\n<edge source="a" target="b"/></graph>', r"line 4: the edge names the node 'a', which is missing"),
        ('<graph><node id="a"><data key="d9">x</data></node></graph>', r"line 2: there is no <key> with the id 'd9'"),
        ("<graph><node id='a'></graph>", r"is not valid XML \(mismatched tag: line 2"),
        ("<a>" * 40, r"line 2: elements nest more than 32 deep"),
        (f"<graph><node id='{'a' * (3 << 20)}'/></graph>", r"a tag is longer than 1,048,576 bytes"),
    ],
)  # fmt: skip
def test_what_is_no_graph_is_refused_with_the_line(tmp_path: Path, body: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        read_graphml(_write(tmp_path, body))


def test_a_bomb_of_entities_is_refused_at_its_document_type(tmp_path: Path) -> None:
    entities = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 12))
    head = f'<?xml version="1.0"?>\n<!DOCTYPE graphml [<!ENTITY a0 "lol">{entities}]>\n<graphml>'
    with pytest.raises(InvalidInput, match=r"line 2: the file has a document type"):
        read_graphml(_write(tmp_path, "<graph><node id='&a11;'/></graph>", head))


def test_a_huge_attribute_is_refused(tmp_path: Path) -> None:
    body = (
        '<key id="d" attr.name="x"/><graph><node id="a"><data key="d">'
        + "words " * (1 << 20)
        + "</data></node></graph>"
    )
    with pytest.raises(InvalidInput, match=r"an attribute has more than 4,194,304 characters"):
        read_graphml(_write(tmp_path, body))


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "graph.graphml").touch()
    with pytest.raises(InvalidInput, match=r"is not valid XML \(no element found"):
        read_graphml(tmp_path / "graph.graphml")
