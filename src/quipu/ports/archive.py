"""ArchiveStore: reads everything that an index holds as one archive."""

from collections.abc import AsyncGenerator
from typing import Protocol

from quipu.model.archive import ArchivePiece


class ArchiveStore(Protocol):
    """Makes archives of its index, which any store of the same implementation can be filled from.

    An archive holds every fact, the work that waits, replies, usage, conversations and edits, and the derivations with
    the change log. Leases are left out. Nothing that is in it must be computed, or paid for, again.
    """

    def archive(self, created_at: str) -> AsyncGenerator[ArchivePiece, None]:
        """Yield the archive of one snapshot in pieces, while others write. `created_at` is the time to note in it."""
        ...
