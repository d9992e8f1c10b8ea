"""Manifest: which files make up a space on disk, and as of which revision."""

import json
import re
import zlib
from dataclasses import asdict, dataclass

_FORMAT = 1
_SEGMENT_NAME = re.compile(r"[a-z]+-\d{8}\.segment")


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentFile:
    """A segment's file name, its number of rows, and the CRC-32 of its rows and sketches."""

    name: str
    n_rows: int
    checksum: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The segments of a space as of `revision`, and the positions of their deleted rows as they became known."""

    dimension: int
    revision: int
    segments: tuple[SegmentFile, ...]
    gone: tuple[int, ...]

    @property
    def n_rows(self) -> int:
        """Rows on disk, deleted ones included."""
        return sum(segment.n_rows for segment in self.segments)


def render(manifest: Manifest) -> str:
    """Return the text of a manifest: its CRC-32 on the first line, JSON on the second."""
    body = json.dumps({"format": _FORMAT, **asdict(manifest)}, ensure_ascii=True, separators=(",", ":"))
    return f"{zlib.crc32(body.encode())}\n{body}\n"


def parse(text: str) -> Manifest:
    """Return the manifest `render` wrote. Raises ValueError for any other text."""
    checksum, body, end = text.split("\n")
    if int(checksum) != zlib.crc32(body.encode()) or end:
        raise ValueError("the checksum does not match")
    fields = json.loads(body)
    if fields.pop("format") != _FORMAT:
        raise ValueError("another format")
    segments = tuple(SegmentFile(**segment) for segment in fields.pop("segments"))
    if not all(_SEGMENT_NAME.fullmatch(segment.name) for segment in segments):
        raise ValueError("a name that is not a segment's")
    return Manifest(segments=segments, gone=tuple(fields.pop("gone")), **fields)
