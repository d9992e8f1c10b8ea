"""Extraction reply: reads a model's reply to an extraction prompt as records while it arrives, in whatever format.

The prompts ask for one record per line, "kind<|>field<|>field". Models also answer with other separators, quotes,
Markdown tables, several records in a line, or JSON; all of these are read.
"""

import re
from collections.abc import Collection

from quipu.model.extraction import ExtractedEntity
from quipu.text.extraction_records import ExtractionRecord, json_records, make_record
from quipu.text.model_text import find_json_values, has_thinking, strip_thinking, strip_thinking_tags
from quipu.text.record_lines import (
    RecordKind,
    begins_record,
    heading_kind,
    normalize_separators,
    split_fields,
    split_records,
    strip_end_mark,
)

PARSER_VERSION = "1"
MAX_JOINED_CHARS = 6_000

_CLOSED = re.compile(r"\)[\s#,;]*$")
_LOOKS_COMPLETE = re.compile(r"[.!?。！？…\d>][\"'”’\s]*$")
_ENDS_WITH_SEPARATOR = re.compile(r"<\|*[#|]*>\s{0,8}$")


class ExtractionReplyParser:
    """Reads a reply piece by piece. It never raises, and its time is linear in the length of the reply.

    `records` are the distinct records so far; a line counts once it has ended. A reply in JSON, or with thinking tags,
    is read at its end. Then `records` loses those records that stand only inside the thinking.
    """

    def __init__(self, types: Collection[str] = ()) -> None:
        self._types = frozenset(name.casefold() for name in types)
        self._pieces: list[str] = []
        self._line: list[str] = []
        self._lines = _RecordLineReader(self._types)
        self._is_thinking = self._is_json_cut = False
        self._seen: set[ExtractionRecord] = set()
        self.records: list[ExtractionRecord] = []

    @property
    def is_done(self) -> bool:
        """Whether the reply marked its end."""
        return self._lines.is_done

    @property
    def is_truncated(self) -> bool:
        """Whether the reply ends inside a record. Then ask for the rest, even if the model says that it has ended."""
        return self._is_json_cut or (self._lines.is_truncated and not self.is_done)

    def feed(self, piece: str) -> list[ExtractionRecord]:
        """Read the next piece and return the new records of the lines that it ends."""
        self._pieces.append(piece)
        *endings, rest = piece.split("\n")
        records: list[ExtractionRecord] = []
        for ending in endings:
            line = "".join((*self._line, ending))
            self._line = []
            self._is_thinking = self._is_thinking or has_thinking(line)
            if not self._is_thinking:
                records += self._read_line(line)
        self._line.append(rest)
        return records

    def close(self, *, is_complete: bool = True) -> list[ExtractionRecord]:
        """End the reply and return the records not returned before.

        If the reply was cut off (not `is_complete`), its last line is ignored unless a line break ends it.
        """
        text = "".join(self._pieces)
        self._is_thinking = self._is_thinking or has_thinking("".join(self._line))
        if self._is_thinking:
            self._forget_records()
            records = self._read_text(strip_thinking(text), is_complete=is_complete)
            if not records:  # thinking that never ends may hold a complete reply
                records = self._read_text(strip_thinking_tags(text), is_complete=is_complete)
                if not self.is_done:
                    self._forget_records()
                    records = []
        else:
            records = self._read_last_line(is_complete=is_complete)
        return records if self.records else self._read_json(text)

    def _read_text(self, text: str, *, is_complete: bool) -> list[ExtractionRecord]:
        self._lines = _RecordLineReader(self._types)
        *lines, rest = text.split("\n")
        records = [record for line in lines for record in self._read_line(line)]
        self._line = [rest]
        return records + self._read_last_line(is_complete=is_complete)

    def _read_last_line(self, *, is_complete: bool) -> list[ExtractionRecord]:
        line, self._line = "".join(self._line), []
        if not is_complete:
            return []
        records = [*self._lines.read(line.rstrip("\r")), *self._lines.finish()]
        return [] if self.is_truncated else self._add_new(records)

    def _read_line(self, line: str) -> list[ExtractionRecord]:
        return [record for part in line.rstrip("\r").split("\r") for record in self._add_new(self._lines.read(part))]

    def _read_json(self, text: str) -> list[ExtractionRecord]:
        matches = find_json_values(text) if "{" in text or "[" in text else []
        self._is_json_cut = bool(matches) and not matches[-1].is_complete
        return self._add_new([record for match in matches for record in json_records(match.value, self._types)])

    def _add_new(self, records: list[ExtractionRecord]) -> list[ExtractionRecord]:
        new = [record for record in dict.fromkeys(records) if record not in self._seen]
        self._seen.update(new)
        self.records += new
        return new

    def _forget_records(self) -> None:
        self.records, self._seen = [], set()


class _RecordLineReader:
    """Reads lines in order. A record may continue in the next line; a heading gives the kind of the rows below it.

    `is_done` is set when a line marks the end. `is_truncated` tells whether the last record so far is incomplete.
    """

    def __init__(self, types: Collection[str]) -> None:
        self._types = types
        self._heading_kind: RecordKind | None = None
        self._open_record = ""
        self.is_done = self.is_truncated = False

    def read(self, line: str) -> list[ExtractionRecord]:
        """Return the records that end with this line."""
        line, is_end = strip_end_mark(normalize_separators(line).rstrip())
        self.is_done = self.is_done or is_end
        records = [record for part in split_records(line) for record in self._read_part(part)]
        return records + self.finish() if is_end else records

    def finish(self) -> list[ExtractionRecord]:
        """Return the open record as it is, because no further line belongs to it."""
        text, self._open_record = self._open_record, ""
        records = self._make_record(text) if text else []
        self.is_truncated = self.is_truncated or (bool(text) and not _LOOKS_COMPLETE.search(text))
        return records

    def _read_part(self, part: str) -> list[ExtractionRecord]:
        records: list[ExtractionRecord] = []
        if self._open_record:
            if part.strip() and not begins_record(part) and len(self._open_record) + len(part) < MAX_JOINED_CHARS:
                part = f"{self._open_record} {part.strip()}"
                self._open_record = ""
            else:
                records = self.finish()
        if _is_open(part):
            self._open_record, self.is_truncated = part, True
            return records
        return records + self._make_record(part)

    def _make_record(self, text: str) -> list[ExtractionRecord]:
        if not text.strip():
            return []
        fields = split_fields(text)
        if fields is None:
            self._heading_kind = heading_kind(text) or self._heading_kind
            self.is_truncated = begins_record(text)
            return []
        record = make_record(fields.kind or self._heading_kind, fields.values, self._types)
        self.is_truncated = _lacks_fields(record) and fields.kind is not None
        return [] if record is None else [record]


def _is_open(text: str) -> bool:
    """Return whether a record has begun but not ended: a parenthesis is open, or a separator stands at its end."""
    has_open_parenthesis = text.lstrip().startswith("(") and not _CLOSED.search(text)
    return (has_open_parenthesis or _ENDS_WITH_SEPARATOR.search(text) is not None) and begins_record(text)


def _lacks_fields(record: ExtractionRecord | None) -> bool:
    """Return whether a record lacks so many fields that it may have been cut off."""
    return record is None or (isinstance(record, ExtractedEntity) and not record.type and not record.description)
