"""Markdown of results: what a notebook shows."""

from quipu.model.answer import Answer, Citation, Comparison, StrategyResult
from quipu.model.document import Document, DocumentStatus
from quipu.model.evidence import Evidence, Scored, Trace
from quipu.model.graph import Chunk
from quipu.model.markdown import escape_markdown, markdown_table
from quipu.model.results import AddResult, SearchResult


def test_characters_that_mean_something_in_markdown_are_escaped() -> None:
    assert escape_markdown("a|b *c*\n\n[d](e) `f`") == r"a\|b \*c\* \[d\](e) \`f\`"


def test_a_table_has_a_line_for_each_row() -> None:
    assert markdown_table(("a", "b"), [(1, "x|y")]) == "| a | b |\n| --- | --- |\n| 1 | x\\|y |"


def test_an_answer_shows_each_source_once() -> None:
    citation = Citation(
        number=1, document_id="carol.txt", title="A Carol", chunk_id="c", start=3, end=9, quote="Marley", date="1843"
    )
    trace = Trace(strategy="naive", revision=1, evidence=Evidence(), stale=("Vectors are behind.",))
    answer = Answer(text="Marley [1]", generator="extractive", citations=(citation, citation), trace=trace)
    source = "- [1] **A Carol** — carol.txt, dated 1843, characters 3–9"
    assert answer._repr_markdown_() == f"Marley [1]\n\n> Vectors are behind.\n\n{source}"


def test_a_comparison_is_a_table_of_strategies_with_their_errors() -> None:
    comparison = Comparison(question="Who?", results=(StrategyResult(strategy="ppr", error="No model is set."),))
    assert "| ppr | No model is set. | 0 | 0 |" in comparison._repr_markdown_()


def test_a_search_is_a_table_of_chunks() -> None:
    chunk = Chunk(
        id="c",
        document_id="carol.txt",
        title="",
        ordinal=0,
        text="Marley\nwas dead",
        start=0,
        end=15,
        n_tokens=3,
        text_hash="",
    )
    table = SearchResult(chunks=((Scored(id="c", score=1.234), chunk),), entities=())._repr_markdown_()
    assert "| 1.23 | carol.txt | Marley was dead |" in table


def test_an_add_shows_what_failed() -> None:
    assert AddResult(n_added=1200)._repr_markdown_() == "1,200 added, 0 updated, 0 unchanged"
    failed = Document(id="a.pdf", title="", status=DocumentStatus.FAILED, error="The file is encrypted.")
    assert "| a.pdf | The file is encrypted. |" in AddResult(failed=(failed,))._repr_markdown_()
