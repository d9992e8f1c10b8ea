"""Ollama's API: chat, generate and embed, for clients such as Open WebUI. A prefix of a question selects a strategy."""

import hashlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import perf_counter_ns

from starlette.responses import Response, StreamingResponse

import quipu
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
from quipu.server.wire import HEARTBEAT_S, Problem, json_bytes, json_response, with_heartbeat

Json = dict[str, object]
_MODIFIED = "2026-01-01T00:00:00Z"  # models are never modified; clients want a time
_VERSION = "0.12.0"  # of Ollama, whose API this is: clients compare it


class OllamaChatRequest(OpenBody):
    """A request for the next message of a conversation."""

    model: str
    messages: tuple[ClientMessage, ...] = ()
    stream: bool = True


class GenerateRequest(OpenBody):
    """A request for the answer to one prompt."""

    model: str
    prompt: str = ""
    system: str = ""
    stream: bool = True


class ShowRequest(OpenBody):
    """A request for what a model is; older clients call it `name`."""

    model: str = ""
    name: str = ""


class EmbedRequest(OpenBody):
    """A request for the vectors of texts."""

    model: str
    input: EmbeddedTexts


@dataclass(frozen=True, slots=True, kw_only=True)
class _ReplyLines:
    """How the lines of one reply are written: of a chat, or of a generated text."""

    model: str
    is_chat: bool
    started_ns: int = field(default_factory=perf_counter_ns)

    def line(self, text: str) -> Json:
        """Return a line with a piece of the reply."""
        content: Json = {"message": {"role": "assistant", "content": text}} if self.is_chat else {"response": text}
        moment = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        return {"model": self.model, "created_at": moment, **content, "done": False}

    def last(self, tokens: TokenCount, text: str = "") -> Json:
        """Return the last line, with what the reply cost. The time is measured as a whole, so it is all evaluation."""
        took_ns = perf_counter_ns() - self.started_ns
        return {
            **self.line(text),
            "done": True,
            "done_reason": "stop",
            "total_duration": took_ns,
            "load_duration": 0,
            "prompt_eval_count": tokens.input,
            "prompt_eval_duration": 0,
            "eval_count": tokens.output,
            "eval_duration": took_ns,
        }


def ollama_error(problem: Problem, headers: Mapping[str, str]) -> Response:
    """Return the response for a problem in Ollama's form."""
    return Response(json_bytes(_error(problem)), problem.status, dict(headers), media_type="application/json")


@operation("GET", "/api/version", Permission.READ, render_error=ollama_error, tag="ollama")
async def ollama_version() -> Response:
    """Return the version of Ollama whose API this is."""
    return json_response({"version": _VERSION, "quipu": quipu.__version__})


@operation("GET", "/api/tags", Permission.READ, render_error=ollama_error, tag="ollama")
async def ollama_tags(call: Call) -> Response:
    """List the models: each workspace with each strategy."""
    return json_response({"models": [_model(model) for model in served_models(call)]})


@operation("GET", "/api/ps", Permission.READ, render_error=ollama_error, tag="ollama")
async def ollama_ps(call: Call) -> Response:
    """List the models that are ready: all of them."""
    running = [{**_model(model), "expires_at": _MODIFIED, "size_vram": 0} for model in served_models(call)]
    return json_response({"models": running})


@operation("POST", "/api/show", Permission.READ, render_error=ollama_error, tag="ollama", takes_any_type=True)
async def ollama_show(call: Call, body: ShowRequest) -> Response:
    """Return what a model is."""
    model = _model(model_named(body.model or body.name, call))
    return json_response(
        {
            "modelfile": "",
            "parameters": "",
            "template": "",
            "details": model["details"],
            "model_info": {"general.architecture": "quipu"},
            "capabilities": model["capabilities"],
            "modified_at": _MODIFIED,
        }
    )


@operation("POST", "/api/chat", Permission.READ, render_error=ollama_error, tag="ollama", takes_any_type=True)
async def ollama_chat(call: Call, body: OllamaChatRequest) -> Response:
    """Answer the question that a conversation ends with; its prefix may choose the strategy.

    Citations are a list of links after the answer. With `stream`, which is the default, the reply is lines of JSON.
    """
    model = model_named(body.model, call)
    if not body.messages:  # a client loads a model so
        return json_response(_ReplyLines(model=body.model, is_chat=True).last(TokenCount()))
    question = question_of(body.messages, model).with_prefix()
    return await _reply(call, model, question, _ReplyLines(model=body.model, is_chat=True), is_stream=body.stream)


@operation("POST", "/api/generate", Permission.READ, render_error=ollama_error, tag="ollama", takes_any_type=True)
async def ollama_generate(call: Call, body: GenerateRequest) -> Response:
    """Answer a question, as in a chat of one message."""
    model = model_named(body.model, call)
    reply = _ReplyLines(model=body.model, is_chat=False)
    if not body.prompt:  # a client loads a model so
        return json_response(reply.last(TokenCount()))
    question = question_of([ClientMessage(content=body.prompt)], model, body.system).with_prefix()
    return await _reply(call, model, question, reply, is_stream=body.stream)


@operation("POST", "/api/embed", Permission.READ, render_error=ollama_error, tag="ollama", takes_any_type=True)
async def ollama_embed(call: Call, body: EmbedRequest) -> Response:
    """Return the vectors of texts, by the embedder of the workspace."""
    started_ns = perf_counter_ns()
    model = model_named(body.model, call)
    texts = [body.input] if isinstance(body.input, str) else body.input
    async with call.use(model.workspace) as kb:
        vectors = (await kb.embed(texts)).tolist()
    took_ns = perf_counter_ns() - started_ns
    return json_response(
        {
            "model": body.model,
            "embeddings": vectors,
            "total_duration": took_ns,
            "load_duration": 0,
            "prompt_eval_count": 0,
        }
    )


async def _reply(
    call: Call, model: ServedModel, question: ChatQuestion, reply: _ReplyLines, *, is_stream: bool
) -> Response:
    if is_stream:
        lines = with_heartbeat(_lines(call, model, question, reply), _line(reply.line("")), HEARTBEAT_S)
        return StreamingResponse(lines, headers={"x-accel-buffering": "no"}, media_type="application/x-ndjson")
    answer = await whole_answer(call, model, question)
    text = reply_text(answer, question) + _sources(answer, call, model)
    return json_response(reply.last(tokens_of(answer), text))


async def _lines(call: Call, model: ServedModel, question: ChatQuestion, reply: _ReplyLines) -> AsyncIterator[bytes]:
    try:
        async for piece in answer_pieces(call, model, question):
            if piece.answer is None:
                yield _line(reply.line(piece.text))
                continue
            if sources := _sources(piece.answer, call, model):
                yield _line(reply.line(sources))
            yield _line(reply.last(tokens_of(piece.answer)))
    except Exception as error:
        call.server.report(error, call.request)
        yield _line(_error(call.server.problem(error, call.request)))


def _sources(answer: Answer, call: Call, model: ServedModel) -> str:
    """Return the citations as a Markdown list of links, "" where there are none."""
    links = {
        span.citation.number: f"- [{span.citation.number}] [{_label(span.title)}]({span.url})"
        for span in reversed(cited_spans(answer, call, model.workspace))
    }
    return "\n\n" + "\n".join(links[number] for number in sorted(links)) if links else ""


def _label(title: str) -> str:
    """Return a title as the text of a link: without what would end it, or begin another."""
    return " ".join("".join(" " if letter in "[]()<>`\\!" else letter for letter in title).split())


def _line(value: Json) -> bytes:
    return json_bytes(value) + b"\n"


def _error(problem: Problem) -> Json:
    return {"error": sentence_of(problem)}


def _model(model: ServedModel) -> Json:
    name = f"{model.name}:latest"
    return {
        "name": name,
        "model": name,
        "modified_at": _MODIFIED,
        "size": 0,
        "digest": hashlib.sha256(name.encode()).hexdigest(),
        "details": {
            "parent_model": "",
            "format": "quipu",
            "family": "quipu",
            "families": ["quipu"],
            "parameter_size": "",
            "quantization_level": "",
        },
        "capabilities": ["completion"],
    }


OPERATIONS = operations_of(
    ollama_version,
    ollama_tags,
    ollama_ps,
    ollama_show,
    ollama_chat,
    ollama_generate,
    ollama_embed,
)
