"""Vectors: every text that wants one gets one, in batches; equal texts share it."""

import numpy as np

from quipu.errors import Unavailable
from quipu.model.delta import Delta, VectorRow
from quipu.model.event import Progress
from quipu.ports.embedder import Embedder
from quipu.ports.sink import Sink
from quipu.ports.store import Store

BATCH = 1_024


async def embed_stale(store: Store, embedder: Embedder, on_event: Sink) -> int:
    """Compute the missing vectors of this embedder's model and commit them batch by batch; return how many."""
    done = 0
    while texts := await store.stale_texts(embedder.identity, BATCH):
        vectors = await embedder.embed(list(texts.values()))
        if vectors.shape != (len(texts), embedder.dimension):
            raise Unavailable(
                f"The embedder {embedder.identity} returned vectors of shape {vectors.shape} for {len(texts)} texts "
                f"of dimension {embedder.dimension}.",
                remedy="Check the model behind it.",
            )
        rows = [
            VectorRow(model=embedder.identity, text_hash=text_hash, data=vector.astype(np.float16))
            for text_hash, vector in zip(texts, vectors, strict=True)
        ]
        await store.commit(Delta(vectors=rows))
        done += len(rows)
        on_event(Progress(stage="embed", done=done, total=done if len(texts) < BATCH else done + 1))
    return done
