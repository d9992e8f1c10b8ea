"""HistoryStore: the earlier versions of documents that an index keeps, and what it was like at a date."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from quipu.model.document import EarlierVersion


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
        ...

    async def versions(
        self, documents: Sequence[str] | None = None, *, before: str = "", k: int | None = None, after: str = ""
    ) -> list[EarlierVersion]:
        """Return the earlier versions of these documents, None: of all, by document and then the oldest first.

        With `before`, only those that had ended before this date (ISO 8601, a moment in UTC or the beginning of one).
        With `k`, a page of so many; `after` is the `cursor` of the last version of the page before.
        """
        ...

    async def drop(self, *, before: str = "") -> int:
        """Delete earlier versions, with `before` as in `versions`; return how many."""
        ...

    async def rewind_to(self, as_of: str) -> Rewind:
        """Return how to get to what held at the end of `as_of`, as `model.validity.version_at` decides."""
        ...

    async def copy_to(self, file: Path) -> None:
        """Write a copy of the index. Raises Unavailable for a database that cannot be copied to a file."""
        ...

    async def rewind(self, rewind: Rewind) -> None:
        """Turn this index, which must be a copy, into what held: apply `rewind`, and drop history, queue and talks."""
        ...
