"""Answers of compared strategies share a panel where they say the same of the same passages, and only there."""

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from quipu.cli.comparisons import render_answers
from quipu.model.answer import Answer, Citation, StrategyResult
from quipu.model.evidence import Evidence, Trace

TRACE = Trace(strategy="naive", revision=1, evidence=Evidence())


def said(text: str, *cited: tuple[int, str], quote: str = "It says so.") -> Answer:
    """Return an answer that cites documents by number."""
    citations = tuple(
        Citation(number=number, document_id=name, title=name, chunk_id=name, start=0, end=9, quote=quote)
        for number, name in cited
    )
    return Answer(text=text, generator="openai/small", citations=citations, trace=TRACE)


def n_panels(*answers: Answer) -> int:
    """Return how many panels these answers of as many strategies get."""
    console = Console(file=StringIO(), width=200, color_system=None)
    render_answers(console, [StrategyResult(strategy=f"s{n}", answer=answer) for n, answer in enumerate(answers)])
    assert isinstance(console.file, StringIO)
    return console.file.getvalue().count("openai/")


ONE = said("Ann won [1]. Bo lost [2].", (1, "p"), (2, "q"))


@pytest.mark.parametrize(
    "same",
    [
        said("Ann won [7]. Bo lost [3].", (7, "p"), (3, "q")),
        said("Ann won[1]. Bo lost [2].", (2, "q"), (1, "p")),
        replace(ONE, trace=replace(TRACE, strategy="path", revision=2), context="other", prompt="other"),
    ],
)
def test_the_same_words_of_the_same_passages_are_shown_once(same: Answer) -> None:
    assert n_panels(ONE, same) == 1


def test_passages_cited_together_may_stand_in_any_order() -> None:
    cited = said("Ann won [1][2].", (1, "p"), (2, "q"))
    for text in ("Ann won [2][1].", "Ann won [1] [2].", "Ann won [1, 2]."):
        assert n_panels(cited, said(text, (1, "p"), (2, "q"))) == n_panels(cited, said(text, (1, "q"), (2, "p"))) == 1


def test_words_in_brackets_that_a_source_has_cite_nothing() -> None:
    one, other = said("Ann[2] won. [1]", (1, "p"), quote="Ann[2] won."), (2, "q")
    same = said("Ann[2] won. [5] So said Bo. [2]", (5, "p"), other, quote="Ann[2] won.")
    longer = replace(one, text="Ann[2] won. [1] So said Bo. [3]", citations=said("", (1, "p"), (3, "q")).citations)
    longer = replace(longer, citations=tuple(replace(each, quote="Ann[2] won.") for each in longer.citations))
    assert n_panels(longer, same) == 1


@pytest.mark.parametrize(
    "other",
    [
        said("Ann won [1]. Bo lost [2].", (1, "q"), (2, "p")),
        said("Ann won [1]. Bo lost [2].", (1, "p"), (2, "r")),
        said("Ann won [1]. Bo lost.", (1, "p"), (2, "q")),
        said("Ann lost [1]. Bo lost [2].", (1, "p"), (2, "q")),
        said(ONE.text, (1, "p"), (2, "q"), (3, "r")),
        replace(ONE, citations=tuple(replace(each, start=1) for each in ONE.citations)),
        replace(ONE, generator="openai/large"),
        replace(ONE, is_supported=False),
        replace(ONE, notes=("It was cut short.",)),
        replace(ONE, trace=replace(TRACE, stale=("reports",))),
    ],
)
def test_another_answer_has_a_panel_of_its_own(other: Answer) -> None:
    assert n_panels(ONE, other) == 2


def test_numbers_in_brackets_that_cite_nothing_are_words() -> None:
    for text in ("It was built in [{}] [1].", "It was built in [{}, 1].", "It was built in [1] [{}]."):
        first, second = (said(text.format(year), (1, "p")) for year in (1952, 1953))
        assert n_panels(first, second) == 2
        assert n_panels(first, first) == 1
