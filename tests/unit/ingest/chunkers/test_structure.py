"""Tests of the default chunker: a partition, within budget, along the text's own joints, and stable under edits."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from statistics import mean

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from quipu.ingest.chunkers import ChunkSpan, chunk_spans
from quipu.ingest.chunkers.chunker import tokens_for_size
from quipu.model.chunking import Chunking
from quipu.model.document import Block, ParsedDocument
from quipu.text.unicode import is_grapheme_boundary
from tests.unit.ingest.chunkers.texts import PIECES, Writer, assert_partition, count, parsed, table

DATA = Path(__file__).resolve().parents[4] / "../shared/data/hirag_mix61/corpus.jsonl"


def cut(document: ParsedDocument, max_tokens: int = 1_200, count: Callable[[str], int] = count) -> list[ChunkSpan]:
    return chunk_spans(document, Chunking(max_tokens=max_tokens), count=count)


def chunk_texts(text: str, max_tokens: int) -> list[str]:
    document = parsed(text)
    return [document.text[span.start : span.end] for span in cut(document, max_tokens)]


@given(pieces=st.lists(st.sampled_from(PIECES), max_size=120), max_tokens=st.integers(1, 60))
def test_chunks_are_a_partition_within_budget(pieces: list[str], max_tokens: int) -> None:
    document = parsed("".join(pieces))
    spans = cut(document, max_tokens)
    assert_partition(document.text, spans)
    assert all(count(document.text[span.start : span.end]) <= max_tokens for span in spans)


@given(text=st.text(max_size=400), max_tokens=st.integers(1, 40))
@example(text="\u0301" * 100, max_tokens=3)
@example(text="👩‍👩‍👧" * 30, max_tokens=2)
def test_any_text_without_blocks_is_cut_within_budget(text: str, max_tokens: int) -> None:
    document = ParsedDocument(text=text, title="", blocks=())
    spans = cut(document, max_tokens)
    assert_partition(text, spans)
    assert all(count(text[span.start : span.end]) <= max_tokens for span in spans)


@given(pieces=st.lists(st.sampled_from(["é", "👩‍👩‍👧", "q\u0301", "x", "字", " ", "🇫🇷", "."]), max_size=200))
def test_graphemes_stay_whole(pieces: list[str]) -> None:
    text = "".join(pieces)
    for span in cut(ParsedDocument(text=text, title="", blocks=()), 12):
        assert is_grapheme_boundary(text, span.start)
        assert is_grapheme_boundary(text, span.end)


@pytest.mark.parametrize(
    "tokenize", [lambda text: len(text.split()), len, lambda text: int(len(text) ** 1.3), lambda text: 3 * len(text)]
)
def test_the_budget_holds_whatever_counts(tokenize: Callable[[str], int]) -> None:
    document = parsed("\n\n".join(Writer(1).paragraph() for _ in range(30)))
    spans = cut(document, 50, tokenize)
    assert_partition(document.text, spans)
    assert all(tokenize(document.text[span.start : span.end]) <= 50 for span in spans)


def test_a_text_without_words_has_no_chunks() -> None:
    assert cut(ParsedDocument(text="", title="", blocks=())) == []
    assert cut(ParsedDocument(text=" \n" * 9_000, title="", blocks=())) == []


def test_a_text_within_budget_is_one_chunk() -> None:
    assert chunk_texts("# Head\n\nOne.\n\n## Sub\n\nTwo.\n", 1_200) == ["# Head\n\nOne.\n\n## Sub\n\nTwo."]


def test_large_documents_have_smaller_chunks() -> None:
    assert (tokens_for_size(100_000), tokens_for_size(100_001)) == (1_200, 600)


def test_sections_that_fill_half_a_chunk_begin_one() -> None:
    writer = Writer(2)
    sections = [f"## Part {number}\n\n" + " ".join(writer.sentence() for _ in range(12)) for number in range(20)]
    n_tokens = max(count(section) for section in sections)
    assert chunk_texts("\n\n".join(sections), n_tokens + 10) == sections


def test_small_neighbouring_sections_share_a_chunk() -> None:
    writer = Writer(3)
    sections = [f"## Part {number}\n\n{writer.sentence()}" for number in range(200)]
    texts = chunk_texts("\n\n".join(sections), 200)
    assert all(text.startswith("## Part") for text in texts)
    assert mean(text.count("## Part") for text in texts) > 4


def test_a_heading_stays_with_what_follows_it() -> None:
    writer = Writer(4)
    parts = (
        f"{'#' * (1 + number % 3)} Head {number}\n\n{writer.paragraph()}\n\n{writer.paragraph()}"
        for number in range(150)
    )
    for text in chunk_texts("\n\n".join(parts), 150):
        assert not text.split("\n")[-1].startswith("#")


def test_paragraphs_are_kept_whole_where_they_fit() -> None:
    writer = Writer(5)
    paragraphs = [writer.paragraph() for _ in range(200)]
    assert all(text.split("\n\n")[0] in paragraphs for text in chunk_texts("\n\n".join(paragraphs), 400))


def test_sentences_are_kept_whole_where_they_fit() -> None:
    writer = Writer(6)
    sentences = [writer.sentence() for _ in range(400)]
    texts = chunk_texts(" ".join(sentences), 200)
    assert " ".join(texts) == " ".join(sentences)
    assert all(text.endswith(".") for text in texts)


def test_a_table_is_cut_between_rows() -> None:
    rows = [f"| name {number} | value. Of {number} |" for number in range(200)]
    texts = chunk_texts("\n".join(["| a | b |", "|---|---|", *rows]), 100)
    assert len(texts) > 10
    assert all(text.startswith("|") and text.endswith("|") for text in texts)


def test_the_header_of_a_table_stays_with_its_rows_and_is_repeated_and_counted() -> None:
    document = table(200, before="Cities and years.", after="That was all.")
    spans = cut(document, 60)
    assert len(spans) > 20
    header = document.blocks[1].header
    for span in spans:
        text = document.text[span.start : span.end]
        begins_in_body = document.blocks[1].start + len(header) <= span.start < document.blocks[1].end
        assert span.header == (header if begins_in_body else "")
        assert not text.endswith(header)
        assert count(f"{span.header}\n{text}" if span.header else text) <= 60


def test_a_header_that_would_fill_half_a_chunk_is_not_repeated() -> None:
    assert any(span.header for span in cut(table(100), 16))
    assert not any(span.header for span in cut(table(100), 7))


def test_a_chunk_has_the_headings_all_its_text_is_under() -> None:
    writer = Writer(7)
    whole, half, other_half = (" ".join(writer.sentence() for _ in range(size)) for size in (20, 8, 8))
    text = f"# Book\n\n## One\n\n{whole}\n\n## Two\n\n### Small\n\n{half}\n\n### Other\n\n{other_half}"
    spans = cut(parsed(text), count(whole) + 30)
    assert [(text[span.start : span.start + 6], span.headings) for span in spans] == [
        ("# Book", ("Book", "One")),
        ("## Two", ("Book", "Two")),
    ]


def test_a_chunk_of_headings_alone_has_the_headings_above_the_first() -> None:
    assert cut(parsed("# Book\n\n## One")) == [ChunkSpan(start=0, end=14, headings=())]


def test_a_chunk_is_on_the_page_it_begins_on() -> None:
    text = "One two. " * 30
    blocks = tuple(Block(start=start, end=start + 90, page=1 + start // 90) for start in (0, 90, 180))
    spans = cut(ParsedDocument(text=text, title="", blocks=blocks), 40)
    assert [span.page for span in spans] == [1, 2, 3]


def test_text_without_spaces_is_cut_at_its_own_marks() -> None:
    text = "".join(f"第{number}句话说的是长城和运河的故事。" for number in range(400))
    texts = chunk_texts(text, 300)
    assert "".join(texts) == text
    assert all(part.endswith("。") for part in texts)
    assert mean(count(part) for part in texts) > 150


HEADED, PLAIN, ONE_PARAGRAPH = "headed", "without headings", "one paragraph"


def book(form: str, writer: Writer, n_units: int) -> list[str]:
    if form == ONE_PARAGRAPH:
        return [writer.sentence() for _ in range(n_units)]
    units = [writer.paragraph() for _ in range(n_units)]
    if form == HEADED:
        return [
            f"{'#' * (1 + index % 3)} {writer.sentence()}\n\n{unit}" if index % 5 == 0 else unit
            for index, unit in enumerate(units)
        ]
    return units


@pytest.mark.parametrize("form", [HEADED, PLAIN, ONE_PARAGRAPH])
def test_one_edit_of_a_thousand_chunks_makes_few_new_ones(form: str) -> None:
    writer = Writer(8)
    is_prose = form == ONE_PARAGRAPH
    units = book(form, writer, 6_500 if is_prose else 1_800)
    join = " ".join if is_prose else "\n\n".join
    before = chunk_texts(join(units), 150)
    assert len(before) >= 1_000
    n_new = []
    for _ in range(8):
        after = chunk_texts(join(writer.edit(units, writer.sentence if is_prose else writer.paragraph)), 150)
        n_new.append(len(set(after) - set(before)))
    assert max(n_new) <= 6
    assert mean(n_new) < 2.5
    assert max(n_new) > 0


def test_an_edit_is_local_at_the_default_budget() -> None:
    writer = Writer(9)
    units = book(PLAIN, writer, 4_500)
    max_tokens = tokens_for_size(len("\n\n".join(units)))
    before = chunk_texts("\n\n".join(units), max_tokens)
    assert len(before) >= 500
    for edited in ([writer.paragraph(), *units], units[1:], [*units[:2_000], *units[2_001:]]):
        assert len(set(chunk_texts("\n\n".join(edited), max_tokens)) - set(before)) <= 4


@pytest.mark.parametrize("space", [" ", ""])
def test_one_edit_of_a_line_without_sentences_makes_few_new_chunks(space: str) -> None:
    rng = random.Random(10)
    words = ["".join(rng.choices("abcdefghij", k=rng.randint(2, 9))) for _ in range(12_000)]
    before = chunk_texts(space.join(words), 150)
    for _ in range(10):
        index = rng.randrange(len(words))
        after = chunk_texts(space.join([*words[:index], "inserted", *words[index:]]), 150)
        assert 1 <= len(set(after) - set(before)) <= 5


@pytest.mark.parametrize("unit", ["word ", "x", "字", "One two. ", "a\n\n", "\n"])
def test_work_grows_with_the_text_not_faster(unit: str) -> None:
    def n_counted(size: int) -> int:
        n_characters = 0

        def counting(text: str) -> int:
            nonlocal n_characters
            n_characters += len(text)
            return count(text)

        cut(ParsedDocument(text=unit * (size // len(unit)) + "x", title="", blocks=()), count=counting)
        return n_characters

    assert n_counted(200_000) < 2.2 * n_counted(100_000)


def test_a_megabyte_on_one_line_is_cut_within_budget() -> None:
    text = "word " * 200_000
    spans = cut(ParsedDocument(text=text, title="", blocks=()))
    assert_partition(text, spans)
    assert max(count(text[span.start : span.end]) for span in spans) <= 1_200


@pytest.mark.skipif(not DATA.exists(), reason="needs ../shared/data/hirag_mix61")
def test_long_documents_fill_more_than_half_the_budget() -> None:
    fill = []
    for line in DATA.read_text(encoding="utf-8").splitlines():
        text = json.loads(line)["text"]
        max_tokens = tokens_for_size(len(text.encode()))
        fill += [count(part) / max_tokens for part in chunk_texts(text, max_tokens)]
    assert mean(fill) >= 0.55
    assert max(fill) <= 1
