"""Atomic files: a file is replaced completely and durably, or not at all."""

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def replace_atomically(path: Path, unfinished: Path) -> Iterator[BinaryIO]:
    """Open `unfinished` for writing; if the block succeeds, flush it to disk and move it to `path`.

    Both paths must be in the same file system. If the block fails, `unfinished` stays and `path` is not changed.
    """
    with unfinished.open("wb") as file:
        yield file
    move_durably(unfinished, path)


def move_durably(unfinished: Path, path: Path) -> None:
    """Flush a file to disk and move it to `path`, in place of an earlier file."""
    with unfinished.open("r+b") as file:
        os.fsync(file.fileno())
    unfinished.replace(path)
    if sys.platform != "win32":
        descriptor = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)  # makes the new directory entry durable
        finally:
            os.close(descriptor)


def remove_files(paths: Iterable[Path]) -> None:
    """Remove files that exist. A file that Windows refuses to remove because it is mapped is skipped."""
    for path in paths:
        with contextlib.suppress(PermissionError):  # the next writer removes it
            path.unlink(missing_ok=True)
