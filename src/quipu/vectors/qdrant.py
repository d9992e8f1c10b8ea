"""Candidates from Qdrant: a collection for each vector space of an index, whose points are rows of the store."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict

import numpy as np
import numpy.typing as npt

from quipu.errors import Unavailable
from quipu.ports.store import VectorBlock, VectorSpace
from quipu.ports.vector_index import CandidateState

try:
    from qdrant_client import AsyncQdrantClient, models
    from qdrant_client.http.exceptions import ApiException
except ImportError as missing:
    raise Unavailable("Qdrant needs its client.", remedy="pip install 'quipu-rag[qdrant]'") from missing

BATCH = 1_000  # points in one request
TIMEOUT_S = 60


class QdrantCandidates:
    """Rows near a query by Qdrant's HNSW. `index` names the collections: the identity of the index.

    The state of each space is a point of one more collection. It is written last, so an update that is cut off is
    repeated.
    """

    name = "Qdrant"

    def __init__(self, client: AsyncQdrantClient, index: str) -> None:
        self._client = client
        self._index = index

    async def state(self, space: VectorSpace) -> CandidateState:
        with _converted():
            if not await self._client.collection_exists(self._states):
                return CandidateState()
            points = await self._client.retrieve(self._states, [_number(space)])
        return CandidateState(**points[0].payload) if points and points[0].payload else CandidateState()

    async def update(
        self,
        space: VectorSpace,
        added: VectorBlock,
        deleted: Sequence[int],
        state: CandidateState,
        after: CandidateState,
    ) -> None:
        collection = self._collection(space)
        with _converted():
            if len(added.rows):
                await self._make(collection, added.vectors.shape[1])
            for start in range(0, len(added.rows), BATCH):
                rows = added.rows[start : start + BATCH].tolist()
                vectors = added.vectors[start : start + BATCH].astype(np.float32).tolist()
                await self._client.upsert(collection, models.Batch(ids=rows, vectors=vectors), wait=True)
            for start in range(0, len(deleted), BATCH):
                rows = list(deleted[start : start + BATCH])
                await self._client.delete(collection, models.PointIdsList(points=rows), wait=True)
            await self._make(self._states, 1)
            point = models.PointStruct(id=_number(space), vector=[1.0], payload=asdict(state))
            await self._client.upsert(self._states, [point], wait=True)

    async def clear(self, space: VectorSpace) -> None:
        with _converted():
            if await self._client.collection_exists(self._states):
                selector = models.PointIdsList(points=[_number(space)])
                await self._client.delete(self._states, selector, wait=True)
            await self._client.delete_collection(self._collection(space))

    async def nearest_rows(self, space: VectorSpace, query: npt.NDArray[np.float32], n: int) -> list[int]:
        with _converted():
            response = await self._client.query_points(
                self._collection(space), query=query.tolist(), limit=n, with_payload=False
            )
        return [int(point.id) for point in response.points]

    async def close(self) -> None:
        await self._client.close()

    async def _make(self, collection: str, dimension: int) -> None:
        """Make a collection unless it exists. Vectors are unit vectors, so the dot product is the cosine."""
        if not await self._client.collection_exists(collection):
            parameters = models.VectorParams(
                size=dimension, distance=models.Distance.DOT, datatype=models.Datatype.FLOAT16, on_disk=True
            )
            await self._client.create_collection(collection, vectors_config=parameters)

    @property
    def _states(self) -> str:
        return f"quipu_{self._index}_state"

    def _collection(self, space: VectorSpace) -> str:
        return f"quipu_{self._index}_{space.value}"


def _number(space: VectorSpace) -> int:
    return list(VectorSpace).index(space)


@contextmanager
def _converted() -> Iterator[None]:
    """Convert errors of the client to Unavailable."""
    try:
        yield
    except (ApiException, OSError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise Unavailable(
            f"Qdrant: {reason}", remedy="Check qdrant_url and QUIPU_QDRANT_KEY, and that it runs."
        ) from error


def open_qdrant(url: str, key: str, index: str) -> QdrantCandidates:
    """Return the candidates of an index at a server; nothing is asked yet. `key` may be ""."""
    client = AsyncQdrantClient(url=url, api_key=key or None, timeout=TIMEOUT_S, check_compatibility=False)
    return QdrantCandidates(client, index)
