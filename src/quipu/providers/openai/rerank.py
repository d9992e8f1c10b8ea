"""Reranker over the common /rerank request, in the formats of Jina, Cohere, vLLM, Voyage and TEI."""

import json
from collections.abc import Callable, Sequence
from math import isfinite

from quipu.errors import Overloaded
from quipu.model.chat import TokenCount
from quipu.providers.openai.catalog import RerankFormat
from quipu.providers.openai.endpoint import Endpoint, Target
from quipu.providers.openai.reply import (
    ErrorReply,
    ParsedReply,
    count_at,
    list_at,
    order_by_index,
    parse_token_count,
    value_at,
)
from quipu.providers.openai.session import HttpSession, deadline
from quipu.text.formatting import format_count

_BATCH_TEXTS = 100


class HttpReranker:
    """Scores texts with a remote cross-encoder. If a server rejects the common format, TEI's is tried."""

    def __init__(self, endpoint: Endpoint, model: str, *, count_tokens: Callable[[str], int]) -> None:
        self.target = Target(endpoint=endpoint, model=model)
        self.session = HttpSession(self.target)
        self._count_tokens = count_tokens
        provider = endpoint.provider
        self._format = provider.rerank_format
        self._max_texts = provider.batch_texts if provider.rerank_format is RerankFormat.TEI else _BATCH_TEXTS
        self.url = self._rerank_url()

    @property
    def identity(self) -> str:
        """Provider and model, with the host of a custom server."""
        return self.target.name

    async def score(self, question: str, texts: Sequence[str]) -> list[float]:
        scores, _ = await self.score_counted(question, texts)
        return scores

    async def score_counted(self, question: str, texts: Sequence[str]) -> tuple[list[float], TokenCount]:
        """Return the scores, and the tokens the service read; if it does not report them, by our own count."""
        scores: list[float] = []
        tokens = TokenCount()
        for start in range(0, len(texts), self._max_texts):
            batch_scores, batch_tokens = await self._score_batch(question, texts[start : start + self._max_texts])
            scores += batch_scores
            tokens += batch_tokens
        return scores, tokens

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        await self.session.aclose()

    def _rerank_url(self) -> str:
        endpoint, provider = self.target.endpoint, self.target.endpoint.provider
        if self._format is RerankFormat.TEI:
            return endpoint.url_outside_api("/rerank")
        if provider.rerank_url and endpoint.is_default:
            return f"{provider.rerank_url}/rerank"
        return endpoint.url("/rerank", self.target.model)

    async def _score_batch(self, question: str, texts: Sequence[str]) -> tuple[list[float], TokenCount]:
        rerank_format = self._format
        try:
            return await self._request(question, texts, rerank_format)
        except ErrorReply as error:
            reply = error.reply
        needs_texts = reply.status in (400, 422) and ("`texts`" in reply.searchable or reply.parameter == "texts")
        if rerank_format is RerankFormat.TEI or not needs_texts:
            raise await self.session.error_for(reply)
        self._format, self.url = RerankFormat.TEI, self.target.endpoint.url_outside_api("/rerank")
        return await self._score_batch(question, texts)

    async def _request(
        self, question: str, texts: Sequence[str], rerank_format: RerankFormat
    ) -> tuple[list[float], TokenCount]:
        until = deadline(self.target.endpoint.timeouts.total_s)
        body = _write_request(question, texts, self.target, rerank_format)
        reply = await self.session.post_json(self.url, body, until)
        scores = _parse_scores(reply, len(texts), self.target.label)
        self.session.has_succeeded = True
        tokens = parse_token_count(reply) or TokenCount(input=sum(map(self._count_tokens, (question, *texts))))
        return scores, tokens


def _write_request(question: str, texts: Sequence[str], target: Target, rerank_format: RerankFormat) -> bytes:
    body: dict[str, object] = {"model": target.model, "query": question}
    if rerank_format is RerankFormat.TEI:
        body |= {"texts": list(texts), "truncate": True}
    else:
        limit = "top_k" if rerank_format is RerankFormat.VOYAGE else "top_n"
        body |= {"documents": list(texts), limit: len(texts)}
        if target.endpoint.provider.name == "jina":
            body["return_documents"] = False
    return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")


def _parse_scores(reply: ParsedReply, n_texts: int, label: str) -> list[float]:
    """Return the scores in the order of the texts.

    Raises ErrorReply if the reply holds no scores, Overloaded if they are too few or not numbers.
    """
    results = _results(reply.body)
    if results is None:
        raise ErrorReply(reply)
    order = order_by_index([count_at(result, "index") for result in results], n_texts)
    scores = [_score(result) for result in results]
    if order is None or not all(map(isfinite, scores)):
        raise Overloaded(
            f"{label} scored {len(results)} of {format_count(n_texts, 'text')}, or not in numbers.",
            remedy="Try again.",
            may_cost=True,
        )
    return [scores[position] for position in order]


def _results(body: object) -> Sequence[object] | None:
    if isinstance(body, list):
        return body
    return next((list_at(body, name) for name in ("results", "data") if isinstance(value_at(body, name), list)), None)


def _score(result: object) -> float:
    score = value_at(result, "relevance_score")
    score = value_at(result, "score") if score is None else score
    return float(score) if isinstance(score, int | float) and not isinstance(score, bool) else float("nan")
