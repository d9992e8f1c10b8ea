"""Rerank: a reranker over the common /rerank request, in the shapes of Jina, Cohere, vLLM, Voyage and TEI."""

import json
from collections.abc import Callable, Sequence
from math import isfinite

from quipu.errors import Overloaded
from quipu.model.chat import TokenCount
from quipu.providers.openai.catalog import RerankShape
from quipu.providers.openai.endpoint import Endpoint, Target
from quipu.providers.openai.explain import explained
from quipu.providers.openai.fields import at, count_at, list_at
from quipu.providers.openai.said import Fault, Said
from quipu.providers.openai.session import Session, deadline
from quipu.providers.openai.vectors import in_order, read_tokens
from quipu.text.formatting import format_count

_BATCH_TEXTS = 100


class HttpReranker:
    """Scores texts by a remote cross-encoder. A server of unknown shape is tried with the common one, then TEI's."""

    def __init__(self, endpoint: Endpoint, model: str, *, count_tokens: Callable[[str], int]) -> None:
        self.target = Target(endpoint=endpoint, model=model)
        self.session = Session(self.target)
        self._count = count_tokens
        provider = endpoint.provider
        self._shape = provider.rerank_shape
        self._most_texts = provider.batch_texts if provider.rerank_shape is RerankShape.TEI else _BATCH_TEXTS
        self.url = self._rerank_url()

    @property
    def identity(self) -> str:
        """Provider and model, with the host of a custom server."""
        return self.target.name

    async def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return a score for each text, higher is better; raises as `LLM.complete` does."""
        scores, _ = await self.score_counted(question, texts)
        return scores

    async def score_counted(self, question: str, texts: Sequence[str]) -> tuple[list[float], TokenCount]:
        """Return what `score` does, and the tokens the service has read: by our count where it does not say."""
        scores: list[float] = []
        tokens = TokenCount()
        for start in range(0, len(texts), self._most_texts):
            found, read = await self._batch(question, texts[start : start + self._most_texts])
            scores += found
            tokens += read
        return scores, tokens

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        await self.session.aclose()

    def _rerank_url(self) -> str:
        endpoint, provider = self.target.endpoint, self.target.endpoint.provider
        if self._shape is RerankShape.TEI:
            return endpoint.beside("/rerank")
        if provider.rerank_url and endpoint.is_default:
            return f"{provider.rerank_url}/rerank"
        return endpoint.url("/rerank", self.target.model)

    async def _batch(self, question: str, texts: Sequence[str]) -> tuple[list[float], TokenCount]:
        shape = self._shape
        try:
            return await self._ask(question, texts, shape)
        except Fault as fault:
            said = fault.said
        wants_texts = said.status in (400, 422) and ("`texts`" in said.words or said.parameter == "texts")
        if shape is RerankShape.TEI or not wants_texts:
            raise await explained(said, self.session)
        self._shape, self.url = RerankShape.TEI, self.target.endpoint.beside("/rerank")
        return await self._batch(question, texts)

    async def _ask(self, question: str, texts: Sequence[str], shape: RerankShape) -> tuple[list[float], TokenCount]:
        until = deadline(self.target.endpoint.timeouts.total_s)
        said = await self.session.post_whole(self.url, _write(question, texts, self.target, shape), until)
        scores = _read(said, len(texts), self.target.place)
        self.session.has_answered = True
        return scores, read_tokens(said) or TokenCount(input=sum(map(self._count, (question, *texts))))


def _write(question: str, texts: Sequence[str], target: Target, shape: RerankShape) -> bytes:
    body: dict[str, object] = {"model": target.model, "query": question}
    if shape is RerankShape.TEI:
        body |= {"texts": list(texts), "truncate": True}
    else:
        limit = "top_k" if shape is RerankShape.VOYAGE else "top_n"
        body |= {"documents": list(texts), limit: len(texts)}
        if target.endpoint.provider.name == "jina":
            body["return_documents"] = False
    return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")


def _read(said: Said, n_texts: int, place: str) -> list[float]:
    """Return the scores in the order of the texts. Raises Fault where it is no answer, Overloaded where it is odd."""
    results = _results(said.body)
    if results is None:
        raise Fault(said)
    order = in_order([count_at(each, "index") for each in results], n_texts)
    scores = [_score(each) for each in results]
    if order is None or not all(map(isfinite, scores)):
        raise Overloaded(
            f"{place} scored {len(results)} of {format_count(n_texts, 'text')}, or not in numbers.",
            remedy="Try again.",
            may_cost=True,
        )
    return [scores[place] for place in order]


def _results(body: object) -> Sequence[object] | None:
    if isinstance(body, list):
        return body
    return next((list_at(body, name) for name in ("results", "data") if isinstance(at(body, name), list)), None)


def _score(result: object) -> float:
    found = at(result, "relevance_score")
    found = at(result, "score") if found is None else found
    return float(found) if isinstance(found, int | float) and not isinstance(found, bool) else float("nan")
