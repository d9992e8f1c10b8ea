"""Vector search: embed texts, and find what is nearest to them in the index."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from quipu.algo.similarity import min_max_scaled
from quipu.model.evidence import Hit, Scored, Seed
from quipu.model.query import Query
from quipu.ports.derivation_view import NodeKind
from quipu.ports.providers import Embedder
from quipu.ports.store import ReadView, VectorSpace
from quipu.ports.topology import Floats, Topology
from quipu.retrieve.strategy import Tools

Vector = npt.NDArray[np.float32]


async def embed(texts: Iterable[str], embedder: Embedder) -> dict[str, Vector]:
    """Return the query vector of each text, from one call of the embedder. Equal texts are embedded once."""
    distinct = list(dict.fromkeys(texts))
    return dict(zip(distinct, await embedder.embed_queries(distinct), strict=True))


async def find_nearest(
    space: VectorSpace, vector: Vector, *, query: Query, k: int, view: ReadView, tools: Tools
) -> tuple[Scored, ...]:
    """Return the k ids of `space` nearest to `vector`, best first, none below the query's `min_similarity`."""
    (nearest,) = await tools.vectors.nearest(view, space, vector[np.newaxis, :], k=k, min_score=query.min_similarity)
    return nearest


async def find_nearest_passages(
    query: Query, vector: Vector, view: ReadView, tools: Tools
) -> tuple[tuple[Hit, ...], Seed]:
    """Return the `chunk_top_k` chunks nearest to the question, whose vector is `vector`, and the search as a seed."""
    k = query.chunk_top_k
    nearest = await find_nearest(VectorSpace.CHUNK, vector, query=query, k=k, view=view, tools=tools)
    return hits_by_cosine(nearest), Seed(text=query.text, kind="vector", matches=nearest)


def hits_by_cosine(nearest: Iterable[Scored]) -> tuple[Hit, ...]:
    """Return ids scored by their cosine to the question as hits with that reason."""
    return tuple(
        Hit(id=scored.id, score=scored.score, reason=f"cosine {scored.score:.3f} to the question") for scored in nearest
    )


async def score_all_passages(vector: Vector, topology: Topology, view: ReadView, tools: Tools) -> Floats:
    """Return the similarity of every chunk to a question, [n_chunks], scaled: 0 for the farthest, 1 for the nearest.

    A chunk that has no vector, or that the filter excludes, scores 0.
    """
    rows, cosines = await tools.vectors.all_similarities(view, VectorSpace.CHUNK, vector)
    numbers, row_by_chunk = await view.chunk_vector_rows()
    positions = np.searchsorted(rows, row_by_chunk)
    is_visible = (
        rows.take(positions, mode="clip") == row_by_chunk if len(rows) else np.zeros(len(positions), dtype=bool)
    )
    if (allowed := await view.allowed_numbers(NodeKind.CHUNK)) is not None:
        is_visible &= np.isin(numbers, allowed)  # a row may be shared with chunks of other documents
    scores = np.zeros(topology.n_chunks)
    scores[numbers[is_visible]] = min_max_scaled(cosines[positions[is_visible]])
    return scores
