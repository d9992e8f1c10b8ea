"""Tests of cutting at a separator: alone each piece is a chunk; with a limit pieces are joined and cut."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quipu.ingest.chunkers import ChunkSpan, chunk_spans
from quipu.model.chunking import MAX_CHUNK_TOKENS, SEPARATOR, Chunking
from quipu.model.document import ParsedDocument
from tests.unit.ingest.chunkers.texts import PIECES, Writer, count, parsed, plain, table

RULE = "\n---\n"


def cut(document: ParsedDocument, separator: str = RULE, max_tokens: int | None = None) -> list[ChunkSpan]:
    return chunk_spans(document, Chunking(method=SEPARATOR, separator=separator, max_tokens=max_tokens), count=count)


def texts(text: str, separator: str = RULE, max_tokens: int | None = None) -> list[str]:
    document = plain(text)
    return [document.text[span.start : span.end] for span in cut(document, separator, max_tokens)]


@given(
    pieces=st.lists(st.sampled_from([*PIECES, "--", RULE]), max_size=80), separator=st.sampled_from(["--", RULE, " "])
)
def test_alone_the_chunks_are_the_pieces(pieces: list[str], separator: str) -> None:
    document = parsed("".join(pieces))
    expected = [piece.strip() for piece in document.text.split(separator) if piece.strip()]
    assert [document.text[span.start : span.end] for span in cut(document, separator)] == expected


@given(pieces=st.lists(st.sampled_from([*PIECES, "§§", "§§"]), max_size=120), max_tokens=st.integers(1, 60))
def test_with_a_limit_everything_but_separators_is_covered_within_budget(pieces: list[str], max_tokens: int) -> None:
    document = parsed("".join(pieces))
    spans = cut(document, "§§", max_tokens)
    found = [document.text[span.start : span.end] for span in spans]
    assert all(count(text) <= max_tokens for text in found)
    assert all(before.end <= after.start for before, after in pairwise(spans))
    assert visible("".join(found)) == visible(document.text)


def visible(text: str) -> str:
    return "".join(text.replace("§§", "").split())


def test_blank_pieces_and_separators_at_the_ends_make_no_chunks() -> None:
    assert texts(f"{RULE}One.{RULE}{RULE} {RULE}Two.{RULE}") == ["One.", "Two."]
    assert texts(f"{RULE}{RULE}", max_tokens=40) == []
    assert texts(f"{RULE}One.{RULE}", max_tokens=40) == ["One."]


def test_a_text_without_the_separator_is_one_chunk_of_at_most_the_most_there_may_be() -> None:
    assert texts("One. Two.") == ["One. Two."]
    long = texts("One two three. " * 30_000)
    assert len(long) > 3
    assert max(map(count, long)) <= MAX_CHUNK_TOKENS


def test_small_pieces_share_a_chunk_with_what_stands_between_them() -> None:
    pieces = [f"Piece {number} says little." for number in range(100)]
    found = texts(RULE.join(pieces), max_tokens=64)
    assert len(found) < 40
    assert all(count(text) <= 64 for text in found)
    assert [piece for text in found for piece in text.split(RULE)] == pieces


def test_a_piece_that_fits_is_never_cut() -> None:
    writer = Writer(1)
    pieces = [" ".join(writer.sentence() for _ in range(1 + number % 7)) for number in range(200)]
    limit = max(map(count, pieces)) + 8
    assert [piece for text in texts(RULE.join(pieces), max_tokens=limit) for piece in text.split(RULE)] == pieces


def test_a_piece_over_the_limit_is_cut_at_its_own_joints() -> None:
    writer = Writer(2)
    sentences = [writer.sentence() for _ in range(60)]
    found = texts(f"Before.{RULE}{' '.join(sentences)}{RULE}After.", max_tokens=100)
    assert (found[0], found[-1]) == ("Before.", "After.")
    assert " ".join(found[1:-1]) == " ".join(sentences)
    assert all(text.endswith(".") for text in found)


def test_an_edit_with_a_limit_moves_few_chunks() -> None:
    writer = Writer(3)
    pieces = [writer.paragraph() for _ in range(600)]
    before = set(texts(RULE.join(pieces), max_tokens=150))
    assert len(before) > 200
    for _ in range(10):
        after = set(texts(RULE.join(writer.edit(pieces, writer.paragraph)), max_tokens=150))
        assert len(after - before) <= 6


@pytest.mark.parametrize("max_tokens", [None, 60])
def test_a_piece_that_begins_in_a_table_repeats_its_header(max_tokens: int | None) -> None:
    document = table(100)
    spans = cut(document, "\n", max_tokens)
    assert spans[0].header == ""
    assert all(span.header == document.blocks[0].header for span in spans[1:])
