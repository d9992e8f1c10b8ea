"""Sentences: where the sentences of each chunk begin and end, with a vector each, by which LinearRAG goes on.

Source: L. Zhuang et al., "LinearRAG" (2025), section 3: the sentence nodes of the Tri-Graph.
"""

from collections.abc import AsyncIterator

from quipu.derive.derivation import Derivation, DerivationContext
from quipu.derive.embedding import embed_stale
from quipu.derive.keeping import held, keep, kept_by, state_of
from quipu.model.delta import ChunkSentences, Delta
from quipu.model.derivation import SENTENCES, DerivationResult, DerivationState
from quipu.model.event import Progress
from quipu.model.graph import Chunk
from quipu.ports.store import ReadView, Store, VectorSpace
from quipu.text.sentences import sentence_spans

AT_ONCE = 512  # chunks divided between two commits
_IDENTITY = "sentences/1"


async def read_state(view: ReadView, context: DerivationContext) -> DerivationState:
    """Return how many sentences there are, and how many chunks are not divided yet."""
    n_bytes = 2 * await view.vector_dimension(VectorSpace.SENTENCE)
    return await state_of(view, SENTENCES, _IDENTITY, what="sentence", n_bytes_each=n_bytes)


async def refresh(context: DerivationContext, rebuild: bool) -> DerivationResult:
    """Divide the chunks that are not divided yet, or all, and embed what has no vector; equal sentences share one.

    Those of chunks that go are dropped in the commit that drops the chunk. Where chunks were divided by other rules,
    these are told of until all have been divided anew: cut short, that begins again.
    """
    rules = await kept_by(context.store, SENTENCES)
    is_anew = rebuild or rules != _IDENTITY
    if not rules:
        await keep(context.store, SENTENCES, _IDENTITY)
    before = await held(context.store, SENTENCES)
    n_done = 0
    async for chunks in _all_chunks(context.store) if is_anew else _undivided_chunks(context.store):
        divided = [ChunkSentences(chunk=chunk.id, spans=sentence_spans(chunk.text)) for chunk in chunks]
        await context.store.commit(Delta(sentences=divided))
        n_done += len(divided)
        context.on_event(Progress(stage=SENTENCES, n_done=n_done, n_total=max(before.n_stale, n_done)))
    if rules and rules != _IDENTITY:
        await keep(context.store, SENTENCES, _IDENTITY)
    await embed_stale(context.store, context.embedder, context.on_event, context.on_embedded)
    n_items = (await held(context.store, SENTENCES)).n_items
    n_kept = 0 if is_anew else min(before.n_items, n_items)
    return DerivationResult(name=SENTENCES, n_built=n_items - n_kept, n_unchanged=n_kept)


async def _undivided_chunks(store: Store) -> AsyncIterator[list[Chunk]]:
    while True:
        async with store.view() as view:
            chunks = await view.chunks(await view.pending(SENTENCES, AT_ONCE))
        if not chunks:
            return
        yield chunks


async def _all_chunks(store: Store) -> AsyncIterator[list[Chunk]]:
    async with store.view() as view:
        documents = await view.documents()
    chunks: list[Chunk] = []
    for document in documents:
        async with store.view() as view:
            chunks += await view.document_chunks(document.id)
        if len(chunks) >= AT_ONCE:
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
