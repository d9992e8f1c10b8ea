"""Answering: how a question becomes evidence and then an answer, from top to bottom."""

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TypeVar

from quipu.answer import (
    AnswerInput,
    compose_answer,
    documents_behind,
    is_small_talk,
    pack_evidence,
    read_answer_input,
    reply_to_small_talk,
)
from quipu.answer.quoted_answer import EXTRACTIVE
from quipu.engine.components import CallCounter, Components
from quipu.engine.reopenable_view import (
    QuestionModel,
    QuestionReplies,
    ReopenableView,
    RevisionMoved,
    ViewReleasingLayer,
)
from quipu.engine.status import DerivationStates, with_remedy
from quipu.errors import QuipuError
from quipu.model.answer import Answer, AnswerPiece, Citation, PieceSink
from quipu.model.chat import Role
from quipu.model.evidence import Evidence, Explanation, Hit, Timing
from quipu.model.graph import Chunk, RelationMention, chunk_text
from quipu.model.ids import relation_id
from quipu.model.query import Filter, Query
from quipu.model.results import RetrievedPassage
from quipu.ports.providers import Embedder, Reranker, TextSink
from quipu.ports.store import ReadView, Store
from quipu.ports.vector_index import ApproximateVectorIndex
from quipu.retrieve import strategy_named
from quipu.retrieve.explanation import ChunkChoice, explain
from quipu.retrieve.question import apply_preset, preset_notes, understand_question
from quipu.retrieve.strategy import Tools
from quipu.text.formatting import format_count
from quipu.wrap.embedder import Embed, EmbedCall, EmbedderLayer, Vectors, WrappedEmbedder
from quipu.wrap.meter import annotate, span

RERANK_FACTOR = 3  # with a reranker, so many times more passages are searched than are kept
MAX_FIELDS_NAMED = 20
_STRATEGY_ROLES = frozenset({Role.KEYWORDS, Role.ANSWER})  # a strategy may ask models only where both are set

_log = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOutcome:
    """The evidence for a question and the open view it was read from; `stale` notes name stale derivations."""

    query: Query
    evidence: Evidence
    view: ReadView
    counter: CallCounter
    timings: tuple[Timing, ...]
    stale: tuple[str, ...]


def ignore_piece(piece: AnswerPiece) -> None:
    """Discard a piece: the default PieceSink."""


async def answer_question(
    query: Query, components: Components, states: DerivationStates, on_piece: PieceSink | None = None
) -> Answer:
    """Return the answer to a question with its citations, costs and trace; `on_piece` gets stages and text.

    Raises Stale where the strategy needs a derivation that is missing. No view is open while the answer is written.
    A greeting gets a short reply, and nothing is retrieved.
    """
    start = time.perf_counter()
    with span("quipu.ask", strategy=query.strategy):
        answer = await _answer(query, components, states, on_piece or ignore_piece)
        n_passages, ms = len(answer.trace.evidence.chunks), (time.perf_counter() - start) * 1000
        annotate(n_passages=n_passages, n_citations=len(answer.citations), is_supported=answer.is_supported)
    _log.info(
        "answered with %s: %d passages, %d citations, %d model calls, %.0f ms",
        *(query.strategy, n_passages, len(answer.citations), answer.trace.n_calls, ms),
    )
    return answer


async def _answer(query: Query, components: Components, states: DerivationStates, on_piece: PieceSink) -> Answer:
    on_text: TextSink = lambda text: on_piece(AnswerPiece(text=text))  # noqa: E731
    if is_small_talk(query.text):
        return await reply_to_small_talk(query, components.store, on_text)
    async with search(query, components, states, on_piece) as result:
        answer_input = await read_answer_input(
            result.query, result.evidence, result.view, components.context_tokenizer, timings=result.timings
        )
        documents = await documents_behind(answer_input, result.view) if query.names_documents else ()
        dated = await _dated_pairs(answer_input, result.view)
    answer_input = replace(answer_input, stale=(*map(with_remedy, answer_input.stale), *result.stale))
    llm = result.counter.llm(Role.ANSWER) if query.with_answer else None
    on_piece(AnswerPiece(stage="generate", n_passages=len(answer_input.packed.passages), documents=documents))
    with span("quipu.generate"):
        answer = await compose_answer(result.query, answer_input, llm=llm, on_text=on_text)
    if llm and answer.generator == EXTRACTIVE and answer.is_supported:
        _log.warning("the answer quotes passages, because the model %s wrote none", llm.identity)
    notes = (*answer.trace.notes, *dated.notes(answer.citations))
    trace = replace(answer.trace, n_calls=result.counter.n_calls, notes=notes)
    return replace(answer, usage=result.counter.meter.rows(), trace=trace)


async def explain_evidence(
    query: Query, components: Components, states: DerivationStates, choice: ChunkChoice
) -> Explanation:
    """Return why chunks are in the evidence for a question, and what the token budgets keep from an answer."""
    async with search(query, components, states) as result:
        explanation = await explain(query, result.evidence.with_notes(result.stale), result.view, choice)
        packed = await pack_evidence(result.query, result.evidence, result.view, components.context_tokenizer)
    return replace(explanation, dropped=packed.dropped)


@dataclass(frozen=True, slots=True)
class _DatedPairs:
    """The pairs of entities that passages of differently dated documents state: their names, by chunk.

    `dates` are those that the documents state, by id: since when what they say holds.
    """

    dates: Mapping[str, str]
    names_by_chunk: Mapping[str, Collection[str]]

    def notes(self, citations: Iterable[Citation]) -> tuple[str, ...]:
        """Return a note for each pair that cited passages of different dates state."""
        cited: dict[str, dict[int, str]] = defaultdict(dict)
        for citation in citations:
            for names in self.names_by_chunk.get(citation.chunk_id, ()):
                cited[names][citation.number] = self.dates[citation.document_id]
        return tuple(
            f"sources of different dates state {names}: "
            + ", ".join(f"[{number}] since {date}" for number, date in sorted(dates.items()))
            for names, dates in sorted(cited.items())
            if len(set(dates.values())) > 1
        )


async def _dated_pairs(answer_input: AnswerInput, view: ReadView) -> _DatedPairs:
    """Return the pairs that the passages state, if their documents state different dates; else nothing is read."""
    dates = answer_input.date_by_document
    dated = [passage.chunk for passage in answer_input.packed.passages if passage.chunk.document_id in dates]
    if len({dates[chunk.document_id] for chunk in dated}) < 2:
        return _DatedPairs({}, {})
    mentions = await view.mentions(RelationMention, [chunk.id for chunk in dated])
    ids_by_chunk = {
        chunk: {relation_id(mention.source, mention.target) for mention in stated} for chunk, stated in mentions.items()
    }
    relations = await view.relations(sorted(set().union(*ids_by_chunk.values())))
    names = {relation.id: f"{relation.source_name} and {relation.target_name}" for relation in relations}
    return _DatedPairs(dates, {chunk: {names[i] for i in ids & names.keys()} for chunk, ids in ids_by_chunk.items()})


async def find_evidence(query: Query, components: Components, states: DerivationStates) -> Evidence:
    """Return the evidence for a question. Raises Stale where the strategy needs a derivation that is missing."""
    async with search(query, components, states) as result:
        return result.evidence.with_notes(result.stale)


async def find_passages(query: Query, components: Components, states: DerivationStates) -> list[RetrievedPassage]:
    """Return the passages of the evidence for a question, best first, with their documents; raises as `find_evidence`.

    A strategy that ranks no passages has none.
    """
    async with search(query, components, states) as result:
        hits = result.evidence.chunks
        chunk_by_id = {chunk.id: chunk for chunk in await result.view.chunks([hit.id for hit in hits])}
        document_ids = sorted({chunk.document_id for chunk in chunk_by_id.values()})
        document_by_id = {document.id: document for document in await result.view.documents(document_ids)}
    return [
        RetrievedPassage(chunk=chunk, document=document_by_id[chunk.document_id], score=hit.score, reason=hit.reason)
        for hit in hits
        if (chunk := chunk_by_id.get(hit.id))
    ]


@asynccontextmanager
async def search(
    query: Query, components: Components, states: DerivationStates, on_piece: PieceSink = ignore_piece
) -> AsyncIterator[SearchOutcome]:
    """Search the index, or what it was at the `as_of` of the query; see `_search`."""
    async with components.at(query.filter.as_of) as (then, note):
        then_states = states if then is components else DerivationStates(then)
        async with _search(query, then, then_states, on_piece) as outcome:
            yield replace(outcome, evidence=outcome.evidence.with_notes((note,))) if note else outcome


@asynccontextmanager
async def _search(
    query: Query, components: Components, states: DerivationStates, on_piece: PieceSink
) -> AsyncIterator[SearchOutcome]:
    """Understand the question, open a view, run the strategy, rerank; the view stays open within the context.

    No view is open while a model, a remote embedder or a reranker is asked. Raises Stale where the strategy needs a
    derivation that is missing, and Overloaded where too many questions wait.
    """
    components.retrieval_turns.check_room()  # before a model is paid for understanding the question
    query = apply_preset(query)
    stale = await states.check(strategy_named(query.strategy))
    counter = CallCounter(components.models, components.models.meter.child(query.text))

    start = time.perf_counter()
    on_piece(AnswerPiece(stage="understand"))
    question = await understand_question(query, counter.llm(Role.KEYWORDS))
    timings = [_timing("understand", start)] if question.notes else []

    on_piece(AnswerPiece(stage="retrieve"))
    reranker = components.models.reranker(counter.meter) if query.rerank else None
    n_passages = query.chunk_top_k * (RERANK_FACTOR if reranker else 1)
    async with ReopenableView(components.store, query.filter, components.retrieval_turns) as view:
        start = time.perf_counter()  # without the wait for other questions
        searched = replace(question.query, chunk_top_k=n_passages).as_searched()
        with span("quipu.retrieve", strategy=query.strategy):
            evidence = await _run_strategy(searched, view, components, counter)
            annotate(n_passages=len(evidence.chunks), n_entities=len(evidence.entities))
        evidence = evidence.with_notes((*preset_notes(query), *question.notes))
        if reranker:
            chunks = await view.reads.chunks([hit.id for hit in evidence.chunks])
            on_piece(AnswerPiece(stage="rerank"))
            async with view.released():
                evidence = await rerank(question.query, evidence, chunks, reranker)
        if query.filter.where and evidence.searches_index and not evidence.chunks:
            unknown = await _unknown_fields(query.filter, components.store)
            evidence = replace(evidence, omissions=(*evidence.omissions, *unknown))
        timings.append(_timing("retrieve", start))
        yield SearchOutcome(
            query=question.query,
            evidence=evidence,
            view=view.reads,
            counter=counter,
            timings=tuple(timings),
            stale=stale,
        )


async def _unknown_fields(allowed: Filter, store: Store) -> tuple[str, ...]:
    """Return a message for each metadata field of a filter that no document has, with the fields that exist."""
    async with store.view() as view:
        known = sorted({name for document in await view.documents() for name in document.metadata})
    fields = dict.fromkeys(condition.field for condition in allowed.where if condition.field not in known)
    listing = f"there are: {', '.join(known[:MAX_FIELDS_NAMED])}" if known else "no document has any"
    return tuple(f"No document has the metadata field {field!r}; {listing}." for field in fields)


async def _run_strategy(query: Query, view: ReopenableView, components: Components, counter: CallCounter) -> Evidence:
    """Return the evidence of the strategy; it is run again only where the index changed while a service was asked."""
    strategy = strategy_named(query.strategy)
    replies = QuestionReplies(counter.llm)
    has_model = components.models.chains.keys() >= _STRATEGY_ROLES
    embedder = _question_embedder(view, components, counter)
    while True:
        vectors = components.vectors
        if isinstance(vectors, ApproximateVectorIndex):
            vectors = vectors.for_question()
        tools = Tools(
            vectors=vectors,
            embedder=embedder,
            topology=components.topology,
            tokenizer=components.context_tokenizer,
            model=QuestionModel(replies, view) if has_model else None,
        )
        try:
            evidence = await strategy.retrieve(query, view.reads, tools)
        except RevisionMoved:
            continue
        searched = vectors.notes() if isinstance(vectors, ApproximateVectorIndex) else ()
        return evidence.with_notes((*replies.notes(), *searched))


def _question_embedder(view: ReopenableView, components: Components, counter: CallCounter) -> Embedder:
    metered = components.models.embedder(components.embedder, counter.meter)
    layers: list[EmbedderLayer] = [MatchingVectors(metered, components.store)]
    is_remote = components.models.embedder_chain is not None
    return WrappedEmbedder(metered, [ViewReleasingLayer(view), *layers] if is_remote else layers)


class MatchingVectors:
    """A layer that raises Mismatch before the embedder is asked, if the vectors of the index come from another
    embedder.

    Searches by words alone never embed anything, so they go on working until the index is embedded again.
    """

    def __init__(self, embedder: Embedder, store: Store) -> None:
        self._embedder = embedder
        self._store = store

    async def __call__(self, call: EmbedCall, below: Embed) -> Vectors:
        """Return what the layer below returns."""
        await self._store.set_embedder(self._embedder.identity, self._embedder.dimension)
        return await below(call)


async def rerank(query: Query, evidence: Evidence, chunks: Sequence[Chunk], reranker: Reranker) -> Evidence:
    """Return the evidence with the `chunk_top_k` passages that the reranker scores highest; ties keep their order.

    `chunks` are its passages. Those that score less than `min_rerank_score` are left out, and a note says how many. If
    the reranker fails, the passages keep their order and a note says why.
    """
    text_by_id = {chunk.id: chunk_text(chunk.title, chunk.header, chunk.text) for chunk in chunks}
    hits = [hit for hit in evidence.chunks if hit.id in text_by_id]
    if not hits:
        return evidence
    try:
        scores = await reranker.score(query.search_text or query.text, [text_by_id[hit.id] for hit in hits])
    except QuipuError as error:
        _log.warning("passages are not reranked: %s", type(error).__name__)
        note = f"not reranked: {error.message}"
        return replace(evidence, chunks=tuple(hits[: query.chunk_top_k]), notes=(*evidence.notes, note))
    order = sorted(range(len(hits)), key=lambda place: (-scores[place], place))
    if query.min_rerank_score:
        order = [place for place in order if scores[place] >= query.min_rerank_score]
    reranked = [
        Hit(
            id=hits[n].id,
            score=scores[n],
            reason=f"{hits[n].reason}; {reranker.identity} scores it {scores[n]:.3f}, it was rank {n + 1}",
        )
        for n in order
    ]
    notes = evidence.notes
    if n_left_out := len(hits) - len(order):
        passages = format_count(n_left_out, "passage")
        notes += (f"left out: {passages} that {reranker.identity} scores below {query.min_rerank_score:g}",)
    return replace(evidence, chunks=tuple(reranked[: query.chunk_top_k]), notes=notes)


def _timing(stage: str, start: float) -> Timing:
    return Timing(stage=stage, ms=(time.perf_counter() - start) * 1000)


async def stream_answer(answer: Callable[[PieceSink], Awaitable[Answer]]) -> AsyncGenerator[AnswerPiece, None]:
    """Yield the pieces that `answer` writes to the sink it is given, then one piece with the whole answer.

    Raises what `answer` raises. Closing the generator cancels it and waits until it has ended.
    """
    pieces: asyncio.Queue[AnswerPiece | None] = asyncio.Queue()

    async def run() -> Answer:
        try:
            return await answer(pieces.put_nowait)
        finally:
            pieces.put_nowait(None)

    task = asyncio.create_task(run())
    try:
        while (piece := await pieces.get()) is not None:
            yield piece
        yield AnswerPiece(answer=await task)
    finally:
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # marks it as retrieved: it was raised above, or nobody is there to receive it
