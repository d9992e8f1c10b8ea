"""Embeddings: an embedder over any OpenAI-compatible server."""

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from quipu.algo.similarity import unit_vectors
from quipu.errors import Overloaded, QuipuError, TooLong, Unavailable
from quipu.model.chat import TokenCount
from quipu.model.ids import digest
from quipu.providers.openai.catalog import InputType, known_embedding_model
from quipu.providers.openai.endpoint import Endpoint, Target
from quipu.providers.openai.errors import ErrorKind, classify_error
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

_MAX_REQUESTS = 6  # attempts with other options before an error is final
_BATCH_TOKENS = 16_000  # of one request; the strictest service accepts this many
_TOKEN_MARGIN = 4 / 3  # a model may count this many times our own count
_MIN_SPLIT_CHARS = 64  # a shorter text is not too long, whatever the error says
_PROBE = "Quipus are records kept in knotted cords."
_BATCH_WORDS = re.compile(
    r"batch[ _-]?size|too many (inputs|texts|documents)|at most \d+|(input|array)[^.]{0,30}too (long|large)|"
    r"maximum[^.]{0,30}(batch|inputs|texts|documents)"
)

Floats = npt.NDArray[np.float32]
_CountedVectors = tuple[Floats, TokenCount]


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingParameters:
    """What a user sets for an embedder beyond its model. None takes the value known for the model.

    `dimension` is requested from the server if it is not the known length of the model's vectors. `max_tokens` is the
    most tokens the model reads of one text, `batch_texts` the number of texts in one request.
    """

    dimension: int | None = None
    query_prefix: str | None = None
    passage_prefix: str | None = None
    max_tokens: int | None = None
    batch_texts: int | None = None


_DEFAULTS = EmbeddingParameters()


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingCapabilities:
    """What a server accepts, as far as is known. `dimension` is the vector length to request, None to request none."""

    is_base64: bool = True
    dimension: int | None = None
    has_input_type: bool = True


async def open_embedder(
    endpoint: Endpoint,
    model: str,
    *,
    count_tokens: Callable[[str], int],
    parameters: EmbeddingParameters = _DEFAULTS,
    measured: tuple[str, int] | None = None,
) -> "OpenAIEmbedder":
    """Return the embedder for a model. If its dimension is neither set nor known, a small call measures it.

    `measured` is identity and dimension of an embedder used before; no call is needed if the identity is the same.
    Raises Unavailable if the call fails.
    """
    target = Target(endpoint=endpoint, model=model)
    dimension = parameters.dimension or known_embedding_model(model).dimension
    if dimension is None and measured is not None:
        same = OpenAIEmbedder(target, measured[1], count_tokens=count_tokens, parameters=parameters)
        dimension = measured[1] if same.identity == measured[0] else None
    if dimension is None:
        probe = OpenAIEmbedder(target, 0, count_tokens=count_tokens, parameters=parameters)
        try:
            dimension = await probe.measure()
        finally:
            await probe.aclose()
    return OpenAIEmbedder(target, dimension, count_tokens=count_tokens, parameters=parameters)


class OpenAIEmbedder:
    """Embeds texts with a remote model. A text longer than the model reads gets the mean vector of its windows.

    Vectors have unit length and the order of the texts. Whether a vector depends on the other texts of a call, in its
    last bits, is up to the server. Equal texts of one call are sent once.
    """

    def __init__(
        self,
        target: Target,
        dimension: int,
        *,
        count_tokens: Callable[[str], int],
        parameters: EmbeddingParameters = _DEFAULTS,
    ) -> None:
        model, provider = known_embedding_model(target.model), target.endpoint.provider
        self.target = target
        self.session = HttpSession(target)
        self._dimension = dimension
        self._count_tokens = count_tokens
        self._query_prefix = model.query_prefix if parameters.query_prefix is None else parameters.query_prefix
        self._passage_prefix = model.passage_prefix if parameters.passage_prefix is None else parameters.passage_prefix
        self._input_type = provider.input_type if target.endpoint.is_default else InputType()
        self._max_tokens = parameters.max_tokens or model.max_tokens
        self._max_texts = parameters.batch_texts or provider.batch_texts
        requested = parameters.dimension if parameters.dimension != model.dimension else None
        self._capabilities = EmbeddingCapabilities(dimension=requested)

    @property
    def identity(self) -> str:
        """Provider, model, dimension, and a digest of what else changes vectors: prefixes, windows, input types."""
        options = (self._input_type.parameter, self._input_type.query, self._input_type.passage)
        settings = digest(self._query_prefix, self._passage_prefix, str(self._max_tokens), *options)
        return f"{self.target.name}/{self._dimension}/{settings[:8]}/1"

    @property
    def dimension(self) -> int:
        return self._dimension

    async def embed(self, texts: Sequence[str]) -> Floats:
        """Return one unit vector per passage, [n, dimension]; zeros for a blank text. Raises as `LLM.complete` does."""
        return (await self.embed_counted(texts, is_query=False))[0]

    async def embed_queries(self, texts: Sequence[str]) -> Floats:
        """Return one unit vector per question, [n, dimension], otherwise like `embed`."""
        return (await self.embed_counted(texts, is_query=True))[0]

    async def embed_counted(self, texts: Sequence[str], *, is_query: bool) -> tuple[Floats, TokenCount]:
        """Return the vectors, and the tokens the service read; if it does not report them, by our own count.

        Raises TooLong if the service accepts only fewer texts at once. After that `batches` makes smaller batches.
        """
        prefix = self._prefix(is_query=is_query)
        windows = [(row, prefix + window) for row, text in enumerate(texts) for window in self._windows(text)]
        distinct = list(dict.fromkeys(window for _, window in windows))
        sums, tokens = np.zeros((len(texts), self._dimension)), TokenCount()
        if windows:
            batches = self._batches(distinct, lambda window: (1, self._count_tokens(window)))
            counted = [await self._embed_batch(batch, is_query=is_query) for batch in batches]
            vectors, tokens = np.concatenate([rows for rows, _ in counted]), _sum(count for _, count in counted)
            position_by_window = {window: position for position, window in enumerate(distinct)}
            np.add.at(sums, [row for row, _ in windows], vectors[[position_by_window[window] for _, window in windows]])
        return unit_vectors(sums).astype(np.float32), tokens

    def batches(self, texts: Sequence[str], *, is_query: bool) -> list[list[str]]:
        """Return each text once and in order, in groups that fit into one request each, unless one text is too long."""
        prefix = self._prefix(is_query=is_query)

        def size(text: str) -> tuple[int, int]:
            windows = self._windows(text)
            return len(windows), sum(self._count_tokens(prefix + window) for window in windows)

        return list(self._batches(list(dict.fromkeys(texts)), size))

    async def measure(self) -> int:
        """Return the length of a vector by a small call. Raises Unavailable if it fails or has an unexpected length."""
        try:
            return int((await self._embed_batch([_PROBE], is_query=False))[0].shape[1])
        except Unavailable:
            raise
        except QuipuError as error:
            remedy = "With embedder_dimension set, opening an index needs no call."
            raise Unavailable(error.message, remedy=f"{error.remedy} {remedy}") from None

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        await self.session.aclose()

    def _prefix(self, *, is_query: bool) -> str:
        return self._query_prefix if is_query else self._passage_prefix

    def _windows(self, text: str) -> list[str]:
        if not text.strip():
            return []
        n_windows = -int(-self._count_tokens(text) * _TOKEN_MARGIN // self._max_tokens)
        return split_into_windows(text, n_windows) if n_windows > 1 else [text]

    def _batches(self, texts: Sequence[str], size: Callable[[str], tuple[int, int]]) -> Iterator[list[str]]:
        """Yield batches of texts that fit into one request. `size` returns how many windows and tokens a text has."""
        batch: list[str] = []
        n_windows = n_tokens = 0
        for text in texts:
            more_windows, more_tokens = size(text)
            if batch and (n_windows + more_windows > self._max_texts or n_tokens + more_tokens > _BATCH_TOKENS):
                yield batch
                batch, n_windows, n_tokens = [], 0, 0
            batch.append(text)
            n_windows += more_windows
            n_tokens += more_tokens
        if batch:
            yield batch

    async def _embed_batch(self, texts: Sequence[str], *, is_query: bool) -> _CountedVectors:
        """Return the unit vectors of one request. A single text that is still too long is sent in two halves."""
        for _ in range(_MAX_REQUESTS):
            capabilities = self._capabilities
            try:
                return await self._request(texts, capabilities, is_query=is_query)
            except ErrorReply as error:
                reply = error.reply
            if len(texts) > 1 and is_batch_too_large(reply):
                self._max_texts = min(self._max_texts, len(texts) // 2)
                cause = await self.session.error_for(reply)
                raise TooLong(cause.message, remedy=cause.remedy)
            if classify_error(reply) is ErrorKind.TOO_LONG and len(texts[0]) > _MIN_SPLIT_CHARS:
                halves = [
                    await self._embed_batch([half], is_query=is_query) for half in split_into_windows(texts[0], 2)
                ]
                vector_sum = np.sum([vectors for vectors, _ in halves], axis=0)
                return unit_vectors(vector_sum).astype(np.float32), _sum(count for _, count in halves)
            changed = without_rejected_option(capabilities, reply, self.target, self._input_type)
            if changed is None:
                break
            if self._capabilities is capabilities:  # otherwise a parallel request has already changed them
                self._capabilities = changed
        raise await self.session.error_for(reply)

    async def _request(
        self, texts: Sequence[str], capabilities: EmbeddingCapabilities, *, is_query: bool
    ) -> _CountedVectors:
        endpoint = self.target.endpoint
        body = write_embedding_request(texts, self.target, capabilities, self._input_type, is_query=is_query)
        url = endpoint.url("/embeddings", self.target.model)
        reply = await self.session.post_json(url, body, deadline(endpoint.timeouts.total_s))
        vectors = parse_vectors(reply, len(texts), self._dimension, self.target.label)
        self.session.has_succeeded = True
        tokens = parse_token_count(reply) or TokenCount(input=sum(map(self._count_tokens, texts)))
        return unit_vectors(vectors).astype(np.float32), tokens


def write_embedding_request(
    texts: Sequence[str],
    target: Target,
    capabilities: EmbeddingCapabilities,
    input_type: InputType,
    *,
    is_query: bool,
) -> bytes:
    """Return a request for the vectors of texts, as JSON."""
    body: dict[str, object] = {"model": target.model, "input": list(texts)}
    if capabilities.is_base64:
        body["encoding_format"] = "base64"
    if capabilities.dimension:
        body[target.endpoint.provider.dimension_parameter] = capabilities.dimension
    if capabilities.has_input_type and input_type.parameter:
        body[input_type.parameter] = input_type.query if is_query else input_type.passage
    return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")


def parse_vectors(reply: ParsedReply, n_texts: int, dimension: int, label: str) -> Floats:
    """Return the vectors in the order of the texts, [n, dimension]; with `dimension` 0 any length is accepted.

    Raises ErrorReply if the reply holds no vectors, Overloaded if they are too few, of another length or not numbers.
    """
    entries = list_at(reply.body, "data")
    if not isinstance(value_at(reply.body, "data"), list):
        raise ErrorReply(reply)
    rows = [_parse_vector(value_at(entry, "embedding")) for entry in entries]
    order = order_by_index([count_at(entry, "index") for entry in entries], n_texts)
    if order is None:
        raise _malformed(label, f"{format_count(len(rows), 'vector')} for {format_count(n_texts, 'text')}")
    expected = dimension or (len(rows[0]) if rows else 0)
    unexpected = next((len(row) for row in rows if len(row) != expected), None)
    if unexpected is not None or not expected:
        raise _malformed(label, f"vectors of {format_count(unexpected or 0, 'number')} where {expected} were expected")
    vectors = np.stack([rows[index] for index in order])
    if not np.isfinite(vectors).all():
        raise _malformed(label, "vectors that are not finite numbers")
    return vectors


def _parse_vector(written: object) -> Floats:
    """Return a vector written as a list, or as base64 of little-endian floats; an empty one for anything else."""
    try:
        if isinstance(written, str):
            return np.frombuffer(base64.b64decode(written, validate=True), dtype="<f4").astype(np.float32)
        with np.errstate(over="ignore"):  # too large numbers become infinite, which the caller rejects
            return np.asarray(written if isinstance(written, list) else (), dtype=np.float32).reshape(-1)
    except (binascii.Error, ValueError, TypeError, OverflowError):
        return np.empty(0, dtype=np.float32)


def _malformed(label: str, problem: str) -> Overloaded:
    return Overloaded(
        f"{label} returned {problem}.",
        remedy="If this continues, check the embedder's model and embedder_dimension.",
        may_cost=True,
    )


def is_batch_too_large(reply: ParsedReply) -> bool:
    """Return whether a server rejects the number of texts in one request."""
    is_rejected = reply.status in (400, 413, 422)
    is_too_long = classify_error(reply) is ErrorKind.TOO_LONG or reply.status == 413
    return is_rejected and (is_too_long or bool(_BATCH_WORDS.search(reply.searchable)))


def without_rejected_option(
    capabilities: EmbeddingCapabilities, reply: ParsedReply, target: Target, input_type: InputType
) -> EmbeddingCapabilities | None:
    """Return the capabilities without what the server has rejected; None if it names nothing that can be changed."""
    if reply.status not in (400, 422):
        return None
    text = f"{reply.parameter.lower()} {reply.searchable}"
    if capabilities.is_base64 and ("encoding_format" in text or "base64" in text):
        return replace(capabilities, is_base64=False)
    if capabilities.dimension and (target.endpoint.provider.dimension_parameter in text or "matryoshka" in text):
        return replace(capabilities, dimension=None)
    if capabilities.has_input_type and input_type.parameter and input_type.parameter in text:
        return replace(capabilities, has_input_type=False)
    return None


def split_into_windows(text: str, n_windows: int) -> list[str]:
    """Split a text into windows of about equal length, at white space if there is some nearby."""
    bounds = [len(text) * window // n_windows for window in range(n_windows + 1)]
    cuts = [0, *(_last_space(text, begin, end) for begin, end in pairwise(bounds[:-1])), len(text)]
    windows = (text[begin:end].strip() for begin, end in pairwise(cuts))
    return [window for window in windows if window]


def _last_space(text: str, begin: int, end: int) -> int:
    """Return the position of the last white space in the second half of [begin, end); `end` if there is none."""
    position = max(text.rfind(" ", (begin + end) // 2, end), text.rfind("\n", (begin + end) // 2, end))
    return position if position > 0 else end


def _sum(counts: Iterable[TokenCount]) -> TokenCount:
    return sum(counts, TokenCount())
