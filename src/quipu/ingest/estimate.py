"""Estimate: what adding documents would cost. Chunks are counted exactly; cost per chunk is measured or typical."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from quipu.errors import OverBudget, QuipuError, Unavailable
from quipu.ingest.documents import (
    ChangeStatus,
    IngestConfig,
    change_status,
    extractor_input,
    indexed_documents,
    read_document,
)
from quipu.ingest.pictures import MAX_PAGE_TOKENS
from quipu.ingest.sources import FoundSource
from quipu.model.chat import ChatRequest, Completion, FinishReason, TokenCount
from quipu.model.document import SourceDocument
from quipu.model.event import EventSink, Progress
from quipu.model.graph import Chunk
from quipu.model.usage import Estimate, Price, Range, UsageRow
from quipu.ports.providers import TextSink, Tokenizer, ignore_text
from quipu.ports.store import Store

BATCH_SIZE = 64  # documents read between two progress events
MIN_RELATIVE_ERROR = 0.05  # of a measured figure, however many documents it comes from
RELATIVE_ERROR_OF_ONE = 0.3  # of a figure measured on a single document

# Typical figures of one chunk. Recorded replies of a large model to passages of 1,200 tokens have 230 to 1,830 tokens,
# 610 on average. The second call, which asks for missed entities, is made for some chunks only and gets less text.
_CALLS = Range(low=1.0, likely=1.5, high=2.0)
_OUTPUT_PER_TOKEN = Range(low=0.25, likely=0.6, high=1.2)  # output tokens for each token of the chunk
_PROMPTS_SENT = Range(low=1.0, likely=1.7, high=2.6)  # the second call sends the first reply as well
# Tokens embedded for each token of a chunk: the chunk, its entities and its relations. Measured on texts of a few
# hundred chunks: 1.3 and 1.7 by rules, 1.9 to 3.7 by large models; short passages full of names have 4.3.
_EMBEDDED_PER_TOKEN = Range(low=1.2, likely=2.0, high=4.5)
_DESCRIPTION_TOKENS = Range(low=60, likely=150, high=300)  # at most 200 words are asked for
_PAGE_TOKENS = Range(low=200, likely=700, high=1_500)  # a printed page has 300 to 800 words
NOT_DESCRIBED = "(not described yet) "
_SECONDS_PER_TOKEN = Range(low=1 / 120, likely=1 / 60, high=1 / 25)  # of output, hosted models


class UndescribedPictures:
    """Stands in for the model that describes pictures: replies a text of typical length, and counts the requests."""

    def __init__(self, identity: str, tokenizer: Tokenizer) -> None:
        self.identity = identity
        self._tokenizer = tokenizer
        self._tokens_by_hash: dict[str, tuple[int, int, Range]] = {}  # of the picture, of the words, of the reply

    async def complete(self, request: ChatRequest, on_text: TextSink = ignore_text) -> Completion:
        """Return a text that means nothing."""
        is_page = request.max_output_tokens == MAX_PAGE_TOKENS
        reply = _PAGE_TOKENS if is_page else _DESCRIPTION_TOKENS
        n_picture = sum(image.n_tokens for image in request.images)
        n_words = sum(self._tokenizer.count(message.text) for message in request.messages)
        self._tokens_by_hash[request.hash(self.identity)] = n_picture, n_words, reply
        n_times = round(reply.likely / self._tokenizer.count(NOT_DESCRIBED))
        return Completion(text=NOT_DESCRIBED * n_times, finish=FinishReason.STOP, tokens=TokenCount())

    def added_to(self, estimate: Estimate, model: str, price: Price | None) -> Estimate:
        """Return the estimate with what it costs to ask about the pictures, each once."""
        sent = received = Range(low=0, likely=0, high=0)
        for n_picture, n_words, reply in self._tokens_by_hash.values():  # a picture as Image.n_tokens says
            sent = sent.plus(Range(low=n_picture / 3, likely=n_picture, high=2 * n_picture))
            sent = sent.plus(Range(low=n_words, likely=n_words, high=n_words))
            received = received.plus(reply)
        return replace(
            estimate,
            n_pictures=len(self._tokens_by_hash),
            picture_model=model,
            picture_tokens=sent.plus(received),
            picture_cost=sent.times(price.input).plus(received.times(price.output)) if price else None,
        )


@dataclass(slots=True)
class DocumentSurvey:
    """What adding documents would do. `unread` are the chunks without a cached reply, by the hash of their input.

    `n_by_other_reader` counts the unchanged documents that were read by another extractor or with other settings. The
    key describes that reader.
    """

    n_documents: int = 0
    n_unchanged: int = 0
    n_by_other_reader: Counter[str] = field(default_factory=Counter)
    n_unreadable: int = 0
    n_chunks: int = 0
    unread: dict[str, Chunk] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredUsage:
    """What a model spent on some documents, and the chunks and tokens read for each; `basis` says where it is from."""

    rows: Sequence[UsageRow]
    size_by_subject: Mapping[str, tuple[int, int]]  # chunks, tokens
    seconds_a_call: float | None
    basis: str


async def survey_documents(
    sources: Iterable[FoundSource], store: Store, config: IngestConfig, on_event: EventSink, *, reread: bool = False
) -> DocumentSurvey:
    """Read and chunk documents as adding would, and count the chunks without a cached reply. Nothing is changed."""
    survey = DocumentSurvey()
    remaining = iter(sources)
    while batch := await asyncio.to_thread(lambda: list(islice(remaining, BATCH_SIZE))):
        documents = [source for source in batch if isinstance(source, SourceDocument)]
        indexed_by_id = await indexed_documents(documents, store)
        for source in documents:
            indexed = indexed_by_id.get(source.id)
            status = change_status(indexed, source, config)
            if indexed and status is ChangeStatus.READ_OTHERWISE and not reread:
                survey.n_by_other_reader[indexed.extractor] += 1
                survey.n_unchanged += 1
            elif status is ChangeStatus.UNCHANGED:
                survey.n_unchanged += 1
            else:
                await _survey_document(source, store, config, survey)
        on_event(Progress(stage="read", n_done=survey.n_documents, n_total=survey.n_documents))
    return survey


def estimate_cost(
    survey: DocumentSurvey,
    config: IngestConfig,
    *,
    model: str,
    price: Price | None,
    concurrency: int,
    measured: MeasuredUsage | None,
) -> Estimate:
    """Return what a model needs to read the unread chunks: by measured usage or, without it, by typical figures."""
    unread = survey.unread.values()
    n_chunks, n_tokens = len(unread), sum(chunk.n_tokens for chunk in unread)
    n_prompt_tokens = sum(config.extractor.n_tokens_sent(extractor_input(chunk)) for chunk in unread)
    calls = _CALLS.times(n_chunks)
    input_tokens, output_tokens = _PROMPTS_SENT.times(n_prompt_tokens), _OUTPUT_PER_TOKEN.times(n_tokens)
    seconds = output_tokens.times(_SECONDS_PER_TOKEN).times(1 / concurrency)
    basis = "typical figures; --sample measures some chunks first"
    if measured and (ratios := _usage_ratios(measured)):
        calls, input_tokens, output_tokens = (
            ratio.times(size) for ratio, size in zip(ratios, (n_chunks, n_tokens, n_tokens), strict=True)
        )
        basis = measured.basis
        if measured.seconds_a_call is not None:
            seconds = calls.times(measured.seconds_a_call / concurrency)
    return Estimate(
        n_documents=survey.n_documents,
        n_unchanged=survey.n_unchanged,
        n_other_extractor=survey.n_by_other_reader.total(),
        other_extractors=tuple(sorted(survey.n_by_other_reader)),
        extractor=config.extractor.description,
        n_unreadable=survey.n_unreadable,
        n_chunks=survey.n_chunks,
        n_cached=survey.n_chunks - n_chunks,
        model=model,
        basis=basis,
        calls=calls,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        seconds=seconds,
        cost=input_tokens.times(price.input).plus(output_tokens.times(price.output)) if price else None,
    )


def estimate_embedded_tokens(survey: DocumentSurvey) -> Range:
    """Return the tokens to embed once the unread chunks are read: the chunks, their entities and relations."""
    return _EMBEDDED_PER_TOKEN.times(sum(chunk.n_tokens for chunk in survey.unread.values()))


def sample_chunks(survey: DocumentSurvey, n: int) -> list[Chunk]:
    """Return n unread chunks with the lowest hashes: spread over the documents, and the same ones each time.

    Chunks of pictures that no model has described yet are left out.
    """
    described = [key for key, chunk in survey.unread.items() if NOT_DESCRIBED not in chunk.text]
    return [survey.unread[input_hash] for input_hash in sorted(described)[:n]]


async def _survey_document(source: SourceDocument, store: Store, config: IngestConfig, survey: DocumentSurvey) -> None:
    try:
        document = await read_document(source, config)
        replies = await store.find_replies([chunk.input_hash for chunk in document.chunks])
    except (OverBudget, Unavailable):
        raise
    except QuipuError:
        survey.n_unreadable += 1
        return
    survey.n_documents += 1
    survey.n_chunks += len(document.chunks)
    for chunk in document.chunks:
        if chunk.input_hash not in replies:
            survey.unread.setdefault(chunk.input_hash, chunk)


def _usage_ratios(measured: MeasuredUsage) -> tuple[Range, Range, Range] | None:
    """Return calls per chunk, and input and output tokens per token of text; None if nothing was measured."""
    usage = [
        (row.n_calls, row.tokens.input, row.tokens.output, *measured.size_by_subject[row.subject])
        for row in measured.rows
        if measured.size_by_subject.get(row.subject, (0, 0))[0]
    ]
    if not usage:
        return None
    calls, input_tokens, output_tokens, chunks, tokens = (
        list(map(float, column)) for column in zip(*usage, strict=True)
    )
    return _ratio(calls, chunks), _ratio(input_tokens, tokens), _ratio(output_tokens, tokens)


def _ratio(parts: Sequence[float], wholes: Sequence[float]) -> Range:
    """Return the ratio of the sums with twice its standard error over documents (Cochran 1977, section 6.4)."""
    n, total = len(parts), sum(wholes)
    likely = sum(parts) / total
    error = RELATIVE_ERROR_OF_ONE
    if n > 1:
        squares = sum((part - likely * whole) ** 2 for part, whole in zip(parts, wholes, strict=True))
        spread = (squares * n / (n - 1)) ** 0.5 / total
        error = max(MIN_RELATIVE_ERROR, 2 * spread / likely if likely else 0.0)
    return Range(low=likely * max(0.0, 1 - error), likely=likely, high=likely * (1 + error))
