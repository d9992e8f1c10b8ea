"""Tests of the reply cleaner: what a model writes becomes text for a reader, in pieces of any size."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from quipu.answer.reply_cleaner import MAX_MARK, CitationMarks, ReplyCleaner, SourceListFilter


def _cleaned(*pieces: str) -> str:
    cleaning = ReplyCleaner([1, 2], ["Linear B"])
    return "".join(cleaning.feed(piece) for piece in pieces) + cleaning.end()


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("<think>Is it [1]?</think>\n\nShe left [1].", "She left [1]."),
        ("\n <THINKING>\nhm\n</THINKING>She left.", "She left."),
        ("[THINK]hm[/THINK]She left.", "She left."),
        ("<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>She left.", "She left."),
        ("<think>a <think> within</think>She left.", "She left."),
        ("◁think▷hm◁/think▷She left.", "She left."),
        ("<think>and so on without an end", ""),
        ("<b>She</b> left.", "<b>She</b> left."),
        ("[2] She left.", "[2] She left."),
        ("<", "<"),
        ("She left [9].\n\nSources:\n[1] Linear B", "She left."),
        ("", ""),
    ],
)
def test_thoughts_lists_and_unknown_numbers_go(written: str, read: str) -> None:
    assert _cleaned(written) == read


PIECES = st.lists(
    st.one_of(
        st.sampled_from(
            ["<think>", "</think>", "[1]", "[", "9]", "\nSources:\n", "[1] Linear B\n", "\n\n", " ", "She"]
        ),
        st.text(max_size=12),
    ),
    max_size=12,
)


@given(PIECES)
@example(["<think", ">x</th", "ink>y"])
def test_where_a_reply_is_split_makes_no_difference(pieces: list[str]) -> None:
    whole = "".join(pieces)
    assert _cleaned(*pieces) == _cleaned(whole) == _cleaned(*whole)


KNOWN = (1, 2, 3, 4)


def _marked(*pieces: str) -> str:
    marks = CitationMarks(KNOWN)
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
    assert _marked(written) == cleaned


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
    assert _marked(written) == cleaned


@pytest.mark.parametrize("written", ["[9[99]9]", "[[99]9]", "[9[99]", "[[5]9", "[1[99], 9]"])
def test_no_number_emerges_where_another_went(written: str) -> None:
    assert not re.search(r"\[9+\]", _marked(written))


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
    assert _marked(text) == text


def test_space_around_the_text_goes() -> None:
    assert _marked("\n\n  He left. \n\n") == "He left."


def test_what_went_is_counted_and_zeros_are_told_apart() -> None:
    marks = CitationMarks(KNOWN)
    text = marks.feed("He left [1, 8][9]. [0] Nobody [0] knows.") + marks.end()
    assert text == "He left [1]. Nobody knows."
    assert marks.n_removed == 2
    assert [text[:place] for place in marks.zeros] == ["He left [1].", "He left [1]. Nobody"]


def test_text_is_let_go_as_soon_as_it_cannot_become_a_mark() -> None:
    marks = CitationMarks(KNOWN)
    assert marks.feed("He left [s") == "He left"
    assert marks.feed("ic") == ""
    assert marks.feed("]") == " [sic]"
    assert marks.feed(" [12") == ""
    assert marks.feed("]!") == "!"
    assert marks.feed(" [1]") == " [1]"


BROKEN = st.text(alphabet="[]【】 ,-0159ab\n†.and^", max_size=60)


@given(st.lists(BROKEN, max_size=8))
def test_where_a_mark_is_split_makes_no_difference(pieces: list[str]) -> None:
    assert _marked(*pieces) == _marked("".join(pieces))


@given(BROKEN)
def test_no_number_of_no_passage_is_left(text: str) -> None:
    cleaned = _marked(text)
    assert {int(number) for number in re.findall(r"(?<![\w)])\[(\d+)\]", cleaned)} <= set(KNOWN)
    assert cleaned == cleaned.strip()


@given(BROKEN)
def test_what_is_clean_stays_as_it_is(text: str) -> None:
    assert _marked(_marked(text)) == _marked(text)


PLACES = ("Linear B", "linear-b.md", "Alice Kober", "")


def _without(*pieces: str) -> tuple[str, bool]:
    references = SourceListFilter(PLACES)
    text = "".join(references.feed(piece) for piece in pieces) + references.end()
    return text.rstrip(), references.is_dropped


@pytest.mark.parametrize(
    "appended",
    [
        "\n\nReferences:\n[1] Linear B\n[2] Anything at all, 1952",
        "\n\n### Sources\n- [1] Linear B, p. 3\n- Alice\n",
        "\n\n**References**\n\n1. A\n2. B",
        "\n---\n**Sources:**\n* [1] x",
        "\n\nReferences",
        "\n\nИсточники:\n[1] x",
        "\n\n参考文献：\n[1] x",
        "\n\n[1]: Linear B, on Crete\n[2]: http://localhost/",
        "\n\n[^1]: what it says",
        "\n\n[1] Linear B\n[2] alice kober",
        "\n\n[1] linear-b.md, chars 1-20",
        "\n\n- [1] **Linear B** — linear-b.md, page 3",
    ],
)
def test_a_list_of_sources_at_the_end_goes(appended: str) -> None:
    assert _without(f"She read them [1].{appended}") == ("She read them [1].", True)


@pytest.mark.parametrize(
    "text",
    [
        "She read them.\n[1]",
        "They are:\n\n[1] Alice Kober\n[2] Linear B",
        "They are two.\n- [1] Alice Kober taught classics.",
        "They are two.\n\n[1] Alice Kober, who taught classics, and nobody else.",
        "He says so.\n\nReferences\n[1] x\n\nBut there is more [2].",
        "He says so.\n\nSources say that he left [1].",
        "Many are read.\n\nSources of light\n- the sun",
        "He left.\nS",
        "Sources:\n[1] Linear B",
        "[1] Linear B",
        "He left.\n1. First\n2. Second",
        "",
    ],
)
def test_all_else_stays_as_it_is(text: str) -> None:
    assert _without(text) == (text, False)


def test_a_rule_at_the_end_goes_without_being_called_a_list() -> None:
    assert _without("He left.\n\n---\n") == ("He left.", False)


def test_text_is_let_go_as_soon_as_it_cannot_belong_to_a_list() -> None:
    references = SourceListFilter(PLACES)
    assert references.feed("So it is.") == "So it is."
    assert references.feed("\nSour") == "\n"
    assert references.feed(" grapes") == "Sour grapes"
    assert references.feed("\n[1] ") == "\n"
    assert references.feed("He") == "[1] He"


LINES = st.lists(
    st.sampled_from(
        [
            "Sources:",
            "S",
            "[1] Linear B",
            "[1]: x",
            "- [2] y",
            "---",
            "",
            "He left [1].",
            "1. z",
            "[1] Linear B is old",
            ":",
        ]
    ),
    max_size=7,
).map("\n".join)


@given(LINES, st.integers(1, 7))
def test_where_a_list_of_sources_is_split_makes_no_difference(text: str, size: int) -> None:
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    assert _without(*pieces) == _without(text)


@given(LINES)
def test_only_the_end_is_ever_dropped_and_never_everything(text: str) -> None:
    left, _ = _without(text)
    assert text.startswith(left)
    assert bool(left) == bool(text.strip())
