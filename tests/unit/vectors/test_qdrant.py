"""Tests of candidates from Qdrant, by its in-process mode: what it holds, and whole questions asked through it."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest

from quipu.errors import InvalidInput, Unavailable
from quipu.ports.store import VectorBlock, VectorSpace
from quipu.ports.vector_index import CandidateState
from quipu.settings import Settings
from quipu.wiring import open_engine
from tests.laws.world import document

pytest.importorskip("qdrant_client", reason="needs the client of Qdrant: pip install 'quipu-rag[qdrant]'")

from qdrant_client import AsyncQdrantClient

from quipu.vectors import qdrant
from quipu.vectors.qdrant import BATCH, QdrantCandidates, open_qdrant
from tests.unit.vectors.local.ledger import clustered

SPACE, OTHER = VectorSpace.CHUNK, VectorSpace.ENTITY


@pytest.fixture
async def candidates() -> AsyncIterator[QdrantCandidates]:
    candidates = QdrantCandidates(AsyncQdrantClient(":memory:"), "tests")
    yield candidates
    await candidates.close()


def _block(n: int, first: int = 1, seed: int = 0) -> VectorBlock:
    return VectorBlock(rows=np.arange(first, first + n), vectors=clustered(n, 16, seed).astype(np.float16))


async def test_it_finds_the_rows_it_was_given_until_they_are_deleted(candidates: QdrantCandidates) -> None:
    assert await candidates.state(SPACE) == CandidateState()
    block = _block(BATCH + 200)
    state = CandidateState(last_row=BATCH + 200, revision=3, n_rows=BATCH + 200, embedder="words 16")
    await candidates.update(SPACE, block, [], state, CandidateState())
    await candidates.update(SPACE, block, [], state, CandidateState())  # again, as after an update that was cut off
    assert await candidates.state(SPACE) == state
    assert await candidates.state(OTHER) == CandidateState()
    query = block.vectors[7].astype(np.float32)
    scores = block.vectors.astype(np.float32) @ query
    rows = await candidates.nearest_rows(SPACE, query, 5)
    assert set(rows) == set((np.argsort(-scores)[:5] + 1).tolist()) and rows[0] == 8
    empty = VectorBlock(rows=np.empty(0, np.int64), vectors=np.empty((0, 0), np.float16))
    await candidates.update(SPACE, empty, rows[:2], CandidateState(last_row=BATCH + 200, revision=4), state)
    assert not {*rows[:2]} & {*await candidates.nearest_rows(SPACE, query, 5)}


async def test_a_space_is_cleared_alone_and_may_get_another_dimension(candidates: QdrantCandidates) -> None:
    for space in (SPACE, OTHER):
        await candidates.update(space, _block(20), [], CandidateState(last_row=20, revision=1), CandidateState())
    await candidates.clear(SPACE)
    assert await candidates.state(SPACE) == CandidateState()
    assert (await candidates.state(OTHER)).last_row == 20
    wide = VectorBlock(rows=np.array([21]), vectors=np.ones((1, 32), np.float16))
    await candidates.update(SPACE, wide, [], CandidateState(last_row=21, revision=2), CandidateState())
    assert await candidates.nearest_rows(SPACE, np.ones(32, np.float32), 3) == [21]


async def test_a_server_that_is_not_there_is_named_with_a_remedy() -> None:
    candidates = open_qdrant("http://127.0.0.1:9", "", "tests")
    with pytest.raises(Unavailable, match=r"Qdrant: .* qdrant_url"):
        await candidates.state(SPACE)
    await candidates.close()


async def test_questions_through_qdrant_find_the_same_here_and_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = AsyncQdrantClient(":memory:")
    monkeypatch.setattr(qdrant, "AsyncQdrantClient", lambda **_: client)
    documents = [document(f"{number}.md", number) for number in range(40)]
    async with await open_engine(Settings(index=tmp_path / "kb")) as kb:
        await kb.add(*documents)
        expected = await kb.retrieve("Who met Kublai Khan?", strategy="mix")
    settings = Settings(
        index=tmp_path / "kb", vector_search="qdrant", qdrant_url="http://localhost:6333", exact_below=5
    )
    async with await open_engine(settings) as kb:
        before = await kb.retrieve("Who met Kublai Khan?", strategy="mix")
        await kb.refresh()
        evidence = await kb.retrieve("Who met Kublai Khan?", strategy="mix")
        words = await kb.retrieve("Who met Kublai Khan?", strategy="lexical")
        collections = {collection.name for collection in (await client.get_collections()).collections}
        assert any(name.startswith("quipu_") and name.endswith("_chunk") for name in collections)
    note = "nearest vectors are approximate: Qdrant named the candidates"
    assert (note in before.notes, note in evidence.notes, note in words.notes) == (False, True, False)
    assert (evidence.chunks, evidence.entities, evidence.relations) == (
        expected.chunks,
        expected.entities,
        expected.relations,
    )


async def test_without_an_address_the_remedy_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="qdrant_url"):
        await open_engine(Settings(index=tmp_path / "kb", vector_search="qdrant"))


async def test_without_the_client_the_remedy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("quipu.wiring.candidates", "quipu.vectors.qdrant"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "qdrant_client", None)
    settings = Settings(index=tmp_path / "kb", vector_search="qdrant", qdrant_url="http://localhost:6333")
    with pytest.raises(Unavailable, match=r"pip install 'quipu-rag\[qdrant\]'"):
        await open_engine(settings)
