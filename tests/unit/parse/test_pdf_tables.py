"""Tests of tables in PDFs: grids of drawn lines, columns of words, their headers, and what is no table."""

from collections.abc import Sequence

import pytest

from quipu.model.document import ParsedDocument
from quipu.parse.pdf_columns import MAX_TABLE_WORDS, find_aligned
from quipu.parse.pdf_grid import MAX_RULES, find_grids
from quipu.parse.pdf_tables import PdfRule, PdfWord, count_header_rows, is_number
from tests.unit.parse.files import At, Drawn, PageItem, cells, frame, pdf, prose, read, text_of, texts

SALES = (
    ("Region", "2023", "2024", "Change"),
    ("North", "1,204", "1,310", "8.8 %"),
    ("South", "98", "87", "-11.2 %"),
    ("West", "450", "-", ""),
)
LEFTS = (72, 200, 300, 400)
SALES_TEXT = "Region | 2023 | 2024 | Change\nNorth | 1,204 | 1,310 | 8.8 %\nSouth | 98 | 87 | -11.2 %\nWest | 450 | -"
SALES_HEADER = "Region | 2023 | 2024 | Change"


def table_of(parsed: ParsedDocument) -> tuple[str, str]:
    """Return the text and the header of the only table."""
    (table,) = [block for block in parsed.blocks if block.kind == "table"]
    return text_of(parsed, table), table.header


def test_words_in_columns_are_a_table_with_its_header_row() -> None:
    assert table_of(read("a.pdf", pdf([cells(*SALES, lefts=LEFTS)]))) == (SALES_TEXT, SALES_HEADER)


def test_text_above_and_below_a_table_is_not_in_it() -> None:
    page: list[PageItem] = [
        *prose("Table 3. Sales by region"),
        *cells(*SALES, lefts=LEFTS, top=670),
        *prose("Source: own.", top=560),
    ]
    assert texts(read("a.pdf", pdf([page]))) == ["Table 3. Sales by region", SALES_TEXT, "Source: own."]


def test_a_grid_of_lines_keeps_cells_of_several_lines_whole() -> None:
    page: list[PageItem] = [
        *cells(("Project", "Agency"), lefts=(80, 300)),
        *cells(("Public information and", "NSF, DOE"), ("deliberation", "and NIH"), lefts=(80, 300), top=670),
        *cells(("Ethics", "NSF"), lefts=(80, 300), top=630),
        *frame((72, 290, 500), (720, 690, 645, 620)),
    ]
    text, header = table_of(read("a.pdf", pdf([page])))
    assert text == "Project | Agency\nPublic information and deliberation | NSF, DOE and NIH\nEthics | NSF"
    assert header == "Project | Agency"


def test_a_cell_over_several_rows_is_in_each_of_them() -> None:
    page: list[PageItem] = [
        *cells(("Port", "Use"), ("80", "web"), ("", "proxy"), lefts=(80, 300), leading=30),
        *[Drawn(x, 620, x, 720) for x in (72, 290, 500)],
        *[Drawn(72, y, 500, y) for y in (720, 690, 620)],
        Drawn(290, 660, 500, 660),
    ]
    assert table_of(read("a.pdf", pdf([page])))[0] == "Port | Use\n80 | web\n80 | proxy"


def test_a_name_over_several_columns_is_in_the_name_of_each() -> None:
    rows = [("", "2023", "2024", "2023", "2024"), ("Wheat", "10", "12", "7", "8"), ("Rye", "4", "5", "3", "2")]
    names = [At(225, 716, "Harvest"), At(428, 716, "Export")]
    page: list[PageItem] = [*names, *cells(*rows, lefts=(72, 200, 270, 400, 470))]
    assert table_of(read("a.pdf", pdf([page])))[1] == " | Harvest 2023 | Harvest 2024 | Export 2023 | Export 2024"


def test_names_of_several_lines_below_a_drawn_line_are_one_header_row() -> None:
    header = [At(200, 716, "Under 18"), At(200, 702, "years"), At(300, 702, "Total"), At(72, 709, "Offence")]
    rows = [("Robbery", "25.5", "102.1"), ("Arson", "4.3", "9.8"), ("Fraud", "5.1", "173.7")]
    page: list[PageItem] = [*prose("by the FBI", top=740), Drawn(72, 730, 400, 730), *header]
    parsed = read("a.pdf", pdf([[*page, *cells(*rows, lefts=(72, 200, 300), top=684)]]))
    assert table_of(parsed)[1] == "Offence | Under 18 years | Total"
    assert texts(parsed)[0] == "by the FBI"


def test_a_row_over_two_lines_is_one_and_leaders_of_dots_are_dropped() -> None:
    rows = [
        ("Offence", "Total", "Male"),
        ("Robbery . . . . .", "102.1", "90.0"),
        ("Murder and nonnegligent", "", ""),
        ("manslaughter. . . . .", "10.0", "9.0"),
        ("Arson . . . .", "9.8", "8.1"),
    ]
    text, _ = table_of(read("a.pdf", pdf([cells(*rows, lefts=(72, 250, 350))])))
    assert text.split("\n")[1:] == [
        "Robbery | 102.1 | 90.0",
        "Murder and nonnegligent manslaughter | 10.0 | 9.0",
        "Arson | 9.8 | 8.1",
    ]


def test_a_table_over_a_page_break_is_one_with_a_form_feed_and_its_header_once() -> None:
    first = [*prose("The sales.", top=760), *cells(*SALES, lefts=LEFTS)]
    second = [
        *cells(SALES[0], ("East", "12", "14", "16.7 %"), ("Sea", "1", "2", "100 %"), lefts=LEFTS),
        *prose("End.", top=600),
    ]
    parsed = read("a.pdf", pdf([first, second]))
    assert table_of(parsed) == (
        f"{SALES_TEXT}\n\fEast | 12 | 14 | 16.7 %\nSea | 1 | 2 | 100 %",
        SALES_HEADER,
    )
    assert [(text_of(parsed, block), block.page) for block in parsed.blocks][-1] == ("End.", 2)
    assert parsed.text.count("\f") == 1


def test_another_table_on_the_next_page_is_another_block() -> None:
    pages = [cells(*SALES, lefts=LEFTS), cells(*SALES, lefts=(90, 170, 250, 330))]
    assert len(texts(read("a.pdf", pdf(pages)))) == 2


COLUMNS_OF_TEXT = [
    *prose(
        "The first column of a page says",
        "that the roads led west and that",
        "nobody went there for years, and",
        "then",
    ),
    *prose(
        "In the second column a courier",
        "runs along the coast with a cord",
        "that holds the year's numbers of",
        "maize",
        left=320,
    ),
]
CONTENTS = cells(("1", "Cords", "7"), ("2", "Knots", "12"), ("3", "Colours of cords", "19"), lefts=(72, 100, 400))
PROGRAM = cells(
    ("int main(", "int argc,", "char *argv[])"),
    ("x = 1;", "y = 2;", "z = 3;"),
    ("f(x);", "g(y);", "h();"),
    lefts=LEFTS[:3],
)
NARROW_TERMS = cells(
    ("bindir", "programs"), ("mandir", "man pages"), ("docdir", "documents"), ("x", "y"), lefts=(72, 200)
)


@pytest.mark.parametrize("page", [COLUMNS_OF_TEXT, CONTENTS, PROGRAM, NARROW_TERMS, cells(*SALES[:1], lefts=LEFTS)])
def test_columns_of_text_contents_and_programs_are_no_tables(page: Sequence[At]) -> None:
    assert {block.kind for block in read("a.pdf", pdf([page])).blocks} <= {"paragraph", "list"}


def test_a_frame_around_text_is_no_table() -> None:
    page: list[PageItem] = [*prose("One line of text.", "Another line of text."), *frame((60, 400), (720, 650))]
    assert texts(read("a.pdf", pdf([page]))) == ["One line of text.", "Another line of text."]


def test_what_is_left_of_a_line_beside_a_table_stays() -> None:
    grid: list[PageItem] = [
        *cells(("A", "B"), ("1", "2"), lefts=(80, 150), leading=20),
        *frame((72, 140, 210), (720, 695, 670)),
    ]
    assert texts(read("a.pdf", pdf([[*grid, At(300, 680, "see note")]]))) == ["A | B\n1 | 2", "see note"]


@pytest.mark.parametrize(
    ("rows", "n_header_rows"),
    [
        ([["Year", "Sales"], ["2023", "10"]], 1),
        ([["", "2023", "2024"], ["Rye", "10", "12"]], 1),
        ([["Rye", "10", "12"], ["Wheat", "11", "13"]], 0),
        ([["", "Harvest", ""], ["Crop", "Rye", "Oats"], ["North", "1", "2"]], 2),
        ([["Project", "Agency"], ["Ethics", "NSF"]], 1),
        ([["yes", "yes", "yes"], ["no", "yes", "no"]], 0),
    ],
)
def test_header_rows_are_those_above_the_first_numbers(rows: list[list[str]], n_header_rows: int) -> None:
    assert count_header_rows(rows) == n_header_rows


@pytest.mark.parametrize("cell", ["12", "-3.5 %", "$4,287.50", "(12)", "10 204", "€5", "3.2 млн", "1,5"])
def test_numbers_have_signs_units_and_currencies(cell: str) -> None:
    assert is_number(cell)
    assert not is_number(f"SKU{cell}")


def test_a_page_of_too_many_words_or_lines_has_no_tables() -> None:
    words = [
        PdfWord(str(index % 7), 10 + 50 * (index % 4), 30 + 50 * (index % 4), -20.0 * (index // 4), 10, index)
        for index in range(MAX_TABLE_WORDS + 1)
    ]
    assert find_aligned(words[:400], [])
    assert not find_aligned(words, [])
    rules = [PdfRule(index % 2 == 0, 10.0 * index, 0, 9_000) for index in range(MAX_RULES + 1)]
    assert not find_grids(words[:400], rules)
