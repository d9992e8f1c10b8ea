"""Citation numbers in text, cleaned while it streams."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quipu.answer.marks import MAX_MARK, Marks

KNOWN = (1, 2, 3, 4)


def _cleaned(*pieces: str) -> str:
    marks = Marks(KNOWN)
    return "".join(marks.feed(piece) for piece in pieces) + marks.end()


@pytest.mark.parametrize(
    ("written", "cleaned"),
    [
        ("He left [1].", "He left [1]."),
        ("He left [1][4].", "He left [1][4]."),
        ("He left [1, 4].", "He left [1][4]."),
        ("He left [1; 4] and [2 and 3].", "He left [1][4] and [2][3]."),
        ("He left [2-4].", "He left [2][3][4]."),
        ("He left [2–3, 1].", "He left [2][3][1]."),
        ("He left [ 1 ].", "He left [1]."),
        ("He left [[1]] and [[2], [3]].", "He left [1] and [2][3]."),
        ("He left [^2].", "He left [2]."),
        ("He left [Passage 2; excerpt 3].", "He left [2][3]."),
        ("He left [Source: 2].", "He left [Source: 2]."),
        ("他走了【1】。他来了［2］。", "他走了[1]。他来了[2]。"),
        ("He left【3†source】.", "He left[3]."),
        ("He left [٣].", "He left [3]."),
        ("He left [1, 1].", "He left [1]."),
    ],
)
def test_marks_of_every_shape_are_written_alike(written: str, cleaned: str) -> None:
    assert _cleaned(written) == cleaned


@pytest.mark.parametrize(
    ("written", "cleaned"),
    [
        ("He left [99].", "He left."),
        ("He left [99] at noon.", "He left at noon."),
        ("[99] He left.", "He left."),
        ("He left [1, 99].", "He left [1]."),
        ("He left [3-9].", "He left [3][4]."),
        ("He left [99][98], it seems.", "He left, it seems."),
        ("He left.\n[99] It rained.", "He left.\nIt rained."),
        ("He left [99]\n\nIt rained.", "He left\n\nIt rained."),
        ("He left [[99]].", "He left."),
        ("In [1952] he left.", "In he left."),
        ("He left [12345678901234].", "He left."),
        ("He left [1-99999999999999].", "He left [1]."),
    ],
)
def test_numbers_of_no_passage_go_with_the_space_before_them(written: str, cleaned: str) -> None:
    assert _cleaned(written) == cleaned


@pytest.mark.parametrize("written", ["[9[99]9]", "[[99]9]", "[9[99]", "[[5]9", "[1[99], 9]"])
def test_no_number_emerges_where_another_went(written: str) -> None:
    assert not re.search(r"\[9+\]", _cleaned(written))


@pytest.mark.parametrize(
    "text",
    [
        "He left (1) at once, (2) for good.",
        "He [sic] left [the town].",
        "x = words[0] + rows[i][j]",
        "a list [] of [1.5, 2",
        "[link](http://localhost)",
        "half a mark [1, 2",
        "[" + "1," * MAX_MARK + "1]",
        "[1,\n2]",
    ],
)
def test_what_is_no_mark_stays_as_it_is(text: str) -> None:
    assert _cleaned(text) == text


def test_space_around_the_text_goes() -> None:
    assert _cleaned("\n\n  He left. \n\n") == "He left."


def test_what_went_is_counted_and_zeros_are_told_apart() -> None:
    marks = Marks(KNOWN)
    text = marks.feed("He left [1, 8][9]. [0] Nobody [0] knows.") + marks.end()
    assert text == "He left [1]. Nobody knows."
    assert marks.n_removed == 2
    assert [text[:place] for place in marks.zeros] == ["He left [1].", "He left [1]. Nobody"]


def test_text_is_let_go_as_soon_as_it_cannot_become_a_mark() -> None:
    marks = Marks(KNOWN)
    assert marks.feed("He left [s") == "He left"
    assert marks.feed("ic") == ""
    assert marks.feed("]") == " [sic]"
    assert marks.feed(" [12") == ""
    assert marks.feed("]!") == "!"
    assert marks.feed(" [1]") == " [1]"


BROKEN = st.text(alphabet="[]【】 ,-0159ab\n†.and^", max_size=60)


@given(st.lists(BROKEN, max_size=8))
def test_where_a_text_is_split_makes_no_difference(pieces: list[str]) -> None:
    assert _cleaned(*pieces) == _cleaned("".join(pieces))


@given(BROKEN)
def test_no_number_of_no_passage_is_left(text: str) -> None:
    cleaned = _cleaned(text)
    assert {int(number) for number in re.findall(r"(?<![\w)])\[(\d+)\]", cleaned)} <= set(KNOWN)
    assert cleaned == cleaned.strip()


@given(BROKEN)
def test_what_is_clean_stays_as_it_is(text: str) -> None:
    assert _cleaned(_cleaned(text)) == _cleaned(text)
