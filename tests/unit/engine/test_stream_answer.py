"""An answer in pieces."""

import asyncio

import pytest

from quipu.engine.answering import stream_answer
from quipu.errors import Overloaded
from quipu.model.answer import Answer, AnswerPiece
from quipu.model.evidence import Evidence, Trace
from quipu.ports.providers import TextSink

ANSWER = Answer(
    text="He left.", generator="test", citations=(), trace=Trace(strategy="mix", revision=1, evidence=Evidence())
)


async def test_pieces_come_as_they_are_written_and_the_answer_last() -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def work(on_text: TextSink) -> Answer:
        on_text("He ")
        begun.set()
        await go_on.wait()
        on_text("left.")
        return ANSWER

    pieces = stream_answer(work)
    assert await anext(pieces) == AnswerPiece(text="He ")
    assert begun.is_set()
    go_on.set()
    assert [piece async for piece in pieces] == [AnswerPiece(text="left."), AnswerPiece(answer=ANSWER)]


async def test_what_the_work_raises_is_raised_after_the_pieces_before_it() -> None:
    async def work(on_text: TextSink) -> Answer:
        on_text("He ")
        raise Overloaded("busy")

    pieces = stream_answer(work)
    assert await anext(pieces) == AnswerPiece(text="He ")
    with pytest.raises(Overloaded, match="busy"):
        await anext(pieces)


async def test_who_stops_reading_stops_the_work() -> None:
    ended = False

    async def work(on_text: TextSink) -> Answer:
        nonlocal ended
        on_text("He ")
        try:
            await asyncio.Event().wait()
        finally:
            ended = True
        return ANSWER

    pieces = stream_answer(work)
    await anext(pieces)
    await pieces.aclose()
    assert ended
