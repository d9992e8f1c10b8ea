"""Signature: what a file is by its bytes, for the file that is not what its name says."""

from io import BytesIO
from zipfile import BadZipFile, ZipFile

from quipu.errors import InvalidDocument
from quipu.model.document import SourceDocument
from quipu.parse.decode import name_of
from quipu.parse.limits import MAX_ENTRIES

_PDF_WITHIN = 1024  # bytes; readers accept anything before the header
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_KIND_BY_START = (
    (b"\x89PNG\r\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"{\\rtf", "a Rich Text document"),
    (b"<!DOCTYPE html", "an HTML page"),
    (b"<html", "an HTML page"),
)
_KIND_BY_PART = (
    ("word/", "a Word document"),
    ("ppt/", "a PowerPoint presentation"),
    ("xl/", "an Excel workbook"),
    ("meta-inf/container.xml", "an EPUB book"),
)
_KIND_BY_MIMETYPE = (
    (b"application/epub+zip", "an EPUB book"),
    (b"application/vnd.oasis.opendocument.", "an OpenDocument file"),
)
# A directory inside an OLE file names its streams in UTF-16.
_KIND_BY_STREAM = (
    ("EncryptedPackage", "an Office document protected by a password"),
    ("WordDocument", "a Word document of the old format (.doc)"),
    ("PowerPoint Document", "a PowerPoint presentation of the old format (.ppt)"),
    ("Workbook", "an Excel workbook of the old format (.xls)"),
    ("__substg1.0_", "an Outlook message (.msg)"),
)
OLD_OFFICE = "an old Office document"
PROTECTED = _KIND_BY_STREAM[0][1]
_REMEDY_BY_KIND = {
    PROTECTED: "Open it in Office, remove the password and save it.",
    _KIND_BY_STREAM[1][1]: "Save it as .docx in Word or LibreOffice.",
    _KIND_BY_STREAM[2][1]: "Save it as .pptx in PowerPoint or LibreOffice.",
    _KIND_BY_STREAM[3][1]: "Save it as .xlsx in Excel or LibreOffice.",
    _KIND_BY_STREAM[4][1]: "Save it as .eml.",
    OLD_OFFICE: "Save it in a format of today: .docx, .pptx or .xlsx.",
    "an OpenDocument file": "Save it as .docx, .pptx or .xlsx.",
    "a Rich Text document": "Save it as .docx.",
}
_SUFFIX_BY_KIND = {
    "a PDF document": ".pdf",
    "a Word document": ".docx",
    "a PowerPoint presentation": ".pptx",
    "an Excel workbook": ".xlsx",
    "an EPUB book": ".epub",
    "an HTML page": ".html",
}
# Text may begin like these and be text.
_ALSO_TEXT = frozenset({"", "an HTML page", "a GIF image", "a Rich Text document"})


def refuse_disguised(source: SourceDocument, expected: str) -> None:
    """Raise InvalidDocument where the bytes are another kind of file than `expected` ("" is text of any kind)."""
    kind = kind_of(source.content)
    if kind == expected or (not expected and kind in _ALSO_TEXT):
        return
    if not kind:
        raise InvalidDocument(
            f"{name_of(source)} is not {expected}: its bytes do not begin as one.",
            remedy="Copy or download it again, or name it after what it is.",
        )
    if kind == PROTECTED:
        raise InvalidDocument(f"{name_of(source)} is protected by a password.", remedy=_REMEDY_BY_KIND[kind])
    if kind == "a ZIP archive" and expected:
        return  # without a readable directory: damaged, as its parser will say
    suffix = _SUFFIX_BY_KIND.get(kind)
    remedy = f"Rename it to end in {suffix}." if suffix else "Convert it to a format Quipu reads, or leave it out."
    raise InvalidDocument(
        f"{name_of(source)} is not what its name says: it holds {kind}.", remedy=_REMEDY_BY_KIND.get(kind, remedy)
    )


def kind_of(data: bytes) -> str:
    """Return what `data` is, with its article, as in "a PDF document"; the empty string where no signature tells."""
    if b"%PDF-" in data[:_PDF_WITHIN] and not data.startswith(_ZIP):
        return "a PDF document"
    if data.startswith(_OLE):
        streams = (kind for stream, kind in _KIND_BY_STREAM if stream.encode("utf-16-le") in data)
        return next(streams, OLD_OFFICE)
    if data.startswith(_ZIP):
        return _zip_kind(data)
    start = data[:64].lstrip(b"\xef\xbb\xbf \t\r\n")
    return next((kind for signature, kind in _KIND_BY_START if start.startswith(signature)), "")


def _zip_kind(data: bytes) -> str:
    try:
        if data.count(b"PK\x01\x02") > MAX_ENTRIES:
            return "a ZIP archive"
        names = [name.lower() for name in ZipFile(BytesIO(data)).namelist()]
    except (BadZipFile, RuntimeError, ValueError, OSError):
        return "a ZIP archive"
    mimetype = next((kind for media_type, kind in _KIND_BY_MIMETYPE if media_type in data[:200]), "")
    parts = (kind for part, kind in _KIND_BY_PART if any(name.startswith(part) for name in names))
    return mimetype or next(parts, "a ZIP archive")
