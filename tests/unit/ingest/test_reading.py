"""Tests of reading: who says how a document is cut, what its hash depends on, what its chunks carry."""

from dataclasses import replace

import pytest

from quipu.ingest.reading import chunking_of, content_hash, cut, draft, extractor_input
from quipu.model.chunking import Chunking, ChunkingRule
from quipu.model.document import Block, ParsedDocument, SourceDocument
from tests.laws.world import RECIPE

FIXED, SEMANTIC = Chunking(method="fixed"), Chunking(method="semantic")
RULES = (ChunkingRule(match="logs/*", chunking=FIXED), ChunkingRule(match="*.md", chunking=SEMANTIC))
RULED = replace(RECIPE, rules=RULES)


def source(name: str, chunking: Chunking | None = None) -> SourceDocument:
    return SourceDocument(id=name, data=b"Marco Polo was here. Kublai Khan was there.", chunking=chunking)


@pytest.mark.parametrize(
    ("document", "chunking"),
    [
        (source("a.txt"), RECIPE.chunking),
        (source("a.md"), SEMANTIC),
        (source("logs/a.md"), FIXED),
        (source("logs/a.md", Chunking()), Chunking()),
    ],
)
def test_a_document_says_how_it_is_cut_then_the_first_rule_then_the_settings(
    document: SourceDocument, chunking: Chunking
) -> None:
    assert chunking_of(document, RULED) == chunking


def test_a_call_wins_over_rules_and_settings_but_not_over_the_document() -> None:
    called = RULED.with_chunking(Chunking(max_tokens=99))
    assert chunking_of(source("logs/a.md"), called) == Chunking(max_tokens=99)
    assert chunking_of(source("logs/a.md", FIXED), called) == FIXED
    assert RULED.with_chunking(None) is RULED


def test_the_hash_depends_on_how_the_document_is_cut_and_not_on_who_said_so() -> None:
    assert content_hash(source("a.txt"), RECIPE) != content_hash(source("a.txt", FIXED), RECIPE)
    assert content_hash(source("logs/a"), RULED) == content_hash(source("logs/a", FIXED), RECIPE)


def test_the_hash_depends_on_the_embedder_only_where_it_helps_to_cut() -> None:
    class Other:
        identity, dimension = "other", RECIPE.embedder.dimension
        embed, embed_queries = RECIPE.embedder.embed, RECIPE.embedder.embed_queries

    other = replace(RECIPE, embedder=Other())
    assert content_hash(source("a.txt"), RECIPE) == content_hash(source("a.txt"), other)
    assert content_hash(source("a.txt", SEMANTIC), RECIPE) != content_hash(source("a.txt", SEMANTIC), other)


def test_a_chunk_in_the_body_of_a_table_has_its_header_and_counts_it() -> None:
    header = "| city | year |"
    text = header + "".join(f"\n| city {number} | {number} |" for number in range(40))
    parsed = ParsedDocument(text=text, title="", blocks=(Block(start=0, end=len(text), kind="table", header=header),))
    recipe = replace(RECIPE, parse=lambda _source: parsed)
    first, *others = cut(draft(source("a"), recipe), (), recipe).chunks
    assert first.header == "" and len(others) > 3
    for chunk in others:
        assert chunk.header == header
        assert text[chunk.start : chunk.end] == chunk.text
        assert chunk.n_tokens == recipe.tokenizer.count(f"{header}\n{chunk.text}")
        assert extractor_input(chunk).header == header
        assert chunk.input_hash == extractor_input(chunk).hash(recipe.extractor.identity)
