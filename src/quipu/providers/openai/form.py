"""Form: how a chat request is written for one model, and what changes after the server has rejected a part of it."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from quipu.model.chat import ChatRequest
from quipu.model.secret import extra_identity, parse_extra
from quipu.providers.openai.catalog import JsonAbility
from quipu.providers.openai.endpoint import Target
from quipu.providers.openai.said import Said

_REASONING = re.compile(r"(^|/)(o\d|gpt-[5-9](?!-chat))", re.IGNORECASE)
_LIMITS = ("max_tokens", "max_completion_tokens")
_JSON = re.compile(r"response_format|json_schema|json_object|json schema|structured output|guided|grammar|word 'json'")
_ALLOWED = re.compile(
    r"(?:at most|up to|> ?=?|<= ?|less than or equal to|maximum value (?:is|of|for \S+ is)|range[^\[\d]{0,40}\[?\s*\d+"
    r"(?:\s*\(inclusive\))?\s*(?:,|to|-))\s*`?(\d[\d,_]*)"
)
_MIN_LIMIT = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatParameters:
    """What a user sets for a model beyond its name; None leaves it to the request.

    `extra` is a JSON object merged over the body, where null takes a field out. `is_streamed`: ask for the reply in
    pieces even where nobody watches, so that a broken one keeps its text. Raises InvalidInput where `extra` is none,
    or holds a key.
    """

    extra: str = field(default="{}", repr=False)
    temperature: float | None = None
    max_output_tokens: int | None = None  # the most that is asked for
    is_streamed: bool = True

    def __post_init__(self) -> None:
        self.extra_fields()

    def extra_fields(self) -> Mapping[str, object]:
        """Return `extra`, parsed."""
        return parse_extra(self.extra)

    def identity(self) -> str:
        """Return what of this changes replies, "" for nothing; of `extra` a digest."""
        fields = self.extra_fields()
        said: dict[str, object] = {"extra": extra_identity(fields)} if fields else {}
        said |= {} if self.temperature is None else {"temperature": self.temperature}
        said |= {} if self.max_output_tokens is None else {"max_output_tokens": self.max_output_tokens}
        return json.dumps(said, sort_keys=True, ensure_ascii=False) if said else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What a server takes, as far as is known. `most_output` is the most output tokens it allows, None unknown."""

    limit_name: str = "max_tokens"
    has_temperature: bool = True
    json: JsonAbility = JsonAbility.SCHEMA
    has_usage_option: bool = True
    can_stream: bool = True
    most_output: int | None = None


def first_form(target: Target) -> Form:
    """Return what is known before the first request."""
    provider = target.endpoint.provider
    is_reasoning = provider.name in ("openai", "azure") and _REASONING.search(target.model) is not None
    return Form(
        limit_name="max_completion_tokens" if is_reasoning else provider.limit_name,
        has_temperature=not is_reasoning,
        json=provider.json,
    )


def adapted(form: Form, said: Said) -> Form | None:
    """Return the form without what the server has rejected; None where nothing that can be changed was named."""
    if said.status not in (400, 422) and not (said.status < 400 and said.is_error):
        return None
    words, named = said.words, said.parameter
    if named == "temperature" or (not named and "temperature" in words):
        return replace(form, has_temperature=False) if form.has_temperature else None
    if named in _LIMITS or (not named and any(each in words for each in _LIMITS)):
        return _other_limit(form, said)
    if named.startswith("response_format") or _JSON.search(words):
        weaker = {JsonAbility.SCHEMA: JsonAbility.OBJECT, JsonAbility.OBJECT: JsonAbility.NONE}.get(form.json)
        return replace(form, json=weaker) if weaker else None
    if named.startswith("stream_options") or "stream_options" in words or "include_usage" in words:
        return replace(form, has_usage_option=False) if form.has_usage_option else None
    if named == "stream" or (not named and re.search(r"\bstream(ing|ed)?\b", words)):
        return replace(form, can_stream=False) if form.can_stream else None
    return None


def _other_limit(form: Form, said: Said) -> Form | None:
    """Return the form with the limit on output lowered to what the server allows, or under its other name."""
    allowed = [int(re.sub(r"\D", "", each)) for each in _ALLOWED.findall(said.words)]
    below = [each for each in allowed if _MIN_LIMIT <= each < (form.most_output or each + 1)]
    if below:
        return replace(form, most_output=min(below))
    is_rejected = said.parameter == form.limit_name or (not said.parameter and form.limit_name in said.words)
    return replace(form, limit_name=_LIMITS[1 - _LIMITS.index(form.limit_name)]) if is_rejected else None


def write_body(
    request: ChatRequest, target: Target, form: Form, parameters: ChatParameters, *, is_streamed: bool
) -> bytes:
    """Return the request as JSON; half characters become question marks, as JSON in UTF-8 cannot hold them."""
    limits = (request.max_output_tokens, parameters.max_output_tokens, form.most_output)
    body: dict[str, object] = {
        "model": target.model,
        "messages": [{"role": message.role, "content": message.text} for message in request.messages],
        form.limit_name: min(limit for limit in limits if limit is not None),
    }
    if form.has_temperature:
        body["temperature"] = request.temperature if parameters.temperature is None else parameters.temperature
    if request.schema:
        body |= _response_format(form.json, request.schema)
    if is_streamed:
        body["stream"] = True
        if form.has_usage_option:
            body["stream_options"] = {"include_usage": True}
    body |= parameters.extra_fields()
    present = {name: value for name, value in body.items() if value is not None}
    return json.dumps(present, ensure_ascii=False).encode("utf-8", "replace")


def _response_format(ability: JsonAbility, schema: str) -> dict[str, object]:
    if ability is JsonAbility.NONE:
        return {}
    if ability is JsonAbility.OBJECT:
        return {"response_format": {"type": "json_object"}}
    described = {"name": "reply", "schema": json.loads(schema), "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": described}}
