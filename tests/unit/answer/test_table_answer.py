"""Tests of table answers: what is computed over the cells of one table, and what is not."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from quipu.answer.question_kind import analyse_question
from quipu.answer.table_answer import TableAnswer, compute_table_answer
from quipu.model.graph import Chunk
from tests.unit.answer.fakes import chunk

SALES = """Sales of the shop

| Region | Product | Units sold | Price (EUR) | Delivered |
|---|---|---:|---:|---|
| North | Lamp | 120 | 1,250.50 | 2024-01-03 |
| North | Chair | 80 | 99.00 | 2024-02-11 |
| South | Table lamp | 60 | 1,300.00 | 2023-12-24 |
| South | Desk | 12 | 2,000.00 | 2024-03-05 |
"""
CITIES = """Города

Город | Население | Площадь, км²
Москва | 13 010 112 | 2561,5
Тверь | 416 219 | 152,2
Казань | 1 308 660 | 425,3
"""
CHENGSHI = """| 城市 | 人口 | 面积 |
|---|---|---|
| 北京 | 2189 | 16410 |
| 上海 | 2487 | 6340 |
| 天津 | 1387 | 11966 |
"""
PEAKS = """| Peak | Country | Height (m) | Area |
|---|---|---|---|
| Monte Rosa | Switzerland | 4,634 | 30 |
| Gran Paradiso | Italy | 4,061 | 25 |
| Ortler | Italy | 3,905 | 18 |
| Eiger | Switzerland | 3,967 | 12 |
"""
YEARS = """Budget of the museum

| Part | 2019 | 2020 |
|---|---|---|
| Tickets | 100 | 120 |
| Grants | 30 | (5) |
"""


def _answer(question: str, *texts: str) -> TableAnswer | None:
    chunks = [chunk(f"Notes {number}", text) for number, text in enumerate(texts)]
    return _answer_of(question, chunks, chunks)


def _answer_of(
    question: str, found: Sequence[Chunk], near: Sequence[Chunk], whole: Sequence[str] = ()
) -> TableAnswer | None:
    by_place = {(piece.document_id, piece.ordinal): piece for piece in near}
    return compute_table_answer(analyse_question(question), found, by_place, whole)


@pytest.mark.parametrize(
    ("text", "question", "answer"),
    [
        (SALES, "What is the price of a desk?", "Price (EUR) (Product = Desk): 2,000.00"),
        (SALES, "How much does the chair cost?", "Price (EUR) (Product = Chair): 99.00"),
        (SALES, "When was the desk delivered?", "Delivered (Product = Desk): 2024-03-05"),
        (SALES, "What is the price of the table lamp?", "Price (EUR) (Product = Table lamp): 1,300.00"),
        (SALES, "What is the highest price?", "Highest Price (EUR): 2,000.00 · Product: Desk"),
        (SALES, "What is the cheapest product?", "Lowest Price (EUR): 99.00 · Product: Chair"),
        (SALES, "Which product has the lowest price in the South?", "Lowest Price (EUR) (Region = South): 1,300.00"),
        (SALES, "How many units were sold in the North in total?", "Sum of Units sold (Region = North): 200"),
        (SALES, "What is the average price in the South?", "Average of Price (EUR) (Region = South): 1,650"),
        (SALES, "How many products have a price over 1,000?", "Rows (Price (EUR) > 1,000): 3"),
        (SALES, "What is the total price of products with at least 60 units sold?", "Sum of Price (EUR)"),
        (CITIES, "Какое население Казани?", "Население (Город = Казань): 1 308 660"),
        (CITIES, "Какой город имеет наибольшее население?", "Наибольшее Население: 13 010 112 · Город: Москва"),
        (CITIES, "Какова суммарная площадь городов?", "Сумма Площадь, км²: 3139,0"),
        (CITIES, "Сколько городов с населением более 1000000?", "Строк (Население > 1000000): 2"),
        (CHENGSHI, "上海的人口是多少？", "人口 (城市 = 上海): 2487"),
        (CHENGSHI, "哪个城市的人口最多？", "最大值 人口: 2487 · 城市: 上海"),
        (CHENGSHI, "人口的总和是多少？", "合计 人口: 6063"),
        (CHENGSHI, "人口超过2000的城市有多少个？", "行数 (人口 > 2000): 2"),
        (CITIES, "Какая средняя площадь?", "Среднее Площадь, км²: 1046,33\n\nГорода"),
        (YEARS, "What were the grants in 2020?", "2020 (Part = Grants): (5)\n\nBudget of the museum"),
        (
            PEAKS,
            "What is the highest peak in Italy?",
            "Highest Height (m) (Country = Italy): 4,061 · Peak: Gran Paradiso",
        ),
        (PEAKS, "How high is Monte Rosa?", "Height (m) (Peak = Monte Rosa): 4,634"),
        (PEAKS, "For which peak is the area the smallest?", "Lowest Area: 12 · Peak: Eiger"),
        (f"# Mountains\n\n{PEAKS}", "How many mountains are in Italy?", "Rows (Country = Italy): 2"),
    ],
)
def test_a_question_with_one_reading_is_computed(text: str, question: str, answer: str) -> None:
    computed = _answer(question, text)
    assert computed is not None
    assert computed.text.startswith(answer)


@pytest.mark.parametrize(
    ("text", "question"),
    [
        (SALES, "Which product is the most popular?"),
        (SALES, "What do most regions pay as the price?"),
        (SALES, "What is the price?"),  # of which row?
        (SALES, "What is the price in the North?"),  # two rows
        (SALES, "What is the price of a sofa?"),
        (SALES, "Which region has the most units sold?"),  # a sum for each region, not a row
        (SALES, "What is the average price by region?"),
        (SALES, "What is the total price in 2024?"),  # no column of years
        (SALES, "What is the second highest price?"),
        (SALES, "What is the total price of products other than the desk?"),
        (SALES, "How many products are there?"),  # in the shop, or in the table?
        (SALES, "Why is the price of a desk so high?"),
        (SALES, "What is the median price?"),
        (SALES, "How many shops are in the North?"),  # the table is about one
        (f"# Mountains and valleys\n\n{PEAKS}", "How many mountains are in Italy?"),
        (f"# Visits\n\n{SALES}", "How many visits in the North?"),  # regions, not visits, are named in each row
        (SALES, "What is the difference in price between desk and chair?"),
        (YEARS, "What was the average in 2020?"),  # of tickets and grants?
        (YEARS, "What was the total of grants from 2019 to 2020?"),
        (CITIES, "Какое население Казани и Твери в среднем за год?"),
    ],
)
def test_a_question_that_asks_for_something_else_is_not_computed(text: str, question: str) -> None:
    assert _answer(question, text) is None


@pytest.mark.parametrize(
    "rows",
    [
        "| Lamp | 5 |\n| Desk | |\n| Sofa | 7 |",  # nothing in a cell
        "| Lamp | 5 |\n| Desk | 6* |\n| Sofa | 7 |",
        "| Lamp | 5 |\n| Desk | 6 [^1] |\n| Sofa | 7 |",
        "| Lamp | 5 km |\n| Desk | 6 m |\n| Sofa | 7 km |",
        "| Lamp | 1.234 |\n| Desk | 5.678 |\n| Sofa | 7.123 |",
        "| Lamp | 5 |\n| Desk | 6 |\n| Subtotal | 11 |\n| Sofa | 7 |\n| Total | 18 |",
        "| Lamp | 5 |\n| Desk | 6 |\n| Sofa | 7 |\n| The house | 18 |",  # a total without the name
        "| Lamp | 5 |\n| Desk | 6 |\n| Sofa | 7 |\n| Total | 20 |",  # not the sum of its rows
        "| Lamp | 5 |\n| of which red | 2 |\n| Sofa | 7 |",
        "| Lamp | 5 |\n| Lamp | 5 |\n| Sofa | 7 |",
        "| Lamp | 5 % |\n| Sofa | 7 % |",
        "| Lamp | 0.05 |\n| Sofa | 0.07 |",  # shares
        "| Lamp | 5 | 6 |\n| Sofa | 7 | 8 |",  # cells without a column
    ],
)
def test_cells_that_are_not_clear_are_not_summed(rows: str) -> None:
    assert _answer("What is the sum of the weights?", f"| Product | Weight |\n|---|---|\n{rows}\n") is None


def test_where_a_share_is_highest_the_number_need_not_be() -> None:
    table = "| State | Engineers |\n|---|---|\n| Ohio | 0.004 |\n| Utah | 0.007 |\n"
    assert _answer("Which state has the most engineers?", table) is None
    assert _answer("What is the highest value of engineers?", table) is not None
    assert _answer("Which state has the most engineers?", table.replace("0.00", "")) is not None


def test_a_total_that_the_table_states_is_no_summand() -> None:
    computed = _answer("What is the sum of weights?", "Product | Weight\nLamp | 5\nDesk | 6\nTotal | 11\n")
    assert computed is not None
    assert computed.text == "Sum of Weight: 11"
    assert computed.quote.text == "Product | Weight\nLamp | 5\nDesk | 6"


def test_the_total_that_a_question_names_is_looked_up() -> None:
    table = "| Product | Weight | Price |\n|---|---|---|\n| Lamp | 5 | 1 |\n| Desk | 6 | 2 |\n| Total | 11 | 3 |\n"
    computed = _answer("What is the total weight?", table)
    assert computed is not None
    assert computed.text == "Weight (Product = Total): 11"


def test_the_answer_shows_the_header_and_the_rows_that_count() -> None:
    computed = _answer("How many units were sold in the South in total?", SALES)
    assert computed is not None
    assert computed.quote.text.splitlines() == [
        "| Region | Product | Units sold | Price (EUR) | Delivered |",
        "| South | Table lamp | 60 | 1,300.00 | 2023-12-24 |",
        "| South | Desk | 12 | 2,000.00 | 2024-03-05 |",
    ]


def test_two_tables_that_both_answer_are_not_computed_but_copies_are() -> None:
    other = SALES.replace("99.00", "98.00")
    assert _answer("What is the lowest price?", SALES, other) is None
    assert _answer("What is the lowest price?", SALES, SALES) is not None
    assert _answer("What is the lowest price?", SALES, CITIES) is not None


def test_a_cell_of_two_columns_or_a_name_of_two_is_not_computed() -> None:
    table = "| From | To | Price |\n|---|---|---|\n| Rome | Bern | 5 |\n| Bern | Paris | 7 |\n"
    assert _answer("What is the price of Bern?", table) is None
    prices = "| Product | Net price | Gross price |\n|---|---|---|\n| Lamp | 5 | 6 |\n| Desk | 7 | 8 |\n"
    assert _answer("What is the price of the lamp?", prices) is None
    computed = _answer("What is the gross price of the lamp?", prices)
    assert computed is not None
    assert computed.text == "Gross price (Product = Lamp): 6"


def test_words_of_the_title_that_select_a_part_explain_nothing() -> None:
    table = "Sales in Spain and Italy\n\n| Month | Sales |\n|---|---|\n| May | 5 |\n| June | 7 |\n"
    assert _answer("What are the total sales in Spain?", table) is None
    assert _answer("What are the total sales in Spain and Italy?", table) is not None


def _cut(text: str, at: int) -> list[Chunk]:
    """Return the two chunks of a document that is cut before the character `at`, between two rows of a table."""
    first, second = text[: at - 1], text[at:].rstrip()
    whole = chunk("Notes", text)
    return [
        replace(whole, id="c0", text=first, start=0, end=len(first)),
        replace(
            whole,
            id="c1",
            ordinal=1,
            text=second,
            start=at,
            end=at + len(second),
            header="| Region | Product | Units sold | Price (EUR) | Delivered |",
        ),
    ]


def test_a_table_that_is_cut_is_computed_whole_or_not_at_all() -> None:
    pieces = _cut(SALES, SALES.index("| South | Table"))
    computed = _answer_of("What is the highest price?", pieces[:1], pieces, ["Notes.md"])
    assert computed is not None
    assert computed.text.startswith("Highest Price (EUR): 2,000.00 · Product: Desk")
    citations = list(computed.quote.passage.citations(computed.quote.spans, 1, ""))
    assert [citation.chunk_id for citation in citations] == ["c0", "c1"]
    assert all(SALES[citation.start : citation.end] == citation.quote for citation in citations)
    first, second = pieces
    assert _answer_of("What is the highest price?", [second], [second]) is None  # the beginning is missing
    assert _answer_of("What is the highest price?", [first], pieces) is None  # the end may be missing
    assert _answer_of("What is the highest price?", [first], [first]) is not None  # no other chunk follows the first


def test_a_part_of_a_table_that_could_answer_too_makes_the_answer_uncertain() -> None:
    first, second = _cut(SALES, SALES.index("| South | Table"))
    other = chunk("Other", SALES.replace("99.00", "98.00"))
    assert _answer_of("What is the highest price?", [other, second], [other, second]) is None
    assert _answer_of("What is the price of the chair?", [other, second], [other, second]) is not None
    assert _answer_of("What is the price of the chair?", [other, second], [other, first, second]) is None


def test_a_row_that_counts_nothing_else_is_told_from_a_part_of_the_table() -> None:
    """A line just below the rows may be a row of one cell."""
    assert (
        _answer("What is the sum of weights?", "Product | Weight\nLamp | 5\nDesk | 6\nRed things\nSofa | 9\n") is None
    )


NAMES = ["Lamp", "Desk", "Sofa", "Vase", "Clock", "Stool", "Mirror", "Carpet"]
GROUPS = ["Wood", "Steel", "Glass"]


@st.composite
def _tables(draw: st.DrawFn) -> tuple[str, list[tuple[str, str, Decimal, int]], str]:
    """Draw the text of a table, its rows, and the style of its numbers."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=2, unique=True))
    style = draw(st.sampled_from(["plain", "grouped", "currency", "unit", "account"]))
    n_decimals = draw(st.integers(0, 2))
    rows = [
        (name, draw(st.sampled_from(GROUPS)), Decimal(draw(st.integers(-99_999, 99_999))) / 10**n_decimals, place)
        for place, name in enumerate(names)
    ]
    lines = [f"{name} | {group} | {_written(value, style, n_decimals)} | {10 + n}" for name, group, value, n in rows]
    header = draw(st.sampled_from(["Product | Material | Weight | Rack", "Product | Material | Weight (kg) | Rack"]))
    if draw(st.booleans()):
        lines = [f"| {line} |" for line in [header, "---|---|---|---", *lines]]
        return "\n".join(lines), rows, style
    return "\n".join([header, *lines]), rows, style


def _written(value: Decimal, style: str, n_decimals: int) -> str:
    number = f"{abs(value):,.{n_decimals}f}" if style != "plain" else f"{abs(value):.{n_decimals}f}"
    number = {"currency": f"${number}", "unit": f"{number} kg"}.get(style, number)
    return number if value >= 0 else f"({number})" if style == "account" else f"-{number}"


def _number(text: str) -> Decimal:
    """Return the number at the end of the first part of an answer."""
    written = text.partition(" · ")[0].rpartition(": ")[2].removesuffix(" kg").replace(",", "").replace("$", "")
    return -Decimal(written[1:-1]) if written.startswith("(") else Decimal(written)


@settings(max_examples=300)
@given(_tables(), st.sampled_from(["highest", "lowest", "total", "average"]), st.sampled_from(["", *GROUPS]))
def test_what_is_computed_is_what_the_cells_say(
    table: tuple[str, list[tuple[str, str, Decimal, int]], str], word: str, group: str
) -> None:
    text, rows, _ = table
    values = [value for _, material, value, _ in rows if group in ("", material)]
    total = sum(values, Decimal(0))
    assume(len(values) > 1 and not any(2 * value == total for value in values))
    assume(word != "total" or any(abs(value) >= 1 for value in values))  # shares are not summed
    computed = _answer(f"What is the {word} weight{' of ' + group if group else ''}?", text)
    assert computed is not None
    naive = {"highest": max(values), "lowest": min(values), "total": total, "average": total / len(values)}[word]
    assert abs(_number(computed.text) - naive) <= (Decimal("0.01") if word == "average" else 0)


@given(_tables(), st.data())
def test_one_unclear_cell_prevents_the_computation(
    table: tuple[str, list[tuple[str, str, Decimal, int]], str], data: st.DataObject
) -> None:
    text, rows, style = table
    name = data.draw(st.sampled_from([row[0] for row in rows]))
    lines = text.splitlines()
    place = next(index for index, line in enumerate(lines) if line.strip("| ").startswith(name))
    cells = lines[place].split(" | ")
    cells[2] = data.draw(st.sampled_from(["n/a", f"{cells[2]}*", f"{cells[2]} (1)", "about 5", "5–6", "1.2.3", "7 lb"]))
    lines[place] = " | ".join(cells)
    word = data.draw(st.sampled_from(["highest", "lowest", "total", "average"]))
    assert _answer(f"What is the {word} weight?", "\n".join(lines)) is None, style
