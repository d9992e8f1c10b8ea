"""Search: texts to vectors, vectors to the nearest things of one kind."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from quipu.model.evidence import Hit, Scored, Seed
from quipu.model.query import Query
from quipu.ports.providers import Embedder
from quipu.ports.store import ReadView, VectorSpace
from quipu.retrieve.strategy import Tools

Vector = npt.NDArray[np.float32]


async def embed(texts: Iterable[str], embedder: Embedder) -> dict[str, Vector]:
    """Return the vector to look for of each text, from one call of the embedder; equal texts are embedded once."""
    distinct = list(dict.fromkeys(texts))
    return dict(zip(distinct, await embedder.embed_queries(distinct), strict=True))


async def nearest(
    space: VectorSpace, vector: Vector, *, query: Query, k: int, view: ReadView, tools: Tools
) -> tuple[Scored, ...]:
    """Return the k ids of `space` nearest to `vector`, best first, none below the query's `min_similarity`."""
    (found,) = await tools.vectors.nearest(view, space, vector[np.newaxis, :], k=k, min_score=query.min_similarity)
    return found


async def nearest_passages(query: Query, vector: Vector, view: ReadView, tools: Tools) -> tuple[tuple[Hit, ...], Seed]:
    """Return the `chunk_top_k` chunks nearest to the question, whose vector is `vector`, and the search as a seed."""
    found = await nearest(VectorSpace.CHUNK, vector, query=query, k=query.chunk_top_k, view=view, tools=tools)
    return near_hits(found), Seed(text=query.text, kind="vector", matches=found)


def near_hits(found: Iterable[Scored]) -> tuple[Hit, ...]:
    """Return what was found by its nearness to the question as evidence."""
    return tuple(Hit(id=each.id, score=each.score, reason=f"cosine {each.score:.3f} to the question") for each in found)
