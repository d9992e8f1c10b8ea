"""Recorded: a model's replies on disk, and a model that replays them."""

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from quipu.errors import Corrupt, NotFound
from quipu.model.chat import ChatRequest, Completion, FinishReason, Message, Role, TokenCount
from quipu.ports.providers import LLM, TextSink, ignore_text

SHOWN = 40  # characters each side of the first difference


class RecordedLLM:
    """A chat model that writes what it is asked and what it replies to FOLDER/ROLE.jsonl, as it goes.

    Only what the model sees is written: no key, no address, no document's name.
    """

    def __init__(self, llm: LLM, folder: Path) -> None:
        self._llm = llm
        self._folder = folder
        self._writing = asyncio.Lock()

    @property
    def identity(self) -> str:
        """That of the model."""
        return self._llm.identity

    async def complete(self, request: ChatRequest, on_text: TextSink = ignore_text) -> Completion:
        """Return the reply, written down; raises as `LLM.complete` does."""
        completion = await self._llm.complete(request, on_text)
        line = json.dumps(_record(self.identity, request, completion), ensure_ascii=True) + "\n"
        async with self._writing:
            await asyncio.to_thread(_append, self._folder / f"{request.role.value}.jsonl", line)
        return completion


class ReplayedLLM:
    """A chat model made of recorded replies; the same request gets the last reply recorded, with its tokens."""

    def __init__(self, folder: Path) -> None:
        self._replies: dict[str, Completion] = {}
        self._requests: list[ChatRequest] = []
        self.identity = ""
        for identity, request, completion in _read(folder):
            self.identity = self.identity or identity
            self._replies[request.hash(self.identity)] = completion
            self._requests.append(request)
        if not self._requests:
            raise NotFound(
                f"There is no recording in {folder}.", remedy="Make one: run once with record = FOLDER and a model."
            )

    async def complete(self, request: ChatRequest, on_text: TextSink = ignore_text) -> Completion:
        """Return the recorded reply. Raises NotFound naming the most similar request recorded."""
        completion = self._replies.get(request.hash(self.identity))
        if completion is None:
            raise NotFound(_nothing_recorded(request, self._requests), remedy="Record it again.")
        on_text(completion.text)
        return completion


def _append(file: Path, line: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("ab", buffering=0) as out:  # at once, as others may write to the file too
        out.write(line.encode("ascii"))


def _record(identity: str, request: ChatRequest, completion: Completion) -> Mapping[str, object]:
    tokens = completion.tokens
    return {
        "model": identity,
        "role": request.role.value,
        "messages": [[message.role, message.text] for message in request.messages],
        "max_output_tokens": request.max_output_tokens,
        "temperature": request.temperature,
        "schema": request.schema,
        "reply": completion.text,
        "finish": completion.finish.value,
        "tokens": [tokens.input, tokens.cached, tokens.output],
        "is_estimate": completion.is_estimate,
    }


def _read(folder: Path) -> Iterator[tuple[str, ChatRequest, Completion]]:
    for file in sorted(folder.glob("*.jsonl")):
        with file.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    yield _parsed(line)
                except (ValueError, TypeError, KeyError) as error:
                    raise Corrupt(f"{file}:{number} is no record: {error!r}.", remedy="Take the line out.") from None


def _parsed(line: str) -> tuple[str, ChatRequest, Completion]:
    record = json.loads(line)
    request = ChatRequest(
        messages=tuple(Message(role, text) for role, text in record["messages"]),
        role=Role(record["role"]),
        max_output_tokens=record["max_output_tokens"],
        temperature=record["temperature"],
        schema=record["schema"],
    )
    given, cached, output = record["tokens"]
    completion = Completion(
        text=record["reply"],
        finish=FinishReason(record["finish"]),
        tokens=TokenCount(input=given, cached=cached, output=output),
        is_estimate=record["is_estimate"],
    )
    return str(record["model"]), request, completion


def _nothing_recorded(request: ChatRequest, recorded: Sequence[ChatRequest]) -> str:
    """Say where the request leaves the one recorded that begins most like it."""
    asked = _as_text(request)
    nearest = max((_as_text(each) for each in recorded), key=lambda text: _n_common(asked, text))
    at = _n_common(asked, nearest)
    here, there = (text[max(at - SHOWN, 0) : at + SHOWN] for text in (asked, nearest))
    return f"Nothing is recorded for this request. It leaves the nearest at character {at:,}: {here!r}, not {there!r}."


def _as_text(request: ChatRequest) -> str:
    """Return all that makes the reply's key, parameters last."""
    said = "\n".join(f"{message.role}: {message.text}" for message in request.messages)
    return f"{said}\n{request.max_output_tokens} tokens, temperature {request.temperature!r}, schema {request.schema!r}"


def _n_common(one: str, other: str) -> int:
    """Return the length of the common beginning."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low
