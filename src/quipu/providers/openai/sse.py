"""Server-sent events: the data of each event, out of bytes cut anywhere."""

import codecs

from quipu.errors import Overloaded

_MAX_LINE = 16_777_216  # characters; no event of an honest server comes near


class Events:
    """Takes the bytes of a stream and gives the data of the events that are complete.

    Comments and fields other than `data` are passed over. A line that is JSON by itself counts as an event: some
    servers report an error that way. Source: WHATWG HTML, section 9.2.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._line = ""
        self._data: list[str] = []

    def feed(self, piece: bytes) -> list[str]:
        """Return the data of every event that `piece` completes. Raises Overloaded where a line does not end."""
        *lines, self._line = (self._line + self._decoder.decode(piece)).split("\n")
        if len(self._line) > _MAX_LINE:
            raise Overloaded("A line of the stream does not end.")
        return [data for line in lines for data in self._take(line.rstrip("\r"))]

    def end(self) -> list[str]:
        """Return the data of an event whose blank line never came."""
        lines = ((self._line + self._decoder.decode(b"", True)).rstrip("\r"), "")
        self._line = ""
        return [data for line in lines for data in self._take(line)]

    def _take(self, line: str) -> list[str]:
        if line.startswith("data:"):
            self._data.append(line[6:] if line[5:6] == " " else line[5:])
        elif line.startswith("{"):
            return [line]
        elif not line and self._data:
            data = "\n".join(self._data)
            self._data.clear()
            return [data]
        return []
