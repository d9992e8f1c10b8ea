"""HistoryStore, EditStore and ArchiveStore: earlier versions of documents, corrections, and archives of an index."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from quipu.model.document import EarlierVersion
from quipu.model.edit import RecordedEdit

OnBytes = Callable[[int, int], None]  # gets how many bytes were read, and of how many


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewind:
    """How to get from the live documents to those that held at a date, apart from what a filter leaves out.

    `restore` are ids of earlier versions, which take the place of the live ones. `remove` are documents that an
    `as_of` filter would allow, although they did not hold then. Both are sorted.
    """

    restore: tuple[int, ...] = ()
    remove: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether the live documents with an `as_of` filter are what held."""
        return not (self.restore or self.remove)


class HistoryStore(Protocol):
    """Lists, drops and applies earlier versions. A commit keeps them, where the store was opened to keep history.

    Nothing else of a store reads them: no view, no fold, no vector and no full text holds what only they state.
    """

    @property
    def is_kept(self) -> bool:
        """Whether commits of this store keep what they replace and remove."""

    async def versions(
        self, documents: Sequence[str] | None = None, *, before: str = "", k: int | None = None, after: str = ""
    ) -> list[EarlierVersion]:
        """Return the earlier versions of these documents, None: of all, by document and then the oldest first.

        With `before`, only those that had ended before this date (ISO 8601, a moment in UTC or the beginning of one).
        With `k`, a page of so many; `after` is the `cursor` of the last version of the page before.
        """

    async def drop(self, *, before: str = "") -> int:
        """Delete earlier versions, with `before` as in `versions`; return how many."""

    async def rewind_to(self, as_of: str) -> Rewind:
        """Return how to get to what held at the end of `as_of`, as `model.validity.version_at` decides."""

    async def copy_to(self, file: Path) -> None:
        """Write a copy of the index to a new file."""

    async def rewind(self, rewind: Rewind) -> None:
        """Turn this index, which must be a copy, into what held: apply `rewind`, and drop history, queue and talks."""


class EditStore(Protocol):
    """Lists the edits of an index. They are made and undone by a commit (`Delta.edits`, `Delta.undo`).

    An edit holds for all statements of all documents, of whichever commit, until it is undone. The state of the index
    is that of an index to which the undone edits were never made.
    """

    async def edits(
        self,
        ids: tuple[int, ...] | None = None,
        *,
        entity: str = "",
        with_undone: bool = True,
        before: int | None = None,
        k: int | None = None,
    ) -> list[RecordedEdit]:
        """Return the given edits, or k edits with an id below `before`, the newest first.

        With `entity`, only those that name this key, or a key that an edit which holds has made part of it. Unknown ids
        are omitted.
        """

    async def n_chunks_in(self, documents: Sequence[str]) -> dict[int, int]:
        """Return how many chunks of these documents each edit that holds changes; those with none are omitted."""


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
