"""Pictures: what a document says of a picture (its alternative text) stands in the text as "[Picture: …]".

Where a model describes pictures, a document is parsed twice: first to collect its pictures, then with what the model
says of each behind its alternative text. Parsers call `with_picture` for the alternative text in both cases.
"""

import base64
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from enum import StrEnum
from html import escape, unescape
from io import BytesIO

import imagesize

from quipu.errors import InvalidDocument
from quipu.model.chat import Image
from quipu.model.document import ParsedDocument, Picture, SourceDocument
from quipu.parse.decode import display_name
from quipu.parse.formats import IMAGES_REMEDY

PICTURE = "[Picture: "  # begins the text of a picture, which "]" ends
MAX_ALT = 4_000  # characters, with the description by a model
LEFT_OUT = "pictures_left_out"  # metadata: how many pictures are not described, because there are too many
MAX_OWN_ALT = 2_000  # of its own alternative text where a model describes it, so that there is room for both
MAX_PICTURES = 500  # of a document that are described
MAX_IMAGE_BYTES = 8_000_000  # of the file of one picture
MAX_ALL_BYTES = 128_000_000  # of the files of all pictures of a document
MIN_DESCRIBED_SIDE = 50  # pixels; a smaller picture is a symbol
_CONTEXT = 400  # characters before and after a picture that the model may see
_SIGNATURES = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))
_DATA_URL = re.compile(r"\s*data:image/[\w.+-]+;base64,([\w+/=\s]+)", re.IGNORECASE)
PICTURE_MARK = "⟦picture "  # begins the mark of a picture while pictures are collected
_MARK = re.compile(rf"\s*{PICTURE_MARK}([0-9a-f]+)⟧")
_ADDED_BY_PROGRAMS = re.compile(
    r"\s*(?:Description automatically generated(?: with [a-z]+ confidence)?|AI-generated content may be incorrect"
    r"|AI 生成的内容可能不正确|描述已自动生成|Автоматически созданное описание"
    r"|Контент, созданный ИИ, может содержать ошибки)[.。]?",
    re.IGNORECASE,
)
_EXTENSIONS = "png|jpe?g|gif|svg|webp|bmp|tiff?|emf|wmf|ico|avif|heic"
_NO_DESCRIPTION = re.compile(
    rf"\S*\.(?:{_EXTENSIONS})\b.{{0,30}}"  # the name of a file, perhaps with its size
    r"|(?:img|image|dscn?|pict?|picture|photo|screen ?shot|figure|fig|graphic|icon|logo|badge|object|diagram|chart"
    r"|grafik|bild|imagen|рисунок|изображение|картинка|图片|图像|图)[\W_]*\d*(?:[\W_]\d+)*"
    r"|(?-i:[a-z0-9]+(?:[-_][a-z0-9]+)+)",
    re.IGNORECASE,
)
_MAX_HEADING_START = 400  # characters before a picture in a heading
_BADGE = re.compile(r"badge|shields\.io|star-history", re.IGNORECASE)
_MAX_ADDRESS = 300  # characters of an address that are looked at
_MIN_SIDE = 24  # pixels; a smaller picture is an icon
_ALT = r"((?:[^\[\]\n]|\[[^\[\]\n]*\])*)"
_TARGET = r"\(([^()\n]*(?:\([^()\n]*\)[^()\n]*)*)\)"
CODE = r"^[ \t>]*(?P<fence>`{3,20}|~{3,20}).*?(?:^[ \t>]*(?P=fence)[`~]*[ \t]*$|\Z)|`[^`\n]+`|``[^\n]+?``"
_MARKDOWN = re.compile(
    rf"(?P<code>{CODE})"
    rf"|\[[ \t]*!\[{_ALT}\]{_TARGET}[ \t]*\]{_TARGET}"  # a picture that is a link
    rf"|!\[{_ALT}\](?:{_TARGET}|\[[^\[\]\n]*\])"
    r"|<img\b(?P<html>[^<>]*)>",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
_IMG = re.compile(r"<img\b([^<>]*)>", re.IGNORECASE)
_ALT_ATTRIBUTE = re.compile(r"""\balt\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'>]+)""", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"""\b(alt|src|width|height)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.IGNORECASE)


class PageReading(StrEnum):
    """Which pages of a PDF a model reads from a picture of them: none, those without a text of their own, or all."""

    NEVER = "never"
    SCANS = "scans"
    ALL = "all"


@dataclass(slots=True)
class _PictureReading:
    """The pictures of the document that is parsed now: those found by their keys, and what a model says of them."""

    descriptions: Mapping[str, str] | None  # None while pictures are collected
    pages: PageReading
    found: dict[str, Picture] = field(default_factory=dict)
    n_bytes: int = 0
    left_out: set[str] = field(default_factory=set)
    n_left_out: int = 0  # of those that a parser did not even render


# Parsers of containers (mail, e-books, packed files) call other parsers, so the pictures do not go through parameters.
_READING: ContextVar[_PictureReading | None] = ContextVar("pictures", default=None)


@dataclass(frozen=True, slots=True)
class IllustratedParser:
    """Parses documents by `parse` for a model that describes pictures, and reads the pages that `pages` says."""

    parse: Callable[[SourceDocument], ParsedDocument]
    pages: PageReading

    def collect(self, source: SourceDocument) -> tuple[ParsedDocument, tuple[Picture, ...]]:
        """Return the document without descriptions, and its pictures in order with the text around each.

        The metadata `pictures_left_out` counts those beyond the limits. Raises as `parse` does.
        """
        with _pictures(None, self.pages) as reading:
            parsed = _with_left_out(self.parse(source), reading)
        pictures: dict[str, Picture] = {}
        for mark in _MARK.finditer(parsed.text):
            picture = reading.found.get(mark[1])
            if picture is not None and picture.key not in pictures:
                before = _MARK.sub("", parsed.text[max(0, mark.start() - _CONTEXT) : mark.start()])
                after = _MARK.sub("", parsed.text[mark.end() : mark.end() + _CONTEXT])
                before = _nearest(before.removesuffix(f"{PICTURE}{picture.alt}".rstrip()), -1)
                pictures[picture.key] = replace(picture, before=before, after=_nearest(after.removeprefix("]"), 0))
        return parsed, tuple(pictures.values())

    def describe(self, source: SourceDocument, descriptions: Mapping[str, str]) -> ParsedDocument:
        """Return the document with the descriptions of its pictures, by their keys. Raises as `parse` does."""
        with _pictures(descriptions, self.pages) as reading:
            return _with_left_out(self.parse(source), reading)


def _with_left_out(parsed: ParsedDocument, reading: _PictureReading) -> ParsedDocument:
    n_left_out = len(reading.left_out) + reading.n_left_out
    return replace(parsed, metadata={**parsed.metadata, LEFT_OUT: str(n_left_out)}) if n_left_out else parsed


def _nearest(text: str, index: int) -> str:
    """Return the first or last paragraph of a text: more would mean to ask again after a change further away."""
    paragraphs = [paragraph for paragraph in text.split("\n\n") if paragraph.strip()]
    return paragraphs[index].strip() if paragraphs else ""


@contextmanager
def _pictures(descriptions: Mapping[str, str] | None, pages: PageReading) -> Iterator[_PictureReading]:
    token = _READING.set(reading := _PictureReading(descriptions, pages))
    try:
        yield reading
    finally:
        _READING.reset(token)


def as_markdown(source: SourceDocument) -> SourceDocument:
    """Return a file that is one picture (a page, a screenshot, a photograph) as the Markdown that a model makes of it.

    Raises InvalidDocument if no model reads it.
    """
    name = display_name(source)
    if not are_pictures_read():
        raise InvalidDocument(f"{name} is a picture, which only a model reads.", remedy=IMAGES_REMEDY)
    if image_of(source.content) is None:
        raise InvalidDocument(
            f"{name} is no picture that a model can read.",
            remedy="It can be PNG, JPEG, GIF or WebP, up to 8 MB, with 50 pixels or more on each side.",
        )
    return replace(source, content=with_picture("", source.content, is_page=True).encode())


def are_pictures_read() -> bool:
    """Return whether a model describes the pictures of the document that is parsed now."""
    return _READING.get() is not None


def leave_out_pictures(n_pictures: int) -> None:
    """Note that the parser of the document that is parsed now leaves out pictures, because there are too many."""
    if reading := _READING.get():
        reading.n_left_out += n_pictures


def page_reading() -> PageReading:
    """Return which pages of the PDF that is parsed now a model reads."""
    reading = _READING.get()
    return reading.pages if reading else PageReading.NEVER


def with_picture(alt: str, content: bytes, *, is_page: bool = False) -> str:
    """Return the alternative text of a picture with what a model says of the file; while collecting, with a mark.

    Without a model, and for a file that no model reads, it is the alternative text as it is.
    """
    reading = _READING.get()
    image = image_of(content) if reading else None
    if reading is None or image is None:
        return alt
    own = picture_text(alt).removeprefix(PICTURE).removesuffix("]")[:MAX_OWN_ALT].rstrip()
    picture = Picture(image=image, alt=own, is_page=is_page)
    key = picture.key  # a digest of the file
    if key not in reading.found:
        if len(reading.found) >= MAX_PICTURES or reading.n_bytes + len(content) > MAX_ALL_BYTES:
            reading.left_out.add(key)
            return alt
        reading.n_bytes += len(content)
        reading.found[key] = picture
    if reading.descriptions is not None:
        description = reading.descriptions.get(key, "")
        if not own or not description:
            return own or description
        return f"{own} {description}" if own.endswith((".", "!", "?", "。")) else f"{own}. {description}"
    return f"{own} {PICTURE_MARK}{key}⟧".strip()


def image_of(content: bytes) -> Image | None:
    """Return the file of a picture with its size in pixels; None if no model reads it, or if it is a symbol."""
    media_type = next((name for signature, name in _SIGNATURES if content.startswith(signature)), "")
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        media_type = "image/webp"
    if not media_type or len(content) > MAX_IMAGE_BYTES:
        return None
    width, height = imagesize.get(BytesIO(content))
    if min(width, height) < MIN_DESCRIBED_SIDE:
        return None
    return Image(media_type=media_type, content=content, width=int(width), height=int(height))


def with_descriptions(markup: str, file_of: Callable[[str], bytes]) -> str:
    """Return HTML, in which the alternative texts of pictures have what a model says of their files.

    These are in data URLs, or `file_of` returns them by their addresses, b"" for one that it does not know.
    """
    if not are_pictures_read():
        return markup
    return _IMG.sub(lambda match: _described_tag(match, file_of), markup)


def _described_tag(match: re.Match[str], file_of: Callable[[str], bytes]) -> str:
    values = {name.lower(): unescape("".join(value)) for name, *value in _ATTRIBUTE.findall(match[1])}
    src = values.get("src", "")
    content = _data_of(src) or file_of(src)
    alt = with_picture(values.get("alt", ""), content) if content else ""
    return f'<img alt="{escape(alt)}" {_ALT_ATTRIBUTE.sub("", match[1])}>' if alt else match[0]


def _data_of(url: str) -> bytes:
    """Return the file in a data URL; b"" for another URL, and for one that is damaged."""
    encoded = _DATA_URL.fullmatch(url) if len(url) < 2 * MAX_IMAGE_BYTES else None
    try:
        return base64.b64decode(encoded[1]) if encoded else b""
    except ValueError:
        return b""


def picture_text(alt: str, *, src: str = "", width: str = "", height: str = "") -> str:
    """Return the alternative text of a picture as it stands in a document; "" if it says nothing of the picture.

    It says nothing if it is empty, the name of a file, or a word like "Image 3". An icon (by its `width` and `height`
    in pixels) and a badge (by its address `src`) have no text either.
    """
    if _BADGE.search(src[:_MAX_ADDRESS]):
        return ""
    alt = " ".join(_ADDED_BY_PROGRAMS.sub("", alt[: 2 * MAX_ALT]).split())
    is_icon = any(side.isdecimal() and int(side[:6]) < _MIN_SIDE for side in (width, height))
    if is_icon or not any(map(str.isalpha, alt)) or _NO_DESCRIPTION.fullmatch(alt):
        return ""
    return f"{PICTURE}{alt if len(alt) <= MAX_ALT else f'{alt[:MAX_ALT].rstrip()}…'}]"


def replace_pictures(markup: str, without: str = "") -> str:
    """Return Markdown with its pictures as text, those without a description as `without`. Pictures in code stay."""
    seen: set[str] = set()
    return _MARKDOWN.sub(
        lambda match: match[0] if match["code"] is not None else _first(_text(match), seen) or without, markup
    )


def _first(text: str, seen: set[str]) -> str:
    """Return a text the first time, then ""."""
    is_new = text not in seen
    seen.add(text)
    return text if is_new else ""


def _text(match: re.Match[str]) -> str:
    """Return the text of a picture in Markdown; in a heading it stands without a mark."""
    if match["html"] is not None:
        values = {name.lower(): unescape("".join(value)) for name, *value in _ATTRIBUTE.findall(match["html"])}
        return picture_text(_with_data_url(values.pop("alt", ""), values.get("src", "")), **values)
    link_alt, link_src, _, alt, src = match.groups()[2:7]
    url = link_src or src or ""
    text = picture_text(_with_data_url(link_alt or alt or "", url), src=url)
    line = match.string[max(0, match.start() - _MAX_HEADING_START) : match.start()].rpartition("\n")[2]
    is_heading = line.startswith("#")
    return text.removeprefix(PICTURE).removesuffix("]") if is_heading else text


def _with_data_url(alt: str, url: str) -> str:
    content = _data_of(url) if are_pictures_read() else b""
    return with_picture(alt, content) if content else alt
