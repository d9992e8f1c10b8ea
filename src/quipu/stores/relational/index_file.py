"""Index file: that of an index told from other databases without opening it as one, which would make it one."""

import sqlite3
from contextlib import closing
from pathlib import Path

_VALUES = "SELECT count(*) FROM meta WHERE key IN ('schema', 'tokenizer')"  # that any index has since it was made


def is_index(file: Path) -> bool:
    """Say whether a file is the database of an index; False also where it cannot be read.

    SQLite itself looks: to close a file read by other means ends the locks this process has on it (sqlite.org, How To
    Corrupt An SQLite Database File, 2.2). Nothing is written beside it: where there is no log, it needs no locks.
    """
    try:
        if not file.is_file():  # to open a pipe would wait for ever
            return False
        has_log = file.with_name(f"{file.name}-wal").exists()
        address = f"{file.absolute().as_uri()}?{'mode=ro' if has_log else 'immutable=1'}"
        with closing(sqlite3.connect(address, uri=True)) as connection:
            return bool(connection.execute(_VALUES).fetchone() == (2,))
    except (OSError, sqlite3.Error):
        return False
