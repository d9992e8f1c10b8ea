"""Replacing a SQLite file by another one, whoever has the earlier file open."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from quipu.atomic_file import move_durably, remove_files
from quipu.errors import Busy

_RETRY_S = 0.05


def replace_database(unfinished: Path, database: Path, *, busy_timeout_s: float) -> None:
    """Move a complete database to `database`, in place of an earlier one or of none.

    Processes that have the earlier file open get Unavailable from then on. Raises Busy while another process uses it.
    """
    with _unused(database, busy_timeout_s):
        move_durably(unfinished, database)
        _remove_logs(database)


def remove_database(database: Path) -> None:
    """Remove a database with its log, where there is one."""
    _remove_logs(database)
    remove_files([database])


@contextmanager
def _unused(database: Path, wait_s: float) -> Iterator[None]:
    """Keep others from writing to a database whose log is empty, so that its file can be replaced.

    A log that is not empty would be read as one of the new file. Raises Busy while another process reads or writes.
    """
    if not database.exists():
        yield
        return
    deadline = time.monotonic() + wait_s
    with closing(sqlite3.connect(database, timeout=wait_s, isolation_level=None)) as connection:
        while True:
            with suppress(sqlite3.OperationalError):
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                connection.execute("BEGIN IMMEDIATE")
                if not _log(database).exists() or not _log(database).stat().st_size:
                    break
                connection.execute("ROLLBACK")
            if time.monotonic() > deadline:
                raise Busy(f"Another process uses {database}.", remedy="Stop it, or wait for it, and restore again.")
            time.sleep(_RETRY_S)
        yield


def _log(database: Path) -> Path:
    return database.with_name(f"{database.name}-wal")


def _remove_logs(database: Path) -> None:
    remove_files([_log(database), database.with_name(f"{database.name}-shm")])
