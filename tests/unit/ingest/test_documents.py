"""Tests of reading: who says how a document is cut, what its hash depends on, what its chunks carry."""

from dataclasses import replace

import pytest

from quipu.ingest.documents import (
    READING,
    ChangeStatus,
    IngestConfig,
    change_status,
    chunk_document,
    content_hash,
    extractor_input,
    parse_document,
    reading_identity,
)
from quipu.ingest.local import LocalExtractor
from quipu.model.chunking import Chunking, ChunkingRule
from quipu.model.document import Block, Document, DocumentStatus, ParsedDocument, SourceDocument
from quipu.model.ids import digest, digest_bytes
from tests.laws.world import INGEST_CONFIG

FIXED, SEMANTIC = Chunking(method="fixed"), Chunking(method="semantic")
RULES = (ChunkingRule(match="logs/*", chunking=FIXED), ChunkingRule(match="*.md", chunking=SEMANTIC))
RULED = replace(INGEST_CONFIG, rules=RULES)


def source(name: str, chunking: Chunking | None = None) -> SourceDocument:
    return SourceDocument(id=name, content=b"Marco Polo was here. Kublai Khan was there.", chunking=chunking)


@pytest.mark.parametrize(
    ("document", "chunking"),
    [
        (source("a.txt"), INGEST_CONFIG.chunking),
        (source("a.md"), SEMANTIC),
        (source("logs/a.md"), FIXED),
        (source("logs/a.md", Chunking()), Chunking()),
    ],
)
def test_a_document_says_how_it_is_cut_then_the_first_rule_then_the_settings(
    document: SourceDocument, chunking: Chunking
) -> None:
    assert RULED.chunking_of(document) == chunking


def test_a_call_wins_over_rules_and_settings_but_not_over_the_document() -> None:
    called = RULED.with_chunking(Chunking(max_tokens=99))
    assert called.chunking_of(source("logs/a.md")) == Chunking(max_tokens=99)
    assert called.chunking_of(source("logs/a.md", FIXED)) == FIXED
    assert RULED.with_chunking(None) is RULED


def test_the_hash_depends_on_how_the_document_is_cut_and_not_on_who_said_so() -> None:
    assert content_hash(source("a.txt"), INGEST_CONFIG) != content_hash(source("a.txt", FIXED), INGEST_CONFIG)
    assert content_hash(source("logs/a"), RULED) == content_hash(source("logs/a", FIXED), INGEST_CONFIG)


def test_the_hash_depends_on_the_settings_of_the_parser_where_its_media_type_has_some() -> None:
    config = replace(INGEST_CONFIG, parser_settings={"application/pdf": "ocr_languages=deu"})
    text, scan = source("a.txt"), replace(source("a.pdf"), media_type="application/pdf")
    assert content_hash(text, config) == content_hash(text, INGEST_CONFIG)
    assert content_hash(scan, config) != content_hash(scan, INGEST_CONFIG)
    assert reading_identity(config) != reading_identity(INGEST_CONFIG)


def test_the_hash_depends_on_the_embedder_only_where_it_helps_to_cut() -> None:
    class Other:
        identity, dimension = "other", INGEST_CONFIG.embedder.dimension
        embed, embed_queries = INGEST_CONFIG.embedder.embed, INGEST_CONFIG.embedder.embed_queries

    other = replace(INGEST_CONFIG, embedder=Other())
    assert content_hash(source("a.txt"), INGEST_CONFIG) == content_hash(source("a.txt"), other)
    assert content_hash(source("a.txt", SEMANTIC), INGEST_CONFIG) != content_hash(source("a.txt", SEMANTIC), other)


class OtherReader(LocalExtractor):
    identity, description = "other/1", "another reader"


BY_ANOTHER = replace(INGEST_CONFIG, extractor=OtherReader())


def indexed(
    status: DocumentStatus = DocumentStatus.READY, config: IngestConfig = INGEST_CONFIG, **changes: str
) -> Document:
    """Return what the index knows of a document that was read with this configuration."""
    content = content_hash(source("a.txt"), config)
    document = Document(id="a.txt", title="", status=status, content_hash=content, text_hash="t", original_hash="o")
    return replace(document, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        (None, ChangeStatus.CHANGED),
        (indexed(), ChangeStatus.UNCHANGED),
        (indexed(config=BY_ANOTHER), ChangeStatus.READ_OTHERWISE),
        (indexed(text_hash=""), ChangeStatus.CHANGED),
        (indexed(original_hash=""), ChangeStatus.CHANGED),
        (indexed(config=BY_ANOTHER, text_hash=""), ChangeStatus.READ_OTHERWISE),
        (indexed(DocumentStatus.PARTIAL), ChangeStatus.CHANGED),
        (indexed(DocumentStatus.PARTIAL, BY_ANOTHER), ChangeStatus.READ_OTHERWISE),
        (indexed(DocumentStatus.QUEUED), ChangeStatus.CHANGED),
        (indexed(DocumentStatus.FAILED, BY_ANOTHER), ChangeStatus.CHANGED),
        (indexed(config=replace(BY_ANOTHER, chunking=FIXED)), ChangeStatus.CHANGED),
        (indexed(content_hash=digest("of an index made before, by another")), ChangeStatus.CHANGED),
    ],
)
def test_what_is_as_it_was_is_read_again_by_who_could_read_more_of_it(
    before: Document | None, expected: ChangeStatus
) -> None:
    assert change_status(before, source("a.txt"), INGEST_CONFIG) is expected


def test_a_reader_under_another_name_is_the_same() -> None:
    class Renamed(LocalExtractor):
        description = "rules"

    renamed = replace(INGEST_CONFIG, extractor=Renamed())
    assert indexed(config=renamed).extractor == "rules"
    assert change_status(indexed(config=renamed), source("a.txt"), INGEST_CONFIG) is ChangeStatus.UNCHANGED


def test_an_index_made_before_readers_were_noted_is_not_read_again() -> None:
    marco = source("a.txt")
    before = digest(READING, INGEST_CONFIG.extractor.identity, INGEST_CONFIG.tokenizer.identity)
    how = digest(before, INGEST_CONFIG.chunking.to_json(), "")
    document = indexed(content_hash=digest(how, digest_bytes(marco.content), marco.media_type, "", ""))
    assert document.extractor == ""
    assert change_status(document, marco, INGEST_CONFIG) is ChangeStatus.UNCHANGED


def test_a_missing_original_does_not_count_where_originals_are_not_kept() -> None:
    config = replace(INGEST_CONFIG, keep_originals=False)
    assert change_status(indexed(original_hash=""), source("a.txt"), config) is ChangeStatus.UNCHANGED
    assert change_status(indexed(text_hash=""), source("a.txt"), config) is ChangeStatus.CHANGED


def test_a_chunk_in_the_body_of_a_table_has_its_header_and_counts_it() -> None:
    header = "| city | year |"
    text = header + "".join(f"\n| city {number} | {number} |" for number in range(40))
    parsed = ParsedDocument(text=text, title="", blocks=(Block(start=0, end=len(text), kind="table", header=header),))
    config = replace(INGEST_CONFIG, parse=lambda _source: parsed)
    first, *others = chunk_document(parse_document(source("a"), config), (), config).chunks
    assert first.header == "" and len(others) > 3
    for chunk in others:
        assert chunk.header == header
        assert text[chunk.start : chunk.end] == chunk.text
        assert chunk.n_tokens == config.tokenizer.count(f"{header}\n{chunk.text}")
        assert extractor_input(chunk).header == header
        assert chunk.input_hash == extractor_input(chunk).hash(config.extractor.identity)
