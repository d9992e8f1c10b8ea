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


def _root() -> Path:
    """Return the folder from which the ids of files count."""
    folder = load_settings().folder
    return folder.resolve().parent if folder else Path.cwd()


def ids_of_paths(typed: Iterable[str]) -> list[str]:
    """Return the id that the file or folder at each path has, seen from the current folder."""
    from quipu.ingest.sources import path_id

    root = _root()
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
    """Return the ids of documents that are named by paths from the current folder, or by ids; other texts as they are.

    The engine refuses what is neither.
    """
    names = list(typed)
    paths = ids_of_paths(names)
    existing = {document.id for document in await engine.documents(ids=list(dict.fromkeys((*names, *paths))))}
    return [path if path in existing else name for name, path in zip(names, paths, strict=True)]


def is_pattern(name: str) -> bool:
    """Return whether a text may be a shell pattern."""
    return bool(set(name) & _PATTERN_SIGNS)


async def typed_id(engine: "Quipu", typed: str) -> str:
    """Return the id of one document, as `typed_ids` does."""
    (document_id,) = await typed_ids(engine, [typed])
    return document_id


def matching_ids(typed: Sequence[str], known: Sequence[str]) -> list[str]:
    """Return the ids among `known` that are named by paths from the current folder, ids, or patterns of either.

    A pattern is one of paths from the current folder: `*`, `?` and `[…]` stay within a folder, and `**` stands for any
    number of folders. A pattern that matches no path is compared with whole ids, but only if it begins with the name of
    a folder (`letters/*`) or the current folder is outside the folder of the index. So `*.md` never leaves the current
    folder.

    Raises NotFound for a pattern that matches nothing. The engine refuses other unknown names.
    """
    ids = frozenset(known)
    chosen: dict[str, None] = {}
    for name, path in zip(typed, ids_of_paths(typed), strict=True):
        exact = next((text for text in (path, name) if text in ids), "")
        matches = [exact] if exact or not is_pattern(name) else _matches(name, known)
        if not matches:
            raise _unmatched(name, known)
        chosen.update(dict.fromkeys(match or name for match in matches))
    return list(chosen)


def _matches(pattern: str, known: Sequence[str]) -> list[str]:
    """Return the ids that a pattern matches, seen from the current folder, or else as whole ids."""
    from quipu.ingest.sources import path_id

    parts = pattern.split("/")
    n_literal = next(number for number, part in enumerate(parts) if is_pattern(part))
    start, tail = "".join(f"{part}/" for part in parts[:n_literal]), parts[n_literal:]
    here = path_id(Path(start).expanduser() / "*", _root()).removesuffix("*")
    starts = [here, start] if start or Path(here).is_absolute() else [here]
    matches_by_start = (
        [name for name in known if name.startswith(prefix) and _fits(name[len(prefix) :].split("/"), tail)]
        for prefix in starts
    )
    return next(filter(None, matches_by_start), [])


def _fits(names: Sequence[str], pattern: Sequence[str]) -> bool:
    """Return whether the names of a path match the parts of a pattern, one by one; `**` matches any number of them."""
    ends = {0}  # how many names the parts so far may have matched
    for part in pattern:
        if part == "**":
            ends = set(range(min(ends, default=len(names) + 1), len(names) + 1))
        else:
            ends = {end + 1 for end in ends if end < len(names) and fnmatchcase(names[end], part)}
    return len(names) in ends


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
