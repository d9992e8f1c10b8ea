"""Gzip: a compressed file is unpacked within limits and read as the file inside it."""

import zlib
from dataclasses import replace
from gzip import GzipFile
from io import BytesIO
from pathlib import PurePosixPath

from quipu.errors import InvalidDocument
from quipu.model.document import ParsedDocument, SourceDocument
from quipu.parse import parse, sniffed_or_known_type
from quipu.parse.decode import damaged_document, display_name
from quipu.parse.limits import MAX_PART_BYTES, MAX_RATIO, RATIO_FROM_BYTES


class GzipParser:
    """Reads one compressed file, whose format follows from its name without .gz, or from its bytes."""

    media_types = frozenset({"application/gzip"})

    def parse(self, source: SourceDocument) -> ParsedDocument:
        """Return the document inside. Raises InvalidDocument if it is damaged, too large, or of no readable format."""
        content = _unpack(source.content, display_name(source))
        path = PurePosixPath(source.source)
        name = path.with_suffix("").as_posix() if path.name else source.source
        media_type = sniffed_or_known_type(name, content)
        if not media_type or media_type == "application/gzip":
            raise InvalidDocument(
                f"{display_name(source)} holds a file that no parser reads.", remedy="Unpack it, or leave it out."
            )
        return parse(replace(source, content=content, source=name, media_type=media_type))


PARSER = GzipParser()


def _unpack(content: bytes, name: str) -> bytes:
    """Return the content of all members of a gzip file. Raises InvalidDocument above the limits and for damage."""
    max_bytes = min(MAX_PART_BYTES, max(RATIO_FROM_BYTES, MAX_RATIO * len(content)))
    try:
        unpacked = GzipFile(fileobj=BytesIO(content)).read(max_bytes + 1)
    except EOFError as error:
        raise damaged_document(name, "it ends too early") from error
    except (OSError, zlib.error) as error:
        raise damaged_document(name, f"it cannot be unpacked ({error})") from error
    if len(unpacked) > max_bytes:
        raise InvalidDocument(
            f"{name} is refused: it unpacks to more than {max_bytes:,} bytes.",
            remedy="If you trust the file, unpack it and split it.",
        )
    return unpacked
