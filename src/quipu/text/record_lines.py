"""Record lines: the lines of a reply, one after the other, as records."""

import re
from collections.abc import Collection

from quipu.model.extraction import ExtractedEntity
from quipu.text.record_fields import (
    Fields,
    Kind,
    begins_record,
    heading_kind,
    plain_line,
    split_fields,
    split_records,
    without_done,
)
from quipu.text.records import Record, make_record

MAX_JOINED_CHARS = 6_000

_CLOSED = re.compile(r"\)[\s#,;]*$")
_LOOKS_ENDED = re.compile(r"[.!?。！？…\d>][\"'”’\s]*$")
_ENDS_WITH_SEPARATOR = re.compile(r"<\|*[#|]*>\s{0,8}$")


class RecordLines:
    """Reads lines in order. A record may go on in the next line; a heading says what the rows below it are.

    `is_done` once a line marked the end, `is_half` while the last record read is not whole.
    """

    def __init__(self, types: Collection[str] = ()) -> None:
        self._types = types
        self._below: Kind | None = None
        self._begun = ""
        self.is_done = self.is_half = False

    def read(self, line: str) -> list[Record]:
        """Return the records that end with this line."""
        line, is_end = without_done(plain_line(line).rstrip())
        self.is_done = self.is_done or is_end
        found = [record for part in split_records(line) for record in self._part(part)]
        return found + self.finish() if is_end else found

    def finish(self) -> list[Record]:
        """Return the record that was begun, as far as it goes: no further line belongs to it."""
        begun, self._begun = self._begun, ""
        found = self._record(begun) if begun else []
        self.is_half = self.is_half or (bool(begun) and not _LOOKS_ENDED.search(begun))
        return found

    def _part(self, part: str) -> list[Record]:
        found: list[Record] = []
        if self._begun:
            if part.strip() and not begins_record(part) and len(self._begun) + len(part) < MAX_JOINED_CHARS:
                part = f"{self._begun} {part.strip()}"
                self._begun = ""
            else:
                found = self.finish()
        if _goes_on(part):
            self._begun, self.is_half = part, True
            return found
        return found + self._record(part)

    def _record(self, part: str) -> list[Record]:
        if not part.strip():
            return []
        fields = split_fields(part)
        if fields is None:
            self._below = heading_kind(part) or self._below
            self.is_half = begins_record(part)
            return []
        record = make_record(Fields(fields.kind or self._below, fields.values), self._types)
        self.is_half = _is_half(record) and fields.kind is not None
        return [] if record is None else [record]


def _goes_on(part: str) -> bool:
    """Say whether a record is begun and not ended: by a parenthesis left open, or a separator at its end."""
    is_open = part.lstrip().startswith("(") and not _CLOSED.search(part)
    return (is_open or _ENDS_WITH_SEPARATOR.search(part) is not None) and begins_record(part)


def _is_half(record: Record | None) -> bool:
    """Say whether a record lacks so much that it may have been cut off."""
    return record is None or (isinstance(record, ExtractedEntity) and not record.type and not record.description)
