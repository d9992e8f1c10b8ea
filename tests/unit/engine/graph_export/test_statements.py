"""Statements: no name leaves its literal, in Cypher or in Turtle."""

import re

import pytest
from rdflib import Graph, Literal, URIRef
from rdflib.namespace import DCTERMS, RDF, RDFS, SKOS, XSD

from quipu.engine import Quipu
from quipu.engine.graph_export.statements import cypher_literal
from tests.unit.engine.graph_export.world import ESCAPES, FORMULA, LHASA, SCRIPT, WIKI, exported

_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "\\": "\\", "'": "'"}
_TERM = "urn:quipu:term:"


def _texts(script: str) -> tuple[str, list[str]]:
    """Return a script with its texts replaced by "?", and these texts, by the rules of Cypher's strings."""
    rest, texts, place = "", list[str](), 0
    while place < len(script):
        if script[place] != "'":
            rest, place = rest + script[place], place + 1
            continue
        text, place = "", place + 1
        while script[place] != "'":
            is_escaped = script[place] == "\\"
            text += _ESCAPES[script[place + 1]] if is_escaped else script[place]
            place += 2 if is_escaped else 1
        if rest.endswith("? + "):
            texts[-1] += text
            rest = rest.removesuffix(" + ")
        else:
            texts.append(text)
            rest += "?"
        place += 1
    return rest, texts


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain",
        "it's",
        "'",
        "\\",
        "\\'",
        "'; MATCH (n) DETACH DELETE n; //",
        "\\u0027",
        "\\\\u0027",
        "a\nb\r\tc",
        "*/ // '",
    ],
)
def test_a_text_comes_back_from_its_literal(text: str) -> None:
    literal = cypher_literal(text)
    assert _texts(literal) == ("?", [text])
    assert "\n" not in literal


@pytest.mark.parametrize("text", ["\\u0027 OR 1=1", "\\\\u0027", "x\\uuuu0027"])
def test_no_unicode_escape_is_left_that_neo4j_would_replace_first(text: str) -> None:
    assert "\\u" not in cypher_literal(text)


def test_numbers_lists_and_mappings_are_literals() -> None:
    assert cypher_literal({"a": 1, "b": [2.5, "c'd"]}) == "{a: 1, b: [2.5, 'c\\'d']}"
    assert cypher_literal("\x00\ud800") == "'\ufffd'"


async def test_a_script_of_cypher_holds_every_entity_relation_and_document(kb: Quipu) -> None:
    script = await exported(kb, "cypher")
    rest, texts = _texts(script)
    assert {"Ada", SCRIPT, LHASA, WIKI, FORMULA, ESCAPES, "../evil/../con", "Countess <u>"} <= set(texts)
    statements = [re.sub(r"\s+", " ", statement).strip() for statement in rest.split(";")]
    assert sum(statement.count("UNWIND") for statement in statements) == 8  # entities, relations, 3 documents
    assert len(statements) == 2 + 8 + 1  # with the constraints, and nothing after the last
    assert "DELETE" not in rest


async def test_rdflib_reads_turtle_with_every_name_as_it_is(kb: Quipu) -> None:
    graph = Graph()
    graph.parse(data=await exported(kb, "turtle"), format="turtle")
    assert {str(label) for label in graph.objects(None, RDFS.label)} == {"Ada", SCRIPT, LHASA, WIKI, FORMULA}
    [ada] = graph.subjects(RDFS.label, Literal("Ada"))
    assert graph.value(ada, SKOS.altLabel) == Literal("Countess <u>")
    assert (ada, RDF.type, URIRef("urn:quipu:type:Person")) in graph
    assert len(list(graph.subject_objects(SKOS.related))) == 2
    [relation] = set(graph.subjects(RDFS.comment, Literal(ESCAPES))) - set(graph.subjects(RDFS.label))
    assert (relation, URIRef(f"{_TERM}weight"), Literal("2.5", datatype=XSD.double)) in graph
    [letters] = graph.subjects(DCTERMS.identifier, Literal("letters<b>.md"))
    assert (letters, URIRef(f"{_TERM}mentions"), ada) in graph
