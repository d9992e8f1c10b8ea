"""Archives with safe limits: ZIP, the Office files (Open Packaging Conventions) stored in it, and gzip."""

import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from gzip import GzipFile
from io import BytesIO
from pathlib import PurePosixPath
from posixpath import dirname, join, normpath
from typing import IO
from xml.etree.ElementTree import Element
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from quipu.errors import InvalidDocument
from quipu.model.document import MetadataValue, ParsedDocument, SourceDocument
from quipu.parse import parse, sniffed_or_known_type
from quipu.parse.decode import damaged_document, display_name
from quipu.parse.limits import MAX_ENTRIES, MAX_PART_BYTES, MAX_RATIO, MAX_UNPACKED_BYTES, RATIO_FROM_BYTES
from quipu.parse.pictures import are_pictures_read, with_picture
from quipu.parse.xml import attribute, children, descendants, local, parse_tree, prefixed_attribute

_ENTRY = b"PK\x01\x02"
_IS_ENCRYPTED = 0x1
_MAX_VALUE = 1_000  # characters of one metadata value
_KEY_BY_PROPERTY = {
    "creator": "author",
    "subject": "subject",
    "keywords": "keywords",
    "category": "category",
    "language": "language",
    "created": "created",
    "modified": "modified",
}


class ZipArchive:
    """The parts of one ZIP file by name. A part is unpacked only when it is read, within the limits.

    The standard library stops at the size that the archive's directory gives, so checking that size bounds the memory.
    """

    def __init__(self, source: SourceDocument) -> None:
        self.name = display_name(source)
        if source.content.count(_ENTRY) > MAX_ENTRIES:
            raise self._bomb(f"lists more than {MAX_ENTRIES:,} parts")
        try:
            self._zip = ZipFile(BytesIO(source.content))
        except (BadZipFile, RuntimeError, ValueError, OSError) as error:
            raise damaged_document(
                self.name, f"the ZIP archive is not complete ({error}), for example after an interrupted copy"
            ) from error
        self._parts: Mapping[str, ZipInfo] = {part.filename.lower(): part for part in self._zip.infolist()}
        self._n_read = 0
        self._refuse_bombs()

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._parts

    @property
    def names(self) -> list[str]:
        """The names of all parts, spelled as in the archive."""
        return [part.filename for part in self._parts.values()]

    def read(self, name: str) -> bytes:
        """Return the bytes of a part. Raises InvalidDocument if it is missing, too large or damaged."""
        if self._part(name).file_size > MAX_PART_BYTES:
            raise self._bomb(f"unpacks to more than {MAX_PART_BYTES:,} bytes ({name})")
        with self.open(name) as stream:
            return stream.read()

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """Open a part as a stream. Raises InvalidDocument as `read` does, but one part may have any size."""
        part = self._part(name)
        self._n_read += part.file_size
        if self._n_read > MAX_UNPACKED_BYTES:
            raise self._bomb(f"unpacks to more than {MAX_UNPACKED_BYTES:,} bytes")
        try:
            with self._zip.open(part) as stream:
                yield stream
        except (BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError) as error:
            raise damaged_document(self.name, f"its part {name} cannot be unpacked ({error})") from error

    def _part(self, name: str) -> ZipInfo:
        part = self._parts.get(name.lower())
        if part is None:
            raise damaged_document(self.name, f"its part {name} is missing")
        if part.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
            raise damaged_document(self.name, f"its part {name} uses a compression that these files never use")
        if part.flag_bits & _IS_ENCRYPTED:
            raise InvalidDocument(
                f"{self.name} is protected by a password.", remedy="Remove the password, or leave the file out."
            )
        return part

    def _refuse_bombs(self) -> None:
        """Raise InvalidDocument if a part would unpack to far more bytes than a normal file does."""
        for part in self._parts.values():
            if part.file_size > max(RATIO_FROM_BYTES, MAX_RATIO * part.compress_size):
                raise self._bomb(f"unpacks {part.compress_size:,} bytes to {part.file_size:,} ({part.filename})")

    def _bomb(self, excess: str) -> InvalidDocument:
        return InvalidDocument(
            f"{self.name} is refused: it {excess}, like a file made to exhaust memory.",
            remedy="If you trust the file, save it as text, or split it.",
        )


@dataclass(frozen=True, slots=True)
class PackageRelation:
    """A reference from one part to another: the last word of its type, and the name of the other part or a URL."""

    kind: str
    target: str


class OfficePackage:
    """The parts of an Office file. They are found by their relations, because programs use different part names."""

    def __init__(self, source: SourceDocument) -> None:
        self.archive = ZipArchive(source)
        self.name = self.archive.name
        self._root = self.relations("")

    @property
    def main(self) -> str:
        """The name of the main part. Raises InvalidDocument if there is none."""
        part = self._root_target("officeDocument")
        if part not in self.archive:
            raise damaged_document(self.name, "the part with its text is missing")
        return part

    def tree(self, part: str) -> Element:
        """Return the root element of a part. Raises InvalidDocument if it is missing or damaged."""
        return parse_tree(self.archive.read(part), self.name)

    def relations(self, part: str) -> Mapping[str, PackageRelation]:
        """Return the relations of a part by their ids; "" stands for the package. Targets are names of parts."""
        folder, _, name = part.rpartition("/")
        file = f"{folder}/_rels/{name}.rels".lstrip("/")
        if file not in self.archive:
            return {}
        return {
            attribute(relation, "Id"): PackageRelation(
                kind=attribute(relation, "Type").rpartition("/")[2],
                target=normpath(join("/", dirname(part), attribute(relation, "Target"))).lstrip("/"),
            )
            for relation in children(self.tree(file), "Relationship")
        }

    def related(self, part: str, kind: str) -> str:
        """Return the first existing part that `part` refers to with a relation of `kind`, or the empty string."""
        targets = (relation.target for relation in self.relations(part).values() if relation.kind == kind)
        return next((target for target in targets if target in self.archive), "")

    def describe_pictures(self, root: Element, part: str) -> None:
        """Put what a model says of each picture below `root`, the root of `part`, into its alternative text."""
        relations = self.relations(part) if are_pictures_read() else {}
        for frame in descendants(root, "inline", "anchor", "pic") if relations else ():
            properties = next(descendants(frame, "docPr", "cNvPr"), None)
            blip = next(descendants(frame, "blip"), None)
            relation = None if blip is None else relations.get(prefixed_attribute(blip, "embed"))
            if properties is None or relation is None or relation.target not in self.archive:
                continue
            with suppress(InvalidDocument):  # a picture that cannot be unpacked is left out
                content = self.archive.read(relation.target)
                alt = properties.get("descr") or properties.get("title") or ""
                properties.set("descr", with_picture(alt, content))

    def properties(self) -> tuple[str, dict[str, MetadataValue]]:
        """Return the document's title and its metadata: author, subject, keywords, category, language, dates."""
        part = self._root_target("core-properties")
        if part not in self.archive:
            return "", {}
        values = {local(element): " ".join((element.text or "").split())[:_MAX_VALUE] for element in self.tree(part)}
        metadata = {key: values[name] for name, key in _KEY_BY_PROPERTY.items() if values.get(name)}
        return values.get("title", ""), dict(metadata)

    def _root_target(self, kind: str) -> str:
        return next((relation.target for relation in self._root.values() if relation.kind == kind), "")


def relation_id(element: Element) -> str:
    """Return the id of the relation that an element refers to: its prefixed `id`, as its own id has no prefix."""
    return prefixed_attribute(element, "id")


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
