"""HTTP session: sends requests to one model of a service, and asks the service which models it has."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakSet

from quipu.errors import Overloaded, QuipuError, Unavailable
from quipu.providers.openai.endpoint import Target
from quipu.providers.openai.errors import ErrorKind, classify_error, error_from_reply
from quipu.providers.openai.reply import ErrorReply, ParsedReply, count_at, list_at, parse_reply, text_at

if TYPE_CHECKING:
    from quipu.providers.openai.client import HttpClient, HttpResponse

_LISTING_TIMEOUT_S = 5.0
_WINDOW_PATHS = (
    ("loaded_context_length",),
    ("context_length",),
    ("max_model_len",),
    ("context_window",),
    ("max_context_length",),
    ("max_input_tokens",),
    ("meta", "n_ctx"),
)


def deadline(within_s: float) -> float:
    """Return the time of the running event loop in `within_s` seconds."""
    return asyncio.get_running_loop().time() + within_s


class HttpSession:
    """Sends requests to one target over one client per event loop, created at the first request.

    Every `until` is a time of the running event loop.
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        self.has_succeeded = False  # whether the service has answered correctly at least once; set by callers
        self._clients: dict[asyncio.AbstractEventLoop, HttpClient] = {}
        self._closed: WeakSet[asyncio.AbstractEventLoop] = WeakSet()

    @asynccontextmanager
    async def post(self, url: str, body: bytes, until: float) -> "AsyncIterator[HttpResponse]":
        """Send JSON and give the response as soon as its headers arrive. Raises ErrorReply if it is an error."""
        endpoint = self.target.endpoint
        if endpoint.needs_key:
            raise Unavailable(f"{self.target.label} needs a key, and none is set.", remedy=endpoint.key_remedy)
        client = await self._client()
        async with client.request("POST", url, body, until) as response:
            if response.status != 200:
                raise ErrorReply(parse_reply(response.status, response.headers, await response.read_all(until)))
            yield response

    async def post_json(self, url: str, body: bytes, until: float) -> ParsedReply:
        """Send JSON and return the whole reply. Raises ErrorReply if it is an error."""
        async with self.post(url, body, until) as response:
            return parse_reply(response.status, response.headers, await response.read_all(until))

    async def request_json(self, url: str, until: float, body: bytes | None = None) -> object:
        """Return the JSON of a side request, such as the list of models; None for an error reply.

        It is a GET request without `body`. Raises Overloaded or Unavailable if nothing answers.
        """
        client = await self._client()
        async with client.request("GET" if body is None else "POST", url, body, until) as response:
            reply = parse_reply(response.status, response.headers, await response.read_all(until))
        return reply.body if reply.status == 200 else None

    async def error_for(self, reply: ParsedReply) -> QuipuError:
        """Return the error to raise for an error reply. For an unknown model, similar names are suggested.

        If the address has worked before, a page from elsewhere (a proxy) only means that the service is overloaded.
        """
        kind = classify_error(reply)
        models = [model.name for model in await list_models(self)] if kind is ErrorKind.MODEL else []
        error = error_from_reply(reply, self.target, models=models)
        if kind is ErrorKind.ADDRESS and self.has_succeeded:
            return Overloaded(error.message, remedy="Try again.")
        return error

    async def aclose(self) -> None:
        """Close the connections of the running event loop. No new ones are opened in it after that."""
        loop = asyncio.get_running_loop()
        self._closed.add(loop)
        client = self._clients.pop(loop, None)
        if client is not None:
            await client.aclose()

    async def _client(self) -> "HttpClient":
        loop = asyncio.get_running_loop()
        if loop in self._closed:
            raise Unavailable(f"The connections to {self.target.label} are closed.", remedy="Open the index again.")
        if loop not in self._clients:
            from quipu.providers.openai.client import HttpClient

            ended_loops = [other for other in self._clients if other.is_closed()]
            self._clients[loop] = HttpClient(self.target)
            for ended in ended_loops:
                await self._clients.pop(ended).aclose()
        return self._clients[loop]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedModel:
    """A model in the list of a server. `context_window` is in tokens, None if the server does not say."""

    name: str
    context_window: int | None = None


def parse_model_list(body: object) -> list[ListedModel]:
    """Return the models of a reply to GET /models: a list, or an object that holds one."""
    entries = body if isinstance(body, list) else list_at(body, "data") or list_at(body, "models")
    listed = [
        ListedModel(
            name=_model_name(entry),
            context_window=next((n for path in _WINDOW_PATHS if (n := count_at(entry, *path))), None),
        )
        for entry in entries
    ]
    return [model for model in listed if model.name]


async def list_models(session: HttpSession) -> list[ListedModel]:
    """Return the models a server lists; none if it lists none or does not answer."""
    target = session.target
    return parse_model_list(await _request_or_none(session, target.endpoint.url("/models", target.model)))


async def find_context_window(session: HttpSession) -> int | None:
    """Return the context window, in tokens, of the model as it is served now; None if the server does not say.

    Call the model before this: Ollama and LM Studio load it with its first request.
    """
    name, endpoint = session.target.model, session.target.endpoint
    if endpoint.provider.name == "ollama":
        running = list_at(await _request_or_none(session, endpoint.url_outside_api("/api/ps")), "models")
        windows = (
            count_at(entry, "context_length")
            for entry in running
            if name in (text_at(entry, "name").removesuffix(":latest"), text_at(entry, "model"))
        )
        return next(windows, None) or await _ollama_num_ctx(session)
    if endpoint.provider.name == "llamacpp":
        props = await _request_or_none(session, endpoint.url_outside_api("/props"))
        return count_at(props, "default_generation_settings", "n_ctx")
    if endpoint.provider.name == "lmstudio":
        models = parse_model_list(await _request_or_none(session, endpoint.url_outside_api("/api/v0/models")))
    else:
        models = await list_models(session)
    return next((model.context_window for model in models if model.name == name), None)


async def _ollama_num_ctx(session: HttpSession) -> int | None:
    """Return num_ctx of the model's Modelfile."""
    body = json.dumps({"model": session.target.model}).encode()
    details = await _request_or_none(session, session.target.endpoint.url_outside_api("/api/show"), body)
    for line in text_at(details, "parameters").splitlines():
        words = line.split()
        if words[:1] == ["num_ctx"] and words[1:2] and words[1].isdigit():
            return int(words[1])
    return None


async def _request_or_none(session: HttpSession, url: str, body: bytes | None = None) -> object:
    try:
        return await session.request_json(url, deadline(_LISTING_TIMEOUT_S), body)
    except (Overloaded, Unavailable):
        return None


def _model_name(entry: object) -> str:
    """Return a model's name; Gemini writes "models/" before it."""
    if not isinstance(entry, Mapping):
        return ""
    return (text_at(entry, "id") or text_at(entry, "name") or text_at(entry, "model")).removeprefix("models/")
