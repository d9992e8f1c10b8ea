"""LiteLLM: chat models of services that are not OpenAI-compatible, by the optional library litellm."""

import asyncio
import importlib.util
import json
import re
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from quipu.errors import Overloaded, QuipuError, Refused, TooLong, Unavailable
from quipu.model.chat import ChatRequest, Completion, FinishReason, TokenCount
from quipu.model.secret import Secret, extra_identity, parse_extra
from quipu.ports.providers import TextSink, ignore_text

_REMEDY = "Run pip install 'quipu-rag[litellm]'."
_MAX_EXCERPT = 300
_MAX_COUNT = 10**9  # tokens of one call; a larger number is damage, and sums of such numbers would overflow

# Our errors by the names of the library's exception classes. The nearest class in the inheritance order counts.
_ERROR_BY_NAME: Mapping[str, type[QuipuError]] = {
    "ContextWindowExceededError": TooLong,
    "ContentPolicyViolationError": Refused,
    "AuthenticationError": Unavailable,
    "PermissionDeniedError": Unavailable,
    "NotFoundError": Unavailable,
    "BudgetExceededError": Unavailable,
    "RateLimitError": Overloaded,
    "Timeout": Overloaded,
    "APIConnectionError": Overloaded,
    "ServiceUnavailableError": Overloaded,
    "BadGatewayError": Overloaded,
    "InternalServerError": Overloaded,
    "MidStreamFallbackError": Overloaded,
    "APIResponseValidationError": Overloaded,
    "UnsupportedParamsError": Refused,
    "UnprocessableEntityError": Refused,
    "JSONSchemaValidationError": Refused,
    "BadRequestError": Refused,
    "APIError": Overloaded,
}
_REMEDY_BY_ERROR = {
    TooLong: "Use smaller chunks (chunk_tokens), or a model with a larger context window.",
    Refused: "The service will reject this request every time.",
    Unavailable: "Check the model's name and the key in the environment, as LiteLLM's page on this provider says.",
}
# The formats of keys that only the library knows.
_TOKEN = re.compile(r"\b(sk-[\w-]{8,}|AKIA[0-9A-Z]{12,}|AIza[\w-]{20,})|(?<=Bearer )\S+")
_FINISH = {"length": FinishReason.LENGTH, "content_filter": FinishReason.FILTERED}


@dataclass(frozen=True, slots=True, kw_only=True)
class LiteLlmParameters:
    """What a user sets beyond the model's name.

    `extra` is a JSON object of further arguments for the library, without keys or addresses. Without `key` the library
    looks for the service's own variables in the environment.
    """

    key: Secret = field(default_factory=Secret)
    base_url: str = field(default="", repr=False)
    timeout_s: float = 600.0
    temperature: float | None = None
    max_output_tokens: int | None = None
    extra: str = "{}"


_DEFAULTS = LiteLlmParameters()


def import_litellm() -> Any:
    """Return the library; importing it takes seconds. Raises Unavailable if it is not installed."""
    try:
        import litellm
    except ImportError as error:
        raise Unavailable("The provider 'litellm' is not installed.", remedy=_REMEDY) from error
    return litellm


class LiteLlm:
    """Asks one model through LiteLLM. One call is one attempt; the library drops parameters a service does not accept.

    `model` is the library's name, as in "bedrock/anthropic.claude-3-5-haiku". `load` returns the library.
    """

    def __init__(
        self,
        model: str,
        *,
        count_tokens: Callable[[str], int],
        parameters: LiteLlmParameters = _DEFAULTS,
        load: Callable[[], Any] = import_litellm,
    ) -> None:
        if load is import_litellm and importlib.util.find_spec("litellm") is None:
            raise Unavailable("The provider 'litellm' is not installed.", remedy=_REMEDY)
        self._model = model
        self._count_tokens = count_tokens
        self._parameters = parameters
        self._extra = parse_extra(parameters.extra, may_redirect=False)
        self._load = load
        self._library: Any = None

    @property
    def identity(self) -> str:
        """Provider, model and the parameters that change replies, with a digest of `extra`."""
        settings = self._parameters
        fields: dict[str, object] = {"extra": extra_identity(self._extra)} if self._extra else {}
        fields |= {} if settings.temperature is None else {"temperature": settings.temperature}
        fields |= {} if settings.max_output_tokens is None else {"max_output_tokens": settings.max_output_tokens}
        parameters = f"?{json.dumps(fields, sort_keys=True, ensure_ascii=False)}" if fields else ""
        return f"litellm/{self._model}{parameters}"

    async def complete(self, request: ChatRequest, on_text: TextSink = ignore_text) -> Completion:
        if self._library is None:
            self._library = await asyncio.to_thread(self._load)
        reply = _StreamedReply()
        pieces = self._pieces(self._library, request)
        try:
            async for piece in pieces:
                if text := reply.add(piece):
                    on_text(text)
        except Overloaded:
            if not reply.text:
                raise
            reply.finish = FinishReason.INTERRUPTED
        finally:
            await pieces.aclose()
        return self._completion(reply, request)

    async def aclose(self) -> None:
        """Do nothing: the library manages its own connections."""

    async def _pieces(self, library: Any, request: ChatRequest) -> AsyncGenerator[object, None]:
        """Yield the pieces that the library yields, and raise its errors as ours."""
        exceptions = [getattr(library.exceptions, name, None) for name in _ERROR_BY_NAME]
        errors = (TimeoutError, OSError, *(exception for exception in exceptions if exception is not None))
        until = asyncio.get_running_loop().time() + self._parameters.timeout_s
        stream = None
        while True:
            piece, failed = None, None
            try:
                async with asyncio.timeout_at(until):
                    stream = stream or aiter(await library.acompletion(**self._arguments(request)))
                    piece = await anext(stream, None)
            except errors as error:
                failed = self._to_quipu_error(error)
            if failed is not None:
                raise failed  # outside the except block: the library's exception may hold the key
            if piece is None:
                return
            yield piece

    def _arguments(self, request: ChatRequest) -> dict[str, object]:
        settings = self._parameters
        limit = settings.max_output_tokens or request.max_output_tokens
        arguments: dict[str, object] = {
            "model": self._model,
            "messages": request.in_openai_form(),
            "max_tokens": min(limit, request.max_output_tokens),
            "temperature": request.temperature if settings.temperature is None else settings.temperature,
            "stream": True,
            "stream_options": {"include_usage": True},
            "timeout": settings.timeout_s,
            "drop_params": True,
            "num_retries": 0,
            "max_retries": 0,
        }
        if request.schema:
            json_schema = {"name": "reply", "schema": json.loads(request.schema), "strict": True}
            arguments["response_format"] = {"type": "json_schema", "json_schema": json_schema}
        if settings.key:
            arguments["api_key"] = settings.key.reveal()
        if settings.base_url:
            arguments["api_base"] = settings.base_url
        return {name: value for name, value in {**arguments, **self._extra}.items() if value is not None}

    def _to_quipu_error(self, error: Exception) -> QuipuError:
        names = [kind.__name__ for kind in type(error).__mro__]
        kind = next((_ERROR_BY_NAME[name] for name in names if name in _ERROR_BY_NAME), Overloaded)
        excerpt = " ".join(_TOKEN.sub("***", self._mask(str(error))).split())[:_MAX_EXCERPT]
        message = f"litellm/{self._model}: {excerpt or type(error).__name__}"
        if "insufficient_quota" in message:
            kind = Unavailable
        if kind is Overloaded:
            may_cost = isinstance(error, TimeoutError) or "Timeout" in names
            return Overloaded(message, remedy="Try again.", retry_after_s=_retry_after_s(error), may_cost=may_cost)
        return kind(message, remedy=_REMEDY_BY_ERROR[kind])

    def _mask(self, text: str) -> str:
        parts = urlsplit(self._parameters.base_url)
        for secret in (self._parameters.key, Secret(unquote(parts.password or "")), Secret(parts.query)):
            text = secret.mask(text)
        return text

    def _completion(self, reply: "_StreamedReply", request: ChatRequest) -> Completion:
        if not reply.text and reply.finish is FinishReason.FILTERED:
            raise Refused(f"litellm/{self._model} withheld its reply.", remedy="Leave this text out.", may_cost=True)
        if not reply.n_pieces:
            raise Overloaded(
                f"litellm/{self._model} ended its reply before any text.", remedy="Try again.", may_cost=True
            )
        n_input = sum(self._count_tokens(message.text) for message in request.messages)
        n_input += sum(image.n_tokens for image in request.images)
        counted = reply.tokens if reply.tokens and (reply.tokens.output or not reply.text) else None
        return Completion(
            text=reply.text,
            finish=reply.finish,
            tokens=counted or TokenCount(input=n_input, output=self._count_tokens(reply.text)),
            is_estimate=counted is None,
        )


class _StreamedReply:
    """A reply as it arrives, in objects of the library."""

    def __init__(self) -> None:
        self.text = ""
        self.finish = FinishReason.STOP
        self.tokens: TokenCount | None = None
        self.n_pieces = 0

    def add(self, piece: object) -> str:
        """Add one piece; return the text it adds."""
        if n_input := _count_at(piece, "usage", "prompt_tokens"):
            n_cached = _count_at(piece, "usage", "prompt_tokens_details", "cached_tokens") or 0
            n_output = _count_at(piece, "usage", "completion_tokens")
            if n_output is not None or _attribute(piece, "usage", "completion_tokens") is None:
                self.tokens = TokenCount(input=n_input, cached=min(n_cached, n_input), output=n_output or 0)
        choices = _attribute(piece, "choices")
        if not isinstance(choices, list) or not choices:
            return ""
        self.n_pieces += 1
        if reason := _attribute(choices[0], "finish_reason"):
            self.finish = _FINISH.get(str(reason), FinishReason.STOP)
        content = _attribute(choices[0], "delta", "content")
        text = content if isinstance(content, str) else ""
        self.text += text
        return text


def _attribute(value: object, *names: str) -> object:
    for name in names:
        value = getattr(value, name, None)
    return value


def _count_at(value: object, *names: str) -> int | None:
    number = _attribute(value, *names)
    return number if isinstance(number, int) and 0 <= number <= _MAX_COUNT else None


def _retry_after_s(error: Exception) -> float | None:
    headers = _attribute(error, "response", "headers")
    value = headers.get("retry-after", "") if isinstance(headers, Mapping) else ""
    return float(value) if re.fullmatch(r"\d{1,9}(\.\d+)?", str(value)) else None
