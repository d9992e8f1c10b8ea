"""Tests of windows: as full as the budget allows, each with the end of the one before, ending at words or rows."""

from collections.abc import Callable
from itertools import pairwise
from statistics import mean

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from quipu.ingest.chunkers import ChunkSpan, chunk_spans
from quipu.model.chunking import FIXED, Chunking
from quipu.model.document import ParsedDocument
from quipu.text.unicode import is_grapheme_boundary
from tests.unit.ingest.chunkers.texts import PIECES, Writer, assert_cover, count, parsed, plain, table


def cut(
    document: ParsedDocument,
    max_tokens: int | None = None,
    overlap: int | None = None,
    count: Callable[[str], int] = count,
) -> list[ChunkSpan]:
    return chunk_spans(document, Chunking(method=FIXED, max_tokens=max_tokens, overlap=overlap), count=count)


def shared(document: ParsedDocument, before: ChunkSpan, after: ChunkSpan) -> str:
    return document.text[after.start : before.end]


@given(
    pieces=st.lists(st.sampled_from(PIECES), max_size=120),
    max_tokens=st.integers(1, 60),
    overlap=st.one_of(st.none(), st.integers(0, 59)),
)
def test_windows_cover_the_text_within_budget(pieces: list[str], max_tokens: int, overlap: int | None) -> None:
    document = parsed("".join(pieces))
    overlap = min(overlap, max_tokens - 1) if overlap is not None else None
    spans = cut(document, max_tokens, overlap)
    assert_cover(document.text, spans)
    assert all(count(document.text[span.start : span.end]) <= max_tokens for span in spans)
    most = max_tokens // 12 if overlap is None else overlap
    assert all(count(shared(document, before, after)) <= most for before, after in pairwise(spans))


@given(text=st.text(max_size=300), max_tokens=st.integers(1, 30), overlap=st.integers(0, 29))
@example(text="\u0301" * 100, max_tokens=3, overlap=2)
@example(text="👩‍👩‍👧" * 30, max_tokens=2, overlap=1)
@example(text="a" + " " * 300 + "b", max_tokens=4, overlap=3)
def test_any_text_is_covered_within_budget(text: str, max_tokens: int, overlap: int) -> None:
    spans = cut(plain(text), max_tokens, min(overlap, max_tokens - 1))
    assert_cover(text, spans)
    assert all(count(text[span.start : span.end]) <= max_tokens for span in spans)


@pytest.mark.parametrize(
    "tokenize", [lambda text: len(text.split()), len, lambda text: int(len(text) ** 1.3), lambda text: 3 * len(text)]
)
def test_the_budget_holds_whatever_counts(tokenize: Callable[[str], int]) -> None:
    document = plain(" ".join(Writer(1).sentence() for _ in range(60)))
    spans = cut(document, 50, 10, tokenize)
    assert_cover(document.text, spans)
    assert all(tokenize(document.text[span.start : span.end]) <= 50 for span in spans)


def test_windows_are_1200_tokens_of_which_100_are_repeated_unless_told() -> None:
    document = plain(" ".join(Writer(2).sentence() for _ in range(900)))
    spans = cut(document)
    assert len(spans) > 5
    assert all(1_180 <= count(document.text[span.start : span.end]) <= 1_200 for span in spans[:-1])
    assert all(85 <= count(shared(document, before, after)) <= 100 for before, after in pairwise(spans))


def test_windows_begin_and_end_at_words() -> None:
    document = plain(" ".join(Writer(3).sentence() for _ in range(200)))
    words = set(document.text.split())
    for span in cut(document, 100, 20):
        text = document.text[span.start : span.end].split()
        assert text[0] in words and text[-1] in words


def test_an_overlap_of_none_repeats_nothing() -> None:
    document = plain(" ".join(Writer(4).sentence() for _ in range(100)))
    spans = cut(document, 50, 0)
    assert "".join(document.text[span.start : span.end] for span in spans).split() != []
    assert all(before.end <= after.start for before, after in pairwise(spans))
    assert mean(count(document.text[span.start : span.end]) for span in spans[:-1]) > 45


def test_text_without_spaces_is_cut_between_graphemes() -> None:
    text = "长城q\u0301👩‍👩‍👧" * 60
    for span in cut(plain(text), 20, 5):
        assert is_grapheme_boundary(text, span.start) and is_grapheme_boundary(text, span.end)


def test_a_table_is_cut_between_rows_and_its_header_repeated_and_counted() -> None:
    document = table(200, before="Cities and years.", after="That was all.")
    block = document.blocks[1]
    spans = cut(document, 60, 15)
    assert_cover(document.text, spans)
    for before, span in pairwise(spans):
        assert document.text[span.start - 1] == "\n"
        assert span.header == (block.header if span.start < block.end else "")
        assert count(f"{span.header}\n{document.text[span.start : span.end]}") <= 61
        assert span.end > before.end
    assert any(after.start < before.end for before, after in pairwise(spans))


def test_an_overlap_that_a_header_leaves_no_room_for_is_dropped() -> None:
    document = table(60)
    spans = cut(document, 20, 19)
    assert_cover(document.text, spans)
    assert all(count(f"{each.header}\n{document.text[each.start : each.end]}") <= 21 for each in spans)


@pytest.mark.parametrize("unit", ["word ", "x", "字", "\n"])
def test_work_grows_with_the_text_not_faster(unit: str) -> None:
    def n_counted(size: int) -> int:
        n_characters = 0

        def counting(text: str) -> int:
            nonlocal n_characters
            n_characters += len(text)
            return count(text)

        cut(plain(unit * (size // len(unit)) + "x"), count=counting)
        return n_characters

    assert n_counted(200_000) < 2.3 * n_counted(100_000)
