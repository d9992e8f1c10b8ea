"""Backups: everything that the index holds as one archive, while others write."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from quipu.atomic_file import remove_files, replace_atomically
from quipu.engine.components import Components
from quipu.errors import InvalidInput, NotFound, Unavailable
from quipu.model.archive import ArchivePiece, ArchiveSummary
from quipu.model.event import EventSink, Progress, ignore_event


class Backups:
    """The methods of the engine that copy the index out of its database."""

    _components: Components

    async def archive(self) -> AsyncGenerator[ArchivePiece, None]:
        """Yield an archive of the index in pieces: of one snapshot, while others write. `quipu.restore` reads it."""
        archives = self._components.archives
        if archives is None:
            raise Unavailable("The store of this index makes no archives.")
        created_at = datetime.now(UTC).isoformat(timespec="seconds")
        async with aclosing(archives.archive(created_at)) as pieces:
            async for piece in pieces:
                yield piece

    async def backup(self, file: str | Path, on_event: EventSink = ignore_event) -> ArchiveSummary:
        """Write everything that the index holds to one file, with a digest; return what it holds.

        That is every fact, the queue, replies, usage, conversations, edits, and derivations, so that nothing is
        computed or paid for again. An earlier file is replaced once the new one is complete; a failure leaves no part
        of one. Raises NotFound for a missing folder.
        """
        path = Path(file)
        _check_target(path)
        unfinished = path.with_name(f".{path.name}.unfinished")
        try:
            with replace_atomically(path, unfinished) as opened:
                async with aclosing(self.archive()) as pieces:
                    async for piece in pieces:
                        opened.write(piece.content)
                        on_event(Progress(stage="backup", n_done=piece.n_done, n_total=piece.summary.n_rows))
                n_bytes = opened.tell()
        finally:
            remove_files([unfinished])
        return replace(piece.summary, file=str(path), n_bytes=n_bytes)


def _check_target(path: Path) -> None:
    if not path.absolute().parent.is_dir():
        raise NotFound(f"There is no folder {str(path.parent)!r}.", remedy="Create it, or name another file.")
    if path.is_dir():
        raise InvalidInput(f"{str(path)!r} is a folder.", remedy="Name a file.")
