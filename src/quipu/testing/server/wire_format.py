"""Wire format: request and reply bodies of OpenAI-compatible servers, parsed, checked and written."""

import base64
import json
from collections.abc import Iterator, Sequence
from typing import Literal, TypeVar

import numpy as np
from pydantic import BaseModel, Field, ValidationError

from quipu.model.chat import FinishReason, Message, TokenCount
from quipu.model.ids import digest_bytes
from quipu.testing.scripted.model import ChatCall, ChatReply, NumericReply, count_prompt, count_tokens
from quipu.testing.scripted.prompt_parsing import IMAGE
from quipu.testing.scripted.reply_shapes import Json
from quipu.testing.scripted.script import FaultName, Service

DONE = b"data: [DONE]\n\n"
BAD_GATEWAY = b"<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>"
PAGE = b"<!DOCTYPE html><html><head><title>Welcome</title></head><body><h1>It works!</h1></body></html>"

_CREATED = 1_700_000_000  # constant, so that equal replies are equal bytes
_FINISH = {FinishReason.STOP: "stop", FinishReason.LENGTH: "length", FinishReason.FILTERED: "content_filter"}


def error_body(code: str, message: str, kind: str) -> bytes:
    """Return an error in OpenAI's format."""
    return _dump({"error": {"message": message, "type": kind, "param": None, "code": code}})


def models_body(names: Sequence[str], context_window: int | None) -> bytes:
    """Return the list of models; the context window has the same field as in vLLM."""
    entries: list[Json] = [
        {"id": name, "object": "model", "created": _CREATED, "owned_by": "quipu", "max_model_len": context_window}
        for name in names
    ]
    return _dump({"object": "list", "data": entries})


def chat_body(reply: ChatReply, model: str, *, with_usage: bool) -> bytes:
    """Return the body of a complete reply."""
    message: Json = {"role": "assistant", "content": reply.text, "refusal": None}
    body: dict[str, Json] = {
        "id": _identifier(reply),
        "object": "chat.completion",
        "created": _CREATED,
        "model": model,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": _FINISH[reply.finish]}],
    }
    if with_usage:
        body["usage"] = _usage(reply.tokens)
    return _dump(body)


class ChatEvents:
    """The events of a streamed reply."""

    def __init__(self, reply: ChatReply, model: str) -> None:
        self._spoken = reply
        self._head = (
            f'data: {{"id":{json.dumps(_identifier(reply))},"object":"chat.completion.chunk","created":{_CREATED},'
            f'"model":{json.dumps(model)},"choices":['
        )

    def first(self) -> bytes:
        """Return the event that opens the reply."""
        return self._event('{"role":"assistant","content":""}')

    def piece(self, text: str) -> bytes:
        """Return the event with a piece of the reply."""
        return self._event(f'{{"content":{json.dumps(text)}}}')

    def last(self, *, with_usage: bool) -> Iterator[bytes]:
        """Yield the last events: the finish reason, the usage and the end mark."""
        yield self._event("{}", _FINISH[self._spoken.finish])
        if with_usage:
            yield f'{self._head}],"usage":{json.dumps(_usage(self._spoken.tokens))}}}\n\n'.encode()
        yield DONE

    def _event(self, delta: str, finish: str | None = None) -> bytes:
        reason = json.dumps(finish)
        return f'{self._head}{{"index":0,"delta":{delta},"finish_reason":{reason}}}]}}\n\n'.encode()


def error_event(body: bytes) -> bytes:
    """Return an error as an event of a stream."""
    return b"data: " + body + b"\n\n"


def embedding_body(numbers: NumericReply, model: str, *, is_base64: bool, with_usage: bool) -> bytes:
    """Return vectors as lists of numbers or as base64 of little-endian float32."""
    rows = numbers.rows.astype("<f4")
    written: list[Json] = [base64.b64encode(row.tobytes()).decode() if is_base64 else row.tolist() for row in rows]
    entries: list[Json] = [
        {"object": "embedding", "index": index, "embedding": row}
        for index, row in zip(numbers.indices, written, strict=True)
    ]
    body: dict[str, Json] = {"object": "list", "model": model, "data": entries}
    if with_usage:
        body["usage"] = {"prompt_tokens": numbers.n_tokens, "total_tokens": numbers.n_tokens}
    return _dump(body)


def rerank_body(numbers: NumericReply, model: str, top_n: int | None, passages: Sequence[str] | None) -> bytes:
    """Return scores in the format of Jina, Cohere and vLLM, best first; with `passages` each result has its text."""
    results: list[Json] = [
        {"index": index, "relevance_score": score}
        | ({} if passages is None else {"document": {"text": passages[index]}})
        for index, score in _ranked(numbers)[:top_n]
    ]
    return _dump(
        {
            "id": numbers.draw.key[:16],
            "model": model,
            "results": results,
            "usage": {"total_tokens": numbers.n_tokens},
            "meta": {"billed_units": {"search_units": 1}},
        }
    )


def tei_body(numbers: NumericReply, passages: Sequence[str] | None) -> bytes:
    """Return scores in the format of Text Embeddings Inference: a list, best first."""
    ranked: list[Json] = [
        {"index": index, "score": score} | ({} if passages is None else {"text": passages[index]})
        for index, score in _ranked(numbers)
    ]
    return _dump(ranked)


def _ranked(numbers: NumericReply) -> list[tuple[int, float]]:
    """Return index and score, best first and equal scores by index; unsorted if the fault shuffles them."""
    scored = [(index, float(row[0])) for index, row in zip(numbers.indices, numbers.rows, strict=True)]
    if numbers.draw.fault and numbers.draw.fault.name is FaultName.SHUFFLED:
        return scored
    return sorted(scored, key=lambda entry: (-np.nan_to_num(entry[1]), entry[0]))


def _usage(tokens: TokenCount) -> Json:
    return {
        "prompt_tokens": tokens.input,
        "completion_tokens": tokens.output,
        "total_tokens": tokens.input + tokens.output,
        "prompt_tokens_details": {"cached_tokens": tokens.cached},
    }


def _identifier(reply: ChatReply) -> str:
    return f"chatcmpl-{reply.draw.key[:12]}-{reply.draw.attempt}"


def _dump(value: Json) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


class RejectedRequest(Exception):
    """A request that gets an error as its reply: HTTP status, type, code and message in OpenAI's format."""

    def __init__(self, status: int, code: str, message: str, kind: str = "invalid_request_error") -> None:
        super().__init__(message)
        self.status = status
        self.body = error_body(code, message, kind)


B = TypeVar("B", bound=BaseModel)


class _ImageUrl(BaseModel):
    url: str


class _ContentPart(BaseModel):
    type: str = "text"
    text: str = ""
    image_url: _ImageUrl | None = None

    def seen(self) -> str:
        """Return the text of the part, or what is written in a picture: its PNG text, otherwise its hash."""
        if self.image_url is None:
            return self.text
        content = base64.b64decode(self.image_url.url.partition(";base64,")[2])
        written = content.partition(b"tEXtDescription\0")[2].partition(b"\n")[0].decode("latin-1")
        return f"\n{IMAGE}{written or f'the picture {digest_bytes(content)[:8]}'}"


class _ChatMessage(BaseModel):
    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[_ContentPart] | None = None

    def parsed(self) -> Message:
        text = self.content if isinstance(self.content, str) else "".join(part.seen() for part in self.content or ())
        return Message(role="system" if self.role == "developer" else self.role, text=text)


class _JsonSchema(BaseModel):
    schema_: dict[str, object] = Field(default={}, alias="schema")


class _ResponseFormat(BaseModel):
    type: Literal["text", "json_object", "json_schema"]
    json_schema: _JsonSchema = _JsonSchema()


class _StreamOptions(BaseModel):
    include_usage: bool = False


class ChatBody(BaseModel):
    """The body of a chat request: the fields that a scripted model uses."""

    model: str = ""
    messages: list[_ChatMessage] = Field(min_length=1)
    stream: bool = False
    stream_options: _StreamOptions = _StreamOptions()
    max_tokens: int | None = Field(default=None, ge=1)
    max_completion_tokens: int | None = Field(default=None, ge=1)
    response_format: _ResponseFormat | None = None

    def call(self, model: str) -> ChatCall:
        """Return the request as a ChatCall."""
        limit = self.max_completion_tokens if self.max_completion_tokens is not None else self.max_tokens
        return ChatCall(
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
    documents: list[str | _ContentPart] | None = None
    texts: list[str] | None = None
    top_n: int | None = None
    return_documents: bool = False
    return_text: bool = False

    def passages(self) -> list[str]:
        """Return the texts to score."""
        if self.texts is not None:
            return self.texts
        return [document if isinstance(document, str) else document.text for document in self.documents or ()]


def parse_body(content: bytes, kind: type[B], service: Service) -> B:
    """Return the body of a request. Raises RejectedRequest if it is invalid or has a rejected parameter."""
    try:
        raw = json.loads(content)
        body = kind.model_validate(raw)
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(str(part) for part in problem["loc"])
        raise RejectedRequest(400, "invalid_value", f"Invalid value for '{place}': {problem['msg']}.") from error
    except ValueError as error:
        raise RejectedRequest(400, "invalid_json", "The body of the request is not JSON.") from error
    parameters = {name for name, value in raw.items() if value is not None}
    if isinstance(body, ChatBody) and body.response_format:
        parameters.add(body.response_format.type)
    for name in service.rejects:
        if name in parameters:
            raise RejectedRequest(
                400, "unsupported_parameter", f"Unsupported parameter: '{name}' is not supported here."
            )
    return body


def check_caller(authorization: str, service: Service) -> None:
    """Raise RejectedRequest if the script requires an API key and the caller has another one."""
    if service.api_key and authorization.removeprefix("Bearer ") != service.api_key:
        raise RejectedRequest(401, "invalid_api_key", "Incorrect API key provided.")


def check_model(model: str, service: Service) -> None:
    """Raise RejectedRequest if the script lists its models and `model` is not one of them."""
    if service.models and model not in service.models:
        raise RejectedRequest(
            404, "model_not_found", f"The model '{model}' does not exist or you do not have access to it."
        )


def check_prompt(call: ChatCall, service: Service) -> None:
    """Raise RejectedRequest if the prompt and the requested reply exceed the context window."""
    n_prompt = count_prompt([message.text for message in call.messages])
    n_requested = n_prompt + (call.max_tokens or 0)
    if service.context_window is not None and n_requested > service.context_window:
        raise RejectedRequest(
            400,
            "context_length_exceeded",
            f"This model's maximum context length is {service.context_window} tokens. However, you requested "
            f"{n_requested} tokens ({n_prompt} in the messages, {call.max_tokens or 0} in the completion).",
        )


def check_inputs(texts: Sequence[str], service: Service) -> None:
    """Raise RejectedRequest for no texts, empty texts, too many, or one longer than the context window."""
    if not texts or not all(texts):
        raise RejectedRequest(400, "invalid_value", "'$.input' is invalid: it must hold texts that are not empty.")
    if len(texts) > service.max_inputs:
        raise RejectedRequest(
            400, "invalid_value", f"'$.input' is too long: at most {service.max_inputs} texts are taken."
        )
    longest = max(count_tokens(text) for text in texts)
    if service.context_window is not None and longest > service.context_window:
        raise RejectedRequest(
            400,
            "context_length_exceeded",
            f"This model's maximum context length is {service.context_window} tokens, however you requested {longest}.",
        )


def _schema(response_format: _ResponseFormat | None) -> str | None:
    """Return the requested JSON schema, "" for any JSON, None for free text."""
    if response_format is None or response_format.type == "text":
        return None
    return json.dumps(response_format.json_schema.schema_) if response_format.json_schema.schema_ else ""
