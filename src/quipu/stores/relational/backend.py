"""What differs between databases: connecting, locking, full text."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from sqlalchemy import Connection, Table


class Backend(Protocol):
    """One database. Everything else in this package is the same for all."""

    def reading(self) -> AbstractContextManager[Connection]:
        """Return a connection inside a read-only snapshot."""
        ...

    def viewing(self) -> AbstractContextManager[Connection]:
        """Return a connection inside a read-only snapshot, for a view that will be asked many things."""
        ...

    def writing(self) -> AbstractContextManager[Connection]:
        """Return a connection inside the only write transaction; commits on leaving, rolls back on an exception.

        Raises Busy where another process holds the database for longer than the configured wait.
        """
        ...

    def insert(self, table: Table) -> Any:
        """Return an INSERT of this dialect, which knows `on_conflict_do_update`."""
        ...

    def restrict(self, connection: Connection) -> None:
        """Make the empty temporary tables `allowed_document` and `allowed_chunk` of a filtered snapshot."""
        ...

    def create_text(self, connection: Connection) -> None:
        """Make the full-text tables of a new index."""
        ...

    def index_text(self, connection: Connection, rows: Sequence[tuple[int, str, str]]) -> None:
        """Add chunks to full text: (row, terms, capitalised terms), terms separated by spaces."""
        ...

    def unindex_text(self, connection: Connection, rows: Sequence[tuple[int, str, str]]) -> None:
        """Take chunks out of full text, with exactly what was added for them."""
        ...

    def clear_text(self, connection: Connection) -> None:
        """Empty full text."""
        ...

    def wipe_text(self, connection: Connection) -> None:
        """Leave nothing of the words of chunks that were taken out of full text."""
        ...

    def empty_log(self) -> None:
        """Leave nothing of earlier transactions beside the database, as far as nobody else is using it; never waits."""
        ...

    def search_text(
        self, connection: Connection, terms: Sequence[str], k: int, *, is_filtered: bool
    ) -> list[tuple[str, float]]:
        """Return the ids of the k best chunks by BM25 (k1 1.2, b 0.75) with their scores; equal scores by id."""
        ...

    def chunks_with_phrase(self, connection: Connection, terms: Sequence[str]) -> list[int]:
        """Return the rows of chunks that have these terms in a row."""
        ...

    def chunks_with_capital(self, connection: Connection, term: str) -> list[int]:
        """Return the rows of chunks that have this capitalised term."""
        ...

    def check_text(self, connection: Connection) -> tuple[dict[str, int], dict[str, int]]:
        """Return how many chunks each term, and each capitalised term, of full text is in."""
        ...

    def guard(self) -> AbstractContextManager[None]:
        """Turn the driver's errors into ours: Busy, Corrupt."""
        ...

    def damage(self, connection: Connection) -> list[str]:
        """Return what the database itself finds wrong with its files, in words."""
        ...

    def close(self) -> None:
        """Release every connection."""
        ...
