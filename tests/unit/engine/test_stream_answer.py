"""An answer in pieces."""

import asyncio
from pathlib import Path

import pytest

import quipu
from quipu.engine.answering import stream_answer
from quipu.errors import Overloaded
from quipu.model.answer import Answer, AnswerPiece, PieceSink
from quipu.model.evidence import Evidence, Trace

ANSWER = Answer(
    text="He left.", generator="test", citations=(), trace=Trace(strategy="mix", revision=1, evidence=Evidence())
)


async def test_pieces_come_as_they_are_written_and_the_answer_last() -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def work(on_piece: PieceSink) -> Answer:
        on_piece(AnswerPiece(text="He "))
        begun.set()
        await go_on.wait()
        on_piece(AnswerPiece(text="left."))
        return ANSWER

    pieces = stream_answer(work)
    assert await anext(pieces) == AnswerPiece(text="He ")
    assert begun.is_set()
    go_on.set()
    assert [piece async for piece in pieces] == [AnswerPiece(text="left."), AnswerPiece(answer=ANSWER)]


async def test_what_the_work_raises_is_raised_after_the_pieces_before_it() -> None:
    async def work(on_piece: PieceSink) -> Answer:
        on_piece(AnswerPiece(text="He "))
        raise Overloaded("busy")

    pieces = stream_answer(work)
    assert await anext(pieces) == AnswerPiece(text="He ")
    with pytest.raises(Overloaded, match="busy"):
        await anext(pieces)


async def test_who_stops_reading_stops_the_work() -> None:
    ended = False

    async def work(on_piece: PieceSink) -> Answer:
        nonlocal ended
        on_piece(AnswerPiece(text="He "))
        try:
            await asyncio.Event().wait()
        finally:
            ended = True
        return ANSWER

    pieces = stream_answer(work)
    await anext(pieces)
    await pieces.aclose()
    assert ended


async def test_an_answer_names_its_stages_before_its_text(tmp_path: Path) -> None:
    async with quipu.open(tmp_path / "kb") as kb:
        await kb.add_text("Alice Kober taught classics at Brooklyn College.")
        pieces = [piece async for piece in kb.stream("Where did Alice Kober teach?")]
    assert [piece.stage for piece in pieces if piece.stage] == ["understand", "retrieve", "generate"]
    assert [piece.n_passages for piece in pieces if piece.stage] == [0, 0, 1]
    assert pieces[-1].answer is not None
    assert "".join(piece.text for piece in pieces) == pieces[-1].answer.text
