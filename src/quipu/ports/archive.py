"""Archives: everything that an index holds, in one file that another database can be filled from."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveSummary:
    """What an archive holds: the schema and the revision of its index, when it was made (UTC), and its size.

    `n_rows` are all rows of all tables. `file` is where it is, "" for a stream.
    """

    schema: int
    revision: int
    created_at: str
    n_documents: int
    n_chunks: int
    n_rows: int
    n_bytes: int = 0
    file: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivePiece:
    """A piece of an archive. `n_done` of the rows of the `summary` are in it or before it."""

    content: bytes = field(repr=False)
    n_done: int
    summary: ArchiveSummary


class ArchiveStore(Protocol):
    """Makes archives of its index, which any store of the same implementation can be filled from.

    An archive holds every fact, the work that waits, replies, usage, conversations and edits, and the derivations with
    the change log. Leases are left out. Nothing that is in it must be computed, or paid for, again.
    """

    def archive(self, created_at: str) -> AsyncGenerator[ArchivePiece, None]:
        """Yield the archive of one snapshot in pieces, while others write. `created_at` is the time to note in it."""
