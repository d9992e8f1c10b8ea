"""How answers of a model look."""

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from quipu.cli.asking import AnsweredQuestion, render_answers
from quipu.cli.output import wrapped_lines
from quipu.model.answer import Answer, Citation, Statement
from quipu.model.chat import TokenCount
from quipu.model.evidence import Evidence, Trace
from quipu.model.usage import Stage, UsageRow

TAUGHT, FLEW = "She taught at Brooklyn College [1].", "She flew to\x1b the moon."
CITATION = Citation(number=1, document_id="kober.md", title="Alice Kober", chunk_id="c0", start=0, end=9, quote="x")
ANSWER = Answer(
    text=f"{TAUGHT} {FLEW} She came back.",
    generator="openai/small",
    citations=(CITATION,),
    trace=Trace(strategy="mix", revision=1, evidence=Evidence()),
    statements=(
        Statement(text=TAUGHT, start=0, end=len(TAUGHT), citations=(CITATION,), is_supported=True),
        Statement(text=FLEW, start=len(TAUGHT) + 1, end=len(TAUGHT) + 1 + len(FLEW)),
    ),
)
ROW = UsageRow(day="2026-01-02", stage=Stage.ANSWER, model="m", n_calls=1, tokens=TokenCount(input=3_000, output=40))


def _drawn(answer: Answer, *, is_styled: bool = False) -> str:
    out = StringIO()
    console = Console(file=out, width=120, force_terminal=is_styled, color_system="standard" if is_styled else None)
    render_answers(console, AnsweredQuestion(question="Who?", answers=(answer,)))
    return out.getvalue()


def test_what_nothing_supports_is_dimmed_and_marked_and_the_mark_explained() -> None:
    out = _drawn(ANSWER)
    assert "She taught at Brooklyn College [1]. She flew to\ufffd the moon. † She came back." in out
    assert "† No passage cited supports this." in out
    assert f"\x1b[2m{FLEW.replace(chr(27), chr(0xFFFD))} †" in _drawn(ANSWER, is_styled=True)


def test_where_all_or_nothing_is_supported_nothing_is_marked() -> None:
    assert "†" not in _drawn(replace(ANSWER, statements=ANSWER.statements[:1]))
    assert "†" not in _drawn(replace(ANSWER, statements=()))
    assert "†" not in _drawn(replace(ANSWER, is_supported=False))


def test_notes_and_cost_stand_below_the_answer() -> None:
    out = _drawn(replace(ANSWER, notes=("The answer was cut off.",), usage=(replace(ROW, cost=1_200), ROW)))
    assert "The answer was cut off." in out
    assert "2 calls: 6,000 tokens in, 80 out, 0.0012" in out


def test_a_number_that_leads_to_several_documents_has_a_line_for_each() -> None:
    other = replace(CITATION, document_id="ventris.md", title="Michael Ventris", date="1953-06", start=20, end=30)
    again = replace(CITATION, start=40, end=50)
    out = _drawn(replace(ANSWER, citations=(CITATION, other, again)))
    assert "[1] Alice Kober — kober.md, chars 0-9; 40-50" in out
    assert "[1] Michael Ventris — ventris.md, dated 1953-06, chars 20-30" in out


def test_lines_that_a_document_wraps_are_wrapped_by_the_terminal_instead() -> None:
    text = "The caravan left Tabriz before the sun had risen above\n  the walls, and came back. [1]\n\nNobody knew."
    start = text.index("above\n")
    answer = replace(ANSWER, text=text, statements=(), highlights=((start, start + 11),))
    out = _drawn(answer)
    assert "the sun had risen above the walls, and came back. [1]  " in out
    assert "Nobody knew." in out.split("[1]")[1]
    assert "\x1b[1mabove\x1b[0m \x1b[1mthe\x1b[0m" in _drawn(answer, is_styled=True)


PROSE = """The caravan left Tabriz before the sun had risen above
the walls, and nobody had told the merchants of Venice."""


@pytest.mark.parametrize(
    ("text", "wrapped"),
    [
        (PROSE, [0]),
        (f"## Leaving\n{PROSE}\n\n{PROSE}", [1, 4]),
        (f"- {PROSE}\n- It came back.", [0]),
        (f"```\n{PROSE}\n```\n{PROSE}", [4]),
        ("| The caravan left Tabriz before the sun had risen above |\n| the walls |", []),
        ("The caravan left Tabriz before the sun had risen above.\n\nNobody was told.", []),
        ("The caravan left Tabriz\nbefore the sun had risen", []),  # verses
        ("The caravan left Tabriz before the sun had risen above it.\nNobody\nwas told.", []),  # had room
        ("", []),
    ],
)
def test_lines_of_a_paragraph_that_had_no_room_for_the_next_word_are_wrapped(text: str, wrapped: list[int]) -> None:
    assert list(wrapped_lines(text.split("\n"))) == wrapped
