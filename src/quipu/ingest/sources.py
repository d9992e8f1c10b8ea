"""Sources: the files and folders to add, found and read one by one; and texts as documents."""

import json
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Protocol

from quipu.errors import InvalidDocument, InvalidInput, NotFound
from quipu.model.document import Metadata, MetadataValue, SourceDocument, flatten_metadata
from quipu.model.ids import digest_bytes
from quipu.model.results import UNREAD
from quipu.ports.ingest import FileTypes

SIDECAR_SUFFIX = ".meta.json"
MAX_ID = 4_096  # characters: as long as a path may be
MAX_BYTES = 500_000_000  # of a document: memory holds several copies of it; SQLite stores at most twice as much
_MAX_SIDECAR_BYTES = 1_000_000
_SCALARS = (str, int, float)  # types of metadata values, besides None and lists of texts
EMPTY, _LINK, _SPECIAL = "empty", "symbolic link", "pipe or device"
TAPE, INDEX = "recorded calls of a model", "index of Quipu"
_BLANK = b"\xef\xbb\xbf \t\r\n\v\f\0"
_SNIFFED_SUFFIXES = ("", ".gz")  # what files with these names hold is seen from their bytes only
_SNIFFED_BYTES = 65_536
_TAPE_SUFFIX = ".jsonl"
_TAPE_FIELDS = frozenset(("model", "role", "messages", "max_output_tokens", "reply", "finish", "tokens", "is_estimate"))
_MAX_TAPE_LINE = 20_000_000  # bytes of a record: a request may be as long as a context window of a million tokens
_INDEX_FILE = "index.sqlite"
_INDEX_PARTS = frozenset(
    (_INDEX_FILE, *(f"{_INDEX_FILE}-{kind}" for kind in ("wal", "shm", "journal")), "vectors", "topology")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableSource:
    """A file that cannot be indexed, and why; `id` is the id that its document would have."""

    id: str
    source: str
    error: InvalidDocument


@dataclass(frozen=True, slots=True)
class SkippedFiles:
    """How many files were skipped, by reason and suffix, such as (UNREAD, ".png"). Only UNREAD has suffixes."""

    n_by_reason: Mapping[tuple[str, str], int]


class FileChoice(Protocol):
    """Chooses among the files in folders."""

    def ignores(self, path: Path) -> bool:
        """Return whether a file or folder in a folder is left out."""

    def wants(self, file: Path, document_id: str) -> bool:
        """Return whether a file, the source of this document, is read."""


FoundSource = SourceDocument | UnreadableSource | SkippedFiles


def find_sources(
    paths: Sequence[Path],
    *,
    root: Path,
    file_types: FileTypes,
    metadata: Metadata | None = None,
    is_index: Callable[[Path], bool] = lambda _: False,
    choice: FileChoice | None = None,
) -> Iterator[FoundSource]:
    """Yield a document for each file of `paths` and for each readable file in folders among them, ordered by name.

    The type of a file follows from its suffix; without one, and for a file with any other suffix that is named in
    `paths`, from its first bytes. The id of a file is its path below `root`, or its full path if it is elsewhere.
    `metadata` applies to every document and overrides the metadata in a sidecar file, NAME.meta.json or
    NAME.EXT.meta.json.

    Files are read lazily, and each file once. Hidden files, sidecars, empty files and links out of their folder are
    skipped. In folders, files that Quipu has written are skipped too: recorded model calls, and an index, whose
    database `is_index` recognizes. A file that cannot be read gives an UnreadableSource. The last value is a
    SkippedFiles, if any file was skipped. `choice` decides what else is left out, and which files are not read. Raises
    NotFound at once for a path that does not exist.
    """
    for path in paths:
        if not _exists(path):
            raise NotFound(f"There is no file or folder {path}.", remedy="Check its spelling, or give its full path.")
    return _find(paths, root.resolve(), file_types, metadata or {}, is_index, choice)


def text_source(
    text: str,
    id: str | None = None,
    *,
    title: str = "",
    metadata: Metadata | None = None,
    media_type: str = "text/plain",
) -> SourceDocument:
    """Return `text` as a document. Without an id, its id is a digest of its content: equal texts are one document.

    Raises InvalidDocument for text that holds a lone surrogate, and InvalidInput for a value that is not a text.
    """
    if not isinstance(text, str):
        raise InvalidInput(
            f"add_text takes a text, not {repr(text)[:80]}.", remedy="Decode bytes, or pass a SourceDocument to add."
        )
    checked_metadata(metadata)
    try:
        content = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidDocument(
            f"The text holds a lone surrogate at character {error.start}.",
            remedy="Decode it from its bytes again, with errors='replace'.",
        ) from error
    name = checked_id(id) if id is not None else f"text:{digest_bytes(content)[:12]}"
    return SourceDocument(id=name, content=content, title=title, metadata=dict(metadata or {}), media_type=media_type)


def checked_id(name: str) -> str:
    """Return `name` if it can be the id of a document; raises InvalidInput if not."""
    if not isinstance(name, str) or not name.strip() or len(name) > MAX_ID or "\0" in name:
        raise InvalidInput(
            f"{repr(name)[:80]} cannot be the id of a document.",
            remedy=f"Use a text of 1 to {MAX_ID:,} characters, not only spaces, without NUL.",
        )
    return name


def checked_metadata(metadata: Metadata | None) -> Metadata:
    """Return `metadata`, {} for None. Raises InvalidInput unless it maps names to texts, numbers or lists of texts."""
    if not isinstance(metadata or {}, Mapping):
        raise InvalidInput(
            f"{repr(metadata)[:80]} is not metadata.",
            remedy="Give a mapping, such as {'year': 1298, 'author': 'Polo'}.",
        )
    for name, value in (metadata or {}).items():
        values = value if isinstance(value, (tuple, list)) else (value,)
        if not isinstance(name, str) or not all(part is None or isinstance(part, _SCALARS) for part in values):
            raise InvalidInput(
                f"The metadata {repr(name)[:80]} = {repr(value)[:80]} cannot be stored.",
                remedy="A name must be a text. A value must be a text, number, True, False, None, or a list of texts.",
            )
    return metadata or {}


def path_id(path: Path, root: Path) -> str:
    """Return the id of the document of a file: its path relative to `root`, or its full path if it is elsewhere.

    Links in folders are resolved.
    """
    return _PathIds(root).of(path)


class _PathIds:
    """The ids of files; each folder is resolved once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._prefixes: dict[Path, str] = {}

    def of(self, path: Path) -> str:
        """Return the id of a file, see `path_id`."""
        folder = path.parent
        if folder not in self._prefixes:
            whole = folder.resolve()
            name = (whole.relative_to(self._root) if whole.is_relative_to(self._root) else whole).as_posix()
            self._prefixes[folder] = "" if name == "." else name if name.endswith("/") else f"{name}/"
        return f"{self._prefixes[folder]}{path.name}".encode("utf-8", "backslashreplace").decode("utf-8")


def _exists(path: Path) -> bool:
    """Return whether `path` exists; False if it is too long for a path or in a folder that cannot be opened."""
    try:
        return path.exists()
    except OSError:
        return False


def _find(
    paths: Sequence[Path],
    root: Path,
    file_types: FileTypes,
    metadata: Metadata,
    is_index: Callable[[Path], bool],
    choice: FileChoice | None,
) -> Iterator[FoundSource]:
    skipped: Counter[tuple[str, str]] = Counter()
    file_name_by_id: dict[str, bytes] = {}
    ids = _PathIds(root)
    for path in paths:
        is_folder = path.is_dir()
        for file in _files(path, file_types, skipped, is_index, choice) if is_folder else [path]:
            name = ids.of(file)
            if choice is not None and not choice.wants(file, name):
                continue
            if name not in file_name_by_id:
                file_name_by_id[name] = os.fsencode(file.name)
                source = _read(file, name, path if is_folder else path.parent, file_types, metadata)
                if isinstance(source, SourceDocument) and not source.content.strip(_BLANK):
                    skipped[EMPTY, ""] += 1
                else:
                    yield source
            elif file_name_by_id[name] != os.fsencode(file.name):  # two names whose escaped spelling is equal
                error = InvalidDocument(f"Two files would be called {name}.", remedy="Rename one of them.")
                yield UnreadableSource(id=name, source=name, error=error)
    if skipped:
        yield SkippedFiles(dict(sorted(skipped.items())))


def _files(
    folder: Path,
    file_types: FileTypes,
    skipped: Counter[tuple[str, str]],
    is_index: Callable[[Path], bool],
    choice: FileChoice | None,
) -> Iterator[Path]:
    """Yield the readable files in `folder` and its subfolders, then the folders that cannot be opened."""
    closed: list[OSError] = []
    top = folder.resolve()
    for base, folders, names in os.walk(folder, onerror=closed.append):
        own = index_parts(Path(base), (*folders, *names), is_index)
        skipped.update([(INDEX, "")] if own else ())
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in own)
        if choice is not None:
            folders[:] = [name for name in folders if not choice.ignores(Path(base, name))]
        skipped.update((_LINK, "") for name in folders if Path(base, name).is_symlink())
        for name in sorted(names):
            file = Path(base, name)
            if name.startswith(".") or name.endswith(SIDECAR_SUFFIX) or name in own:
                continue
            if choice is not None and choice.ignores(file):
                continue
            suffix = file.suffix.lower()
            if suffix not in (*file_types.by_suffix, *_SNIFFED_SUFFIXES):
                skipped[UNREAD, suffix] += 1
            elif kind := _skipped_kind(file, top):
                skipped[kind, ""] += 1
            elif suffix in _SNIFFED_SUFFIXES and _is_unread(file, file_types):
                skipped[UNREAD, suffix] += 1
            else:
                yield file
    yield from sorted(Path(error.filename) for error in closed)


def _is_unread(file: Path, file_types: FileTypes) -> bool:
    """Return whether the bytes of a file that is not blank are of no type that can be read."""
    try:
        head = _head(file)
    except OSError:  # reading it will report this
        return False
    return bool(head.strip(_BLANK)) and not file_types.sniff(file.name, head)


def _head(file: Path) -> bytes:
    with file.open("rb") as stream:
        return stream.read(_SNIFFED_BYTES)


def _skipped_kind(file: Path, top: Path) -> str:
    """Return why a file is skipped: it is a link out of the folder `top`, a pipe or a tape; "" if it is to be read."""
    is_link = False
    try:
        is_link = file.is_symlink()
        is_regular = stat.S_ISREG(file.stat().st_mode)
        if is_link and not (is_regular and file.resolve().is_relative_to(top)):
            return _LINK
    except OSError:  # a broken link; or the file or folder became unreadable, which reading it will report
        return _LINK if is_link else ""
    if not is_regular:
        return _SPECIAL
    return TAPE if is_tape(file) else ""


def is_tape(file: Path) -> bool:
    """Return whether a regular file begins with a recorded model call, as the setting `record` writes it."""
    if file.suffix.lower() != _TAPE_SUFFIX:
        return False
    try:
        with file.open("rb") as lines:
            if not lines.read(64).lstrip().startswith(b'{"model"'):  # as every record does: other files are not read on
                return False
            lines.seek(0)
            record = json.loads(lines.readline(_MAX_TAPE_LINE))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(record, dict) and record.keys() >= _TAPE_FIELDS


def index_parts(folder: Path, names: Sequence[str], is_index: Callable[[Path], bool]) -> frozenset[str]:
    """Return which of the names in a folder are files and folders of an index; none if it holds no index."""
    if _INDEX_FILE not in names or not is_index(folder / _INDEX_FILE):
        return frozenset()
    return _INDEX_PARTS.intersection(names)


def _read(
    path: Path, name: str, top: Path, file_types: FileTypes, metadata: Metadata
) -> SourceDocument | UnreadableSource:
    try:
        if len(name) > MAX_ID:
            raise InvalidDocument(
                f"The path {name[:80]}… is longer than {MAX_ID:,} characters.",
                remedy="Move it to a folder with a shorter path.",
            )
        if path.is_dir():
            raise InvalidDocument(
                f"The folder {path} cannot be opened.", remedy="Check its permissions, or leave it out."
            )
        content = _read_bytes(path, MAX_BYTES)
        return SourceDocument(
            id=name,
            source=name,
            media_type=media_type_of(path, content, file_types),
            metadata={**_sidecar(path, top), **metadata},
            content=content,
        )
    except InvalidDocument as error:
        return UnreadableSource(id=name[:MAX_ID], source=name, error=error)
    except OSError as error:  # a folder that can be listed but not entered
        return UnreadableSource(id=name, source=name, error=_unreadable(path, error))


def media_type_of(path: PurePath, content: bytes, file_types: FileTypes) -> str:
    """Return the media type of a file by its suffix, otherwise by its content; of an empty file, that of plain text.

    Raises InvalidDocument for a file that no parser reads.
    """
    suffix = path.suffix.lower()
    media_type = "" if suffix in _SNIFFED_SUFFIXES else file_types.by_suffix.get(suffix, "")
    media_type = media_type or file_types.sniff(path.name, content[:_SNIFFED_BYTES])
    if media_type or not content.strip(_BLANK):
        return media_type or "text/plain"
    kind = f"files ending in {path.suffix}" if path.suffix else "files without a suffix"
    readable = f"These can be read: {', '.join(sorted(file_types.by_suffix))}."
    raise InvalidDocument(
        f"{path} cannot be read: it is no text, and no parser reads {kind}.",
        remedy=file_types.remedy_by_suffix.get(suffix, readable),
    )


def _read_bytes(path: Path, max_bytes: int) -> bytes:
    """Return the bytes of a regular file. Raises InvalidDocument if it cannot be read or exceeds `max_bytes`."""
    try:
        # O_NONBLOCK: a pipe may have replaced a file that was here a moment ago.
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
    """Return the metadata in NAME.meta.json and NAME.EXT.meta.json beside the file; the second overrides the first.

    Raises InvalidDocument for a sidecar that is malformed or a link out of the folder `top`.
    """
    metadata: dict[str, MetadataValue] = {}
    for stem in (path.stem, path.name):
        sidecar = path.with_name(stem + SIDECAR_SUFFIX)
        if _exists(sidecar) and sidecar.is_file():
            if sidecar.is_symlink() and not sidecar.resolve().is_relative_to(top.resolve()):
                raise InvalidDocument(
                    f"The metadata in {sidecar} is a link to a file outside its folder.",
                    remedy="Copy it, or remove the link.",
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
