"""Tests of reading: who says how a document is cut, what its hash depends on, what its chunks carry."""

from dataclasses import replace

import pytest

from quipu.ingest.local.extractor import LocalExtractor
from quipu.ingest.reading import Recipe, Standing, chunking_of, content_hash, cut, draft, extractor_input, standing
from quipu.model.chunking import Chunking, ChunkingRule
from quipu.model.document import Block, Document, DocumentStatus, ParsedDocument, SourceDocument
from quipu.model.ids import digest, digest_bytes
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


class OtherReader(LocalExtractor):
    identity, description = "other/1", "another reader"


BY_ANOTHER = replace(RECIPE, extractor=OtherReader())


def known(status: DocumentStatus = DocumentStatus.READY, recipe: Recipe = RECIPE, **changes: str) -> Document:
    """Return what the index knows of a document that was read by a recipe."""
    content = content_hash(source("a.txt"), recipe)
    return replace(Document(id="a.txt", title="", status=status, content_hash=content), **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        (None, Standing.TO_READ),
        (known(), Standing.READ),
        (known(recipe=BY_ANOTHER), Standing.READ_OTHERWISE),
        (known(DocumentStatus.PARTIAL), Standing.TO_READ),
        (known(DocumentStatus.PARTIAL, BY_ANOTHER), Standing.READ_OTHERWISE),
        (known(DocumentStatus.QUEUED), Standing.TO_READ),
        (known(DocumentStatus.FAILED, BY_ANOTHER), Standing.TO_READ),
        (known(recipe=replace(BY_ANOTHER, chunking=FIXED)), Standing.TO_READ),
        (known(content_hash=digest("of an index made before, by another")), Standing.TO_READ),
    ],
)
def test_what_is_as_it_was_is_read_again_by_who_could_read_more_of_it(
    before: Document | None, expected: Standing
) -> None:
    assert standing(before, source("a.txt"), RECIPE) is expected


def test_a_reader_under_another_name_is_the_same() -> None:
    class Renamed(LocalExtractor):
        description = "rules"

    renamed = replace(RECIPE, extractor=Renamed())
    assert known(recipe=renamed).reader == "rules"
    assert standing(known(recipe=renamed), source("a.txt"), RECIPE) is Standing.READ


def test_an_index_made_before_readers_were_noted_is_not_read_again() -> None:
    marco = source("a.txt")
    before = digest("reading/2", RECIPE.extractor.identity, RECIPE.tokenizer.identity)
    how = digest(before, RECIPE.chunking.to_json(), "")
    document = known(content_hash=digest(how, digest_bytes(marco.data), marco.media_type, "", ""))
    assert document.reader == ""
    assert standing(document, marco, RECIPE) is Standing.READ


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
