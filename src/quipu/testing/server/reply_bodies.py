"""Reply bodies: what OpenAI-compatible servers send, as bytes: objects, streamed events and errors."""

import base64
import json
from collections.abc import Iterator, Sequence

import numpy as np

from quipu.model.chat import FinishReason, TokenCount
from quipu.testing.scripted.fault import FaultName
from quipu.testing.scripted.model import Numbers, Spoken
from quipu.testing.scripted.schema import Json

DONE = b"data: [DONE]\n\n"
BAD_GATEWAY = b"<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>"
PAGE = b"<!DOCTYPE html><html><head><title>Welcome</title></head><body><h1>It works!</h1></body></html>"

_CREATED = 1_700_000_000  # no clock: the same reply is the same bytes
_FINISH = {FinishReason.STOP: "stop", FinishReason.LENGTH: "length", FinishReason.FILTERED: "content_filter"}


def error_body(code: str, message: str, kind: str) -> bytes:
    """Return an error in OpenAI's shape."""
    return _dump({"error": {"message": message, "type": kind, "param": None, "code": code}})


def models_body(names: Sequence[str], context_window: int | None) -> bytes:
    """Return the list of models, with the context window as vLLM gives it."""
    data: list[Json] = [
        {"id": name, "object": "model", "created": _CREATED, "owned_by": "quipu", "max_model_len": context_window}
        for name in names
    ]
    return _dump({"object": "list", "data": data})


def chat_body(spoken: Spoken, model: str, *, with_usage: bool) -> bytes:
    """Return a whole reply."""
    message: Json = {"role": "assistant", "content": spoken.text, "refusal": None}
    body: dict[str, Json] = {
        "id": _identifier(spoken),
        "object": "chat.completion",
        "created": _CREATED,
        "model": model,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": _FINISH[spoken.finish]}],
    }
    if with_usage:
        body["usage"] = _usage(spoken.tokens)
    return _dump(body)


class ChatEvents:
    """The events of a streamed reply."""

    def __init__(self, spoken: Spoken, model: str) -> None:
        self._spoken = spoken
        self._head = (
            f'data: {{"id":{json.dumps(_identifier(spoken))},"object":"chat.completion.chunk","created":{_CREATED},'
            f'"model":{json.dumps(model)},"choices":['
        )

    def first(self) -> bytes:
        """Return the event that opens the reply."""
        return self._event('{"role":"assistant","content":""}')

    def piece(self, text: str) -> bytes:
        """Return the event with a piece of the reply."""
        return self._event(f'{{"content":{json.dumps(text)}}}')

    def last(self, *, with_usage: bool) -> Iterator[bytes]:
        """Yield what ends the reply: why it ended, what it cost, that it is over."""
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


def embedding_body(numbers: Numbers, model: str, *, is_base64: bool, with_usage: bool) -> bytes:
    """Return vectors, as lists of numbers or as base64 of little-endian float32."""
    rows = numbers.rows.astype("<f4")
    written: list[Json] = [base64.b64encode(row.tobytes()).decode() if is_base64 else row.tolist() for row in rows]
    data: list[Json] = [
        {"object": "embedding", "index": index, "embedding": row}
        for index, row in zip(numbers.indices, written, strict=True)
    ]
    body: dict[str, Json] = {"object": "list", "model": model, "data": data}
    if with_usage:
        body["usage"] = {"prompt_tokens": numbers.n_tokens, "total_tokens": numbers.n_tokens}
    return _dump(body)


def rerank_body(numbers: Numbers, model: str, top_n: int | None, passages: Sequence[str] | None) -> bytes:
    """Return scores as Jina, Cohere and vLLM do, best first; with `passages` each has its text."""
    results: list[Json] = [
        {"index": index, "relevance_score": score}
        | ({} if passages is None else {"document": {"text": passages[index]}})
        for index, score in _ranked(numbers)[:top_n]
    ]
    return _dump(
        {
            "id": numbers.lot.key[:16],
            "model": model,
            "results": results,
            "usage": {"total_tokens": numbers.n_tokens},
            "meta": {"billed_units": {"search_units": 1}},
        }
    )


def tei_body(numbers: Numbers, passages: Sequence[str] | None) -> bytes:
    """Return scores as Text Embeddings Inference does: a list, best first."""
    ranked: list[Json] = [
        {"index": index, "score": score} | ({} if passages is None else {"text": passages[index]})
        for index, score in _ranked(numbers)
    ]
    return _dump(ranked)


def _ranked(numbers: Numbers) -> list[tuple[int, float]]:
    """Return index and score, best first, equal ones by index, or in the disorder of the fault."""
    scored = [(index, float(row[0])) for index, row in zip(numbers.indices, numbers.rows, strict=True)]
    if numbers.lot.fault and numbers.lot.fault.name is FaultName.SHUFFLED:
        return scored
    return sorted(scored, key=lambda each: (-np.nan_to_num(each[1]), each[0]))


def _usage(tokens: TokenCount) -> Json:
    return {
        "prompt_tokens": tokens.input,
        "completion_tokens": tokens.output,
        "total_tokens": tokens.input + tokens.output,
        "prompt_tokens_details": {"cached_tokens": tokens.cached},
    }


def _identifier(spoken: Spoken) -> str:
    return f"chatcmpl-{spoken.lot.key[:12]}-{spoken.lot.attempt}"


def _dump(value: Json) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
