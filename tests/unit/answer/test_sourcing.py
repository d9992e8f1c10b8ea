"""What an answer claims, traced to the words of its passages."""

from quipu.answer.sourcing import Sourced, source
from tests.unit.answer.fakes import material

KOBER = (
    "Alice Kober was born in New York in 1906, as a child of parents who had come over from Hungary in that summer.\n"
    "She was a teacher of classics at Brooklyn College for most of her life, and she filled in cards there at night."
)
VENTRIS = (
    "Michael Ventris was an architect, who read the tablets of Linear B in the summer of 1952 and wrote of it to all."
)
TEXTS = {"Alice Kober": KOBER, "Michael Ventris": VENTRIS}


def _sourced(text: str) -> Sourced:
    return source(text, material(TEXTS))


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
    (statement,) = source("Penguins breed on ice [1].", material({"Setup": "```sh\nexport INDEX=kb\n```"})).statements
    assert [citation.quote for citation in statement.citations] == ["export INDEX=kb"]


def test_a_passage_in_another_language_is_compared_by_numbers() -> None:
    found = _sourced("Кобер родилась в 1906 году [1]. Вентрис прочёл таблички в 1953 году [2].")
    assert [statement.is_supported for statement in found.statements] == [True, False]
    assert found.n_translated == 2


def test_an_answer_that_says_nothing_has_no_statements() -> None:
    assert _sourced("").statements == ()
