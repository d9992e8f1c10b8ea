"""What a reader gets of what a model writes."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from quipu.answer.cleaning import Cleaning


def _cleaned(*pieces: str) -> str:
    cleaning = Cleaning([1, 2], ["Linear B"])
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
def test_where_a_text_is_split_makes_no_difference(pieces: list[str]) -> None:
    whole = "".join(pieces)
    assert _cleaned(*pieces) == _cleaned(whole) == _cleaned(*whole)
