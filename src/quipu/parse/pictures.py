"""Pictures: what a document says of a picture (its alternative text) stands in the text as "[Picture: …]"."""

import re
from html import unescape

PICTURE = "[Picture: "  # begins the text of a picture, which "]" ends
MAX_ALT = 2_000  # characters
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
_MARKDOWN = re.compile(
    r"(?P<code>^[ \t>]*(?P<fence>`{3,20}|~{3,20}).*?(?:^[ \t>]*(?P=fence)[`~]*[ \t]*$|\Z)|`[^`\n]+`|``[^\n]+?``)"
    rf"|\[[ \t]*!\[{_ALT}\]{_TARGET}[ \t]*\]{_TARGET}"  # a picture that is a link
    rf"|!\[{_ALT}\](?:{_TARGET}|\[[^\[\]\n]*\])"
    r"|<img\b(?P<html>[^<>]*)>",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
_ATTRIBUTE = re.compile(r"""\b(alt|src|width|height)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.IGNORECASE)


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


def replace_pictures(markup: str) -> str:
    """Return Markdown with its pictures as text. Pictures in code stay; pictures without a description go."""
    seen: set[str] = set()
    return _MARKDOWN.sub(lambda match: match[0] if match["code"] is not None else _first(_text(match), seen), markup)


def _first(text: str, seen: set[str]) -> str:
    """Return a text the first time, then ""."""
    is_new = text not in seen
    seen.add(text)
    return text if is_new else ""


def _text(match: re.Match[str]) -> str:
    """Return the text of a picture in Markdown; in a heading it stands without a mark."""
    if match["html"] is not None:
        values = {name.lower(): unescape("".join(value)) for name, *value in _ATTRIBUTE.findall(match["html"])}
        return picture_text(values.pop("alt", ""), **values)
    link_alt, link_src, _, alt, src = match.groups()[2:7]
    text = picture_text(link_alt or alt or "", src=link_src or src or "")
    line = match.string[max(0, match.start() - _MAX_HEADING_START) : match.start()].rpartition("\n")[2]
    is_heading = line.startswith("#")
    return text.removeprefix(PICTURE).removesuffix("]") if is_heading else text
