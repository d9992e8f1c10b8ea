"""EditStore: the corrections that people have made, in the order in which they were committed."""

from collections.abc import Sequence
from typing import Protocol

from quipu.model.edit import RecordedEdit


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
        ...

    async def n_chunks_in(self, documents: Sequence[str]) -> dict[int, int]:
        """Return how many chunks of these documents each edit that holds changes; those with none are omitted."""
        ...
