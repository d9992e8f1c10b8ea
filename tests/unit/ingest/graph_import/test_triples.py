"""Graphs without texts: each entity gets a document of its own words."""

from pathlib import Path

import pytest

from quipu.errors import InvalidInput
from quipu.ingest.graph_import import read_graph

RDF = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
COMMENT = "<http://www.w3.org/2000/01/rdf-schema#comment>"


def _texts(file: Path) -> dict[str, str]:
    return {document.id: document.content.decode() for document in read_graph([file]).documents}


def _write(folder: Path, name: str, *lines: str) -> Path:
    file = folder / name
    file.write_text("\n".join(lines), "utf-8")
    return file


def test_rows_of_a_table_are_relations_and_the_first_may_name_the_columns(tmp_path: Path) -> None:
    rows = ("subject,predicate,object", "Alice Kober,studied,Linear B", '"Ventris, Michael",deciphered,Linear B', "")
    file = _write(tmp_path, "graph.csv", *rows)
    assert _texts(file) == {
        "graph.csv#Alice Kober": "Alice Kober studied Linear B",
        "graph.csv#Ventris, Michael": "Ventris, Michael deciphered Linear B",
    }
    (relation,) = read_graph([file]).extractions["graph.csv#Alice Kober"].relations
    assert (relation.source, relation.keywords, relation.target) == ("Alice Kober", ("studied",), "Linear B")


def test_cells_of_a_tsv_file_are_divided_by_tabs(tmp_path: Path) -> None:
    assert list(_texts(_write(tmp_path, "g.tsv", "Kober\tstudied, sorted\tLinear B")).values()) == [
        "Kober studied, sorted Linear B"
    ]


def test_triples_without_a_name_or_about_one_entity_are_left_out_with_their_line(tmp_path: Path) -> None:
    file = _write(tmp_path, "g.csv", "Kober,studied,Linear B", "Kober, ,Linear B", "Knossos,is,the Knossos")
    assert read_graph([file]).omissions == (
        f"{file}, line 2: a part of the triple has no letter or digit",
        f'{file}, line 3: "Knossos" is related to itself',
    )


def test_statements_of_n_triples_have_labels_types_and_literals(tmp_path: Path) -> None:
    file = _write(
        tmp_path,
        "g.nt",
        "# a comment",
        f'<http://x/kober> {LABEL} "Alice Kober"@en .',
        f"<http://x/kober> {RDF} <http://x/AncientHistorian> .",
        f'<http://x/kober> {COMMENT} "Studied \\u201CLinear B\\u201D." .',
        '<http://x/kober> <http://x/birthYear> "1906"^^<http://www.w3.org/2001/XMLSchema#gYear> .',
        "<http://x/kober> <http://x/taughtAt> <http://x/Brooklyn_College> . # at last",
    )
    assert _texts(file) == {
        "g.nt#Alice Kober": "Alice Kober (Ancient historian): Studied “Linear B”.\n\n"
        "Alice Kober (Ancient historian): birth year: 1906\n\nAlice Kober taught at Brooklyn College"
    }


def test_nodes_and_edges_of_graphml_are_entities_and_relations(tmp_path: Path) -> None:
    names = ("label", "type", "description", "weight", "colour")
    keys = "".join(f'<key id="{name}" attr.name="{name}"/>' for name in names)
    values = {"label": "Kober", "type": "person", "colour": "red"}
    node = "".join(f'<data key="{name}">{value}</data>' for name, value in values.items())
    edge = '<edge source="n0" target="Linear B"><data key="label">studied</data><data key="weight">3</data></edge>'
    graph_text = f'<graph><node id="n0">{node}</node><node id="Linear B"/>{edge}</graph>'
    file = _write(tmp_path, "g.graphml", f"<graphml>{keys}{graph_text}</graphml>")
    assert _texts(file) == {
        "g.graphml#Kober": "Kober (person)\n\nKober – Linear B (studied)",
        "g.graphml#Linear B": "Linear B",
    }
    graph = read_graph([file])
    assert graph.extractions["g.graphml#Kober"].relations[0].weight == 3.0
    assert graph.omissions == (f"{file}: the attribute 'colour', 1 time",)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("g.csv", "a,b,c\na,b", r"line 2: 2 cells, where a triple has 3"),
        ("g.csv", 'a,"b,c', r"cannot be read as a table in UTF-8 \(unexpected end of data\)"),
        ("g.csv", "a,b," + "c" * 200_000, r"field larger than field limit"),
        ("g.tsv", "a,b,c", r"line 1: 1 cell, where a triple has 3"),
        ("g.nt", "<a> <b> <c> .\n<a> <b> .", r"line 2 is not a statement of N-Triples"),
        ("g.nt", "<a> <b> \"" + "\\\\" * 50_000, r"line 1 is not a statement of N-Triples"),
        ("g.graphml", "<graphml/>", r"No graph was found"),
    ],
)  # fmt: skip
def test_a_damaged_file_is_named_with_the_line(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        read_graph([_write(tmp_path, name, text)])


@pytest.mark.parametrize("name", ["g.csv", "g.nt"])
def test_bytes_that_are_no_utf_8_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"S\xe9bastien,met,Kober")
    with pytest.raises(InvalidInput, match="UTF-8"):
        read_graph([tmp_path / name])


def test_weights_that_are_no_positive_numbers_are_refused(tmp_path: Path) -> None:
    body = '<node id="a"/><node id="b"/>\n<edge source="a" target="b"><data key="w">-1</data></edge>'
    file = _write(tmp_path, "g.graphml", f'<graphml><key id="w" attr.name="weight"/><graph>{body}</graph></graphml>')
    with pytest.raises(InvalidInput, match=r"line 2: `weight` should be greater than 0"):
        read_graph([file])
