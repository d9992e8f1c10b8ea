"""Estimate: the chunks that would be read are counted for real; what a model makes of one is measured, or typical."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from quipu.errors import OverBudget, QuipuError, Unavailable
from quipu.ingest.likeness import similarities
from quipu.ingest.reading import Recipe, Standing, cut, draft, extractor_input, standing
from quipu.ingest.sources import FoundSource
from quipu.model.document import SourceDocument
from quipu.model.event import EventSink, Progress
from quipu.model.graph import Chunk
from quipu.model.usage import Estimate, Price, Range, UsageRow
from quipu.ports.store import Store

AT_ONCE = 64  # documents read between two reports of progress
LEAST_ERROR = 0.05  # of a measured figure, however often it was measured
ERROR_OF_ONE = 0.3  # of a figure measured on a single document

# Of a chunk, without any measurement. Recorded replies of a large model to passages of 1,200 tokens have 230 to 1,830
# tokens, 610 on average; the second call, for what the first has missed, is made for some chunks only and says less.
_CALLS = Range(low=1.0, likely=1.5, high=2.0)
_OUTPUT = Range(low=0.25, likely=0.6, high=1.2)  # tokens for each of the chunk
_SENDINGS = Range(low=1.0, likely=1.7, high=2.6)  # of the prompt; the second call holds the first reply, too
# Chunks with the entities and relations they make, measured on texts of a few hundred chunks: 1.3 and 1.7 by rules,
# 1.9 to 3.7 by large models; short passages full of names have 4.3.
_EMBEDDED = Range(low=1.2, likely=2.0, high=4.5)
_SECONDS_A_TOKEN = Range(low=1 / 120, likely=1 / 60, high=1 / 25)  # of output, hosted models


@dataclass(slots=True)
class Survey:
    """What adding would do, without doing it: `unread` are the chunks nothing is known of, by the hash of input.

    Some of the unchanged were read otherwise than they would be now: `n_otherwise` of them by each reader, in words.
    """

    n_documents: int = 0
    n_unchanged: int = 0
    n_otherwise: Counter[str] = field(default_factory=Counter)
    n_unreadable: int = 0
    n_chunks: int = 0
    unread: dict[str, Chunk] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What was spent on some documents, and how many chunks and tokens of theirs were read; for a `basis` in words."""

    rows: Sequence[UsageRow]
    size_by_subject: Mapping[str, tuple[int, int]]  # chunks, tokens
    seconds_a_call: float | None
    basis: str


async def survey(
    sources: Iterable[FoundSource], store: Store, recipe: Recipe, on_event: EventSink, *, reread: bool = False
) -> Survey:
    """Read and cut documents as adding would, and count what no reply is kept of. Nothing is changed."""
    found = Survey()
    pending = iter(sources)
    while batch := await asyncio.to_thread(lambda: list(islice(pending, AT_ONCE))):
        documents = [source for source in batch if isinstance(source, SourceDocument)]
        async with store.view() as view:
            live = {document.id: document for document in await view.documents([each.id for each in documents])}
        for source in documents:
            before = live.get(source.id)
            stands = standing(before, source, recipe)
            if before and stands is Standing.READ_OTHERWISE and not reread:
                found.n_otherwise[before.reader] += 1
                found.n_unchanged += 1
                continue
            if stands is Standing.READ:
                found.n_unchanged += 1
                continue
            try:
                await _survey_one(source, store, recipe, found)
            except (OverBudget, Unavailable):
                raise
            except QuipuError:
                found.n_unreadable += 1
        on_event(Progress(stage="read", done=found.n_documents, total=found.n_documents))
    return found


def estimate(
    found: Survey, recipe: Recipe, *, model: str, price: Price | None, concurrency: int, measured: Measured | None
) -> Estimate:
    """Return what reading the unread chunks takes, by what was measured or, where nothing was, by typical figures."""
    n_chunks = len(found.unread)
    n_tokens = sum(each.n_tokens for each in found.unread.values())
    n_sent = sum(recipe.extractor.n_tokens_sent(extractor_input(each)) for each in found.unread.values())
    calls, sent, output = _CALLS.times(n_chunks), _SENDINGS.times(n_sent), _OUTPUT.times(n_tokens)
    seconds = output.times(_SECONDS_A_TOKEN).times(1 / concurrency)
    basis = "typical figures; --sample measures some chunks first"
    if measured and (ratios := _ratios(measured)):
        calls, sent, output = (
            ratio.times(size) for ratio, size in zip(ratios, (n_chunks, n_tokens, n_tokens), strict=True)
        )
        basis = measured.basis
        if measured.seconds_a_call is not None:
            seconds = calls.times(measured.seconds_a_call / concurrency)
    cost = None
    if price is not None:
        cost = sent.times(price.input).plus(output.times(price.output))
    return Estimate(
        n_documents=found.n_documents,
        n_unchanged=found.n_unchanged,
        n_read_otherwise=found.n_otherwise.total(),
        read_otherwise_by=tuple(sorted(found.n_otherwise)),
        extractor=recipe.extractor.description,
        n_unreadable=found.n_unreadable,
        n_chunks=found.n_chunks,
        n_known=found.n_chunks - n_chunks,
        model=model,
        basis=basis,
        calls=calls,
        input_tokens=sent,
        output_tokens=output,
        seconds=seconds,
        cost=cost,
    )


def estimate_vectors(found: Survey) -> Range:
    """Return the tokens of all that wants a vector once the unread chunks are read: they, and what they say."""
    return _EMBEDDED.times(sum(each.n_tokens for each in found.unread.values()))


def sample(found: Survey, n: int) -> list[Chunk]:
    """Return n of the unread chunks, chosen by their hashes: anywhere in the documents, and the same ones each time."""
    return [found.unread[input_hash] for input_hash in sorted(found.unread)[:n]]


async def _survey_one(source: SourceDocument, store: Store, recipe: Recipe, found: Survey) -> None:
    drafted = await asyncio.to_thread(draft, source, recipe)
    (likeness,) = await similarities([drafted.sentences], recipe.embedder)
    document = await asyncio.to_thread(cut, drafted, likeness, recipe)
    kept = await store.replies([chunk.input_hash for chunk in document.chunks])
    found.n_documents += 1
    found.n_chunks += len(document.chunks)
    for chunk in document.chunks:
        if chunk.input_hash not in kept:
            found.unread.setdefault(chunk.input_hash, chunk)


def _ratios(measured: Measured) -> tuple[Range, Range, Range] | None:
    """Return calls for a chunk, and input and output tokens for a token of text; None where nothing was measured."""
    spent = [
        (row.n_calls, row.tokens.input, row.tokens.output, *measured.size_by_subject[row.subject])
        for row in measured.rows
        if measured.size_by_subject.get(row.subject, (0, 0))[0]
    ]
    if not spent:
        return None
    calls, sent, output, chunks, tokens = (list(map(float, column)) for column in zip(*spent, strict=True))
    return _ratio(calls, chunks), _ratio(sent, tokens), _ratio(output, tokens)


def _ratio(parts: Sequence[float], wholes: Sequence[float]) -> Range:
    """Return a ratio of sums with twice its standard error, by documents (Cochran 1977, section 6.4)."""
    n, total = len(parts), sum(wholes)
    likely = sum(parts) / total
    error = ERROR_OF_ONE
    if n > 1:
        squares = sum((part - likely * whole) ** 2 for part, whole in zip(parts, wholes, strict=True))
        spread = (squares * n / (n - 1)) ** 0.5 / total
        error = max(LEAST_ERROR, 2 * spread / likely if likely else 0.0)
    return Range(low=likely * max(0.0, 1 - error), likely=likely, high=likely * (1 + error))
