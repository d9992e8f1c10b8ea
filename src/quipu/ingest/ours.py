"""Ours: what Quipu itself has written into a folder, which is no document of the user's."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

TAPE, INDEX = "recorded calls of a model", "index of Quipu"
TAPE_SUFFIX = ".jsonl"
_TAPE_FIELDS = frozenset(("model", "role", "messages", "max_output_tokens", "reply", "finish", "tokens", "is_estimate"))
_MAX_LINE = 20_000_000  # bytes of a record: a request may be as long as a window of a million tokens
_INDEX_FILE = "index.sqlite"
_OF_INDEX = frozenset(
    (_INDEX_FILE, *(f"{_INDEX_FILE}-{kind}" for kind in ("wal", "shm", "journal")), "vectors", "topology")
)


def is_tape(file: Path) -> bool:
    """Say whether a regular file begins with a recorded call, as the setting `record` has them written."""
    if file.suffix.lower() != TAPE_SUFFIX:
        return False
    try:
        with file.open("rb") as lines:
            if not lines.read(64).lstrip().startswith(b'{"model"'):  # as any record does: others are not read further
                return False
            lines.seek(0)
            record = json.loads(lines.readline(_MAX_LINE))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(record, dict) and record.keys() >= _TAPE_FIELDS


def of_index(folder: Path, names: Sequence[str], is_index: Callable[[Path], bool]) -> frozenset[str]:
    """Return which of the names in a folder are files and folders of an index; none where it holds no index."""
    if _INDEX_FILE not in names or not is_index(folder / _INDEX_FILE):
        return frozenset()
    return _OF_INDEX.intersection(names)
