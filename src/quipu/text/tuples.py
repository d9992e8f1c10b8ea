"""Tuples: a model's reply as records, read while it arrives, from whatever a model makes of the format asked for."""

from collections.abc import Collection

from quipu.text.json_records import json_records
from quipu.text.loose_json import find_json
from quipu.text.record_lines import RecordLines
from quipu.text.records import Record
from quipu.text.thinking import has_thinking, without_tags, without_thinking

PARSER_VERSION = "1"


class TupleReader:
    """Reads a reply piece by piece; never raises, in time linear in the reply.

    `records` are those read so far, none twice. A line counts once it has ended. A reply with tags of thinking, or in
    JSON, is read at its end: then records that were only thought of are taken back from `records`.
    """

    def __init__(self, types: Collection[str] = ()) -> None:
        self._types = frozenset(name.casefold() for name in types)
        self._pieces: list[str] = []
        self._line: list[str] = []
        self._lines = RecordLines(self._types)
        self._is_thinking = self._is_json_cut = False
        self._seen: set[Record] = set()
        self.records: list[Record] = []

    @property
    def is_done(self) -> bool:
        """Whether the reply marked its end."""
        return self._lines.is_done

    @property
    def is_half(self) -> bool:
        """Whether the reply ends in the middle of a record: ask for the rest, whatever the model says of its end."""
        return self._is_json_cut or (self._lines.is_half and not self.is_done)

    def feed(self, piece: str) -> list[Record]:
        """Take the next piece; return the records whose lines it ends."""
        self._pieces.append(piece)
        *ended, rest = piece.split("\n")
        found: list[Record] = []
        for end in ended:
            line = "".join((*self._line, end))
            self._line = []
            self._is_thinking = self._is_thinking or has_thinking(line)
            if not self._is_thinking:
                found += self._read(line)
        self._line.append(rest)
        return found

    def close(self, *, is_whole: bool = True) -> list[Record]:
        """End the reply; return the records not returned before. Unless it `is_whole`, a last line without end goes."""
        text = "".join(self._pieces)
        self._is_thinking = self._is_thinking or has_thinking("".join(self._line))
        if self._is_thinking:
            self._forget()
            found = self._read_again(without_thinking(text), is_whole=is_whole)
            if not found:  # a thought that never ends but holds a whole reply is none
                found = self._read_again(without_tags(text), is_whole=is_whole)
                if not self.is_done:
                    self._forget()
                    found = []
        else:
            found = self._end(is_whole=is_whole)
        return found if self.records else self._read_json(text)

    def _read_again(self, text: str, *, is_whole: bool) -> list[Record]:
        self._lines = RecordLines(self._types)
        *lines, rest = text.split("\n")
        found = [record for line in lines for record in self._read(line)]
        self._line = [rest]
        return found + self._end(is_whole=is_whole)

    def _end(self, *, is_whole: bool) -> list[Record]:
        last, self._line = "".join(self._line), []
        if not is_whole:
            return []
        found = [*self._lines.read(last.rstrip("\r")), *self._lines.finish()]
        return [] if self.is_half else self._take(found)

    def _read(self, line: str) -> list[Record]:
        return [record for part in line.rstrip("\r").split("\r") for record in self._take(self._lines.read(part))]

    def _read_json(self, text: str) -> list[Record]:
        found = find_json(text) if "{" in text or "[" in text else []
        records = [record for loose in found for record in json_records(loose.value, self._types)]
        self._is_json_cut = bool(found) and not found[-1].is_whole
        return self._take(records)

    def _take(self, records: list[Record]) -> list[Record]:
        new = [record for record in dict.fromkeys(records) if record not in self._seen]
        self._seen.update(new)
        self.records += new
        return new

    def _forget(self) -> None:
        self.records, self._seen = [], set()
