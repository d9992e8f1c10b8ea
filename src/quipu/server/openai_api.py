"""OpenAI's API: chat completions, responses and embeddings, for clients that speak it. Unknown fields are left out."""

import base64
import secrets
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Literal

from starlette.responses import Response

from quipu.errors import InvalidInput
from quipu.model.answer import Answer
from quipu.model.chat import TokenCount
from quipu.server.access import Permission
from quipu.server.dialects import (
    ChatQuestion,
    ClientMessage,
    EmbeddedTexts,
    OpenBody,
    ServedModel,
    answer_pieces,
    cited_spans,
    model_named,
    question_of,
    reply_text,
    sentence_of,
    served_models,
    tokens_of,
    whole_answer,
)
from quipu.server.operations import Call, operation, operations_of
from quipu.server.wire import Problem, event_stream, json_bytes, json_response

Json = dict[str, object]
_STARTED = 1_767_225_600  # models have no time of creation; clients want one
_DONE = b"data: [DONE]\n\n"
_ERROR_TYPES: Mapping[int, str] = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}


class ChatStreamOptions(OpenBody):
    """What a stream of a chat completion has besides the answer."""

    include_usage: bool = False


class ChatCompletionRequest(OpenBody):
    """A request for a chat completion."""

    model: str
    messages: list[ClientMessage]
    stream: bool = False
    stream_options: ChatStreamOptions | None = None


class ResponseRequest(OpenBody):
    """A request for a response. Nothing is stored: the whole conversation is in `input`."""

    model: str
    input: str | list[ClientMessage]
    instructions: str | None = None
    stream: bool = False
    previous_response_id: str | None = None


class EmbeddingRequest(OpenBody):
    """A request for the vectors of texts; `dimensions`, if it is given, must be what the embedder makes."""

    model: str
    input: EmbeddedTexts
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = None


def openai_error(problem: Problem, headers: Mapping[str, str]) -> Response:
    """Return the response for a problem in OpenAI's form."""
    return Response(json_bytes(_error(problem)), problem.status, dict(headers), media_type="application/json")


@operation("GET", "/v1/models", Permission.READ, render_error=openai_error, tag="openai")
async def openai_models(call: Call) -> Response:
    """List the models: each workspace with each strategy."""
    return json_response({"object": "list", "data": [_model(model) for model in served_models(call)]})


@operation("GET", "/v1/models/{model:path}", Permission.READ, render_error=openai_error, tag="openai")
async def openai_model(call: Call, model: str) -> Response:
    """Return a model."""
    return json_response(_model(model_named(model, call)))


@operation("POST", "/v1/chat/completions", Permission.READ, render_error=openai_error, tag="openai")
async def chat_completions(call: Call, body: ChatCompletionRequest) -> Response:
    """Answer the question that a conversation ends with.

    Citations are annotations of the type `url_citation`. With `stream`, server-sent events as OpenAI sends them.
    """
    model = model_named(body.model, call)
    question = question_of(body.messages, model)
    if body.stream:
        include_usage = body.stream_options is not None and body.stream_options.include_usage
        return event_stream(_chat_events(call, model, question, include_usage=include_usage))
    answer = await whole_answer(call, model, question)
    message = {
        "role": "assistant",
        "content": reply_text(answer, question),
        "refusal": None,
        "annotations": _chat_annotations(answer, call, model),
    }
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    return json_response(
        {**_completion("chat.completion", model), "choices": [choice], "usage": _chat_usage(tokens_of(answer))}
    )


async def _chat_events(
    call: Call, model: ServedModel, question: ChatQuestion, *, include_usage: bool
) -> AsyncIterator[bytes]:
    head = _completion("chat.completion.chunk", model)

    def chunk(delta: Json, finish_reason: str | None = None) -> bytes:
        return _event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]})

    try:
        yield chunk({"role": "assistant", "content": ""})
        tokens = TokenCount()
        async for piece in answer_pieces(call, model, question):
            if piece.answer is None:
                yield chunk({"content": piece.text})
                continue
            tokens = tokens_of(piece.answer)
            if annotations := _chat_annotations(piece.answer, call, model):
                yield chunk({"annotations": annotations})
        yield chunk({}, "stop")
        if include_usage:
            yield _event({**head, "choices": [], "usage": _chat_usage(tokens)})
    except Exception as error:
        call.server.report(error, call.request)
        yield _event(_error(call.server.problem(error, call.request)))
    yield _DONE


@operation("POST", "/v1/responses", Permission.READ, render_error=openai_error, tag="openai")
async def responses(call: Call, body: ResponseRequest) -> Response:
    """Answer the question that the input ends with; nothing is stored."""
    if body.previous_response_id:
        raise InvalidInput("Responses are not stored.", remedy="Send the whole conversation as `input`.")
    model = model_named(body.model, call)
    messages = [ClientMessage(content=body.input)] if isinstance(body.input, str) else body.input
    question = question_of(messages, model, body.instructions or "")
    if body.stream:
        return event_stream(_response_events(call, model, question))
    answer = await whole_answer(call, model, question)
    part = _part(reply_text(answer, question), _citations(answer, call, model))
    finished = _response(_id("resp"), model, "completed")
    return json_response(
        {**finished, "output": [_output(_id("msg"), part)], "usage": _response_usage(tokens_of(answer))}
    )


async def _response_events(call: Call, model: ServedModel, question: ChatQuestion) -> AsyncIterator[bytes]:
    id_, message_id, texts = _id("resp"), _id("msg"), []
    place: Json = {"item_id": message_id, "output_index": 0, "content_index": 0}
    n_sent = 0

    def event(kind: str, fields: Json) -> bytes:
        nonlocal n_sent
        n_sent += 1
        return f"event: {kind}\n".encode() + _event({"type": kind, "sequence_number": n_sent - 1, **fields})

    try:
        yield event("response.created", {"response": _response(id_, model, "in_progress")})
        yield event("response.output_item.added", {"output_index": 0, "item": _output(message_id, None)})
        yield event("response.content_part.added", {**place, "part": _part("", [])})
        async for piece in answer_pieces(call, model, question):
            if piece.answer is None:
                texts.append(piece.text)
                yield event("response.output_text.delta", {**place, "delta": piece.text, "logprobs": []})
                continue
            part = _part("".join(texts), _citations(piece.answer, call, model))
            output, tokens = _output(message_id, part), tokens_of(piece.answer)
            finished = {**_response(id_, model, "completed"), "output": [output], "usage": _response_usage(tokens)}
            yield event("response.output_text.done", {**place, "text": part["text"], "logprobs": []})
            yield event("response.content_part.done", {**place, "part": part})
            yield event("response.output_item.done", {"output_index": 0, "item": output})
            yield event("response.completed", {"response": finished})
    except Exception as error:
        call.server.report(error, call.request)
        problem = call.server.problem(error, call.request)
        yield event("error", {"code": problem.type.rpartition(":")[2], "message": sentence_of(problem), "param": None})


@operation("POST", "/v1/embeddings", Permission.READ, render_error=openai_error, tag="openai")
async def openai_embeddings(call: Call, body: EmbeddingRequest) -> Response:
    """Return the vectors of texts, by the embedder of the workspace."""
    model = model_named(body.model, call)
    texts = [body.input] if isinstance(body.input, str) else body.input
    async with call.use(model.workspace) as kb:
        vectors = await kb.embed(texts)
    if body.dimensions not in (None, vectors.shape[1]):
        raise InvalidInput(
            f"The vectors of this workspace have {vectors.shape[1]} dimensions, not {body.dimensions}.",
            remedy="Leave `dimensions` out.",
        )
    is_text = body.encoding_format == "base64"
    rows: Iterator[object] = (
        base64.b64encode(vector.astype("<f4").tobytes()).decode() if is_text else vector.tolist() for vector in vectors
    )
    embeddings = [{"object": "embedding", "index": n, "embedding": row} for n, row in enumerate(rows)]
    usage = {"prompt_tokens": 0, "total_tokens": 0}  # an embedder reports none
    return json_response({"object": "list", "model": model.name, "data": embeddings, "usage": usage})


def _event(value: Json) -> bytes:
    return b"data: " + json_bytes(value) + b"\n\n"


def _error(problem: Problem) -> Json:
    kind = "server_error" if problem.status >= 500 else _ERROR_TYPES.get(problem.status, "invalid_request_error")
    field = problem.errors[0].field if problem.errors else None
    code = problem.type.rpartition(":")[2]
    return {"error": {"message": sentence_of(problem), "type": kind, "param": field, "code": code}}


def _id(prefix: str) -> str:
    return f"{prefix}_{secrets.token_hex(12)}"


def _model(model: ServedModel) -> Json:
    return {"id": model.name, "object": "model", "created": _STARTED, "owned_by": "quipu"}


def _completion(kind: str, model: ServedModel) -> Json:
    return {"id": _id("chatcmpl"), "object": kind, "created": int(time.time()), "model": model.name}


def _citations(answer: Answer, call: Call, model: ServedModel) -> list[Json]:
    return [
        {
            "url": span.url,
            "title": span.title,
            "start_index": span.start,
            "end_index": span.end,
        }
        for span in cited_spans(answer, call, model.workspace)
    ]


def _chat_annotations(answer: Answer, call: Call, model: ServedModel) -> list[Json]:
    return [{"type": "url_citation", "url_citation": citation} for citation in _citations(answer, call, model)]


def _chat_usage(tokens: TokenCount) -> Json:
    return {
        "prompt_tokens": tokens.input,
        "completion_tokens": tokens.output,
        "total_tokens": tokens.input + tokens.output,
        "prompt_tokens_details": {"cached_tokens": tokens.cached},
    }


def _response(id_: str, model: ServedModel, status: str) -> Json:
    return {
        "id": id_,
        "object": "response",
        "created_at": int(time.time()),
        "status": status,
        "model": model.name,
        "output": [],
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "parallel_tool_calls": False,
        "tool_choice": "none",
        "tools": [],
        "store": False,
    }


def _output(id_: str, part: Json | None) -> Json:
    status = "in_progress" if part is None else "completed"
    content = [] if part is None else [part]
    return {"id": id_, "type": "message", "role": "assistant", "status": status, "content": content}


def _part(text: str, citations: list[Json]) -> Json:
    """Return the text of a response with its citations."""
    annotations = [{"type": "url_citation", **citation} for citation in citations]
    return {"type": "output_text", "text": text, "annotations": annotations, "logprobs": []}


def _response_usage(tokens: TokenCount) -> Json:
    return {
        "input_tokens": tokens.input,
        "input_tokens_details": {"cached_tokens": tokens.cached},
        "output_tokens": tokens.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": tokens.input + tokens.output,
    }


OPERATIONS = operations_of(openai_models, openai_model, chat_completions, responses, openai_embeddings)
