"""Lock: one process at a time writes the index files."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _try_lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def try_exclusive(path: Path) -> Iterator[bool]:
    """Hold the lock on `path` for the duration, or yield False at once where another holds it.

    The system releases the lock when its process ends, however it ends.
    """
    with path.open("ab") as file:
        try:
            _try_lock(file.fileno())
        except OSError:
            yield False
            return
        yield True
