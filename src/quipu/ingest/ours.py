"""Ours: what Quipu itself has written into a folder, which is no document of the user's."""

import json
from collections.abc import Sequence
from pathlib import Path

TAPE, INDEX = "recorded calls of a model", "index of Quipu"
TAPE_SUFFIX = ".jsonl"
_TAPE_FIELDS = frozenset(("model", "role", "messages", "max_output_tokens", "reply", "finish", "tokens", "is_estimate"))
_MAX_LINE = 20_000_000  # bytes of a record: a request may be as long as a window of a million tokens
_INDEX_FILE, _INDEX_FOLDERS = "index.sqlite", frozenset(("vectors", "topology"))
_SQLITE = b"SQLite format 3\x00"


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


def of_index(folder: Path, names: Sequence[str]) -> frozenset[str]:
    """Return which of the names in a folder are files and folders of an index; none where it holds no index."""
    try:
        if _INDEX_FILE not in names or not (folder / _INDEX_FILE).is_file():  # to open a pipe would wait for ever
            return frozenset()
        with (folder / _INDEX_FILE).open("rb") as file:
            is_index = file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        is_index = False
    return frozenset(name for name in names if is_index and _is_of_index(name))


def _is_of_index(name: str) -> bool:
    return name in _INDEX_FOLDERS or name.startswith(_INDEX_FILE)
