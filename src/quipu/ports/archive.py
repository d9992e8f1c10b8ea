"""Archives: everything that an index holds, in one file that another index can be made from."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

OnBytes = Callable[[int, int], None]  # gets how many bytes were read, and of how many


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveSummary:
    """What an archive holds: the schema and the revision of its index, when it was made (UTC), and its size."""

    schema: int
    revision: int
    created_at: str
    n_documents: int
    n_chunks: int
    n_bytes: int = 0
    file: str = ""


class ArchiveStore(Protocol):
    """Makes archives of its index.

    An archive holds every fact, the work that waits, replies, usage, conversations and edits, and the derivations with
    the change log. Nothing that is in it must be computed, or paid for, again.
    """

    async def write(self, file: Path, created_at: str, on_bytes: OnBytes) -> ArchiveSummary:
        """Write an archive of one snapshot to a new file, while others write. `created_at` is noted in it."""
