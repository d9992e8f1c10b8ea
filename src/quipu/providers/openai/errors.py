"""Error classification: which error a reply is, how long to wait before a retry, and what to do about it."""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from email.utils import parsedate_to_datetime
from enum import StrEnum

from quipu.errors import Overloaded, QuipuError, Refused, TooLong, Unavailable
from quipu.providers.openai.endpoint import Target
from quipu.providers.openai.reply import ParsedReply, excerpt, list_at, text_at

_MAX_LISTED_MODELS = 5
_TIMED_OUT = (408, 504, 524)  # a proxy has stopped waiting, but the model may have worked on the request
_MIN_OUTPUT = 256  # tokens; a shorter reply is of no use
_MIN_EPOCH_S = 1e9  # a larger number of seconds is a point in time

_QUOTA = re.compile(
    r"insufficient_quota|insufficient balance|billing_hard_limit|billing_not_active|credit balance is too low|"
    r"insufficient credits|requires more credits"
)
_KEY = re.compile(r"api[ _-]?key not valid|invalid[ _-]api[ _-]?key|api_key_invalid|incorrect api key|api key expired")
_FILTER = re.compile(r"content[ _-]?(filter|policy|management)|moderation|flagged|responsibleaipolicy|safety system")
_MODEL = re.compile(
    r"model_not_found|deploymentnotfound|model[^.:]{0,120}(not found|does(n't| not) exist|not exist\b|not supported)|"
    r"no such model|(invalid|unknown) model\b|not a valid model|no endpoints found for|does not exist[^.]{0,40}model"
)
_MEMORY = re.compile(r"requires more system memory|out of memory loading|not enough memory to load")
_TOO_LONG = re.compile(
    r"context[ _-]?length|context[ _-]?(size|window)|maximum context|prompt is too long|input (is )?too long|"
    r"too many (input )?tokens|exceed_context_size|reduce the length|input length|token limit|string_above_max_length|"
    r"request too large|exceeds the (maximum|max|available)[^.]{0,40}(tokens|context)|must have less than \d+ tokens"
)
_NO_EMBEDDINGS = re.compile(r"not support embedding|embeddings? (is|are) (not|un)supported|--embeddings?\b")

_CONTEXT_WINDOW = re.compile(
    r"(?:maximum context length (?:is|of)|context (?:length|window|size)(?: is)?(?: only)?|n_ctx:|> ?)"
    r"\D{0,12}(\d[\d,]*)"
)
_INPUT_TOKENS = re.compile(
    r"(?:request has|messages resulted in|passed|prompt contains(?: at least)?|n_prompt_tokens:|too long:)"
    r"\s*(\d[\d,]*)|"
    r"(\d[\d,]*) (?:tokens )?(?:in|from) (?:the|your) (?:messages|prompt|input)"
)
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")
_SECONDS_BY_UNIT = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_RETRY_IN_MESSAGE = re.compile(
    r"(?:try again|retry|retry after|wait)(?: in| after)?:? ((?:\d+(?:\.\d+)?(?:ms|h|m|s)\s?)+)", re.IGNORECASE
)
_LARGER_WINDOW = {
    "ollama": "Start Ollama with OLLAMA_CONTEXT_LENGTH=16384: it cuts longer prompts silently.",
    "llamacpp": "Start llama-server with -c 16384 for each concurrent call (--parallel).",
    "vllm": "Start vLLM with --max-model-len 16384.",
    "lmstudio": "Load the model in LM Studio with a context length of 16,384.",
}


class ErrorKind(StrEnum):
    """The kind of an error, by the reaction that it needs."""

    KEY = "key"
    QUOTA = "quota"
    MODEL = "model"
    ADDRESS = "address"
    MEMORY = "memory"
    UNSUPPORTED = "unsupported"
    BUSY = "busy"
    TOO_LONG = "too long"
    REFUSED = "refused"


class Unreachable(Overloaded):
    """Nothing answers at the address: transient during a job, a wrong setting before it starts."""


def classify_error(reply: ParsedReply) -> ErrorKind:
    """Return the kind of a reply that is an error."""
    if kind := _kind_by_text(reply):
        return kind
    if reply.status in (401, 403):
        return ErrorKind.KEY
    if reply.status in (404, 405) or 300 <= reply.status < 400 or not reply.is_error:
        return ErrorKind.ADDRESS
    if reply.status in (408, 409, 425, 429) or reply.status >= 500 or reply.status < 400:
        return ErrorKind.UNSUPPORTED if reply.status == 501 else ErrorKind.BUSY
    return ErrorKind.TOO_LONG if reply.status == 413 else ErrorKind.REFUSED


def _kind_by_text(reply: ParsedReply) -> ErrorKind | None:
    """Return the kind if the text tells it better than the status; else None."""
    text, status = reply.searchable, reply.status
    if status < 400:
        status = 400 if reply.is_error else status
    if status == 402 or _QUOTA.search(text):
        return ErrorKind.QUOTA
    if _MEMORY.search(text):
        return ErrorKind.MEMORY
    if status in (400, 401) and _KEY.search(text):
        return ErrorKind.KEY
    if reply.is_html or status in (408, 409, 425, 429) or status >= 502:
        return None
    if _TOO_LONG.search(text) and status in (400, 413, 422, 500):
        return ErrorKind.TOO_LONG
    if status in (400, 403) and _FILTER.search(text):
        return ErrorKind.REFUSED
    if status in (400, 404, 422) and _MODEL.search(text):
        return ErrorKind.MODEL
    return ErrorKind.UNSUPPORTED if status in (400, 404, 500, 501) and _NO_EMBEDDINGS.search(text) else None


def error_from_reply(
    reply: ParsedReply, target: Target, *, models: Sequence[str] = (), clock: Callable[[], float] = time.time
) -> QuipuError:
    """Return the error to raise for a reply. Similar names among the `models` of the server are suggested."""
    kind = classify_error(reply)
    endpoint = target.endpoint
    text = excerpt(endpoint.mask(reply.message))
    message = f"{target.label} answered {reply.status}: {text or 'nothing more'}"
    message += "" if message.endswith((".", "!", "?", "…")) else "."
    if kind is ErrorKind.BUSY:
        wait_s = retry_after_s(reply.status, reply.headers, reply.body, reply.message, clock())
        may_cost = reply.status in _TIMED_OUT or reply.status < 400
        return Overloaded(message, remedy=_busy_remedy(target, reply), retry_after_s=wait_s, may_cost=may_cost)
    if kind is ErrorKind.TOO_LONG:
        return TooLong(message, remedy=_too_long_remedy(target))
    if kind is ErrorKind.REFUSED:
        return Refused(message, remedy="The server will reject this request every time.")
    remedies: dict[ErrorKind, str] = {
        ErrorKind.KEY: _key_remedy(reply, target),
        ErrorKind.QUOTA: f"Add credit to your account with {endpoint.provider.title}, or use another model.",
        ErrorKind.MODEL: _model_remedy(target, [endpoint.mask(model) for model in models]),
        ErrorKind.ADDRESS: address_remedy(target),
        ErrorKind.MEMORY: "Use a smaller model, or free memory on the server.",
        ErrorKind.UNSUPPORTED: _unsupported_remedy(target, reply),
    }
    return Unavailable(message, remedy=remedies[kind])


def address_remedy(target: Target) -> str:
    """Return what to do when the address is not the one of an OpenAI-compatible server."""
    base_url = target.endpoint.mask(target.endpoint.base_url)
    has_version = re.search(r"/v\d|/openai", base_url)
    hint = "" if has_version or target.endpoint.provider.name == "azure" else "; did you forget /v1?"
    return f"This is not the address of an OpenAI-compatible server: check the base URL{hint or '.'}"


def start_remedy(target: Target) -> str:
    """Return what to do when nothing answers at all."""
    provider = target.endpoint.provider
    if provider.start and target.endpoint.is_loopback:
        return f"Start {provider.title} ({provider.start}), or set the base URL to where it runs."
    return "Check the base URL and the network."


def context_window_remedy(provider: str) -> str:
    """Return what to do when the context window is too small for extraction."""
    return _LARGER_WINDOW.get(provider, "Use a model with a larger one, or smaller chunks (chunk_tokens).")


def _key_remedy(reply: ParsedReply, target: Target) -> str:
    remedy = target.endpoint.key_remedy
    if reply.status == 403:
        return f"The key may not use this model or this address. {remedy}"
    return f"The key was not accepted. {remedy}" if target.endpoint.key else remedy


def _model_remedy(target: Target, models: Sequence[str]) -> str:
    provider = target.endpoint.provider.name
    similar = get_close_matches(target.model, models, n=_MAX_LISTED_MODELS, cutoff=0.5)
    suggestion = f"Did you mean {', '.join(f'{provider}/{model}' for model in similar)}? " if similar else ""
    if provider == "ollama":
        return f"{suggestion}Run `ollama pull {target.model}`, or name a model that `ollama list` shows."
    if provider == "azure":
        return "On Azure the model is the name of your deployment: check it in the portal."
    if similar or not models:
        return f"{suggestion}Check the name of the model."
    listed = ", ".join(sorted(models)[:_MAX_LISTED_MODELS])
    return f"The server has {listed}{' …' if len(models) > _MAX_LISTED_MODELS else ''}"


def _too_long_remedy(target: Target) -> str:
    if target.endpoint.provider.is_local:
        return "Start the server with a larger context window, or use smaller chunks (chunk_tokens)."
    return "Use smaller chunks (chunk_tokens), or a model with a larger context window."


def _busy_remedy(target: Target, reply: ParsedReply) -> str:
    if reply.status == 429:
        return "Lower llm_concurrency if this continues."
    return f"Try again; is {target.endpoint.host} healthy?"


def _unsupported_remedy(target: Target, reply: ParsedReply) -> str:
    if _NO_EMBEDDINGS.search(reply.searchable):
        return "Name a model that makes embeddings; start llama.cpp with --embeddings."
    return address_remedy(target)


def names_context_window(reply: ParsedReply) -> bool:
    """Return whether the server names its context window as the reason of an error."""
    return _CONTEXT_WINDOW.search(reply.searchable) is not None and "context" in reply.searchable


def max_output_that_fits(reply: ParsedReply) -> int | None:
    """Return how many output tokens fit into the context window beside the request; None if unknown or too few."""
    window, n_input = _CONTEXT_WINDOW.search(reply.searchable), _INPUT_TOKENS.search(reply.searchable)
    if not window or not n_input or "context" not in reply.searchable:
        return None
    n_output = _parse_digits(window[1]) - _parse_digits(n_input[1] or n_input[2])
    return n_output if n_output >= _MIN_OUTPUT else None


def _parse_digits(digits: str) -> int:
    return int(digits.replace(",", ""))


def retry_after_s(status: int, headers: Mapping[str, str], body: object, message: str, now: float) -> float | None:
    """Return how many seconds the server asks to wait; None if it does not say. `now` is in seconds of the epoch.

    Looks, in this order, at retry-after-ms, Retry-After (seconds or a date), x-ratelimit-reset-requests and -tokens,
    x-ratelimit-reset, Gemini's retryDelay, and "try again in 1.2s" in the message. Header names are in lower case.
    Services send reset times in every reply: unless the status is 429, only a used-up limit counts.
    """
    milliseconds = _parse_number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    waits = _stated_waits(status, headers, body, message, now)
    return next((max(0.0, wait_s) for wait_s in waits if wait_s is not None), None)


def _stated_waits(
    status: int, headers: Mapping[str, str], body: object, message: str, now: float
) -> Iterator[float | None]:
    yield _seconds_or_date(headers.get("retry-after", ""), now)
    yield _until_limit_reset(headers, now, is_rate_limited=status == 429)
    for detail in list_at(body, "error", "details"):
        yield _parse_duration(text_at(detail, "retryDelay"))
    in_message = _RETRY_IN_MESSAGE.search(message)
    yield _parse_duration(in_message[1]) if in_message else None


def _seconds_or_date(value: str, now: float) -> float | None:
    seconds = _parse_number(value)
    if seconds is not None or not value:
        return seconds
    try:
        return parsedate_to_datetime(value).timestamp() - now
    except (ValueError, OverflowError):
        return None


def _until_limit_reset(headers: Mapping[str, str], now: float, *, is_rate_limited: bool) -> float | None:
    """Return the latest reset of the used-up limits; if there are none, of all limits when `is_rate_limited`."""
    seconds_by_limit = {}
    for limit in ("-requests", "-tokens", ""):
        value = headers.get(f"x-ratelimit-reset{limit}", "")
        seconds = _parse_duration(value) if _parse_number(value) is None else _from_epoch(float(value), now)
        if seconds is not None:
            seconds_by_limit[limit] = seconds
    used_up = [
        seconds for limit, seconds in seconds_by_limit.items() if headers.get(f"x-ratelimit-remaining{limit}") == "0"
    ]
    return max(used_up or (seconds_by_limit.values() if is_rate_limited else ()), default=None)


def _from_epoch(value: float, now: float) -> float:
    if value > 1000 * _MIN_EPOCH_S:
        return value / 1000 - now
    return value - now if value > _MIN_EPOCH_S else value


def _parse_duration(text: str) -> float | None:
    """Return the seconds of a text like "6m0s", "20ms" or "1.5s"."""
    parts = _DURATION.findall(text)
    return sum(float(number) * _SECONDS_BY_UNIT[unit] for number, unit in parts) if parts else None


def _parse_number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\s*\d{1,18}(\.\d+)?\s*", text) else None
