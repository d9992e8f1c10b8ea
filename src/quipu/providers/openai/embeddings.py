"""Embeddings: an embedder over any OpenAI-compatible server."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from quipu.errors import QuipuError, TooLong, Unavailable
from quipu.model.chat import TokenCount
from quipu.model.ids import digest
from quipu.providers.openai.catalog import InputKind
from quipu.providers.openai.embedding_models import known_embedding_model
from quipu.providers.openai.endpoint import Endpoint, Target
from quipu.providers.openai.explain import explained
from quipu.providers.openai.faults import Kind, kind_of
from quipu.providers.openai.said import Fault
from quipu.providers.openai.session import Session, deadline
from quipu.providers.openai.vectors import (
    Floats,
    VectorForm,
    adapted,
    is_too_much,
    read_tokens,
    read_vectors,
    units,
    windows,
    write_inputs,
)

_MAX_FORMS = 6
_BATCH_TOKENS = 16_000  # of one request; the strictest service takes this much
_MARGIN = 4 / 3  # tokens by our count against a model's own
_MIN_CUT = 64  # characters; a shorter text is not the reason for a rejection
_Counted = tuple[Floats, TokenCount]
_PROBE = "Quipus are records kept in knotted cords."


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingParameters:
    """What a user sets for an embedder beyond its model; None leaves it to what is known of the model.

    `dimension` is asked of the server where it is not the length the model is known to have. `max_tokens` is the most
    the model reads of one text, `batch_texts` how many texts one request holds.
    """

    dimension: int | None = None
    query_prefix: str | None = None
    passage_prefix: str | None = None
    max_tokens: int | None = None
    batch_texts: int | None = None


_DEFAULTS = EmbeddingParameters()


async def open_embedder(
    endpoint: Endpoint,
    model: str,
    *,
    count_tokens: Callable[[str], int],
    parameters: EmbeddingParameters = _DEFAULTS,
    measured: tuple[str, int] | None = None,
) -> "OpenAIEmbedder":
    """Return the embedder for a model; of one whose dimension is neither set nor known, a small call asks for it.

    `measured` are the identity and dimension of an embedder used before: of the same model, it has the same dimension.
    Raises Unavailable where that call fails.
    """
    target = Target(endpoint=endpoint, model=model)
    dimension = parameters.dimension or known_embedding_model(model).dimension
    if dimension is None and measured is not None:
        before = OpenAIEmbedder(target, measured[1], count_tokens=count_tokens, parameters=parameters)
        dimension = measured[1] if before.identity == measured[0] else None
    if dimension is None:
        probe = OpenAIEmbedder(target, 0, count_tokens=count_tokens, parameters=parameters)
        try:
            dimension = await probe.measure()
        finally:
            await probe.aclose()
    return OpenAIEmbedder(target, dimension, count_tokens=count_tokens, parameters=parameters)


class OpenAIEmbedder:
    """Embeds by a remote model; a text longer than it reads gets the mean of its windows' vectors, as with minilm.

    A text's vector is unit length and in the order of the call; that it is the same to the bit whatever stands beside
    it cannot be promised for a server of someone else's. Within one call the same text is sent once. Where some
    requests of a call fail, the vectors of the others are kept for the next call that asks for them.
    """

    def __init__(
        self,
        target: Target,
        dimension: int,
        *,
        count_tokens: Callable[[str], int],
        parameters: EmbeddingParameters = _DEFAULTS,
    ) -> None:
        known, provider = known_embedding_model(target.model), target.endpoint.provider
        self.target = target
        self.session = Session(target)
        self._dimension = dimension
        self._count = count_tokens
        self._prefix_by_asks = {
            True: known.query_prefix if parameters.query_prefix is None else parameters.query_prefix,
            False: known.passage_prefix if parameters.passage_prefix is None else parameters.passage_prefix,
        }
        self._input_kind = provider.input_kind if target.endpoint.is_default else InputKind()
        self._max_tokens = parameters.max_tokens or known.max_tokens
        self._most_texts = parameters.batch_texts or provider.batch_texts
        asked = parameters.dimension if parameters.dimension != known.dimension else None
        self._form = VectorForm(dimension=asked)

    @property
    def identity(self) -> str:
        """Provider, model, dimension, and what else changes vectors: prefixes, windows, the version of their use."""
        kind = self._input_kind
        used = digest(*self._prefix_by_asks.values(), str(self._max_tokens), kind.parameter, kind.query, kind.passage)
        return f"{self.target.name}/{self._dimension}/{used[:8]}/1"

    @property
    def dimension(self) -> int:
        """Length of every vector."""
        return self._dimension

    async def embed(self, texts: Sequence[str]) -> Floats:
        """Return one unit vector a text, [n, dimension]; a blank text gives a zero vector. Raises as `LLM.complete`."""
        return (await self.embed_counted(texts, is_query=False))[0]

    async def embed_queries(self, texts: Sequence[str]) -> Floats:
        """Return the vectors to look for among those of `embed`, [n, dimension]."""
        return (await self.embed_counted(texts, is_query=True))[0]

    async def embed_counted(self, texts: Sequence[str], *, is_query: bool) -> tuple[Floats, TokenCount]:
        """Return the vectors, and the tokens the service has read: by our count where it does not say.

        Raises TooLong where the service takes fewer texts at once; `batches` makes smaller ones from then on.
        """
        prefix = self._prefix_by_asks[is_query]
        pieces = [(row, prefix + piece) for row, text in enumerate(texts) for piece in self._windows(text)]
        row_by_piece = {piece: row for row, piece in enumerate(dict.fromkeys(piece for _, piece in pieces))}
        sums, tokens = np.zeros((len(texts), self._dimension)), TokenCount()
        if pieces:
            batches = self._batches(list(row_by_piece), lambda piece: (1, self._count(piece)))
            counted = [await self._batch(batch, asks=is_query) for batch in batches]
            vectors, tokens = np.concatenate([each for each, _ in counted]), _sum(each for _, each in counted)
            np.add.at(sums, [row for row, _ in pieces], vectors[[row_by_piece[piece] for _, piece in pieces]])
        return units(sums), tokens

    def batches(self, texts: Sequence[str], *, is_query: bool) -> list[list[str]]:
        """Return the texts, each once and in order, as they are sent in one request each, unless one is too long."""
        prefix = self._prefix_by_asks[is_query]

        def size(text: str) -> tuple[int, int]:
            pieces = self._windows(text)
            return len(pieces), sum(self._count(prefix + piece) for piece in pieces)

        return list(self._batches(list(dict.fromkeys(texts)), size))

    async def measure(self) -> int:
        """Return the length of a vector by a small call. Raises Unavailable where it fails or the length is another."""
        try:
            return int((await self._batch([_PROBE], asks=False))[0].shape[1])
        except Unavailable:
            raise
        except QuipuError as error:
            remedy = "With embedder_dimension set, opening an index needs no call."
            raise Unavailable(error.message, remedy=f"{error.remedy} {remedy}") from None

    async def check(self) -> None:
        """Raise Unavailable, with the remedy, where one small call shows that none will succeed as things stand."""
        await self.measure()

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        await self.session.aclose()

    def _windows(self, text: str) -> list[str]:
        if not text.strip():
            return []
        n_windows = -int(-self._count(text) * _MARGIN // self._max_tokens)
        return windows(text, n_windows) if n_windows > 1 else [text]

    def _batches(self, texts: Sequence[str], size: Callable[[str], tuple[int, int]]) -> Iterator[list[str]]:
        """Yield as many texts at a time as one request holds; `size` is how many texts and tokens one of them makes."""
        batch: list[str] = []
        n_texts = n_tokens = 0
        for text in texts:
            more_texts, more_tokens = size(text)
            if batch and (n_texts + more_texts > self._most_texts or n_tokens + more_tokens > _BATCH_TOKENS):
                yield batch
                batch, n_texts, n_tokens = [], 0, 0
            batch.append(text)
            n_texts += more_texts
            n_tokens += more_tokens
        if batch:
            yield batch

    async def _batch(self, texts: Sequence[str], *, asks: bool) -> _Counted:
        """Return the unit vectors of one request; a text that is too long after all is asked for in two."""
        for _ in range(_MAX_FORMS):
            form = self._form
            try:
                return await self._ask(texts, form, asks=asks)
            except Fault as fault:
                said = fault.said
            if len(texts) > 1 and is_too_much(said):
                self._most_texts = min(self._most_texts, len(texts) // 2)
                error = await explained(said, self.session)
                raise TooLong(error.message, remedy=error.remedy)
            if kind_of(said) is Kind.LONG and len(texts[0]) > _MIN_CUT:
                halves = [await self._batch([half], asks=asks) for half in windows(texts[0], 2)]
                return units(np.sum([vector for vector, _ in halves], axis=0)), _sum(each for _, each in halves)
            better = adapted(form, said, self.target, self._input_kind)
            if better is None:
                break
            if self._form is form:  # another request may have learnt the same meanwhile
                self._form = better
        raise await explained(said, self.session)

    async def _ask(self, texts: Sequence[str], form: VectorForm, *, asks: bool) -> _Counted:
        endpoint = self.target.endpoint
        body = write_inputs(texts, self.target, form, self._input_kind, asks=asks)
        url = endpoint.url("/embeddings", self.target.model)
        said = await self.session.post_whole(url, body, deadline(endpoint.timeouts.total_s))
        vectors = read_vectors(said, len(texts), self._dimension, self.target.place)
        self.session.has_answered = True
        return units(vectors), read_tokens(said) or TokenCount(input=sum(map(self._count, texts)))


def _sum(counts: Iterable[TokenCount]) -> TokenCount:
    return sum(counts, TokenCount())
