"""Embedding: every stored text that needs a vector gets one, in batches; equal texts share it."""

from collections.abc import Callable, Mapping

import numpy as np

from quipu.errors import Unavailable
from quipu.model.delta import Delta, VectorRow
from quipu.model.event import EventSink, Progress
from quipu.ports.providers import Embedder
from quipu.ports.store import Store

TEXTS_PER_COMMIT = 1_024
TEXTS_PER_CALL = 128  # also the step of progress events


async def embed_stale(
    store: Store,
    embedder: Embedder,
    on_event: EventSink,
    on_embedded: Callable[[int], None] = lambda _: None,
    *,
    texts_per_call: int = TEXTS_PER_CALL,
) -> int:
    """Compute the missing vectors of this embedder and commit them batch by batch; return how many.

    If the embedder fails or the task is cancelled, the vectors computed by then are committed first. `on_embedded`
    receives the number of vectors in each commit. Raises Unavailable if a vector has the wrong shape.
    """
    n_done = 0
    while text_by_hash := await store.texts_without_vector(embedder.identity, TEXTS_PER_COMMIT):
        # Texts of similar length go together, because models pad a batch to its longest text.
        ordered = sorted(text_by_hash.items(), key=lambda pair: (len(pair[1]), pair[0]))
        is_full = len(ordered) == TEXTS_PER_COMMIT  # then this may not be the last batch
        rows: list[VectorRow] = []
        try:
            for start in range(0, len(ordered), texts_per_call):
                rows += await _embed(dict(ordered[start : start + texts_per_call]), embedder)
                on_event(Progress(stage="embed", n_done=n_done + len(rows), n_total=n_done + len(ordered) + is_full))
        finally:
            if rows:
                await store.commit(Delta(vectors=sorted(rows, key=lambda row: row.text_hash)))
                on_embedded(len(rows))
        n_done += len(rows)
    return n_done


async def _embed(text_by_hash: Mapping[str, str], embedder: Embedder) -> list[VectorRow]:
    vectors = await embedder.embed(list(text_by_hash.values()))
    if vectors.shape != (len(text_by_hash), embedder.dimension):
        raise Unavailable(
            f"The embedder {embedder.identity} returned vectors of shape {vectors.shape} for {len(text_by_hash)} texts "
            f"of dimension {embedder.dimension}.",
            remedy="Check the model behind it.",
        )
    return [
        VectorRow(model=embedder.identity, text_hash=text_hash, vector=vector.astype(np.float16))
        for text_hash, vector in zip(text_by_hash, vectors, strict=True)
    ]
