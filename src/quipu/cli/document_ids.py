"""Document ids as people type them: ids, paths from the current folder, and shell patterns of either."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from quipu.cli.options import load_settings
from quipu.errors import NotFound

if TYPE_CHECKING:
    from quipu.engine import Quipu

_PATTERN_SIGNS = frozenset("*?[")


def ids_of_paths(typed: Iterable[str]) -> list[str]:
    """Return the id that the file or folder at each path has, seen from the current folder."""
    from quipu.ingest.sources import path_id

    folder = load_settings().folder
    root = folder.resolve().parent if folder else Path.cwd()
    ids: list[str] = []
    for text in typed:
        name = text
        with suppress(OSError, ValueError):  # no path at all, such as one with NUL
            path = Path(text).expanduser()
            name = path_id(path.resolve() if path.name in ("", "..") else path, root)
        ids.append(name)
    return ids


def with_paths(typed: Sequence[str]) -> tuple[str, ...]:
    """Return texts that name documents, and beside them the ids of the files at these paths; for filters."""
    return tuple(dict.fromkeys((*typed, *ids_of_paths(typed))))


async def typed_ids(engine: "Quipu", typed: Iterable[str]) -> list[str]:
    """Return the ids of documents that are named by ids, or by paths from the current folder; other texts as they are.

    The engine refuses what is neither.
    """
    names = list(typed)
    paths = ids_of_paths(names)
    existing = {document.id for document in await engine.documents(ids=list(dict.fromkeys((*names, *paths))))}
    return [
        path if name not in existing and path in existing else name for name, path in zip(names, paths, strict=True)
    ]


def is_pattern(name: str) -> bool:
    """Return whether a text may be a shell pattern."""
    return bool(set(name) & _PATTERN_SIGNS)


async def typed_id(engine: "Quipu", typed: str) -> str:
    """Return the id of one document, as `typed_ids` does."""
    (document_id,) = await typed_ids(engine, [typed])
    return document_id


def matching_ids(typed: Sequence[str], known: Sequence[str]) -> list[str]:
    """Return the ids among `known` that are named by ids, paths from the current folder, or patterns of either.

    Raises NotFound for a pattern that matches nothing. The engine refuses other unknown names.
    """
    ids = frozenset(known)
    chosen: dict[str, None] = {}
    for name, path in zip(typed, ids_of_paths(typed), strict=True):
        matches = _matches(name, known, ids) or _matches(path, known, ids)
        if not matches and is_pattern(name):
            raise _unmatched(name, known)
        chosen.update(dict.fromkeys(matches or [name]))
    return list(chosen)


def _matches(name: str, known: Sequence[str], ids: frozenset[str]) -> list[str]:
    if name in ids:
        return [name]
    return [document_id for document_id in known if fnmatchcase(document_id, name)]


def _unmatched(pattern: str, ids: Sequence[str]) -> NotFound:
    """Return the error for a pattern that matches none of these ids, with ids that begin alike."""
    from quipu.engine.lookups import did_you_mean

    stem = "".join(sign for sign in pattern if sign not in "*?[]")
    ids_by_start: dict[str, list[str]] = {}
    for document_id in ids:
        ids_by_start.setdefault(document_id[: len(stem)], []).append(document_id)
    starts = get_close_matches(stem, ids_by_start, n=3)
    near = [document_id for start in starts for document_id in sorted(ids_by_start[start])]
    return NotFound(f"No document matches {pattern!r}.", remedy=did_you_mean(near[:3]))
