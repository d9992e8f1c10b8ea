"""Tests of the citation check: statements, what supports them, and where in a document a quote is."""

from dataclasses import replace
from itertools import pairwise

import pytest

from quipu.answer.citation_check import (
    CheckedStatements,
    check_citations,
    cite,
    claiming_sentences,
    content_of,
    content_of_passage,
    is_supported,
)
from quipu.answer.context import Passage
from quipu.answer.sentences import quotable_sentences
from tests.unit.answer.fakes import chunk, material, passages


def _read(text: str) -> list[tuple[str, tuple[int, ...]]]:
    return [(text[claim.start : claim.end], claim.numbers) for claim in claiming_sentences(text)]


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
    (claim,) = claiming_sentences("1. Kober taught [1] in 1931 [2].")
    assert claim.words == "Kober taught  in 1931 ."


def test_claims_do_not_overlap_and_cover_their_text_in_order() -> None:
    text = "A man left [1]. [2] He came back.[1] It rained. [1]\n\n[2] The end came soon."
    spans = [(claim.start, claim.end) for claim in claiming_sentences(text)]
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))
    assert [text[start:end] for start, end in spans] == [
        "A man left [1]. [2]",
        "He came back.[1]",
        "It rained. [1]",
        "[2] The end came soon.",
    ]


def test_a_number_of_any_length_is_read() -> None:
    (claim,) = claiming_sentences(f"Kober taught classics [{'9' * 5_000}].")
    assert claim.numbers == ()


KOBER_CONTENT = content_of(
    "Alice Kober was a teacher of classics at Brooklyn College, where she studied Linear B from 1931 on. Her 180,000 "
    "cards were kept in cigarette boxes."
)


def _is_held(statement: str, *, is_translated: bool = False) -> bool:
    return is_supported(statement, KOBER_CONTENT, is_translated=is_translated)


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
    moscow = content_of("Фёдоров печатал книги в Москве, а потом во Львове.")
    assert is_supported(
        "Книги печатались, пишут, Фёдоровым и в самой Москве, и во Львове.", moscow, is_translated=False
    )
    assert not is_supported("Книги печатались в самом Киеве.", moscow, is_translated=False)


def test_a_passage_says_what_its_title_headings_and_header_say() -> None:
    (passage,) = passages({"Alice Kober": "She taught classics."})
    assert is_supported("Alice Kober taught classics.", content_of_passage(passage), is_translated=False)
    assert content_of_passage(passage) == content_of("Alice Kober") | content_of("She taught classics.")


def test_a_row_of_a_table_is_held_with_its_header() -> None:
    row = Passage(number=1, chunk=replace(chunk("Shoes", "Anna | 37"), header="Name | Size"))
    assert is_supported("Anna has size 37.", content_of_passage(row), is_translated=False)


KOBER = (
    "Alice Kober was born in New York in 1906, as a child of parents who had come over from Hungary in that summer.\n"
    "She was a teacher of classics at Brooklyn College for most of her life, and she filled in cards there at night."
)
VENTRIS = (
    "Michael Ventris was an architect, who read the tablets of Linear B in the summer of 1952 and wrote of it to all."
)
TEXTS = {"Alice Kober": KOBER, "Michael Ventris": VENTRIS}


def _sourced(text: str) -> CheckedStatements:
    return check_citations(text, material(TEXTS))


def test_each_citation_is_the_sentence_that_says_it() -> None:
    text = "Kober taught classics at Brooklyn College [1]. Ventris, an architect, read Linear B in 1952 [2]."
    found = _sourced(text)
    assert [statement.is_supported for statement in found.statements] == [True, True]
    taught, read = (statement.citations[0] for statement in found.statements)
    assert taught.quote == KOBER.splitlines()[1]
    assert (" " * 100 + KOBER)[taught.start : taught.end] == taught.quote
    assert (taught.number, taught.document_id, taught.source) == (1, "Alice Kober.md", "/Alice Kober.md")
    assert read.quote == VENTRIS
    assert all(text[each.start : each.end] == each.text for each in found.statements)


def test_a_statement_over_two_sentences_cites_both() -> None:
    (statement,) = _sourced("Kober, born in New York in 1906, was a teacher of classics [1].").statements
    assert [citation.quote for citation in statement.citations] == KOBER.splitlines()


def test_a_statement_over_two_passages_cites_each() -> None:
    (statement,) = _sourced("Kober was a teacher and Ventris was an architect [1][2].").statements
    assert statement.is_supported
    assert [citation.number for citation in statement.citations] == [1, 2]


def test_citations_of_the_answer_are_those_of_its_statements_each_once() -> None:
    found = _sourced("Ventris was an architect [2]. Kober taught classics [1]. Ventris read the tablets [2].")
    assert [citation.number for citation in found.citations] == [2, 1]


def test_what_its_passages_do_not_say_is_not_supported_and_keeps_its_citation() -> None:
    lie, other, bare = _sourced(
        "Kober taught classics at Oxford [1]. Ventris taught classics at Brooklyn College [2]. He never married."
    ).statements
    assert (lie.is_supported, other.is_supported, bare.is_supported) == (False, False, False)
    assert [citation.number for citation in lie.citations] == [1]
    assert bare.citations == ()


def test_without_numbers_no_citation_is_made_up() -> None:
    found = _sourced("Kober taught classics at Brooklyn College.")
    assert found.citations == ()
    assert [statement.is_supported for statement in found.statements] == [False]


def test_a_passage_that_shares_no_word_is_cited_as_a_whole() -> None:
    (statement,) = _sourced("Penguins breed on ice [1].").statements
    assert [(citation.start, citation.end) for citation in statement.citations] == [(100, 100 + len(KOBER))]
    assert not statement.is_supported


def test_a_passage_of_code_is_cited_without_its_fences() -> None:
    (statement,) = check_citations(
        "Penguins breed on ice [1].", material({"Setup": "```sh\nexport INDEX=kb\n```"})
    ).statements
    assert [citation.quote for citation in statement.citations] == ["export INDEX=kb"]


def test_a_passage_in_another_language_is_compared_by_numbers() -> None:
    found = _sourced("Кобер родилась в 1906 году [1]. Вентрис прочёл таблички в 1953 году [2].")
    assert [statement.is_supported for statement in found.statements] == [True, False]
    assert found.n_translated == 2


def test_an_answer_that_says_nothing_has_no_statements() -> None:
    assert _sourced("").statements == ()


def test_a_citation_names_document_chunk_and_span() -> None:
    text = "He left the city.\nHe came back to the city by the sea after forty days."
    passage = Passage(number=7, chunk=chunk("Travels", text, headings=("Days",), page=3))
    _, quote = quotable_sentences([passage])
    citation = cite(quote, {"Travels.md": "/letters/Travels.md"})
    document = " " * 100 + text
    assert document[citation.start : citation.end] == citation.quote == text.splitlines()[1]
    assert (citation.number, citation.document_id, citation.chunk_id) == (7, "Travels.md", "chunk of Travels")
    assert (citation.title, citation.headings, citation.page) == ("Travels", ("Days",), 3)
    assert citation.source == "/letters/Travels.md"


def test_a_citation_names_the_page_the_quote_is_on_not_the_one_its_chunk_begins_on() -> None:
    text = "He left the city.\n\f\f\nHe came back to the city by the sea after forty days."
    paged = Passage(number=1, chunk=chunk("Travels", text, page=3))
    assert [cite(quote, {}).page for quote in quotable_sentences([paged])] == [3, 5]
    unpaged = Passage(number=1, chunk=chunk("Travels", text))
    assert [cite(quote, {}).page for quote in quotable_sentences([unpaged])] == [None, None]
