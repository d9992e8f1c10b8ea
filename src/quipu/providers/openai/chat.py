"""Chat: a model of any OpenAI-compatible server. One call is one attempt; rejected request parameters are left out."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from quipu.errors import Overloaded, Refused
from quipu.model.chat import ChatRequest, Completion, FinishReason, TokenCount
from quipu.model.secret import extra_identity, parse_extra
from quipu.ports.providers import TextSink, ignore_text
from quipu.providers.openai.catalog import JsonSupport
from quipu.providers.openai.endpoint import Endpoint, Target
from quipu.providers.openai.errors import max_output_that_fits, names_context_window
from quipu.providers.openai.reply import (
    ErrorReply,
    EventStreamDecoder,
    ParsedReply,
    ReplyAssembler,
    excerpt,
    parse_reply,
    value_at,
)
from quipu.providers.openai.session import HttpSession, deadline

if TYPE_CHECKING:
    from quipu.providers.openai.client import HttpResponse

_MAX_REQUESTS = 8  # attempts with other parameters before an error is final
_OUT_OF_TOKENS = "could not finish the message because max_tokens"  # the error if reasoning used all output tokens
# A reply longer than max_output_tokens can be is cut: otherwise a server that never stops would be paid for.
_EXTRA_CHARS, _CHARS_PER_TOKEN = 2_000, 8
_AFTER_END_S = 0.25  # how long a server may keep the connection open after the end of its reply
_MIN_LIMIT = 16  # tokens; a smaller number in an error is not the allowed maximum

_REASONING_MODEL = re.compile(r"(^|/)(o\d|gpt-[5-9](?!-chat))", re.IGNORECASE)
_LIMIT_NAMES = ("max_tokens", "max_completion_tokens")
_JSON_WORDS = re.compile(
    r"response_format|json_schema|json_object|json schema|structured output|guided|grammar|word 'json'"
)
_ALLOWED_MAXIMUM = re.compile(
    r"(?:at most|up to|> ?=?|<= ?|less than or equal to|maximum value (?:is|of|for \S+ is)|range[^\[\d]{0,40}\[?\s*\d+"
    r"(?:\s*\(inclusive\))?\s*(?:,|to|-))\s*`?(\d[\d,_]*)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatParameters:
    """What a user sets for a model beyond its name. None leaves a value to the request.

    `extra` is a JSON object that is merged over the request body; null removes a field. With `is_streamed` replies are
    streamed even if nobody reads them, so that an interrupted reply keeps its text. Raises InvalidInput if `extra` is
    not a JSON object or contains a key.
    """

    extra: str = field(default="{}", repr=False)
    temperature: float | None = None
    max_output_tokens: int | None = None
    is_streamed: bool = True

    def __post_init__(self) -> None:
        self.extra_fields()

    def extra_fields(self) -> Mapping[str, object]:
        """Return `extra`, parsed."""
        return parse_extra(self.extra)

    def identity(self) -> str:
        """Return the parameters that change replies, with a digest of `extra`; "" if there are none."""
        extra = self.extra_fields()
        parameters: dict[str, object] = {"extra": extra_identity(extra)} if extra else {}
        parameters |= {} if self.temperature is None else {"temperature": self.temperature}
        parameters |= {} if self.max_output_tokens is None else {"max_output_tokens": self.max_output_tokens}
        return json.dumps(parameters, sort_keys=True, ensure_ascii=False) if parameters else ""


_DEFAULTS = ChatParameters()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatCapabilities:
    """What a server accepts, as far as is known. `max_output` is its limit on output tokens, None if unknown."""

    limit_name: str = "max_tokens"
    has_temperature: bool = True
    json: JsonSupport = JsonSupport.SCHEMA
    has_usage_option: bool = True
    can_stream: bool = True
    max_output: int | None = None


class OpenAIChat:
    """Asks one model for chat completions. It remembers what the server rejects and does not send it again.

    `count_tokens` estimates what a server does not count. A reply is streamed if a caller reads its text or with
    `parameters.is_streamed`.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        model: str,
        *,
        count_tokens: Callable[[str], int],
        parameters: ChatParameters = _DEFAULTS,
    ) -> None:
        self.target = Target(endpoint=endpoint, model=model)
        self.session = HttpSession(self.target)
        self._count_tokens = count_tokens
        self._parameters = parameters
        self._capabilities = initial_capabilities(self.target)
        self._url = endpoint.url("/chat/completions", model)

    @property
    def identity(self) -> str:
        """Provider, model and the parameters that change replies. Of the address, only the host of a custom server."""
        parameters = self._parameters.identity()
        return f"{self.target.name}?{parameters}" if parameters else self.target.name

    @property
    def capabilities(self) -> ChatCapabilities:
        """What the server accepts, as far as is known."""
        return self._capabilities

    async def complete(self, request: ChatRequest, on_text: TextSink = ignore_text) -> Completion:
        """Return the reply; raises as `LLM.complete` does. Repeats only a request that was rejected unread."""
        for _ in range(_MAX_REQUESTS):
            capabilities = self._capabilities
            try:
                return await self._request(request, capabilities, on_text)
            except ErrorReply as error:
                reply = error.reply
            if _OUT_OF_TOKENS in reply.searchable:
                return self._empty_completion(request)
            if max_output := max_output_that_fits(reply):
                return await self._request_less(request, capabilities, max_output, on_text)
            changed = None if names_context_window(reply) else without_rejected_part(capabilities, reply)
            if changed is None:
                break
            if self._capabilities is capabilities:  # otherwise a parallel call has already changed them
                self._capabilities = changed
        raise await self.session.error_for(reply)

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        await self.session.aclose()

    async def _request(self, request: ChatRequest, capabilities: ChatCapabilities, on_text: TextSink) -> Completion:
        """Send one request. Raises ErrorReply if the server answers with an error."""
        is_streamed = capabilities.can_stream and (self._parameters.is_streamed or on_text is not ignore_text)
        body = write_chat_request(request, self.target, capabilities, self._parameters, is_streamed=is_streamed)
        timeouts = self.target.endpoint.timeouts
        end = deadline(timeouts.total_s)
        assembler = ReplyAssembler(_EXTRA_CHARS + _CHARS_PER_TOKEN * request.max_output_tokens)
        if not is_streamed:
            reply = await self.session.post_json(self._url, body, end)
            on_text(self._add_whole_reply(reply, assembler))
            return self._completion(assembler, request)
        async with self.session.post(self._url, body, min(end, deadline(timeouts.silence_s))) as response:
            if response.is_stream:
                await self._read_stream(response, assembler, on_text, end)
            else:
                reply = parse_reply(response.status, response.headers, await response.read_all(end))
                on_text(self._add_whole_reply(reply, assembler))
        return self._completion(assembler, request)

    async def _request_less(
        self, request: ChatRequest, capabilities: ChatCapabilities, max_output: int, on_text: TextSink
    ) -> Completion:
        """Send the request again with the output limit that fits into the context window beside it."""
        limit = min(max_output, capabilities.max_output or max_output)
        try:
            return await self._request(request, replace(capabilities, max_output=limit), on_text)
        except ErrorReply as error:
            reply = error.reply
        raise await self.session.error_for(reply)

    async def _read_stream(
        self, response: "HttpResponse", assembler: ReplyAssembler, on_text: TextSink, end: float
    ) -> None:
        """Read a stream to its end. If it breaks off after some text, the assembler keeps what has arrived."""
        decoder = EventStreamDecoder()
        silence_s = self.target.endpoint.timeouts.silence_s
        until = min(end, deadline(silence_s))
        while True:
            try:
                received = await response.read_some(until)
                events = decoder.feed(received) if received else decoder.end()
            except Overloaded:
                if assembler.is_done or assembler.text:
                    return
                raise
            for event in events:
                if text := assembler.add_event(event):
                    on_text(text)
            if not received or assembler.is_too_long:
                return
            if events:  # a comment without events does not extend the deadline
                until = min(end, deadline(_AFTER_END_S if assembler.is_done else silence_s))

    def _add_whole_reply(self, reply: ParsedReply, assembler: ReplyAssembler) -> str:
        """Return the text of a reply that was not streamed. Raises ErrorReply if it is not a chat reply."""
        if reply.body is None and not reply.is_html and reply.message.lstrip().startswith("{"):
            raise Overloaded(f"{self.target.label} broke off within its reply.", remedy="Try again.", may_cost=True)
        if not isinstance(value_at(reply.body, "choices"), list):
            raise ErrorReply(reply)
        assembler.is_done = True
        return assembler.add_object(reply.body)

    def _completion(self, assembler: ReplyAssembler, request: ChatRequest) -> Completion:
        """Return what has arrived. Raises Refused if the reply was withheld, Overloaded if there is none."""
        finish, text, label = assembler.finish, assembler.text, self.target.label
        if not text and (assembler.refusal or finish is FinishReason.FILTERED):
            reason = excerpt(self.target.endpoint.mask(assembler.refusal)) or "its filter withheld the reply"
            raise Refused(
                f"{label} refused: {reason}",
                remedy="The same text will be refused again; leave it out.",
                may_cost=True,
            )
        if not assembler.n_choices or (finish is FinishReason.INTERRUPTED and not text):
            raise Overloaded(f"{label} ended its reply before any text.", remedy="Try again.", may_cost=True)
        self.session.has_succeeded = True
        tokens = assembler.tokens if assembler.tokens and (assembler.tokens.output or not text) else None
        return Completion(
            text=text,
            finish=finish,
            tokens=tokens or self._estimate_tokens(assembler, request),
            is_estimate=tokens is None,
        )

    def _empty_completion(self, request: ChatRequest) -> Completion:
        """Return the empty reply of a model that used its whole output limit for reasoning. A higher limit may help."""
        tokens = replace(self._estimate_tokens(ReplyAssembler(), request), output=request.max_output_tokens)
        return Completion(text="", finish=FinishReason.LENGTH, tokens=tokens, is_estimate=True)

    def _estimate_tokens(self, assembler: ReplyAssembler, request: ChatRequest) -> TokenCount:
        n_input = sum(self._count_tokens(message.text) for message in request.messages)
        n_input += sum(image.n_tokens for image in request.images)
        return TokenCount(input=n_input, output=self._count_tokens(assembler.generated))


def initial_capabilities(target: Target) -> ChatCapabilities:
    """Return the capabilities to assume of a server and model before the first request."""
    provider = target.endpoint.provider
    is_reasoning = provider.name in ("openai", "azure") and _REASONING_MODEL.search(target.model) is not None
    return ChatCapabilities(
        limit_name="max_completion_tokens" if is_reasoning else provider.limit_name,
        has_temperature=not is_reasoning,
        json=provider.json,
    )


def without_rejected_part(capabilities: ChatCapabilities, reply: ParsedReply) -> ChatCapabilities | None:
    """Return the capabilities without what the server has rejected; None if it names nothing that can be changed."""
    if reply.status not in (400, 422) and not (reply.status < 400 and reply.is_error):
        return None
    text, parameter = reply.searchable, reply.parameter
    if parameter == "temperature" or (not parameter and "temperature" in text):
        return replace(capabilities, has_temperature=False) if capabilities.has_temperature else None
    if parameter in _LIMIT_NAMES or (not parameter and any(name in text for name in _LIMIT_NAMES)):
        return _with_other_limit(capabilities, reply)
    if parameter.startswith("response_format") or _JSON_WORDS.search(text):
        weaker_by_support = {JsonSupport.SCHEMA: JsonSupport.OBJECT, JsonSupport.OBJECT: JsonSupport.NONE}
        weaker = weaker_by_support.get(capabilities.json)
        return replace(capabilities, json=weaker) if weaker else None
    if parameter.startswith("stream_options") or "stream_options" in text or "include_usage" in text:
        return replace(capabilities, has_usage_option=False) if capabilities.has_usage_option else None
    if parameter == "stream" or (not parameter and re.search(r"\bstream(ing|ed)?\b", text)):
        return replace(capabilities, can_stream=False) if capabilities.can_stream else None
    return None


def _with_other_limit(capabilities: ChatCapabilities, reply: ParsedReply) -> ChatCapabilities | None:
    """Return the capabilities with the output limit the server allows, or with the other name of the limit."""
    allowed = [int(re.sub(r"\D", "", digits)) for digits in _ALLOWED_MAXIMUM.findall(reply.searchable)]
    lower = [limit for limit in allowed if _MIN_LIMIT <= limit < (capabilities.max_output or limit + 1)]
    if lower:
        return replace(capabilities, max_output=min(lower))
    name = capabilities.limit_name
    is_rejected = reply.parameter == name or (not reply.parameter and name in reply.searchable)
    return replace(capabilities, limit_name=_LIMIT_NAMES[1 - _LIMIT_NAMES.index(name)]) if is_rejected else None


def write_chat_request(
    request: ChatRequest,
    target: Target,
    capabilities: ChatCapabilities,
    parameters: ChatParameters,
    *,
    is_streamed: bool,
) -> bytes:
    """Return the request as JSON. Lone surrogates become question marks, because UTF-8 cannot hold them."""
    limits = (request.max_output_tokens, parameters.max_output_tokens, capabilities.max_output)
    body: dict[str, object] = {
        "model": target.model,
        "messages": request.in_openai_form(),
        capabilities.limit_name: min(limit for limit in limits if limit is not None),
    }
    if capabilities.has_temperature:
        body["temperature"] = request.temperature if parameters.temperature is None else parameters.temperature
    if request.schema:
        body |= _response_format(capabilities.json, request.schema)
    if is_streamed:
        body["stream"] = True
        if capabilities.has_usage_option:
            body["stream_options"] = {"include_usage": True}
    body |= parameters.extra_fields()
    present = {name: value for name, value in body.items() if value is not None}
    return json.dumps(present, ensure_ascii=False).encode("utf-8", "replace")


def _response_format(support: JsonSupport, schema: str) -> dict[str, object]:
    if support is JsonSupport.NONE:
        return {}
    if support is JsonSupport.OBJECT:
        return {"response_format": {"type": "json_object"}}
    json_schema = {"name": "reply", "schema": json.loads(schema), "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": json_schema}}
