"""Durable: files that take their place complete and on disk, or not at all."""

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def replace_atomically(path: Path, unfinished: Path) -> Iterator[BinaryIO]:
    """Write a file that takes the place of `path` when the block ends well; until then it stands beside it."""
    with unfinished.open("wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
    if sys.platform != "win32":
        descriptor = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)  # makes the new name last through a power failure
        finally:
            os.close(descriptor)


def remove_files(paths: Iterable[Path]) -> None:
    """Remove files, as far as the system lets go of them."""
    for path in paths:
        with contextlib.suppress(PermissionError):  # Windows keeps a mapped file; the next writer removes it
            path.unlink(missing_ok=True)
