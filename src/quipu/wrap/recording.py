"""Recordings: a chat model that writes its replies to disk, and one that replays them."""

import asyncio
import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from quipu.errors import Corrupt, NotFound
from quipu.model.chat import ChatRequest, Completion, FinishReason, Image, Message, Role, TokenCount
from quipu.ports.providers import LLM, TextSink, ignore_text

EXCERPT_CHARS = 40  # on each side of the first difference


class RecordedLLM:
    """A chat model that appends each request and its reply to FOLDER/ROLE.jsonl.

    Only what the model sees is written: no key, no address, no document name.
    """

    def __init__(self, llm: LLM, folder: Path) -> None:
        self._llm = llm
        self._folder = folder
        self._lock = asyncio.Lock()

    @property
    def identity(self) -> str:
        return self._llm.identity

    async def complete(self, request: ChatRequest, on_text: TextSink = ignore_text) -> Completion:
        """Return the reply after it was recorded. Raises as `LLM.complete` does."""
        completion = await self._llm.complete(request, on_text)
        line = json.dumps(_record(self.identity, request, completion), ensure_ascii=True) + "\n"
        async with self._lock:
            await asyncio.to_thread(_append, self._folder / f"{request.role.value}.jsonl", line)
        return completion


class ReplayedLLM:
    """A chat model that replays recorded replies: an equal request gets the last recorded reply with its tokens."""

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
        """Return the recorded reply. Raises NotFound that quotes the most similar recorded request."""
        completion = self._replies.get(request.hash(self.identity))
        if completion is None:
            raise NotFound(_difference(request, self._requests), remedy="Record it again.")
        on_text(completion.text)
        return completion


def _append(file: Path, line: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("ab", buffering=0) as out:  # one write per line: other processes may append too
        out.write(line.encode("ascii"))


def _record(identity: str, request: ChatRequest, completion: Completion) -> Mapping[str, object]:
    tokens = completion.tokens
    images = [[image.url, image.width, image.height] for image in request.images]
    return {
        "model": identity,
        "role": request.role.value,
        "messages": [[message.role, message.text] for message in request.messages],
        "max_output_tokens": request.max_output_tokens,
        "temperature": request.temperature,
        "schema": request.schema,
        **({"images": images} if images else {}),
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
                    yield _parse(line)
                except (ValueError, TypeError, KeyError) as error:
                    raise Corrupt(f"{file}:{number} is not a record: {error!r}.", remedy="Remove the line.") from None


def _parse(line: str) -> tuple[str, ChatRequest, Completion]:
    record = json.loads(line)
    request = ChatRequest(
        messages=tuple(Message(role, text) for role, text in record["messages"]),
        role=Role(record["role"]),
        max_output_tokens=record["max_output_tokens"],
        temperature=record["temperature"],
        schema=record["schema"],
        images=tuple(_image(*image) for image in record.get("images", ())),
    )
    n_input, n_cached, n_output = record["tokens"]
    completion = Completion(
        text=record["reply"],
        finish=FinishReason(record["finish"]),
        tokens=TokenCount(input=n_input, cached=n_cached, output=n_output),
        is_estimate=record["is_estimate"],
    )
    return str(record["model"]), request, completion


def _image(url: str, width: int, height: int) -> Image:
    media_type, _, content = url.removeprefix("data:").partition(";base64,")
    return Image(media_type=media_type, content=base64.b64decode(content, validate=True), width=width, height=height)


def _difference(request: ChatRequest, recorded: Sequence[ChatRequest]) -> str:
    """Describe where the request differs from the recorded one with the longest common beginning."""
    text = _as_text(request)
    nearest = max(map(_as_text, recorded), key=lambda other: _n_common(text, other))
    start = _n_common(text, nearest)
    ours, theirs = (side[max(start - EXCERPT_CHARS, 0) : start + EXCERPT_CHARS] for side in (text, nearest))
    return (
        "Nothing is recorded for this request. It differs from the most similar recorded request at character "
        f"{start:,}: {ours!r} instead of {theirs!r}."
    )


def _as_text(request: ChatRequest) -> str:
    """Return everything that the key of a reply is made of, parameters last."""
    messages = "\n".join(f"{message.role}: {message.text}" for message in request.messages)
    messages += "".join(f"\nimage {image.hash}" for image in request.images)
    limits = f"{request.max_output_tokens} tokens, temperature {request.temperature!r}, schema {request.schema!r}"
    return f"{messages}\n{limits}"


def _n_common(first: str, second: str) -> int:
    """Return the length of the common beginning, by binary search."""
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if first[:middle] == second[:middle] else (low, middle - 1)
    return low
