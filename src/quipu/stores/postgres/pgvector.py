"""Candidates from pgvector: a table with an HNSW index for each vector space, in the schema of the index."""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict

import numpy as np
import numpy.typing as npt
from sqlalchemy import Connection

from quipu.errors import Unavailable
from quipu.ports.store import VectorBlock, VectorSpace
from quipu.ports.vector_index import CandidateState
from quipu.stores.postgres.backend import PostgresBackend, driver_cursor

MAX_DIMENSION = 4_000  # of an HNSW index on halfvec
_EXTENSION = "SELECT extnamespace::regnamespace::text FROM pg_extension WHERE extname = 'vector'"
_STATES = """
    CREATE TABLE IF NOT EXISTS candidate_state (space text PRIMARY KEY, last_row bigint NOT NULL,
        revision bigint NOT NULL, n_rows bigint NOT NULL, embedder text NOT NULL)
"""
_WRITE_STATE = """
    INSERT INTO candidate_state VALUES (%(space)s, %(last_row)s, %(revision)s, %(n_rows)s, %(embedder)s)
    ON CONFLICT (space) DO UPDATE SET last_row = excluded.last_row, revision = excluded.revision,
        n_rows = excluded.n_rows, embedder = excluded.embedder
"""


class PgVectorCandidates:
    """Rows near a query by HNSW over half-precision vectors. Rows and state are written in one transaction.

    Source of HNSW: Y. Malkov, D. Yashunin (TPAMI 2020), as pgvector has it with its default options.
    """

    name = "pgvector"

    def __init__(self, backend: PostgresBackend) -> None:
        self._backend = backend

    async def check(self) -> None:
        """Raise Unavailable, with the remedy, if the database has not got the extension."""

        def check() -> None:
            with self._backend.reading() as connection:
                _extension(connection)

        await asyncio.to_thread(check)

    async def state(self, space: VectorSpace) -> CandidateState:
        def read() -> CandidateState:
            with self._backend.reading() as connection:
                return _state(connection, space)

        return await asyncio.to_thread(read)

    async def update(
        self,
        space: VectorSpace,
        added: VectorBlock,
        deleted: Sequence[int],
        state: CandidateState,
        after: CandidateState,
    ) -> None:
        dimension = added.vectors.shape[1]
        if dimension > MAX_DIMENSION:
            raise Unavailable(
                f"pgvector indexes up to {MAX_DIMENSION:,} dimensions, and the vectors have {dimension:,}.",
                remedy="Use a smaller embedding (embedder_dimension), or vector_search = local.",
            )

        def write() -> None:
            with self._backend.writing() as connection:
                if _state(connection, space) == after:  # else another process was first
                    _write(connection, space, added, deleted)
                    connection.exec_driver_sql(_WRITE_STATE, {"space": space.value, **asdict(state)})

        await asyncio.to_thread(write)

    async def clear(self, space: VectorSpace) -> None:
        def drop() -> None:
            with self._backend.writing() as connection:
                connection.exec_driver_sql(f"DROP TABLE IF EXISTS {_table(space)}")
                connection.exec_driver_sql("DELETE FROM candidate_state WHERE space = %s", (space.value,))

        await asyncio.to_thread(drop)

    async def nearest_rows(self, space: VectorSpace, query: npt.NDArray[np.float32], n: int) -> list[int]:
        def search() -> list[int]:
            with self._backend.reading() as connection:
                schema = _extension(connection)
                connection.exec_driver_sql(f"SET LOCAL hnsw.ef_search = {n}")
                order = f"vector OPERATOR({schema}.<#>) %s::{schema}.halfvec"
                statement = f"SELECT rid FROM {_table(space)} ORDER BY {order} LIMIT %s"
                return list(connection.exec_driver_sql(statement, (_text(query), n)).scalars())

        return await asyncio.to_thread(search)

    async def close(self) -> None:
        self._backend.close()


def _extension(connection: Connection) -> str:
    """Return the schema, quoted, that the extension is in."""
    schema: str | None = connection.exec_driver_sql(_EXTENSION).scalar()
    if schema is None:
        raise Unavailable(
            "The database has not got pgvector.",
            remedy="Install it on the server, then as an administrator: CREATE EXTENSION vector; needs 0.7 or newer.",
        )
    return schema


def _state(connection: Connection, space: VectorSpace) -> CandidateState:
    if connection.exec_driver_sql("SELECT to_regclass('candidate_state')").scalar() is None:
        return CandidateState()
    statement = "SELECT last_row, revision, n_rows, embedder FROM candidate_state WHERE space = %s"
    row = connection.exec_driver_sql(statement, (space.value,)).first()
    return CandidateState(**row._mapping) if row else CandidateState()


def _write(connection: Connection, space: VectorSpace, added: VectorBlock, deleted: Sequence[int]) -> None:
    """Add and delete rows, in a table that is made with the first of them; its index is made after them, sooner."""
    schema, table = _extension(connection), _table(space)
    connection.exec_driver_sql(_STATES)
    if len(added.rows):
        columns = f"rid bigint PRIMARY KEY, vector {schema}.halfvec({added.vectors.shape[1]}) NOT NULL"
        connection.exec_driver_sql(f"CREATE TABLE IF NOT EXISTS {table} ({columns})")
        with driver_cursor(connection) as cursor, cursor.copy(f"COPY {table} (rid, vector) FROM STDIN") as copy:
            for rid, vector in zip(added.rows.tolist(), added.vectors, strict=True):
                copy.write_row((rid, _text(vector)))
        method = f"hnsw (vector {schema}.halfvec_ip_ops)"
        connection.exec_driver_sql(f"CREATE INDEX IF NOT EXISTS {table}_vector ON {table} USING {method}")
    if deleted:
        connection.exec_driver_sql(f"DELETE FROM {table} WHERE rid = ANY(%s)", (list(deleted),))


def _table(space: VectorSpace) -> str:
    return f"candidate_{space.value}"


def _text(vector: npt.NDArray[np.floating]) -> str:
    return f"[{','.join(map(str, vector.tolist()))}]"
