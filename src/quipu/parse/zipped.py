"""Zipped: the parts of an archive, read within limits that its directory and its bytes are both held to."""

import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from typing import IO
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from quipu.errors import InvalidDocument
from quipu.model.document import SourceDocument
from quipu.parse.damage import damaged
from quipu.parse.decode import name_of
from quipu.parse.limits import MAX_ENTRIES, MAX_PART_BYTES, MAX_RATIO, MAX_UNPACKED_BYTES, RATIO_FROM_BYTES

_ENTRY = b"PK\x01\x02"
_IS_ENCRYPTED = 0x1


class Archive:
    """The parts of one ZIP file by name. Nothing is unpacked but what is asked for, and no more than the limits allow.

    The standard library stops reading a part at the size its directory gives, so checking that size bounds the memory.
    """

    def __init__(self, source: SourceDocument) -> None:
        self.name = name_of(source)
        if source.content.count(_ENTRY) > MAX_ENTRIES:
            raise self._too_much(f"lists more than {MAX_ENTRIES:,} parts")
        try:
            self._zip = ZipFile(BytesIO(source.content))
        except (BadZipFile, RuntimeError, ValueError, OSError) as error:
            raise damaged(self.name, f"it is no whole archive ({error}), as when a copy was cut short") from error
        self._parts: Mapping[str, ZipInfo] = {part.filename.lower(): part for part in self._zip.infolist()}
        self._n_read = 0
        self._refuse_bombs()

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._parts

    @property
    def names(self) -> list[str]:
        """The names of all parts, as they are written."""
        return [part.filename for part in self._parts.values()]

    def read(self, name: str) -> bytes:
        """Return the bytes of a part; raises InvalidDocument where it is missing, too large or damaged."""
        if self._part(name).file_size > MAX_PART_BYTES:
            raise self._too_much(f"unpacks to more than {MAX_PART_BYTES:,} bytes ({name})")
        with self.open(name) as stream:
            return stream.read()

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """Open a part for reading bit by bit; raises InvalidDocument as `read` does, but for parts of any size."""
        part = self._part(name)
        self._n_read += part.file_size
        if self._n_read > MAX_UNPACKED_BYTES:
            raise self._too_much(f"unpacks to more than {MAX_UNPACKED_BYTES:,} bytes")
        try:
            with self._zip.open(part) as stream:
                yield stream
        except (BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError) as error:
            raise damaged(self.name, f"its part {name} cannot be unpacked ({error})") from error

    def _part(self, name: str) -> ZipInfo:
        part = self._parts.get(name.lower())
        if part is None:
            raise damaged(self.name, f"its part {name} is missing")
        if part.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
            raise damaged(self.name, f"its part {name} is packed in a way these files never are")
        if part.flag_bits & _IS_ENCRYPTED:
            raise InvalidDocument(
                f"{self.name} is protected by a password.", remedy="Remove the password, or leave the file out."
            )
        return part

    def _refuse_bombs(self) -> None:
        """Raise InvalidDocument where the directory promises far more than its bytes can honestly hold."""
        for part in self._parts.values():
            if part.file_size > max(RATIO_FROM_BYTES, MAX_RATIO * part.compress_size):
                raise self._too_much(f"unpacks {part.compress_size:,} bytes to {part.file_size:,} ({part.filename})")

    def _too_much(self, what: str) -> InvalidDocument:
        return InvalidDocument(
            f"{self.name} is refused: it {what}, as files made to exhaust memory do.",
            remedy="If it is an honest file, save it as text, or split it.",
        )
