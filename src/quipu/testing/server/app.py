"""App: the routes of the scripted server, and the server itself."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from aiohttp import web

from quipu.errors import InvalidInput
from quipu.model.chat import TokenCount
from quipu.testing.scripted.fate import Lot
from quipu.testing.scripted.fault import FaultName
from quipu.testing.scripted.kind import Kind
from quipu.testing.scripted.model import Numbers, ScriptedModel, pieces_of
from quipu.testing.scripted.script import Script, parse_script
from quipu.testing.server.exchange import Exchange
from quipu.testing.server.ledger import Ledger
from quipu.testing.server.reply_bodies import (
    ChatEvents,
    chat_body,
    embedding_body,
    error_body,
    models_body,
    rerank_body,
    tei_body,
)
from quipu.testing.server.request_bodies import (
    ChatBody,
    EmbeddingBody,
    Rejected,
    RerankBody,
    check_caller,
    check_inputs,
    check_model,
    check_prompt,
    parse_body,
)

_MAX_BODY = 256 * 1024 * 1024
_DEFAULT_MODELS = ("scripted",)

Respond = Callable[[Exchange], Awaitable[web.StreamResponse]]


class ScriptedServer:
    """Answers requests by a script that may be exchanged while it runs."""

    def __init__(self, script: Script) -> None:
        self._model = ScriptedModel(script)
        self._ledger = _open_ledger(script)
        self._cpu_s = time.process_time()

    def application(self) -> web.Application:
        """Return the routes."""
        app = web.Application(client_max_size=_MAX_BODY)
        for base in ("/v1", "/openai/v1", "/openai/deployments/{deployment}"):
            app.router.add_post(f"{base}/chat/completions", self._handler(self._chat, Kind.OTHER))
            app.router.add_post(f"{base}/embeddings", self._handler(self._embed, Kind.EMBED))
        for path in ("/v1/rerank", "/v2/rerank", "/rerank"):
            app.router.add_post(path, self._handler(self._rerank, Kind.RERANK))
        app.router.add_get("/v1/models", self._models)
        app.router.add_get("/stats", self._stats)
        app.router.add_post("/reset", self._reset)
        app.router.add_put("/script", self._configure)
        return app

    def close(self) -> None:
        """Close the log."""
        self._ledger.close()

    @property
    def _script(self) -> Script:
        return self._model.script

    def _handler(self, respond: Respond, kind: Kind) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(request: web.Request) -> web.StreamResponse:
            exchange = Exchange(request, self._ledger, kind)
            try:
                return await respond(exchange)
            except Rejected as error:
                return await exchange.send(error.status, error.body)
            except ConnectionError:
                return web.Response()
            finally:
                exchange.end()

        return handle

    async def _chat(self, exchange: Exchange) -> web.StreamResponse:
        service = self._script.service
        check_caller(_key(exchange.request), service)
        body = parse_body(await exchange.request.read(), ChatBody, service)
        model = _model_name(exchange.request, body.model)
        check_model(model, service)
        call = body.call(model)
        check_prompt(call, service)
        rejection = await self._reject(exchange)
        if rejection is not None:
            return rejection
        spoken = self._model.speak(call)
        self._draw(exchange, spoken.lot, model, spoken.tokens, spoken.text_hash)
        failure = await exchange.fail()
        if failure is not None:
            return failure
        latency = self._script.latency
        with_usage = _has_usage(spoken.lot, self._script)
        pieces = pieces_of(spoken.text, service.piece_chars)
        if not body.stream:
            whole = chat_body(spoken, model, with_usage=with_usage)
            return await exchange.reply(whole, extra_s=latency.piece_s * len(pieces))
        events = ChatEvents(spoken, model)
        return await exchange.stream(
            events.first(),
            [events.piece(piece) for piece in pieces],
            list(events.last(with_usage=with_usage and body.stream_options.include_usage)),
            first_share=latency.first_share,
            piece_s=latency.piece_s,
        )

    async def _embed(self, exchange: Exchange) -> web.StreamResponse:
        service = self._script.service
        check_caller(_key(exchange.request), service)
        body = parse_body(await exchange.request.read(), EmbeddingBody, service)
        model = _model_name(exchange.request, body.model)
        check_model(model, service)
        check_inputs(body.texts(), service)
        rejection = await self._reject(exchange)
        if rejection is not None:
            return rejection
        numbers = self._model.embed(model, body.texts(), body.dimensions)
        with_usage = _has_usage(numbers.lot, self._script)
        is_base64 = body.encoding_format == "base64"
        written = embedding_body(numbers, model, is_base64=is_base64, with_usage=with_usage)
        return await self._send_numbers(exchange, numbers, model, written)

    async def _rerank(self, exchange: Exchange) -> web.StreamResponse:
        service = self._script.service
        check_caller(_key(exchange.request), service)
        body = parse_body(await exchange.request.read(), RerankBody, service)
        check_model(body.model, service)
        rejection = await self._reject(exchange)
        if rejection is not None:
            return rejection
        passages = body.passages()
        numbers = self._model.score(body.model, body.query, passages)
        if body.texts is not None:
            written = tei_body(numbers, passages if body.return_text else None)
        else:
            written = rerank_body(numbers, body.model, body.top_n, passages if body.return_documents else None)
        return await self._send_numbers(exchange, numbers, body.model, written)

    async def _send_numbers(
        self, exchange: Exchange, numbers: Numbers, model: str, written: bytes
    ) -> web.StreamResponse:
        self._draw(exchange, numbers.lot, model, TokenCount(input=numbers.n_tokens), numbers.text_hash)
        return await exchange.fail() or await exchange.reply(written)

    def _draw(self, exchange: Exchange, lot: Lot, model: str, tokens: TokenCount, text_hash: str) -> None:
        slowdown = self._script.limit.slowdown(exchange.n_under_way)
        exchange.draw(lot, model=model, tokens=tokens, text_hash=text_hash, slowdown=slowdown)

    async def _reject(self, exchange: Exchange) -> web.StreamResponse | None:
        """Answer 429 above the limit; the request has not been looked at, so its next attempt is still its first."""
        limit = self._script.limit
        if not limit.rejects(exchange.n_under_way):
            return None
        body = error_body("rate_limit_exceeded", "Too many requests at a time.", "requests")
        return await exchange.send(429, body, retry_after_s=limit.retry_after_s)

    async def _models(self, request: web.Request) -> web.Response:
        service = self._script.service
        try:
            check_caller(_key(request), service)
        except Rejected as error:
            return web.Response(status=error.status, body=error.body, content_type="application/json")
        body = models_body(service.models or _DEFAULT_MODELS, service.context_window)
        return web.Response(body=body, content_type="application/json")

    async def _stats(self, request: web.Request) -> web.Response:
        if "settled" in request.query:
            await self._ledger.is_idle.wait()
        is_whole = "summary" not in request.query
        body = self._ledger.stats(time.process_time() - self._cpu_s, is_whole=is_whole)
        return web.Response(body=body, content_type="application/json")

    async def _reset(self, _request: web.Request) -> web.Response:
        """Forget what was asked and counted; requests under way are counted no more."""
        self._ledger.close()
        self._model, self._ledger = ScriptedModel(self._script), _open_ledger(self._script)
        self._cpu_s = time.process_time()
        return web.Response(status=204)

    async def _configure(self, request: web.Request) -> web.Response:
        """Follow another script from now on; what was counted stays."""
        try:
            script = parse_script(await request.read())
            model = ScriptedModel(script)
        except InvalidInput as error:
            return web.Response(status=400, text=str(error))
        self._model = model
        self._ledger.write_to(_log_path(script))
        return web.Response(status=204)


async def serve(script: Script, port: int, announce: Callable[[str], None], stopping: asyncio.Event) -> None:
    """Serve on loopback until `stopping` is set; `announce` is given the base URL once requests are accepted."""
    server = ScriptedServer(script)
    runner = web.AppRunner(
        server.application(), handler_cancellation=True, access_log=None, shutdown_timeout=0.1, keepalive_timeout=600
    )
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port, backlog=1024).start()
        announce(f"http://127.0.0.1:{runner.addresses[0][1]}")
        await stopping.wait()
    finally:
        await runner.cleanup()
        server.close()


def _open_ledger(script: Script) -> Ledger:
    return Ledger(_log_path(script))


def _log_path(script: Script) -> Path | None:
    return Path(script.log) if script.log else None


def _key(request: web.Request) -> str:
    return request.headers.get("Authorization") or request.headers.get("api-key") or ""


def _model_name(request: web.Request, named: str) -> str:
    deployment = request.match_info.get("deployment")
    return named if deployment is None else deployment


def _has_usage(lot: Lot, script: Script) -> bool:
    return script.service.reports_usage and not (lot.fault and lot.fault.name is FaultName.NO_USAGE)
