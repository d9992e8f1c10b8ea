"""A client for tests: plain requests by aiohttp, and what came back."""

import json
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import aiohttp

from quipu.model.chat import Message
from tests.unit.testing.scripted.prompts import extraction

PATIENCE_S = 5.0


@dataclass(frozen=True, kw_only=True)
class Response:
    """What came back."""

    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)

    def json(self) -> Any:
        """Return the body, parsed."""
        return json.loads(self.body)

    @property
    def text(self) -> str:
        """The reply's text, whole or put together from its events."""
        if self.headers.get("Content-Type", "").startswith("text/event-stream"):
            deltas = (event["choices"][0]["delta"] for event in self.events() if event["choices"])
            return "".join(delta.get("content", "") for delta in deltas)
        text: str = self.json()["choices"][0]["message"]["content"]
        return text

    def events(self) -> list[Any]:
        """Return the events of a stream but its last line."""
        blocks = self.body.decode().split("\n\n")
        data = [block.removeprefix("data: ") for block in blocks if block]
        return [json.loads(each) for each in data if each != "[DONE]"]

    @property
    def error(self) -> str:
        """The code of the error."""
        code: str = self.json()["error"]["code"]
        return code


class Client:
    """Asks a server at a base URL."""

    def __init__(self, base_url: str) -> None:
        self._base_url = base_url

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def chat(
        self, messages: tuple[Message, ...] = extraction(), *, patience_s: float = PATIENCE_S, **fields: Any
    ) -> Response:
        """Ask for a chat completion."""
        said = [{"role": message.role, "content": message.text} for message in messages]
        return await self.post("/chat/completions", {"model": "m", "messages": said, **fields}, patience_s=patience_s)

    async def embed(self, *texts: str, **fields: object) -> Response:
        """Ask for vectors."""
        return await self.post("/embeddings", {"model": "m", "input": list(texts), **fields})

    async def post(
        self,
        path: str,
        body: object,
        *,
        headers: dict[str, str] | None = None,
        patience_s: float = PATIENCE_S,
        method: str = "POST",
    ) -> Response:
        """Send JSON and read the whole answer."""
        url = path if path.startswith("http") else f"{self._base_url}{path}"
        timeout = aiohttp.ClientTimeout(total=patience_s)
        async with self._session.request(method, url, json=body, headers=headers, timeout=timeout) as response:
            return Response(status=response.status, body=await response.read(), headers=dict(response.headers))
