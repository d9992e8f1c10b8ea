"""Whether passages hold what a statement says, by words, names and numbers."""

from dataclasses import replace

import pytest

from quipu.answer.pack import Passage
from quipu.answer.support import is_held, read, read_passage
from tests.unit.answer.fakes import chunk, passages

KOBER = read(
    "Alice Kober was a teacher of classics at Brooklyn College, where she studied Linear B from 1931 on. Her 180,000 "
    "cards were kept in cigarette boxes."
)


def _is_held(statement: str, *, is_translated: bool = False) -> bool:
    return is_held(statement, KOBER, is_translated=is_translated)


@pytest.mark.parametrize(
    "statement",
    [
        "Alice Kober taught classics at Brooklyn College.",
        "While teaching classics she studied Linear B.",
        "She kept 180 000 cards in boxes for cigarettes.",
        "From 1931 on Kober studied the script Linear B.",
        "Yes.",
    ],
)
def test_what_the_passages_say_in_other_words_is_held(statement: str) -> None:
    assert _is_held(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "Alice Kober was a teacher of classics at Oxford.",
        "Alice Kober studied Linear B from 1932 on.",
        "She had a garden with roses, apples and seven old cats.",
        "Alice Kober of Brooklyn College met Arthur Evans and John Chadwick.",
    ],
)
def test_names_numbers_and_matters_the_passages_lack_are_not_held(statement: str) -> None:
    assert not _is_held(statement)


def test_of_a_translation_only_the_numbers_are_compared() -> None:
    assert _is_held("Алиса Кобер изучала линейное письмо Б с 1931 года.", is_translated=True)
    assert not _is_held("Алиса Кобер изучала линейное письмо Б с 1932 года.", is_translated=True)


def test_forms_of_a_russian_name_meet() -> None:
    moscow = read("Фёдоров печатал книги в Москве, а потом во Львове.")
    assert is_held("Книги печатались, пишут, Фёдоровым и в самой Москве, и во Львове.", moscow, is_translated=False)
    assert not is_held("Книги печатались в самом Киеве.", moscow, is_translated=False)


def test_a_passage_says_what_its_title_headings_and_header_say() -> None:
    (passage,) = passages({"Alice Kober": "She taught classics."})
    assert is_held("Alice Kober taught classics.", read_passage(passage), is_translated=False)
    assert read_passage(passage) == read("Alice Kober") | read("She taught classics.")


def test_a_row_of_a_table_is_held_with_its_header() -> None:
    row = Passage(number=1, chunk=replace(chunk("Shoes", "Anna | 37"), header="Name | Size"))
    assert is_held("Anna has size 37.", read_passage(row), is_translated=False)
