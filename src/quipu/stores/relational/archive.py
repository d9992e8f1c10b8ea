"""Archives and copies: everything that an index holds, in one file with a digest or in another database of any kind.

An archive is, one after the other:

    the database   a SQLite file with every table of the index, as of one moment
    the head       schema, revision, time and counts as JSON
    the end        how many bytes the two have (8 each, little-endian), SHA-256 of all before, and QUIPU ARCHIVE 2\\n

So making one, and making an index of it again, is copying a file.
"""

import hashlib
import json
import os
import struct
import uuid
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import BinaryIO

from sqlalchemy import Connection, func, insert, inspect, select

from quipu.errors import Corrupt, InvalidInput
from quipu.ports.history import ArchiveSummary, OnBytes
from quipu.stores.relational import jobs
from quipu.stores.relational import schema as s
from quipu.stores.relational.migrations import migrate
from quipu.stores.relational.sql import Backend, finish_in_thread, meta_value, read_number, read_numbers, write_meta
from quipu.text.words import Analyzer

_MAGIC = b"QUIPU ARCHIVE 2\n"
_SQLITE_MAGIC = b"SQLite format 3\0"
_END = struct.Struct(f"<QQ32s{len(_MAGIC)}s")  # bytes of the database, bytes of the head, digest, magic
_LENGTHS = struct.Struct("<QQ")
_MAX_HEAD_BYTES = 1 << 20
_BYTES_AT_ONCE = 1 << 20

_ROWS_AT_ONCE = 2_000
_LARGE_ROWS = {"chunk": 500, "content_part": 20, "document": 500, "exchange": 100, "job": 1, "reply": 500}


@dataclass(frozen=True, slots=True)
class RelationalArchive:
    """An ArchiveStore on any database with a Backend."""

    backend: Backend

    async def write(self, file: Path, created_at: str, on_bytes: OnBytes) -> ArchiveSummary:
        """Write an archive of one snapshot to a new file."""
        return await finish_in_thread(partial(_write, self.backend, file, created_at, on_bytes))


def _write(backend: Backend, file: Path, created_at: str, on_bytes: OnBytes) -> ArchiveSummary:
    with backend.reading() as connection:
        schema, revision = read_numbers(connection, "schema", "revision")
        n_documents, n_chunks = (
            connection.scalar(select(func.count()).select_from(table)) or 0 for table in (s.document, s.chunk)
        )
        backend.copy_to(connection, file)
    summary = ArchiveSummary(
        schema=schema, revision=revision, created_at=created_at, n_documents=n_documents, n_chunks=n_chunks
    )
    head = json.dumps(asdict(summary)).encode()
    n_database = file.stat().st_size
    digest = hashlib.sha256()
    with file.open("r+b") as archive:
        for piece in _read_pieces(archive, n_database):
            digest.update(piece)
            on_bytes(archive.tell(), n_database)
        tail = head + _LENGTHS.pack(n_database, len(head))
        digest.update(tail)
        archive.seek(n_database)
        archive.write(tail + digest.digest() + _MAGIC)
        return replace(summary, file=str(file), n_bytes=archive.tell())


def _read_pieces(file: BinaryIO, n_bytes: int) -> Iterator[bytes]:
    """Yield so many bytes of a file in pieces. Raises Corrupt if it ends before."""
    while n_bytes:
        piece = file.read(min(n_bytes, _BYTES_AT_ONCE))
        if not piece:
            raise _damaged("it ends too early")
        n_bytes -= len(piece)
        yield piece


class ArchiveReader:
    """Reads an archive. `summary` is known from the beginning, and right if `pieces` comes to its end."""

    def __init__(self, file: BinaryIO) -> None:
        is_database = file.read(len(_SQLITE_MAGIC)) == _SQLITE_MAGIC
        n_bytes = file.seek(0, os.SEEK_END)
        file.seek(max(n_bytes - _END.size, 0))
        end = file.read()
        if not is_database or len(end) < _END.size:
            raise Corrupt("This is not an archive of Quipu.", remedy="`quipu backup FILE` makes one.")
        self._file = file
        self._n_database, self._n_head, self._digest, magic = _END.unpack(end)
        if magic != _MAGIC or self._n_database + self._n_head + _END.size != n_bytes or self._n_head > _MAX_HEAD_BYTES:
            raise _damaged("its end is not that of an archive")
        file.seek(self._n_database)
        try:
            self.summary = replace(ArchiveSummary(**json.loads(file.read(self._n_head))), n_bytes=n_bytes)
        except (TypeError, ValueError) as error:
            raise _damaged("its head cannot be read") from error

    def pieces(self, on_bytes: OnBytes) -> Iterator[bytes]:
        """Yield the database in pieces. Raises Corrupt, at the latest at the end, if anything was altered."""
        digest = hashlib.sha256()
        self._file.seek(0)
        for piece in _read_pieces(self._file, self._n_database):
            digest.update(piece)
            yield piece
            on_bytes(self._file.tell(), self._n_database)
        digest.update(self._file.read(self._n_head + _LENGTHS.size))
        if digest.digest() != self._digest:
            raise _damaged("its digest is wrong")


def _damaged(reason: str) -> Corrupt:
    return Corrupt(
        f"The archive was truncated or altered: {reason}.",
        remedy="Nothing was changed. Take another copy of the archive.",
    )


def adopt(backend: Backend, analyzer: Analyzer) -> None:
    """Make the database of an archive an index of its own, of the present schema, in one transaction.

    It gets an identity of its own: what a service keeps for the index of the archive is not for this one. Waiting work
    belongs to nobody. Raises Mismatch for the index of a newer version of Quipu, and Corrupt for what is no index.
    """
    with backend.writing() as connection:
        programs = "SELECT count(*) FROM sqlite_master WHERE type NOT IN ('table', 'index')"
        if connection.exec_driver_sql(programs).scalar_one() or not inspect(connection).has_table("meta"):
            raise _damaged("its database is not one of Quipu")
        migrate(connection, analyzer, read_number(connection, "schema"))
        jobs.release_all(connection)
        write_meta(connection, "identity", uuid.uuid4().hex)


def check_empty(connection: Connection) -> None:
    """Raise InvalidInput if there is an index, or anything else, in the database."""
    if inspect(connection).get_table_names():
        raise InvalidInput("There is something in the place to copy to.", remedy="Name a folder or workspace without.")


def copy_rows(source: Connection, target: Connection) -> int:
    """Copy every row from a snapshot into the tables of a new index; return how many rows.

    An identity that the new index has stays. Jobs are copied with their leases, which end by the target's clock, and
    what workers have spent is not.
    """
    identity = target.scalar(meta_value("identity"))
    target.execute(s.meta.delete())
    n_rows = 0
    for table in s.metadata.sorted_tables:
        n_at_once = _LARGE_ROWS.get(table.name, _ROWS_AT_ONCE)
        result = source.execute(select(table), execution_options={"yield_per": n_at_once})
        for rows in result.mappings().partitions(n_at_once):
            target.execute(insert(table), [dict(row) for row in rows])
            n_rows += len(rows)
    target.execute(s.meta.delete().where(s.meta.c.key == jobs.WORKERS))
    if identity:
        write_meta(target, "identity", identity)
    return n_rows


def copy_to_file(connection: Connection, file: Path, *, draft: Callable[[Path], Backend]) -> None:
    """Copy what a snapshot of any database sees into a new file; `draft` opens the database of a new file."""
    backend = draft(file)
    try:
        with backend.writing() as target:
            backend.create_tables(target, s.metadata)
            copy_rows(connection, target)
    finally:
        backend.close()
