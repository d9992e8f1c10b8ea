"""Tests of what documents say of two entities, by date, and where they differ in a detail alone."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from quipu.engine import Quipu
from quipu.model.edit import EditKind, EditRequest
from quipu.model.graph import DatedStatement
from tests.laws.world import engine

PAIR = ("Acme Corporation", "Bolt Ltd")
OLD = "Acme Corporation is led by Ann Miller. Acme Corporation pays Bolt Ltd a fee of 100 euros per month."
NEW = "Acme Corporation is led by Bo Smith. Acme Corporation pays Bolt Ltd a fee of 120 euros per month."


@pytest.fixture
async def kb(tmp_path: Path) -> AsyncIterator[Quipu]:
    async with engine(tmp_path / "kb") as kb:
        yield kb


async def add(kb: Quipu, **texts: str) -> None:
    """Add documents: `y2021` holds since 2021."""
    for name, text in texts.items():
        await kb.add_text(text, id=name, metadata={"valid_from": name[1:5]})


def summary(statements: tuple[DatedStatement, ...]) -> list[tuple[Any, ...]]:
    return [(statement.document_id, statement.holds_from, statement.differs_in) for statement in statements]


async def test_what_documents_say_of_a_pair_is_listed_by_date(kb: Quipu) -> None:
    await add(kb, y2021=OLD, y2023=NEW, y2022="Bolt Ltd works for Acme Corporation in Riga.")
    statements = (await kb.relation(*PAIR)).statements
    assert summary(statements) == [
        ("y2023", "2023", ("number",)),
        ("y2022", "2022", ()),
        ("y2021", "2021", ("number",)),
    ]
    assert (await kb.relation(*reversed(PAIR))).statements[0].text == statements[0].text
    for statement in statements:
        assert (await kb.text(statement.document_id))[statement.start : statement.end] == statement.text


async def test_an_entity_shows_sentences_that_are_equal_but_for_a_detail(kb: Quipu) -> None:
    await add(kb, y2021=OLD, y2023=NEW)
    groups = {group[0].differs_in: group for group in (await kb.entity("Acme Corporation")).differing}
    assert {name: [statement.document_id for statement in group] for name, group in groups.items()} == {
        ("name",): ["y2023", "y2021"],
        ("number",): ["y2023", "y2021"],
    }
    assert [statement.other for statement in groups["name",]] == ["Bo Smith", "Ann Miller"]
    assert (await kb.entity("Acme Corporation", as_of="2022")).differing == ()


@pytest.mark.parametrize(
    ("one", "other", "differs_in"),
    [
        ("Ann Miller can leave Bolt Ltd.", "Ann Miller can't leave Bolt Ltd.", ("negation",)),
        ("Анна Миллер работает в Риге.", "Анна Миллер не работает в Риге.", ("negation",)),
        ("Ann Miller paid Bolt Ltd 5 euros.", "Ann Miller never paid Bolt Ltd 7 euros.", ("negation", "number")),
        ("Ann Miller paid Bolt Ltd 5 euros.", "ann miller paid Bolt Ltd 5  euros!", None),  # no difference
        ("Ann Miller paid Bolt Ltd 5 euros.", "Ann Miller owes Bolt Ltd 7 euros.", None),  # other words
        ("Ann Miller met Bo Smith in Riga.", "Ann Miller met Bo Smith and met Eve Stone in Riga.", None),
        ("Ann Miller met Bo Smith.", "Ann Miller met Eve Stone. Ann Miller met Bo Smith.", None),  # a list of values
        ("# Ann Miller at Bolt Ltd 2021\n\nRain.", "# Ann Miller at Bolt Ltd 2023\n\nRain.", None),  # headings
        ("Ann Miller, Bolt Ltd: 5.", "Ann Miller, Bolt Ltd: 7.", None),  # no words beside names and numbers
    ],
)
async def test_only_equal_words_of_different_documents_differ_in_a_detail(
    kb: Quipu, one: str, other: str, differs_in: tuple[str, ...] | None
) -> None:
    await add(kb, y2021=one, y2023=other)
    details = await kb.entity("Анна Миллер" if "Анна" in one else "Ann Miller")
    assert {statement.differs_in for group in details.differing for statement in group} == (
        {differs_in} if differs_in else set()
    )


async def test_the_order_of_documents_changes_nothing_and_equal_dates_are_ordered(tmp_path: Path) -> None:
    texts = {"y2021a": OLD, "y2021b": NEW, "y2023": OLD.replace("100", "130")}
    lists: list[object] = []
    for number, order in enumerate((list(texts), list(reversed(texts)))):
        async with engine(tmp_path / str(number)) as kb:
            await add(kb, **{name: texts[name] for name in order})
            lists.append([(await kb.relation(*PAIR)).statements, (await kb.entity("Bolt Ltd")).differing])
    assert lists[0] == lists[1]


async def test_one_document_and_equal_documents_say_nothing_different(kb: Quipu) -> None:
    await add(kb, y2021=f"{OLD} {NEW}")
    assert (await kb.relation(*PAIR)).statements == ()
    await add(kb, y2021=OLD, y2023=OLD)
    assert (await kb.relation(*PAIR)).statements == ()


async def test_merged_entities_are_compared_as_corrected(kb: Quipu) -> None:
    await add(kb, y2021=OLD, y2023=NEW.replace("Bolt Ltd", "Bolt Limited"))
    assert [group[0].differs_in for group in (await kb.entity("Acme Corporation")).differing] == [
        ("name",),
        ("name", "number"),
    ]
    await kb.edits.make(EditRequest(kind=EditKind.MERGE, entities=("Bolt Ltd", "Bolt Limited"), name="Bolt Ltd"))
    assert {group[0].differs_in for group in (await kb.entity("Acme Corporation")).differing} == {
        ("name",),
        ("number",),
    }
    assert [statement.differs_in for statement in (await kb.relation(*PAIR)).statements] == [("number",)] * 2


async def test_the_trace_dates_the_sources_that_state_one_pair(kb: Quipu) -> None:
    question = "What fee does Acme Corporation pay Bolt Ltd?"
    await add(kb, y2021=OLD, y2023=NEW)
    answer = await kb.query(question)
    date_by_number = {citation.number: citation.document_id[1:] for citation in answer.citations}
    expected = ", ".join(f"[{number}] since {date}" for number, date in sorted(date_by_number.items()))
    assert len(date_by_number) == 2
    assert all(citation.date == citation.document_id[1:] for citation in answer.citations)
    assert all(citation.date for statement in answer.statements for citation in statement.citations)
    assert f"sources of different dates state Acme Corporation and Bolt Ltd: {expected}" in answer.trace.notes
    assert not any("different dates" in note for note in (await kb.query(question, as_of="2022")).trace.notes)


async def test_documents_without_dates_get_no_note(kb: Quipu) -> None:
    await kb.add_text(OLD, id="a")
    await kb.add_text(NEW, id="b")
    answer = await kb.query("What fee does Acme Corporation pay Bolt Ltd?")
    assert [citation.date for citation in answer.citations] == ["", ""]
    assert not any("different dates" in note for note in answer.trace.notes)
