"""Tests of the pipeline to PostgreSQL: few round trips, and a failure that is heard later is heard."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Connection, select
from sqlalchemy.exc import IntegrityError

from benchmarks.statements import measure_postgres
from quipu.errors import Busy, Unavailable
from quipu.model.index_address import parse_database_address
from quipu.stores.postgres.backend import PostgresBackend
from quipu.stores.relational import schema as s
from quipu.stores.relational.sql import insert_rows, n_changed, next_rid, read_meta, write_meta
from quipu.stores.relational.store import RelationalStore
from tests.postgres import PostgresIndexes


@pytest.fixture
async def backend(postgres: PostgresIndexes) -> PostgresBackend:
    """Return a backend for an empty index."""
    address = parse_database_address(postgres.server.address("pipeline"))
    store = RelationalStore(PostgresBackend(address, busy_timeout_s=5.0), lease_s=60.0)
    await store.prepare()
    postgres.note_created("pipeline")
    await store.close()
    return PostgresBackend(address, busy_timeout_s=5.0)


@contextmanager
def _closing(backend: PostgresBackend) -> Iterator[PostgresBackend]:
    try:
        yield backend
    finally:
        backend.close()


def test_a_document_and_a_question_take_few_round_trips(postgres: PostgresIndexes, tmp_path: Path) -> None:
    (tmp_path / "troy.md").write_text("# Troy\n\nPriam ruled in Troy. Hector fought Achilles at the Scaean Gate.")
    costs = measure_postgres(tmp_path, delay_s=0.0)
    assert 0 < costs["one more document"].n_round_trips <= 84
    assert 0 < costs["a question, lexical"].n_round_trips <= 4
    assert 0 < costs["a question, weave"].n_round_trips <= 14
    assert 0 < costs["a question, weave"].n_statements <= 15
    assert costs["one more document"].n_statements > 1.5 * costs["one more document"].n_round_trips


def test_the_failure_of_a_statement_that_nobody_waited_for_undoes_the_transaction(backend: PostgresBackend) -> None:
    with _closing(backend):
        twice = [{"key": "gate", "value": "1"}] * 2
        with pytest.raises(IntegrityError), backend.writing() as connection:
            write_meta(connection, "wall", "1")
            insert_rows(connection, s.meta, twice)
            read_meta(connection, "schema")  # waits, and raises
        with pytest.raises(IntegrityError), backend.writing() as connection:
            write_meta(connection, "wall", "1")
            insert_rows(connection, s.meta, twice)  # the commit waits, and raises
        with backend.writing() as connection:
            assert read_meta(connection, "wall") is None
            write_meta(connection, "wall", "2")
        with backend.reading() as connection:
            assert read_meta(connection, "wall") == "2"


def test_an_error_of_the_caller_undoes_statements_that_nobody_waited_for(backend: PostgresBackend) -> None:
    with _closing(backend):
        for rows in ([{"key": "gate", "value": "1"}], [{"key": "schema", "value": "0"}]):  # the second one fails
            with pytest.raises(RuntimeError, match="caller"), backend.writing() as connection:
                insert_rows(connection, s.meta, rows)
                raise RuntimeError("an error of the caller")
        with backend.reading() as connection:
            assert read_meta(connection, "gate") is None


def test_rows_are_counted_and_read_in_pieces_after_statements_that_nobody_waited_for(backend: PostgresBackend) -> None:
    with _closing(backend), backend.writing() as connection:
        insert_rows(connection, s.meta, [{"key": f"gate {n}", "value": "old"} for n in range(3)])
        is_new = s.meta.c.key.startswith("gate")
        assert n_changed(connection, s.meta.update().where(is_new).values(value="new")) == 3
        insert_rows(connection, s.meta, [{"key": "gate 3", "value": "new"}])
        pieces = connection.execute(select(s.meta.c.value).where(is_new), execution_options={"yield_per": 2})
        assert pieces.scalars().all() == ["new"] * 4


async def test_a_write_whose_connection_is_closed_says_so_and_the_next_one_works(
    backend: PostgresBackend, postgres: PostgresIndexes
) -> None:
    store = RelationalStore(backend, lease_s=60.0)

    def close(connection: Connection) -> None:
        write_meta(connection, "wall", "1")
        pid = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
        with psycopg.connect(postgres.server.uri(), autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
        write_meta(connection, "gate", "1")
        next_rid(connection, s.document)

    for _ in range(2):
        with pytest.raises(Unavailable, match="connection"):
            await store._write(close)
    await store._write(lambda connection: write_meta(connection, "wall", "2"))
    assert await store._read(lambda connection: read_meta(connection, "wall")) == "2"
    assert await store._read(lambda connection: read_meta(connection, "gate")) is None
    await store.close()


def test_a_connection_that_was_lost_unnoticed_is_replaced(backend: PostgresBackend) -> None:
    with _closing(backend):
        with backend.reading() as connection:
            lost = connection.connection.driver_connection
        assert lost is not None
        lost.pgconn.finish()
        with backend.reading() as connection:
            assert connection.connection.driver_connection is not lost
            assert read_meta(connection, "schema")


@pytest.mark.parametrize("n_written", range(1, 8))
def test_a_statement_that_was_skipped_after_a_failure_is_not_taken_for_prepared(
    postgres: PostgresIndexes, n_written: int
) -> None:
    """psycopg prepares what was sent five times, and remembers that even if the server has skipped it."""
    patient, impatient = postgres.backend("prepared"), postgres.backend("prepared", busy_timeout_s=0.0)
    for n in (0, n_written, 3):
        for _ in range(n):
            with impatient.writing():
                pass
        with patient.writing() as connection:
            connection.exec_driver_sql("SELECT 1").all()  # so that it has the lock
            with pytest.raises(Busy), impatient.writing():
                pass
    patient.close()
    impatient.close()


@pytest.mark.parametrize("change", ["ALTER TABLE t ADD COLUMN b integer", "DROP TABLE IF EXISTS u"])
def test_statements_are_prepared_again_after_tables_have_changed(postgres: PostgresIndexes, change: str) -> None:
    """psycopg forgets them then, and has the server forget all that is prepared at its next occasion."""
    backend = postgres.backend("changed")
    insert, rows = "INSERT INTO t (a) VALUES (%s)", [(number,) for number in range(9)]
    with backend.writing() as connection:
        connection.exec_driver_sql("CREATE TEMPORARY TABLE t (a integer)")
        connection.exec_driver_sql(insert, rows)
        connection.exec_driver_sql(change)
        connection.exec_driver_sql("SELECT 1").all()
        for _ in range(2):
            connection.exec_driver_sql(insert, rows)
        assert len(connection.exec_driver_sql("SELECT a FROM t").all()) == 27
    backend.close()
