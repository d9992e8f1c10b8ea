"""Sources: files, folders and strings, found and read one by one."""

import json
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from quipu.errors import InvalidDocument, InvalidInput, NotFound
from quipu.ingest.ours import INDEX, TAPE, is_tape, of_index
from quipu.model.document import Metadata, MetadataValue, SourceDocument
from quipu.model.ids import digest_bytes
from quipu.text.metadata import flatten_metadata

SIDECAR_SUFFIX = ".meta.json"
MAX_ID = 4_096  # characters: as long as a path may be
MAX_BYTES = 500_000_000  # of a document: it is held whole, a few times over; SQLite keeps at most twice as much
_MAX_SIDECAR_BYTES = 1_000_000
_SCALARS = (str, int, float)  # what metadata may hold, beside None and lists of texts
_LINK = "symbolic link"
_SPECIAL = "pipe or device"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableSource:
    """A file that was found but cannot be indexed, and why; `id` is what its document would be called."""

    id: str
    source: str
    error: InvalidDocument


@dataclass(frozen=True, slots=True)
class SkippedFiles:
    """How many files of the folders are no documents, by suffix ("" where there is none) or by what they are."""

    n_by_suffix: Mapping[str, int]

    def __str__(self) -> str:
        """Return it for people, as in "3 files skipped: .png 2, .zip 1"."""
        total = sum(self.n_by_suffix.values())
        listed = ", ".join(f"{suffix or 'no suffix'} {n_files}" for suffix, n_files in self.n_by_suffix.items())
        return f"{total} {'file' if total == 1 else 'files'} skipped: {listed}"


FoundSource = SourceDocument | UnreadableSource | SkippedFiles


def find_sources(
    paths: Sequence[Path],
    *,
    root: Path,
    media_types: Mapping[str, str],
    metadata: Metadata | None = None,
    is_index: Callable[[Path], bool] = lambda _: False,
) -> Iterator[FoundSource]:
    """Yield a document for each file of `paths` and each readable file in folders among them, in order of name.

    `media_types` says which suffixes are read, and as what. The id of a file is its path below `root`, or its whole
    path. `metadata` goes to every document and wins over that of a sidecar, NAME.meta.json or NAME.EXT.meta.json.
    A file is read when its turn comes, and once, however often it is named. Hidden files, sidecars and links that lead
    out of their folder are left out, and in folders what Quipu has written: an index, whose database `is_index` knows,
    and recorded calls of models. What cannot be read is an UnreadableSource; last, where files of folders were passed
    over, come the SkippedFiles. Raises NotFound at once for a path that does not exist.
    """
    for path in paths:
        if not _exists(path):
            raise NotFound(f"There is no file or folder {path}.", remedy="Check its spelling, or give its full path.")
    return _find(paths, root.resolve(), media_types, metadata or {}, is_index)


def text_source(
    text: str,
    id: str | None = None,  # noqa: A002
    *,
    title: str = "",
    metadata: Metadata | None = None,
    media_type: str = "text/plain",
) -> SourceDocument:
    """Return `text` as a document; without an id it is named by its content, so the same text is the same document.

    Raises InvalidDocument for text that holds half of a surrogate pair, InvalidInput for what is no text.
    """
    if not isinstance(text, str):
        raise InvalidInput(
            f"add_text takes a text, not {repr(text)[:80]}.", remedy="Decode bytes, or hand in a SourceDocument."
        )
    checked_metadata(metadata)
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidDocument(
            f"The text holds half of a surrogate pair at character {error.start}.",
            remedy="Decode it from its bytes again, with errors='replace'.",
        ) from error
    name = checked_id(id) if id is not None else f"text:{digest_bytes(data)[:12]}"
    return SourceDocument(id=name, data=data, title=title, metadata=dict(metadata or {}), media_type=media_type)


def checked_id(name: str) -> str:
    """Return the id of a document. Raises InvalidInput where it is none."""
    if not isinstance(name, str) or not name.strip() or len(name) > MAX_ID or "\0" in name:
        raise InvalidInput(
            f"{repr(name)[:80]} cannot be the id of a document.",
            remedy=f"Use a text of 1 to {MAX_ID:,} characters, not all spaces and none of them NUL.",
        )
    return name


def checked_metadata(metadata: Metadata | None) -> Metadata:
    """Return what is said of documents. Raises InvalidInput where it is no mapping of names to values to compare."""
    if not isinstance(metadata or {}, Mapping):
        raise InvalidInput(
            f"{repr(metadata)[:80]} is no metadata.", remedy="Give a mapping, as in {'year': 1298, 'author': 'Polo'}."
        )
    for name, value in (metadata or {}).items():
        values = value if isinstance(value, (tuple, list)) else (value,)
        if not isinstance(name, str) or not all(each is None or isinstance(each, _SCALARS) for each in values):
            raise InvalidInput(
                f"The metadata {repr(name)[:80]} = {repr(value)[:80]} cannot be kept.",
                remedy="A name is a text, a value a text, a number, True, False, None, or a list of texts.",
            )
    return metadata or {}


def _exists(path: Path) -> bool:
    """Say whether there is something at `path`; one too long to be a path, or behind a closed folder, is not there."""
    try:
        return path.exists()
    except OSError:
        return False


def _find(
    paths: Sequence[Path],
    root: Path,
    media_types: Mapping[str, str],
    metadata: Metadata,
    is_index: Callable[[Path], bool],
) -> Iterator[FoundSource]:
    skipped: Counter[str] = Counter()
    seen: dict[str, bytes] = {}
    for path in paths:
        is_folder = path.is_dir()
        for file in _files(path, media_types, skipped, is_index) if is_folder else [path]:
            name = _id(file, root)
            if name not in seen:
                seen[name] = os.fsencode(file.name)
                yield _read(file, name, path if is_folder else path.parent, media_types, metadata)
            elif seen[name] != os.fsencode(file.name):  # bytes that are no text, spelled as the name of another file
                error = InvalidDocument(f"Two files would be called {name}.", remedy="Rename one of them.")
                yield UnreadableSource(id=name, source=name, error=error)
    if skipped:
        yield SkippedFiles(dict(sorted(skipped.items())))


def _files(
    folder: Path, media_types: Mapping[str, str], skipped: Counter[str], is_index: Callable[[Path], bool]
) -> Iterator[Path]:
    """Yield the readable files of `folder` and of those below it, and folders that cannot be opened."""
    closed: list[OSError] = []
    top = folder.resolve()
    for base, folders, names in os.walk(folder, onerror=closed.append):
        own = of_index(Path(base), (*folders, *names), is_index)
        skipped.update([INDEX] if own else ())
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in own)
        skipped.update(_LINK for name in folders if Path(base, name).is_symlink())
        for name in sorted(names):
            file = Path(base, name)
            if name.startswith(".") or name.endswith(SIDECAR_SUFFIX) or name in own:
                continue
            if file.suffix.lower() not in media_types:
                skipped[file.suffix.lower()] += 1
            elif kind := _not_read(file, top):
                skipped[kind] += 1
            else:
                yield file
    yield from sorted(Path(error.filename) for error in closed)


def _not_read(file: Path, top: Path) -> str:
    """Return what a file is that is passed over: a link out of the folder `top`, a pipe, a tape; "" for others."""
    is_link = False
    try:
        is_link = file.is_symlink()
        is_regular = stat.S_ISREG(file.stat().st_mode)
        if is_link and not (is_regular and file.resolve().is_relative_to(top)):
            return _LINK
    except OSError:  # a link that leads nowhere; or the file is gone, or its folder closed: reading it will tell
        return _LINK if is_link else ""
    if not is_regular:
        return _SPECIAL
    return TAPE if is_tape(file) else ""


def _id(path: Path, root: Path) -> str:
    """Return the path below `root` where it is below it, else the whole path; links in folders are resolved."""
    whole = path.parent.resolve() / path.name
    name = (whole.relative_to(root) if whole.is_relative_to(root) else whole).as_posix()
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


def _read(
    path: Path, name: str, top: Path, media_types: Mapping[str, str], metadata: Metadata
) -> SourceDocument | UnreadableSource:
    try:
        if len(name) > MAX_ID:
            raise InvalidDocument(f"The path {name[:80]}… is longer than {MAX_ID:,} characters.", remedy="Move it up.")
        return SourceDocument(
            id=name,
            source=name,
            media_type=_media_type(path, media_types),
            metadata={**_sidecar(path, top), **metadata},
            data=_read_bytes(path, MAX_BYTES),
        )
    except InvalidDocument as error:
        return UnreadableSource(id=name[:MAX_ID], source=name, error=error)
    except OSError as error:  # of a folder that may be listed but not entered
        return UnreadableSource(id=name, source=name, error=_unreadable(path, error))


def _media_type(path: Path, media_types: Mapping[str, str]) -> str:
    media_type = media_types.get(path.suffix.lower())
    if media_type is not None and not path.is_dir():
        return media_type
    if path.is_dir():
        raise InvalidDocument(f"The folder {path} cannot be opened.", remedy="Check its permissions, or leave it out.")
    kind = f"files ending in {path.suffix}" if path.suffix else "files without a suffix"
    raise InvalidDocument(
        f"{path} cannot be read: no parser reads {kind}.", remedy=f"Readable are: {', '.join(sorted(media_types))}."
    )


def _read_bytes(path: Path, max_bytes: int) -> bytes:
    """Return the bytes of a regular file. Raises InvalidDocument where it cannot be read, or holds more than that."""
    try:
        # Without waiting: a pipe may have taken the place of a file that was there a moment ago.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise InvalidDocument(f"{path} is not a regular file.", remedy="Add its content: quipu add - < FILE")
            if status.st_size <= max_bytes:
                return file.read()
    except OSError as error:
        raise _unreadable(path, error) from error
    raise InvalidDocument(f"{path} holds more than {max_bytes:,} bytes.", remedy="Split it into several files.")


def _unreadable(path: Path, error: OSError) -> InvalidDocument:
    return InvalidDocument(
        f"{path} cannot be read: {error.strerror}.", remedy="Check its permissions, or leave it out."
    )


def _sidecar(path: Path, top: Path) -> Metadata:
    """Return the metadata in NAME.meta.json and NAME.EXT.meta.json beside the file; the latter, more exact, wins.

    Raises InvalidDocument for one that is malformed, or a link out of the folder `top`.
    """
    metadata: dict[str, MetadataValue] = {}
    for stem in (path.stem, path.name):
        sidecar = path.with_name(stem + SIDECAR_SUFFIX)
        if _exists(sidecar) and sidecar.is_file():
            if sidecar.is_symlink() and not sidecar.resolve().is_relative_to(top.resolve()):
                raise InvalidDocument(
                    f"The metadata in {sidecar} is a link out of its folder.", remedy="Copy it, or remove the link."
                )
            metadata |= _load_sidecar(sidecar)
    return metadata


def _load_sidecar(path: Path) -> Metadata:
    try:
        values = json.loads(_read_bytes(path, _MAX_SIDECAR_BYTES).decode("utf-8-sig"))
        if isinstance(values, dict):
            metadata = flatten_metadata(values)
            if all(key.strip() for key in metadata):
                return metadata
            reason = "it has a key without a name"
        else:
            reason = "it holds no JSON object"
    except (ValueError, RecursionError) as error:
        reason = str(error)
    raise InvalidDocument(
        f"The metadata in {path} cannot be read: {reason}.", remedy='Write it as {"key": "value"}, or remove the file.'
    )
