"""Said: what a server answered, read whatever its form; of an error its message, code and field."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from quipu.providers.openai.fields import at, count_at, list_at, text_at

_MAX_EXCERPT = 300
_MAX_WORDS = 8_192
_HTML = re.compile(r"\s*(<!doctype|<html|<\?xml|<head|<body)", re.IGNORECASE)
_TITLE = re.compile(r"<title[^>]*>([^<]*)</title>", re.IGNORECASE)
_PLACES = (("error", "message"), ("error",), ("message",), ("message", "detail"), ("detail",), ("errors", 0, "message"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """An answer. `words` is all that was said, in lower case, to look in; never shown."""

    status: int
    headers: Mapping[str, str]
    body: object
    message: str
    code: str = ""
    parameter: str = ""
    words: str = ""
    is_html: bool = False

    @property
    def is_error(self) -> bool:
        """Whether an error is reported, be it under a status of success."""
        return self.status >= 400 or bool(at(self.body, "error"))


class Fault(Exception):
    """A server answered with an error; caught within this package."""

    def __init__(self, said: Said) -> None:
        super().__init__(said.status)
        self.said = said


def read_said(status: int, headers: Mapping[str, str], body: bytes) -> Said:
    """Return what an answer says; a status named in the body counts where the answer's own is one of success."""
    text = body[:_MAX_WORDS].decode("utf-8", "replace")
    if _HTML.match(text):
        title = _TITLE.search(text)
        message = title[1] if title else "a page in HTML"
        return Said(status=status, headers=headers, body=None, message=message, words=text.lower(), is_html=True)
    try:
        parsed: object = json.loads(body)
    except (ValueError, RecursionError):
        return Said(status=status, headers=headers, body=None, message=text, words=text.lower())
    return said_in(status, headers, parsed)


def said_in(status: int, headers: Mapping[str, str], body: object) -> Said:
    """Return what parsed JSON says; Gemini puts it into a list."""
    if isinstance(body, list) and at(body, 0, "error"):
        body = body[0]
    named = count_at(body, "error", "code") or count_at(body, "code") or 0
    codes = [text_at(body, *place) for place in (("error", "code"), ("error", "type"), ("code",), ("error_type",))]
    return Said(
        status=named if status < 400 <= named < 600 else status,
        headers=headers,
        body=body,
        message=_message(body)[:_MAX_WORDS],
        code=" ".join(filter(None, codes)),
        parameter=text_at(body, "error", "param") or _failed_field(body),
        words=" ".join(_words(body))[:_MAX_WORDS].lower(),
    )


def excerpt(message: str) -> str:
    """Return a message on one line, cut where it is long; secrets must be masked before."""
    line = " ".join("".join(each if each.isprintable() else " " for each in message).split())
    return line if len(line) <= _MAX_EXCERPT else f"{line[: _MAX_EXCERPT - 1]}…"


def _message(body: object) -> str:
    for place in _PLACES:
        if found := text_at(body, *place):
            behind = text_at(body, "error", "metadata", "raw")  # what OpenRouter was told by the service behind it
            return f"{found}: {behind}" if behind else found
        if problems := [text_at(each, "msg") for each in list_at(body, *place)]:
            return "; ".join(filter(None, problems))
    return json.dumps(body, ensure_ascii=False) if body is not None else ""


def _words(body: object) -> Iterator[str]:
    """Yield what a server says in its own words, as "name: value"; not the request that some repeat in their errors."""
    yield _message(body)
    for part in (body, at(body, "error"), *list_at(body, "error", "details")):
        if isinstance(part, Mapping):
            yield from (f"{name}: {value}" for name, value in part.items() if isinstance(value, str | int | float))
    yield _failed_field(body)


def _failed_field(body: object) -> str:
    """Return the field a validation error is about, as FastAPI writes it: {"detail": [{"loc": ["body", "field"]}]}."""
    for place in (("detail",), ("message", "detail")):
        if found := text_at(body, *place, 0, "loc", -1):
            return found
    return ""
