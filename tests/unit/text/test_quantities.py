"""Tests of quantities: the numbers and dates of a table column, read in one way or not at all."""

from datetime import date
from decimal import Decimal

import pytest

from quipu.text.quantities import read_dates, read_quantities


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["5", "12", "-3"], ["5", "12", "-3"]),
        (["1,250.50", "99.00"], ["1250.50", "99.00"]),
        (["1.250,50", "99,00"], ["1250.50", "99.00"]),
        (["13 010 112", "416 219"], ["13010112", "416219"]),
        (["1'000", "20"], ["1000", "20"]),
        (["(80)", "20", "−5"], ["-80", "20", "-5"]),
        (["($1,200.5)", "$30.0"], ["-1200.5", "30.0"]),
        (["5 %", "7%"], ["5", "7"]),
        (["12 km", "3 km"], ["12", "3"]),
        (["EUR 5", "EUR 7"], ["5", "7"]),
        (["1,234", "5,678"], ["1234", "5678"]),
    ],
)
def test_numbers_of_one_notation_and_unit_are_read(cells: list[str], values: list[str]) -> None:
    quantities = read_quantities(cells)
    assert quantities is not None
    assert quantities.values == tuple(map(Decimal, values))


@pytest.mark.parametrize(
    "cells",
    [
        [],
        ["5", ""],
        ["5", "n/a"],
        ["5", "7*"],
        ["5", "7²"],
        ["5", "7 [1]"],
        ["5", "<7"],
        ["5", "6-7"],
        ["5", "7 of 9"],
        ["5 km", "7 m"],
        ["$5", "7"],
        ["1.234", "5.678"],  # a thousand or a decimal
        ["1.250,50", "1,250.50"],
        ["007", "012"],  # identifiers
        ["12,34,567"],
        ["(5", "7)"],
        ["-(5)"],
    ],
)
def test_a_column_that_may_mean_two_things_is_not_read(cells: list[str]) -> None:
    assert read_quantities(cells) is None


def test_the_other_cells_of_a_table_show_the_notation() -> None:
    thousands = read_quantities(["1.234", "5.678"], ["12,5"])
    decimals = read_quantities(["1.234", "5.678"], ["0.75"])
    assert thousands is not None
    assert decimals is not None
    assert thousands.values == (Decimal(1234), Decimal(5678))
    assert decimals.values == (Decimal("1.234"), Decimal("5.678"))
    assert read_quantities(["1,234"], comma_groups=False) is None


def test_a_result_is_written_as_the_cells_are() -> None:
    english, european = read_quantities(["$1,250.50", "$99.00"]), read_quantities(["1.250,5 km", "99,0 km"])
    assert english is not None
    assert european is not None
    assert english.format(Decimal("-1349.50")) == "-$1,349.50"
    assert european.format(Decimal("1349.5")) == "1.349,5 km"
    assert european.format(Decimal(1000) / 3, 2) == "333,33 km"


@pytest.mark.parametrize(
    ("cells", "first"),
    [
        (["2024-01-03", "2023-12-24"], date(2024, 1, 3)),
        (["03.01.2024"], date(2024, 1, 3)),
        (["3 January 2024", "24 Dec 2023"], date(2024, 1, 3)),
        (["Jan. 3, 2024"], date(2024, 1, 3)),
        (["2024年1月3日"], date(2024, 1, 3)),
    ],
)
def test_dates_of_one_form_are_read(cells: list[str], first: date) -> None:
    dates = read_dates(cells)
    assert dates is not None
    assert dates[0] == first


@pytest.mark.parametrize("cells", [[], ["01/02/2024"], ["2024-13-01"], ["3 Foo 2024"], ["2024-01-03", "03.01.2024"]])
def test_dates_that_are_not_clear_are_not_read(cells: list[str]) -> None:
    assert read_dates(cells) is None
