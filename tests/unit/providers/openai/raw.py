"""A server of raw bytes on loopback: answers in framings that no library would write."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from quipu.model.chat import ChatRequest, Message, Role
from quipu.model.secret import Secret
from quipu.providers.openai.catalog import PROVIDERS
from quipu.providers.openai.chat import ChatParameters, OpenAIChat
from quipu.providers.openai.endpoint import Endpoint, Timeouts

KEY = "sk-test-0123456789abcdef"
HELLO = ChatRequest(messages=(Message("user", "Hello."),), role=Role.ANSWER, max_output_tokens=1_000)
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


@dataclass(frozen=True)
class Asked:
    """A request as it came in; `fields` is its JSON."""

    method: str
    path: str
    headers: Mapping[str, str]
    fields: Mapping[str, object]


Answer = bytes | Sequence[bytes] | Callable[[Asked], bytes]


@dataclass
class RawServer:
    """What was asked of it so far, and where it is."""

    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    is_asked: asyncio.Event = field(default_factory=asyncio.Event)
    is_left: asyncio.Event = field(default_factory=asyncio.Event)

    def posted(self, name: str) -> list[object]:
        """Return a field of every request posted, None where it had none."""
        return [each.fields.get(name) for each in self.asked if each.method == "POST"]


@asynccontextmanager
async def answering(*answers: Answer) -> AsyncIterator[RawServer]:
    """Answer requests with these bytes one after the other, the last again and again; () never answers."""
    raw = RawServer()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            raw.asked.append(await _read(reader))
            answer = answers[min(len(raw.asked), len(answers)) - 1]
            if callable(answer):
                answer = answer(raw.asked[-1])
            raw.is_asked.set()
            if not answer:
                await reader.read()
                raw.is_left.set()
            for piece in [answer] if isinstance(answer, bytes) else answer:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0.001)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    raw.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    try:
        yield raw
    finally:
        server.close()


@asynccontextmanager
async def speaking_first() -> AsyncIterator[str]:
    """Give the address of a server that answers before it has been asked."""

    async def handle(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    finally:
        server.close()


def reply(body: object, status: int = 200, **headers: str) -> bytes:
    """Return a whole answer: JSON, or a page of HTML or text where `body` is text."""
    data = (body if isinstance(body, str) else json.dumps(body)).encode()
    kind = "application/json" if not isinstance(body, str) else "text/html"
    lines = [f"HTTP/1.1 {status} X", f"Content-Type: {kind}", f"Content-Length: {len(data)}", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


def failure(status: int, message: str, **named: str) -> bytes:
    """Return an error in OpenAI's shape."""
    return reply({"error": {"message": message, **named}}, status)


def chat_reply(text: str, finish: str = "stop") -> bytes:
    """Return a whole reply to a chat request."""
    return reply({"choices": [{"message": {"content": text}, "finish_reason": finish}]})


def event(delta: Mapping[str, object], finish: str | None = None) -> bytes:
    """Return one event of a streamed reply."""
    return f"data: {json.dumps({'choices': [{'index': 0, 'delta': delta, 'finish_reason': finish}]})}\n\n".encode()


def count(text: str) -> int:
    """Count a token for every word."""
    return len(text.split())


def endpoint(url: str, provider: str = "openai", **timeouts: float) -> Endpoint:
    """Return an endpoint whose patience suits a test."""
    patience = Timeouts(**{"connect_s": 5.0, "silence_s": 5.0, "total_s": 5.0, **timeouts})
    return Endpoint(provider=PROVIDERS[provider], base_url=url, key=Secret(KEY), timeouts=patience)


@asynccontextmanager
async def chatting(
    url: str, provider: str = "openai", parameters: ChatParameters | None = None, **timeouts: float
) -> AsyncIterator[OpenAIChat]:
    """Give a chat model at an address and close it in the end."""
    where = endpoint(url, provider, **timeouts)
    chat = OpenAIChat(where, "gpt-4.1-mini", count_tokens=count, parameters=parameters or ChatParameters())
    try:
        yield chat
    finally:
        await chat.aclose()


async def _read(reader: asyncio.StreamReader) -> Asked:
    lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    method, path, _ = lines[0].split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Asked(method, path, headers, json.loads(body) if body else {})
