"""Model server: answers chat and embedding requests of both systems at once, as the workload says.

    python -m benchmarks.serving.model

It prints its address. A request about a text with the word `HELD` is answered when the server ends.
"""

import asyncio
import base64
import json
import time

from aiohttp import web

from benchmarks.speed import workload
from benchmarks.speed.lightrag_driver import Model
from benchmarks.speed.process import Given
from quipu.model.chat import Message
from quipu.testing.scripted.prompt_parsing import parse_prompt
from quipu.testing.scripted.script import RequestKind

HELD = "Heldheldheld"
ANSWER = " ".join(["They met, as the first passage says [1]."] * 20)
_MAX_BODY = 64 << 20
_PIECE_WORDS = 8


class ModelServer:
    """Answers every request without delay."""

    def __init__(self) -> None:
        self._peer = Model(Given())
        self._embedding = workload.Embedding()

    def application(self) -> web.Application:
        """Return the routes."""
        app = web.Application(client_max_size=_MAX_BODY)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_post("/v1/embeddings", self._embed)
        return app

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        messages = [Message(role=message["role"], text=_text(message["content"])) for message in body["messages"]]
        if any(HELD in message.text for message in messages):
            await asyncio.Event().wait()
        reply = self._reply(messages)
        if not body.get("stream"):
            choice = {"index": 0, "message": {"role": "assistant", "content": reply}, "finish_reason": "stop"}
            return web.json_response(_completion("chat.completion", body["model"], choice))
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        words = reply.split(" ")
        for start in range(0, len(words), _PIECE_WORDS):
            piece = " ".join(words[start : start + _PIECE_WORDS]) + " "
            choice = {"index": 0, "delta": {"role": "assistant", "content": piece}, "finish_reason": None}
            await response.write(_event(_completion("chat.completion.chunk", body["model"], choice)))
        end = {"index": 0, "delta": {}, "finish_reason": "stop"}
        await response.write(_event(_completion("chat.completion.chunk", body["model"], end)) + b"data: [DONE]\n\n")
        return response

    def _reply(self, messages: list[Message]) -> str:
        prompt = parse_prompt(messages)
        match prompt.kind:
            case RequestKind.EXTRACT:
                return _records(prompt.text)
            case RequestKind.KEYWORDS:
                names = workload.names(prompt.question)
                return json.dumps({"high_level_keywords": workload.THEMES, "low_level_keywords": names})
            case RequestKind.OTHER:  # no prompt of Quipu
                try:
                    return self._peer._reply(messages[-1].text)
                except ValueError:
                    return ANSWER
            case _:
                return ANSWER

    async def _embed(self, request: web.Request) -> web.Response:
        body = await request.json()
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        vectors = self._embedding.vectors(texts)
        is_packed = body.get("encoding_format") == "base64"
        rows = [base64.b64encode(row.tobytes()).decode() if is_packed else row.tolist() for row in vectors]
        entries = [{"object": "embedding", "index": index, "embedding": row} for index, row in enumerate(rows)]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return web.json_response({"object": "list", "model": body["model"], "data": entries, "usage": usage})


def _text(content: object) -> str:
    parts = content if isinstance(content, list) else [{"text": content}]
    return "\n".join(str(part.get("text", "")) for part in parts)


def _records(text: str) -> str:
    entities = workload.entities(text)
    rows = [("entity", entity.name, workload.ENTITY_TYPE, entity.description) for entity in entities]
    keywords = ",".join(workload.KEYWORDS)
    related = [
        ("relation", relation.source, relation.target, keywords, relation.description, "5")
        for relation in workload.relations(entities)
    ]
    return "\n".join([*map("<|>".join, [*rows, *related]), "<|done|>"])


def _completion(kind: str, model: str, choice: dict[str, object]) -> dict[str, object]:
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    head = {"id": "scripted", "object": kind, "created": int(time.time()), "model": model, "choices": [choice]}
    return head | {"usage": usage} if kind == "chat.completion" else head


def _event(value: object) -> bytes:
    return f"data: {json.dumps(value)}\n\n".encode()


async def _serve() -> None:
    runner = web.AppRunner(ModelServer().application(), access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    [address] = runner.addresses
    print(f"http://127.0.0.1:{address[1]}/v1", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve())
