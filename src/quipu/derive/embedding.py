"""Vectors: every text that wants one gets one, in batches; equal texts share it."""

from collections.abc import Callable, Mapping

import numpy as np

from quipu.errors import Unavailable
from quipu.model.delta import Delta, VectorRow
from quipu.model.event import EventSink, Progress
from quipu.ports.providers import Embedder
from quipu.ports.store import Store

BATCH = 1_024  # texts committed together
AT_ONCE = 128  # texts embedded between two reports of progress


async def embed_stale(
    store: Store, embedder: Embedder, on_event: EventSink, on_kept: Callable[[int], None] = lambda _: None
) -> int:
    """Compute the missing vectors of this embedder's model and commit them batch by batch; return how many.

    Where the embedder fails, or the work is interrupted, what it has computed by then is committed first; `on_kept` is
    told of every commit.
    """
    done = 0
    while texts := await store.texts_without_vector(embedder.identity, BATCH):
        ordered = sorted(texts.items(), key=lambda item: (len(item[1]), item[0]))  # models batch texts of one length
        total = done + len(texts) + (len(texts) == BATCH)  # a full batch may not be the last
        rows: list[VectorRow] = []
        try:
            for start in range(0, len(ordered), AT_ONCE):
                rows += await _embed(dict(ordered[start : start + AT_ONCE]), embedder)
                on_event(Progress(stage="embed", n_done=done + len(rows), n_total=total))
        finally:
            if rows:
                await store.commit(Delta(vectors=sorted(rows, key=lambda row: row.text_hash)))
                on_kept(len(rows))
        done += len(rows)
    return done


async def _embed(texts: Mapping[str, str], embedder: Embedder) -> list[VectorRow]:
    """Return the vectors of texts by hash. Raises Unavailable where they are not of the shape the embedder says."""
    vectors = await embedder.embed(list(texts.values()))
    if vectors.shape != (len(texts), embedder.dimension):
        raise Unavailable(
            f"The embedder {embedder.identity} returned vectors of shape {vectors.shape} for {len(texts)} texts "
            f"of dimension {embedder.dimension}.",
            remedy="Check the model behind it.",
        )
    return [
        VectorRow(model=embedder.identity, text_hash=text_hash, data=vector.astype(np.float16))
        for text_hash, vector in zip(texts, vectors, strict=True)
    ]
