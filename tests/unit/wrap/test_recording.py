"""Recorded: a model's replies on disk, and a model that replays them."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from quipu.errors import Corrupt, NotFound, Overloaded
from quipu.model.chat import ChatRequest, FinishReason, Message, Role
from quipu.wrap.recording import RecordedLLM, ReplayedLLM
from tests.unit.wrap.fakes import FakeLLM, completion, request

FULL = ChatRequest(
    messages=(Message("system", "Be brief. 长城"), Message("user", "Who is \ud800?")),
    role=Role.ANSWER,
    max_output_tokens=50,
    temperature=0.5,
    schema="{}",
    documents=("secret-name.md",),
    subject="the question",
)


async def test_what_was_recorded_is_replayed(tmp_path: Path) -> None:
    replies = [completion("Alice."), replace(completion("B\n“ob”", FinishReason.LENGTH), is_estimate=True)]
    llm = RecordedLLM(FakeLLM(replies), tmp_path / "new" / "folder")
    await llm.complete(request())
    await llm.complete(FULL)
    replayed = ReplayedLLM(tmp_path / "new" / "folder")
    pieces: list[str] = []
    assert [await replayed.complete(request()), await replayed.complete(FULL, pieces.append)] == replies
    assert pieces == ["B\n“ob”"]
    assert replayed.identity == llm.identity == "fake/model"


async def test_pieces_are_given_while_recording(tmp_path: Path) -> None:
    pieces: list[str] = []
    await RecordedLLM(FakeLLM([completion("a b")]), tmp_path).complete(request(), pieces.append)
    assert pieces == ["a ", "b"]


async def test_only_what_the_model_sees_is_written(tmp_path: Path) -> None:
    await RecordedLLM(FakeLLM(), tmp_path).complete(FULL)
    text = (tmp_path / "answer.jsonl").read_text(encoding="ascii")
    assert "secret-name" not in text
    assert "the question" not in text
    assert list(json.loads(text)) == [
        *("model", "role", "messages", "max_output_tokens", "temperature", "schema"),
        *("reply", "finish", "tokens", "is_estimate"),
    ]


async def test_failures_are_not_recorded(tmp_path: Path) -> None:
    with pytest.raises(Overloaded):
        await RecordedLLM(FakeLLM([Overloaded("no")]), tmp_path).complete(request())
    with pytest.raises(NotFound):
        ReplayedLLM(tmp_path)


async def test_calls_at_once_are_written_line_by_line(tmp_path: Path) -> None:
    llm = RecordedLLM(FakeLLM([completion("x" * 50_000)]), tmp_path)
    await asyncio.gather(*(llm.complete(request(str(number))) for number in range(20)))
    replayed = ReplayedLLM(tmp_path)
    assert {len((await replayed.complete(request(str(number)))).text) for number in range(20)} == {50_000}


async def test_the_last_reply_recorded_counts(tmp_path: Path) -> None:
    llm = RecordedLLM(FakeLLM([completion("old"), completion("new")]), tmp_path)
    await llm.complete(request())
    await llm.complete(request())
    assert (await ReplayedLLM(tmp_path).complete(request())).text == "new"


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (request("Where was Alice bom?"), r"character 24: .*Alice bom\?.* instead of .*Alice born\?"),
        (request("Where was Alice born?", max_output_tokens=7), r"7 tokens.* instead of .*100 tokens"),
    ],
)
async def test_an_unknown_request_is_told_from_the_nearest(asked: ChatRequest, message: str, tmp_path: Path) -> None:
    llm = RecordedLLM(FakeLLM(), tmp_path)
    await llm.complete(request("Something else entirely"))
    await llm.complete(request("Where was Alice born?"))
    with pytest.raises(NotFound, match=message):
        await ReplayedLLM(tmp_path).complete(asked)


def test_a_folder_without_recordings_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no recording"):
        ReplayedLLM(tmp_path)


@pytest.mark.parametrize("line", ["nothing", "{}", "[]", '{"model": "m"}'])
async def test_a_damaged_recording_is_refused_with_its_place(line: str, tmp_path: Path) -> None:
    await RecordedLLM(FakeLLM(), tmp_path).complete(request())
    with (tmp_path / "extract.jsonl").open("a") as out:
        out.write(line + "\n")
    with pytest.raises(Corrupt, match=r"extract\.jsonl:2 is not a record"):
        ReplayedLLM(tmp_path)
