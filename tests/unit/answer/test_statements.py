"""What an answer claims, and what each claim cites."""

from itertools import pairwise

import pytest

from quipu.answer.statements import claims


def _read(text: str) -> list[tuple[str, tuple[int, ...]]]:
    return [(text[claim.start : claim.end], claim.numbers) for claim in claims(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Kober taught classics [1]. Ventris read tablets [2][3].", [
            ("Kober taught classics [1].", (1,)),
            ("Ventris read tablets [2][3].", (2, 3)),
        ]),
        ("Kober taught classics. [1] Ventris read tablets. [2]", [
            ("Kober taught classics. [1]", (1,)),
            ("Ventris read tablets. [2]", (2,)),
        ]),
        ("Kober taught classics.[1][2] Ventris read tablets.", [
            ("Kober taught classics.[1][2]", (1, 2)),
            ("Ventris read tablets.", ()),
        ]),
        ("Kober taught classics. Ventris read tablets [1].", [
            ("Kober taught classics.", (1,)),
            ("Ventris read tablets [1].", (1,)),
        ]),
        ("Kober taught classics.\n\nVentris read tablets [1].", [
            ("Kober taught classics.", ()),
            ("Ventris read tablets [1].", (1,)),
        ]),
        ("- Kober taught classics [1]\n- Ventris read tablets [2]", [
            ("- Kober taught classics [1]", (1,)),
            ("- Ventris read tablets [2]", (2,)),
        ]),
        ("科伯教古典学。[1]文特里斯读泥板[2]。", [
            ("科伯教古典学。[1]", (1,)),
            ("文特里斯读泥板[2]。", (2,)),
        ]),
    ],
)  # fmt: skip
def test_each_sentence_has_the_numbers_behind_it(text: str, expected: list[tuple[str, tuple[int, ...]]]) -> None:
    assert _read(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", "# Early years of Kober", "**Early years of Kober**", "These are known:", "Who was Kober then?", "Yes."],
)
def test_what_claims_nothing_is_left_out(text: str) -> None:
    assert _read(text) == []


def test_what_cites_claims_something_whatever_it_looks_like() -> None:
    assert _read("Yes [1].\n\n# Kober [2]") == [("Yes [1].", (1,)), ("# Kober [2]", (2,))]


def test_the_words_of_a_claim_are_bare_of_marks_and_bullets() -> None:
    (claim,) = claims("1. Kober taught [1] in 1931 [2].")
    assert claim.words == "Kober taught  in 1931 ."


def test_claims_do_not_overlap_and_cover_their_text_in_order() -> None:
    text = "A man left [1]. [2] He came back.[1] It rained. [1]\n\n[2] The end came soon."
    spans = [(claim.start, claim.end) for claim in claims(text)]
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))
    assert [text[start:end] for start, end in spans] == [
        "A man left [1]. [2]",
        "He came back.[1]",
        "It rained. [1]",
        "[2] The end came soon.",
    ]


def test_a_number_of_any_length_is_read() -> None:
    (claim,) = claims(f"Kober taught classics [{'9' * 5_000}].")
    assert claim.numbers == ()
