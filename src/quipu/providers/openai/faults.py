"""Faults: which error an answer of a server is, and what to do about it."""

import re
import time
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from enum import StrEnum

from quipu.errors import Overloaded, QuipuError, Refused, TooLong, Unavailable
from quipu.providers.openai.endpoint import Target
from quipu.providers.openai.said import Said, excerpt
from quipu.providers.openai.waiting import retry_after_s

_LISTED_MODELS = 5
_WORKED_ON = (408, 504, 524)  # somebody on the way has given up waiting for a reply

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
_LONG = re.compile(
    r"context[ _-]?length|context[ _-]?(size|window)|maximum context|prompt is too long|input (is )?too long|"
    r"too many (input )?tokens|exceed_context_size|reduce the length|input length|token limit|string_above_max_length|"
    r"request too large|exceeds the (maximum|max|available)[^.]{0,40}(tokens|context)|must have less than \d+ tokens"
)
_NO_EMBEDDINGS = re.compile(r"not support embedding|embeddings? (is|are) (not|un)supported|--embeddings?\b")


class Kind(StrEnum):
    """What kind of fault it is, by what has to be done."""

    KEY = "key"
    QUOTA = "quota"
    MODEL = "model"
    ADDRESS = "address"
    MEMORY = "memory"
    UNABLE = "unable"
    BUSY = "busy"
    LONG = "long"
    REFUSED = "refused"


class Unreachable(Overloaded):
    """Nothing answers at the address: transient while a job runs, a wrong setting before it starts."""


def kind_of(said: Said) -> Kind:
    """Return the kind of an answer that is no reply."""
    if found := _kind_by_words(said):
        return found
    if said.status in (401, 403):
        return Kind.KEY
    if said.status in (404, 405) or 300 <= said.status < 400 or not said.is_error:
        return Kind.ADDRESS
    if said.status in (408, 409, 425, 429) or said.status >= 500 or said.status < 400:
        return Kind.UNABLE if said.status == 501 else Kind.BUSY
    return Kind.LONG if said.status == 413 else Kind.REFUSED


def _kind_by_words(said: Said) -> Kind | None:
    """Return the kind that the words tell better than the status, None where they do not."""
    words, status = said.words, said.status
    if status < 400:
        status = 400 if said.is_error else status
    if status == 402 or _QUOTA.search(words):
        return Kind.QUOTA
    if _MEMORY.search(words):
        return Kind.MEMORY
    if status in (400, 401) and _KEY.search(words):
        return Kind.KEY
    if said.is_html or status in (408, 409, 425, 429) or status >= 502:
        return None
    if _LONG.search(words) and status in (400, 413, 422, 500):
        return Kind.LONG
    if status in (400, 403) and _FILTER.search(words):
        return Kind.REFUSED
    if status in (400, 404, 422) and _MODEL.search(words):
        return Kind.MODEL
    return Kind.UNABLE if status in (400, 404, 500, 501) and _NO_EMBEDDINGS.search(words) else None


def to_error(
    said: Said, target: Target, *, models: Sequence[str] = (), clock: Callable[[], float] = time.time
) -> QuipuError:
    """Return the error an answer amounts to; `models` are those the server has, for a near name."""
    kind = kind_of(said)
    endpoint = target.endpoint
    words = excerpt(endpoint.mask(said.message))
    message = f"{target.place} answered {said.status}: {words or 'nothing more'}"
    message += "" if message.endswith((".", "!", "?", "…")) else "."
    if kind is Kind.BUSY:
        wait_s = retry_after_s(said.status, said.headers, said.body, said.message, clock())
        may_cost = said.status in _WORKED_ON or said.status < 400
        return Overloaded(message, remedy=_patience(target, said.status), retry_after_s=wait_s, may_cost=may_cost)
    if kind is Kind.LONG:
        return TooLong(message, remedy=_longer(target))
    if kind is Kind.REFUSED:
        return Refused(message, remedy="The server will not answer this request however often it is asked.")
    remedies: dict[Kind, str] = {
        Kind.KEY: _key_remedy(said, target),
        Kind.QUOTA: f"Add credit to your account with {endpoint.provider.title}, or use another model.",
        Kind.MODEL: _other_model(target, [endpoint.mask(each) for each in models]),
        Kind.ADDRESS: address_remedy(target),
        Kind.MEMORY: "Use a smaller model, or free memory on the server.",
        Kind.UNABLE: _unable(target, said),
    }
    return Unavailable(message, remedy=remedies[kind])


def address_remedy(target: Target) -> str:
    """Say what to do about an address where no OpenAI-compatible server answers."""
    base_url = target.endpoint.mask(target.endpoint.base_url)
    has_version = re.search(r"/v\d|/openai", base_url)
    forgotten = "" if has_version or target.endpoint.provider.name == "azure" else "; did you forget /v1?"
    return f"This is not the address of an OpenAI-compatible server: check the base URL{forgotten or '.'}"


def start_remedy(target: Target) -> str:
    """Say what to do where nothing answers at all."""
    provider = target.endpoint.provider
    if provider.start and target.endpoint.is_loopback:
        return f"Start {provider.title} ({provider.start}), or set the base URL to where it runs."
    return "Check the base URL and the network."


def _key_remedy(said: Said, target: Target) -> str:
    remedy = target.endpoint.key_remedy
    if said.status == 403:
        return f"The key may not use this model or this address. {remedy}"
    return f"The key was not accepted. {remedy}" if target.endpoint.key else remedy


def _other_model(target: Target, models: Sequence[str]) -> str:
    provider = target.endpoint.provider.name
    near = get_close_matches(target.model, models, n=_LISTED_MODELS, cutoff=0.5)
    meant = f"Did you mean {', '.join(f'{provider}/{each}' for each in near)}? " if near else ""
    if provider == "ollama":
        return f"{meant}Run `ollama pull {target.model}`, or name a model that `ollama list` shows."
    if provider == "azure":
        return "On Azure the model is the name of your deployment: check it in the portal."
    if near or not models:
        return f"{meant}Check the name of the model."
    return f"The server has {', '.join(sorted(models)[:_LISTED_MODELS])}{' …' if len(models) > _LISTED_MODELS else ''}"


def _longer(target: Target) -> str:
    if target.endpoint.provider.is_local:
        return "Start the server with a larger context window, or use smaller chunks (chunk_tokens)."
    return "Use smaller chunks (chunk_tokens), or a model with a larger context window."


def _patience(target: Target, status: int) -> str:
    return (
        "Lower llm_concurrency if this goes on." if status == 429 else f"Try again; is {target.endpoint.host} healthy?"
    )


def _unable(target: Target, said: Said) -> str:
    if _NO_EMBEDDINGS.search(said.words):
        return "Name a model that makes embeddings; start llama.cpp with --embeddings."
    return address_remedy(target)
