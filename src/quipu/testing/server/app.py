"""App: the routes of the scripted server, and the server itself."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from aiohttp import web

from quipu.errors import InvalidInput
from quipu.model.chat import TokenCount
from quipu.testing.scripted.fault_injection import RequestDraw
from quipu.testing.scripted.model import NumericReply, ScriptedModel, split_pieces
from quipu.testing.scripted.script import FaultName, RequestKind, Script, parse_script
from quipu.testing.server.exchange import Exchange
from quipu.testing.server.request_log import RequestLog
from quipu.testing.server.wire_format import (
    ChatBody,
    ChatEvents,
    EmbeddingBody,
    RejectedRequest,
    RerankBody,
    chat_body,
    check_caller,
    check_inputs,
    check_model,
    check_prompt,
    embedding_body,
    error_body,
    models_body,
    parse_body,
    rerank_body,
    tei_body,
)

_MAX_BODY = 256 * 1024 * 1024
_DEFAULT_MODELS = ("scripted",)

Respond = Callable[[Exchange], Awaitable[web.StreamResponse]]


class ScriptedServer:
    """Answers requests by a script, which can be replaced while the server runs."""

    def __init__(self, script: Script) -> None:
        self._model = ScriptedModel(script)
        self._request_log = _open_ledger(script)
        self._cpu_s = time.process_time()

    def application(self) -> web.Application:
        """Return the routes."""
        app = web.Application(client_max_size=_MAX_BODY)
        for base in ("/v1", "/openai/v1", "/openai/deployments/{deployment}"):
            app.router.add_post(f"{base}/chat/completions", self._handler(self._chat, RequestKind.OTHER))
            app.router.add_post(f"{base}/embeddings", self._handler(self._embed, RequestKind.EMBED))
        for path in ("/v1/rerank", "/v2/rerank", "/rerank"):
            app.router.add_post(path, self._handler(self._rerank, RequestKind.RERANK))
        app.router.add_get("/v1/models", self._models)
        app.router.add_get("/stats", self._stats)
        app.router.add_post("/reset", self._reset)
        app.router.add_put("/script", self._configure)
        return app

    def close(self) -> None:
        """Close the log."""
        self._request_log.close()

    @property
    def _script(self) -> Script:
        return self._model.script

    def _handler(self, respond: Respond, kind: RequestKind) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(request: web.Request) -> web.StreamResponse:
            exchange = Exchange(request, self._request_log, kind)
            try:
                return await respond(exchange)
            except RejectedRequest as error:
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
        reply = self._model.complete(call)
        self._draw(exchange, reply.draw, model, reply.tokens, reply.text_hash)
        failure = await exchange.fail()
        if failure is not None:
            return failure
        latency = self._script.latency
        with_usage = _has_usage(reply.draw, self._script)
        pieces = split_pieces(reply.text, service.piece_chars)
        if not body.stream:
            whole = chat_body(reply, model, with_usage=with_usage)
            return await exchange.reply(whole, extra_s=latency.piece_s * len(pieces))
        events = ChatEvents(reply, model)
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
        with_usage = _has_usage(numbers.draw, self._script)
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
        self, exchange: Exchange, numbers: NumericReply, model: str, written: bytes
    ) -> web.StreamResponse:
        self._draw(exchange, numbers.draw, model, TokenCount(input=numbers.n_tokens), numbers.text_hash)
        return await exchange.fail() or await exchange.reply(written)

    def _draw(self, exchange: Exchange, draw: RequestDraw, model: str, tokens: TokenCount, text_hash: str) -> None:
        slowdown = self._script.limit.slowdown(exchange.n_under_way)
        exchange.draw(draw, model=model, tokens=tokens, text_hash=text_hash, slowdown=slowdown)

    async def _reject(self, exchange: Exchange) -> web.StreamResponse | None:
        """Send status 429 above the limit. The request is not counted as an attempt."""
        limit = self._script.limit
        if not limit.rejects(exchange.n_under_way):
            return None
        body = error_body("rate_limit_exceeded", "Too many requests at a time.", "requests")
        return await exchange.send(429, body, retry_after_s=limit.retry_after_s)

    async def _models(self, request: web.Request) -> web.Response:
        service = self._script.service
        try:
            check_caller(_key(request), service)
        except RejectedRequest as error:
            return web.Response(status=error.status, body=error.body, content_type="application/json")
        body = models_body(service.models or _DEFAULT_MODELS, service.context_window)
        return web.Response(body=body, content_type="application/json")

    async def _stats(self, request: web.Request) -> web.Response:
        if "settled" in request.query:
            await self._request_log.is_idle.wait()
        is_whole = "summary" not in request.query
        body = self._request_log.stats(time.process_time() - self._cpu_s, is_whole=is_whole)
        return web.Response(body=body, content_type="application/json")

    async def _reset(self, _request: web.Request) -> web.Response:
        """Forget all requests and counts; running requests are not counted any more."""
        self._request_log.close()
        self._model, self._request_log = ScriptedModel(self._script), _open_ledger(self._script)
        self._cpu_s = time.process_time()
        return web.Response(status=204)

    async def _configure(self, request: web.Request) -> web.Response:
        """Use another script from now on; the counts stay."""
        try:
            script = parse_script(await request.read())
            model = ScriptedModel(script)
        except InvalidInput as error:
            return web.Response(status=400, text=str(error))
        self._model = model
        self._request_log.write_to(_log_path(script))
        return web.Response(status=204)


async def serve(script: Script, port: int, announce: Callable[[str], None], stopping: asyncio.Event) -> None:
    """Serve on loopback until `stopping` is set; call `announce` with the base URL when requests are accepted."""
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


def _open_ledger(script: Script) -> RequestLog:
    return RequestLog(_log_path(script))


def _log_path(script: Script) -> Path | None:
    return Path(script.log) if script.log else None


def _key(request: web.Request) -> str:
    return request.headers.get("Authorization") or request.headers.get("api-key") or ""


def _model_name(request: web.Request, named: str) -> str:
    deployment = request.match_info.get("deployment")
    return named if deployment is None else deployment


def _has_usage(draw: RequestDraw, script: Script) -> bool:
    return script.service.reports_usage and not (draw.fault and draw.fault.name is FaultName.NO_USAGE)
