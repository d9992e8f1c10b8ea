"""Lists of sources that models append, taken out while a text streams."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quipu.answer.references import References

PLACES = ("Linear B", "linear-b.md", "Alice Kober", "")


def _without(*pieces: str) -> tuple[str, bool]:
    references = References(PLACES)
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
    references = References(PLACES)
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
def test_where_a_text_is_split_makes_no_difference(text: str, size: int) -> None:
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    assert _without(*pieces) == _without(text)


@given(LINES)
def test_only_the_end_is_ever_dropped_and_never_everything(text: str) -> None:
    left, _ = _without(text)
    assert text.startswith(left)
    assert bool(left) == bool(text.strip())
