"""Tests of candidates from pgvector, where the server of the tests has it: what it holds, and whole questions."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import uuid4

import numpy as np
import psycopg
import pytest

from quipu.errors import InvalidInput, Unavailable
from quipu.model.index_address import parse_database_address
from quipu.ports.store import VectorBlock, VectorSpace
from quipu.ports.vector_index import CandidateState
from quipu.settings import Settings
from quipu.stores.postgres.backend import PostgresBackend
from quipu.stores.postgres.pgvector import MAX_DIMENSION, PgVectorCandidates
from quipu.testing import postgres_server
from quipu.testing.postgres_server import PostgresServer
from quipu.wiring import open_engine
from tests.laws.world import document
from tests.unit.vectors.local.ledger import clustered

SPACE, OTHER = VectorSpace.CHUNK, VectorSpace.ENTITY


@pytest.fixture(scope="module")
def vector_server() -> Iterator[PostgresServer]:
    """A server whose database has pgvector; without one, the tests are skipped."""
    serving = postgres_server.serving("vector")
    try:
        server = serving.__enter__()
    except Unavailable as error:
        pytest.skip(f"needs pgvector: {error}")
    try:
        with psycopg.connect(server.uri(), autocommit=True) as connection:
            connection.execute("CREATE EXTENSION vector")
        yield server
    finally:
        serving.__exit__(None, None, None)


@pytest.fixture
def address(vector_server: PostgresServer) -> str:
    """A workspace of its own."""
    return vector_server.address(f"vectors-{uuid4().hex[:8]}")


@pytest.fixture
async def candidates(address: str, tmp_path: Path) -> AsyncIterator[PgVectorCandidates]:
    """Candidates of an empty index."""
    async with await open_engine(Settings(index=address, cache=tmp_path)):
        pass
    candidates = PgVectorCandidates(PostgresBackend(parse_database_address(address), busy_timeout_s=5))
    yield candidates
    await candidates.close()


def _block(n: int, first: int = 1, dimension: int = 16) -> VectorBlock:
    return VectorBlock(rows=np.arange(first, first + n), vectors=clustered(n, dimension).astype(np.float16))


async def test_it_finds_the_rows_it_was_given_until_they_are_deleted(candidates: PgVectorCandidates) -> None:
    await candidates.check()
    assert await candidates.state(SPACE) == CandidateState()
    block, state = _block(700), CandidateState(last_row=700, revision=3, n_rows=700, embedder="words 16")
    await candidates.update(SPACE, block, [], state, CandidateState())
    await candidates.update(SPACE, block, [], state, CandidateState())  # by a process that read the state before
    assert (await candidates.state(SPACE), await candidates.state(OTHER)) == (state, CandidateState())
    query = block.vectors[7].astype(np.float32)
    best = np.argsort(-(block.vectors.astype(np.float32) @ query))[:20] + 1
    rows = await candidates.nearest_rows(SPACE, query, 100)
    assert rows[0] == 8 and len(rows) == 100
    assert len(set(best.tolist()) & set(rows)) >= 18  # approximate
    empty = VectorBlock(rows=np.empty(0, np.int64), vectors=np.empty((0, 0), np.float16))
    await candidates.update(SPACE, empty, rows[:2], CandidateState(last_row=700, revision=4), state)
    assert not {*rows[:2]} & {*await candidates.nearest_rows(SPACE, query, 100)}


async def test_a_space_is_cleared_alone_and_may_get_another_dimension(candidates: PgVectorCandidates) -> None:
    for space in (SPACE, OTHER):
        await candidates.update(space, _block(20), [], CandidateState(last_row=20, revision=1), CandidateState())
    await candidates.clear(SPACE)
    assert await candidates.state(SPACE) == CandidateState()
    assert (await candidates.state(OTHER)).last_row == 20
    await candidates.update(SPACE, _block(1, 21, 32), [], CandidateState(last_row=21, revision=2), CandidateState())
    assert await candidates.nearest_rows(SPACE, np.ones(32, np.float32), 3) == [21]


async def test_vectors_that_are_too_long_for_it_are_refused_with_a_remedy(candidates: PgVectorCandidates) -> None:
    with pytest.raises(Unavailable, match=r"4,000 dimensions.*4,001.*embedder_dimension"):
        await candidates.update(
            SPACE, _block(1, 1, MAX_DIMENSION + 1), [], CandidateState(revision=1), CandidateState()
        )


async def test_questions_through_pgvector_find_the_same_here_and_say_so(address: str, tmp_path: Path) -> None:
    documents = [document(f"{number}.md", number) for number in range(40)]
    async with await open_engine(Settings(index=address, cache=tmp_path)) as kb:
        await kb.add(*documents)
        expected = await kb.retrieve("Who met Kublai Khan?", strategy="mix")
    settings = Settings(index=address, cache=tmp_path, vector_search="pgvector", exact_below=5)
    async with await open_engine(settings) as kb:
        await kb.refresh()
        evidence = await kb.retrieve("Who met Kublai Khan?", strategy="mix")
        await kb.remove(["0.md"])
        await kb.add(document("0.md", 0))
        assert await kb.verify() == []
    assert "nearest vectors are approximate: pgvector named the candidates" in evidence.notes
    assert (evidence.chunks, evidence.entities) == (expected.chunks, expected.entities)


async def test_a_database_without_the_extension_is_told_how_to_get_it(
    running_postgres: PostgresServer, tmp_path: Path
) -> None:
    name = f"bare_{uuid4().hex[:8]}"
    with psycopg.connect(running_postgres.uri(), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    settings = Settings(index=running_postgres.address("bare", database=name), cache=tmp_path, vector_search="pgvector")
    with pytest.raises(Unavailable, match="CREATE EXTENSION vector"):
        await open_engine(settings)


async def test_an_index_in_a_folder_has_no_pgvector(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="needs an index in PostgreSQL"):
        await open_engine(Settings(index=tmp_path / "kb", vector_search="pgvector"))
