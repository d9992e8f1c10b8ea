"""Sentences: the spans of the sentences of each chunk, with a vector for each sentence.

Source: L. Zhuang et al., "LinearRAG" (2025), section 3: the sentence nodes of the Tri-Graph.
"""

from collections.abc import AsyncIterator

from quipu.derive.derivation import (
    Derivation,
    DerivationContext,
    embed_stale,
    read_counts,
    read_identity,
    read_row_state,
    record_derivation,
)
from quipu.model.delta import ChunkSentences, Delta
from quipu.model.derivation import SENTENCES, DerivationResult, DerivationState
from quipu.model.event import Progress
from quipu.model.graph import Chunk
from quipu.ports.store import ReadView, Store
from quipu.text.sentences import sentence_spans

CHUNKS_PER_COMMIT = 512  # chunks split between two commits
_IDENTITY = "sentences/1"


async def read_state(view: ReadView, context: DerivationContext) -> DerivationState:
    """Return how many sentences there are, and how many chunks are not split yet."""
    vector_bytes = 2 * (await view.counts("embedder")).vector_dimension
    return await read_row_state(view, SENTENCES, _IDENTITY, noun="sentence", bytes_per_item=vector_bytes)


async def refresh(context: DerivationContext, rebuild: bool) -> DerivationResult:
    """Split the chunks that are not split yet, or all, and embed the new sentences; equal sentences share a vector.

    The commit that removes a chunk removes its sentences. If the stored sentences come from older rules, the old
    identity stays recorded until all chunks have been split again; an interrupted run therefore starts over.
    """
    old_identity = await read_identity(context.store, SENTENCES)
    is_rebuild = rebuild or old_identity != _IDENTITY
    if not old_identity:
        await record_derivation(context.store, SENTENCES, _IDENTITY)
    before = await read_counts(context.store, SENTENCES)
    n_done = 0
    async for chunks in _all_chunks(context.store) if is_rebuild else _unsplit_chunks(context.store):
        sentences = [ChunkSentences(chunk=chunk.id, spans=sentence_spans(chunk.text)) for chunk in chunks]
        await context.store.commit(Delta(sentences=sentences))
        n_done += len(chunks)
        context.on_event(Progress(stage=SENTENCES, n_done=n_done, n_total=max(before.n_stale, n_done)))
    if old_identity and old_identity != _IDENTITY:
        await record_derivation(context.store, SENTENCES, _IDENTITY)
    await embed_stale(context.store, context.embedder, context.on_event, context.on_embedded)
    n_sentences = (await read_counts(context.store, SENTENCES)).n_items
    n_kept = 0 if is_rebuild else min(before.n_items, n_sentences)
    return DerivationResult(name=SENTENCES, n_built=n_sentences - n_kept, n_unchanged=n_kept)


async def _unsplit_chunks(store: Store) -> AsyncIterator[list[Chunk]]:
    while True:
        async with store.view() as view:
            chunks = await view.chunks(await view.pending(SENTENCES, CHUNKS_PER_COMMIT))
        if not chunks:
            return
        yield chunks


async def _all_chunks(store: Store) -> AsyncIterator[list[Chunk]]:
    async with store.view() as view:
        documents = await view.documents()
    chunks: list[Chunk] = []
    for document in documents:
        async with store.view() as view:
            chunks += await view.chunks(document_id=document.id)
        if len(chunks) >= CHUNKS_PER_COMMIT:
            yield chunks
            chunks = []
    if chunks:
        yield chunks


DERIVATION = Derivation(
    name=SENTENCES,
    summary="sentences of chunks with a vector each, for LinearRAG",
    read_state=read_state,
    refresh=refresh,
)
