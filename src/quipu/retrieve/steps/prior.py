"""Prior: how near every passage is to the question, as a walk starts again at passages too."""

import numpy as np

from quipu.algo.ranking import min_max_scaled
from quipu.ports.store import ReadView, VectorSpace
from quipu.ports.topology import Floats, Topology
from quipu.retrieve.steps.search import Vector
from quipu.retrieve.strategy import Tools


async def passage_prior(vector: Vector, topology: Topology, view: ReadView, tools: Tools) -> Floats:
    """Return the nearness of each chunk to a question, [n_chunks]: the cosine, 0 for the farthest, 1 for the nearest.

    0 where a chunk has no vector, or may not be seen.
    """
    rows, cosines = await tools.vectors.all_similarities(view, VectorSpace.CHUNK, vector)
    numbers, row_of_each = await view.chunk_vector_rows()
    places = np.searchsorted(rows, row_of_each)
    is_seen = rows.take(places, mode="clip") == row_of_each if len(rows) else np.zeros(len(places), dtype=bool)
    if (allowed := await view.allowed_chunks()) is not None:
        is_seen &= np.isin(numbers, allowed)  # a row may stand for chunks of other documents as well
    prior = np.zeros(topology.n_chunks)
    prior[numbers[is_seen]] = min_max_scaled(cosines[places[is_seen]])
    return prior
