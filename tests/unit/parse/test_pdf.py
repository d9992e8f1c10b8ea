"""Tests of the PDF parser."""

import pytest

from quipu.errors import InvalidDocument
from quipu.parse import limits
from quipu.parse import pdf as pdf_parser
from tests.unit.parse.files import At, cells, pdf, prose, read, text_of, texts

LOREM = (
    "Alice Kober wrote the statistics of the signs on paper",
    "slips that she kept in cigarette cartons for years.",
)


def test_the_lines_of_a_paragraph_are_joined_and_a_gap_begins_another() -> None:
    parsed = read("a.pdf", pdf([[*prose(*LOREM), *prose("Her papers are kept in Austin.", top=640)]]))
    assert texts(parsed) == [" ".join(LOREM), "Her papers are kept in Austin."]
    assert [(block.kind, block.page) for block in parsed.blocks] == [("paragraph", 1)] * 2


def test_a_short_last_line_ends_a_paragraph_without_a_gap() -> None:
    lines = prose(*LOREM, "She died in 1950.", "Her papers are kept in Austin, in an archive of the", "university.")
    assert texts(read("a.pdf", pdf([lines])))[1:] == ["Her papers are kept in Austin, in an archive of the university."]


def test_a_word_broken_at_the_end_of_a_line_is_whole() -> None:
    lines = prose("The triplets of words proved that the lang-", "uage changed its endings.")
    assert texts(read("a.pdf", pdf([lines]))) == ["The triplets of words proved that the language changed its endings."]


def test_a_compound_spelled_elsewhere_with_its_hyphen_keeps_it() -> None:
    lines = prose("A well-known grid of signs, and what was said of the well-", "known grid.", "")
    assert texts(read("a.pdf", pdf([lines]))) == [
        "A well-known grid of signs, and what was said of the well-known grid."
    ]


def test_exponents_and_the_marks_of_footnotes_stay_raised() -> None:
    lines = [At(72, 700, "An approach,"), At(137, 704, "3, 4", 7), At(152, 700, "and 10"), At(185, 704, "-6", 7)]
    notes = [At(72, 300, "3", 5), At(76, 297, "We refer to page 4.", 8), At(72, 280, "1 2", 5), At(82, 277, "Note.", 8)]
    text = read("a.pdf", pdf([[*lines, At(200, 700, "metres."), *notes]])).text
    assert text == "An approach,³, ⁴ and 10⁻⁶ metres.\n\n³ We refer to page 4.\n\n¹² Note."


def test_digits_beside_larger_ones_and_fractions_are_not_raised() -> None:
    masthead = [At(72, 700, "Volume", 9), At(105, 700, "24", 9), At(125, 695, "CompStat", 24)]
    fraction = [At(72, 600, "Take 2"), At(112, 604, "1/2", 7), At(125, 600, "cups.")]
    assert texts(read("a.pdf", pdf([[*masthead, *fraction]]))) == ["Volume 24 CompStat", "Take 2 1/2 cups."]


def test_a_value_with_the_mark_of_a_footnote_stays_a_value_of_its_table() -> None:
    rows = cells(["City", "People", "Area"], ["Oslo", "1,200", "34"], ["Bergen", "900", "21"], lefts=[72, 200, 300])
    text = read("a.pdf", pdf([[*rows[:5], At(229, 688, "2", 6), *rows[5:]]])).text
    assert text == "City | People | Area\nOslo | 1,200 ² | 34\nBergen | 900 | 21"


def test_running_headers_and_page_numbers_are_dropped() -> None:
    pages = [
        [At(72, 800, "History of Writing"), *prose(f"Text {word} of the book."), At(290, 40, f"- {number} -")]
        for number, word in enumerate(("one", "two", "three", "four"), 7)
    ]
    parsed = read("a.pdf", pdf(pages))
    assert texts(parsed) == [f"Text {word} of the book." for word in ("one", "two", "three", "four")]


def test_the_header_of_one_chapter_is_dropped_with_its_page_number() -> None:
    headers = ["Quipus 1", "Quipus 2", "Roads 3", "Roads 4"]
    pages = [[At(400, 800, header), *prose(f"Story {word}.")] for header, word in zip(headers, "abcd", strict=True)]
    assert texts(read("a.pdf", pdf(pages))) == [f"Story {word}." for word in "abcd"]


def test_lines_that_repeat_are_kept_where_they_are_all_there_is() -> None:
    assert texts(read("a.pdf", pdf([prose("DocumentBuilder")] * 4))) == ["DocumentBuilder"] * 4


def test_each_page_turned_is_one_form_feed() -> None:
    parsed = read("a.pdf", pdf([prose("First."), [], prose("Third.")]))
    assert parsed.text == "First.\n\f\f\nThird."
    assert [block.page for block in parsed.blocks] == [1, 3]


def test_a_paragraph_that_runs_over_a_page_is_whole_with_a_form_feed_where_the_next_begins() -> None:
    parsed = read("a.pdf", pdf([prose("She took the road that led"), prose("to the west."), prose("Rain.")]))
    assert texts(parsed) == ["She took the road that led\fto the west.", "Rain."]
    assert parsed.text.endswith("west.\n\f\nRain.")
    assert [block.page for block in parsed.blocks] == [1, 3]


def test_a_word_broken_over_a_page_is_whole_and_the_form_feed_follows_it() -> None:
    parsed = read("a.pdf", pdf([prose("She took the long west-"), prose("ward road home."), prose("Rain.")]))
    assert texts(parsed)[0] == "She took the long westward\froad home."


def test_headings_that_differ_in_a_number_are_not_running_headers() -> None:
    pages = [[At(72, 760, f"Chapter {n}", 16), *prose(f"Story {word} of it.")] for n, word in enumerate("abcd", 1)]
    assert "Chapter 3" in read("a.pdf", pdf(pages)).text


def test_the_outline_makes_headings() -> None:
    pages = [[At(72, 760, "1 Quipus", 16), *prose("Cords and knots.")], prose("Roads led west.")]
    parsed = read("a.pdf", pdf(pages, outline=[("Quipus", 1), ("Roads", 2)]))
    assert [(block.kind, block.headings, text_of(parsed, block)) for block in parsed.blocks] == [
        ("heading", (), "1 Quipus"),
        ("paragraph", ("1 Quipus",), "Cords and knots."),
        ("paragraph", ("Roads",), "Roads led west."),
    ]


def test_bullets_make_a_list() -> None:
    parsed = read("a.pdf", pdf([prose("It has parts:", "• a main cord", "• pendants and", "   more cords", "• knots")]))
    assert texts(parsed) == ["It has parts:", "- a main cord\n- pendants and more cords\n- knots"]
    assert [block.kind for block in parsed.blocks] == ["paragraph", "list"]


def test_the_title_is_the_propertys_unless_a_program_made_it_up() -> None:
    page = [At(72, 760, "On Knots", 20), *prose(*LOREM)]
    given = {"Title": "Knots and Cords", "Author": "A. Kober", "CreationDate": "D:19480203040506Z"}
    parsed = read("a.pdf", pdf([page], info=given))
    assert parsed.title == "Knots and Cords"
    assert parsed.metadata == {"author": "A. Kober", "created": "1948-02-03T04:05:06"}
    assert read("a.pdf", pdf([page], info={"Title": "Microsoft Word - knots.doc"})).title == "On Knots"
    assert read("my_file.pdf", pdf([prose("Text.")])).title == "my file"


def test_pages_without_text_or_picture_are_refused_as_what_they_are() -> None:
    with pytest.raises(InvalidDocument, match=r"2 pages but no text and no scan\.") as caught:
        read("a.pdf", pdf([b"0 0 m 9 9 l S", []]))
    assert "ocrmypdf" in caught.value.remedy
    assert "pip install" not in caught.value.remedy


def test_a_password_is_named() -> None:
    locked = "/Encrypt<</Filter/Standard/V 2/R 3/Length 128/P -4/O<" + "00" * 32 + ">/U<" + "11" * 32 + ">>>"
    with pytest.raises(InvalidDocument, match=r"a\.pdf is protected by a password"):
        read("a.pdf", pdf([prose("Text.")], trailer=f"{locked}/ID[<00><00>]"))


@pytest.mark.parametrize("data", [b"%PDF-1.7\n", b"%PDF-1.7\n" + bytes(range(256)) * 40])
def test_a_damaged_file_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidDocument, match="is damaged"):
        read("a.pdf", data)


def test_a_file_cut_short_is_read_whole_or_refused() -> None:
    data = pdf([prose("First."), prose("Second.")])
    for size in range(20, len(data), 97):
        try:
            assert texts(read("a.pdf", data[:size])) == ["First.", "Second."]
        except InvalidDocument as error:
            assert error.remedy


@pytest.mark.skipif("sys.platform != 'linux'", reason="the system bounds a process's memory on Linux only")
def test_a_page_that_unpacks_to_more_than_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf_parser, "MAX_PDF_BYTES", 200_000_000)
    content = b" " * 150_000_000
    with pytest.raises(InvalidDocument, match="more memory than a PDF may"):
        read("a.pdf", pdf([content]))


def test_what_is_over_a_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = pdf([prose("First."), prose("Second.")])
    for limit, what in (("MAX_PDF_PAGES", "pages"), ("MAX_PDF_LINES", "lines"), ("MAX_CHARACTERS", "characters")):
        with monkeypatch.context() as patched, pytest.raises(InvalidDocument, match=what):
            patched.setattr(pdf_parser, limit, 1)
            read("a.pdf", data)
    assert limits.MAX_PDF_PAGES > 1
