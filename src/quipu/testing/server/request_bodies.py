"""Request bodies: the JSON that clients of OpenAI-compatible servers send, parsed and checked against the script."""

import json
from collections.abc import Sequence
from typing import Literal, TypeVar

from pydantic import BaseModel, Field, ValidationError

from quipu.model.chat import Message
from quipu.testing.scripted.model import Call
from quipu.testing.scripted.script import Service
from quipu.testing.scripted.tokens import count_prompt, count_tokens
from quipu.testing.server.reply_bodies import error_body


class Rejected(Exception):
    """A request that is answered with an error: HTTP status, type, code and message in OpenAI's shape."""

    def __init__(self, status: int, code: str, message: str, kind: str = "invalid_request_error") -> None:
        super().__init__(message)
        self.status = status
        self.body = error_body(code, message, kind)


B = TypeVar("B", bound=BaseModel)


class _Part(BaseModel):
    type: str = "text"
    text: str = ""


class _Message(BaseModel):
    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[_Part] | None = None

    def parsed(self) -> Message:
        text = self.content if isinstance(self.content, str) else "".join(part.text for part in self.content or ())
        return Message(role="system" if self.role == "developer" else self.role, text=text)


class _JsonSchema(BaseModel):
    schema_: dict[str, object] = Field(default={}, alias="schema")


class _Format(BaseModel):
    type: Literal["text", "json_object", "json_schema"]
    json_schema: _JsonSchema = _JsonSchema()


class _StreamOptions(BaseModel):
    include_usage: bool = False


class ChatBody(BaseModel):
    """The body of a chat request, what a scripted model looks at."""

    model: str = ""
    messages: list[_Message] = Field(min_length=1)
    stream: bool = False
    stream_options: _StreamOptions = _StreamOptions()
    max_tokens: int | None = Field(default=None, ge=1)
    max_completion_tokens: int | None = Field(default=None, ge=1)
    response_format: _Format | None = None

    def call(self, model: str) -> Call:
        """Return the request without its wire."""
        limit = self.max_completion_tokens if self.max_completion_tokens is not None else self.max_tokens
        return Call(
            model=model,
            messages=tuple(message.parsed() for message in self.messages),
            max_tokens=limit,
            schema=_schema(self.response_format),
        )


class EmbeddingBody(BaseModel):
    """The body of an embedding request."""

    model: str = ""
    input: str | list[str]
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = Field(default=None, ge=1)

    def texts(self) -> list[str]:
        """Return the texts to embed."""
        return [self.input] if isinstance(self.input, str) else self.input


class RerankBody(BaseModel):
    """The body of a rerank request: `documents` (Jina, Cohere, vLLM) or `texts` (TEI)."""

    model: str = ""
    query: str
    documents: list[str | _Part] | None = None
    texts: list[str] | None = None
    top_n: int | None = None
    return_documents: bool = False
    return_text: bool = False

    def passages(self) -> list[str]:
        """Return the texts to score."""
        if self.texts is not None:
            return self.texts
        return [each if isinstance(each, str) else each.text for each in self.documents or ()]


def parse_body(data: bytes, kind: type[B], service: Service) -> B:
    """Return the body of a request; raises Rejected where it is no such body or has a parameter the script rejects."""
    try:
        raw = json.loads(data)
        body = kind.model_validate(raw)
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(str(part) for part in problem["loc"])
        raise Rejected(400, "invalid_value", f"Invalid value for '{place}': {problem['msg']}.") from error
    except ValueError as error:
        raise Rejected(400, "invalid_json", "The body of the request is not JSON.") from error
    given = {name for name, value in raw.items() if value is not None}
    if isinstance(body, ChatBody) and body.response_format:
        given.add(body.response_format.type)
    for name in service.rejects:
        if name in given:
            raise Rejected(400, "unsupported_parameter", f"Unsupported parameter: '{name}' is not supported here.")
    return body


def check_caller(authorization: str, service: Service) -> None:
    """Raise Rejected where the script wants a key and this is not it."""
    if service.api_key and authorization.removeprefix("Bearer ") != service.api_key:
        raise Rejected(401, "invalid_api_key", "Incorrect API key provided.")


def check_model(model: str, service: Service) -> None:
    """Raise Rejected where the script names its models and this is none of them."""
    if service.models and model not in service.models:
        raise Rejected(404, "model_not_found", f"The model '{model}' does not exist or you do not have access to it.")


def check_prompt(call: Call, service: Service) -> None:
    """Raise Rejected where prompt and reply asked for do not fit the context window."""
    n_prompt = count_prompt([message.text for message in call.messages])
    n_wanted = n_prompt + (call.max_tokens or 0)
    if service.context_window is not None and n_wanted > service.context_window:
        raise Rejected(
            400,
            "context_length_exceeded",
            f"This model's maximum context length is {service.context_window} tokens. However, you requested "
            f"{n_wanted} tokens ({n_prompt} in the messages, {call.max_tokens or 0} in the completion).",
        )


def check_inputs(texts: Sequence[str], service: Service) -> None:
    """Raise Rejected where there are no texts to embed, too many, empty ones or one beyond the context window."""
    if not texts or not all(texts):
        raise Rejected(400, "invalid_value", "'$.input' is invalid: it must hold texts that are not empty.")
    if len(texts) > service.max_inputs:
        raise Rejected(400, "invalid_value", f"'$.input' is too long: at most {service.max_inputs} texts are taken.")
    longest = max(count_tokens(text) for text in texts)
    if service.context_window is not None and longest > service.context_window:
        raise Rejected(
            400,
            "context_length_exceeded",
            f"This model's maximum context length is {service.context_window} tokens, however you requested {longest}.",
        )


def _schema(wanted: _Format | None) -> str | None:
    """Return the JSON schema asked for, "" for any JSON, None for free text."""
    if wanted is None or wanted.type == "text":
        return None
    return json.dumps(wanted.json_schema.schema_) if wanted.json_schema.schema_ else ""
