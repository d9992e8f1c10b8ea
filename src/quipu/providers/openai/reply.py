"""Replies of servers: JSON from strangers, error messages in every format, streams of events, and chat replies."""

import codecs
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from quipu.errors import Overloaded
from quipu.model.chat import FinishReason, TokenCount

_MAX_EXCERPT = 300
_MAX_SEARCHED = 8_192
_MAX_COUNT = 10**9  # of anything in one call; a larger number is damage, and sums of such numbers would overflow
_MAX_LINE = 16_777_216  # characters of one line of a stream

_HTML = re.compile(r"\s*(<!doctype|<html|<\?xml|<head|<body)", re.IGNORECASE)
_TITLE = re.compile(r"<title[^>]*>([^<]*)</title>", re.IGNORECASE)
_MESSAGE_PATHS = (
    ("error", "message"),
    ("error",),
    ("message",),
    ("message", "detail"),
    ("detail",),
    ("errors", 0, "message"),
)
_DONE = "[DONE]"
_LENGTH_REASONS = ("length", "max_tokens", "model_length")
_FILTER_REASONS = ("content_filter", "safety", "recitation", "prohibited_content")
_ERROR_REASONS = ("error", "insufficient_system_resource", "aborted", "abort")

JsonKey = str | int


def value_at(value: object, *path: JsonKey) -> object:
    """Return the value at `path` in parsed JSON; None if there is none."""
    for key in path:
        if isinstance(key, str) and isinstance(value, Mapping):
            value = value.get(key)
        elif isinstance(key, int) and isinstance(value, list) and -len(value) <= key < len(value):
            value = value[key]
        else:
            return None
    return value


def text_at(value: object, *path: JsonKey) -> str:
    """Return the text at `path`; "" if there is none."""
    text = value_at(value, *path)
    return text if isinstance(text, str) else ""


def count_at(value: object, *path: JsonKey) -> int | None:
    """Return the number from 0 to `_MAX_COUNT` at `path`, cut to a whole number; None if there is none."""
    number = value_at(value, *path)
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= _MAX_COUNT:
        return None
    return int(number)


def list_at(value: object, *path: JsonKey) -> Sequence[object]:
    """Return the list at `path`; () if there is none."""
    values = value_at(value, *path)
    return values if isinstance(values, list) else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedReply:
    """What a server answered. For an error: its message, code and the request parameter it is about.

    `searchable` is all of the server's own text, in lower case, to search for keywords. It is never shown.
    """

    status: int
    headers: Mapping[str, str]
    body: object
    message: str
    code: str = ""
    parameter: str = ""
    searchable: str = ""
    is_html: bool = False

    @property
    def is_error(self) -> bool:
        """Whether the reply reports an error, even under a status of success."""
        return self.status >= 400 or bool(value_at(self.body, "error"))


class ErrorReply(Exception):
    """A server answered with an error. It is always caught within this package."""

    def __init__(self, reply: ParsedReply) -> None:
        super().__init__(reply.status)
        self.reply = reply


def parse_reply(status: int, headers: Mapping[str, str], body: bytes) -> ParsedReply:
    """Return the reply, whether its body is JSON, HTML or plain text."""
    text = body[:_MAX_SEARCHED].decode("utf-8", "replace")
    if _HTML.match(text):
        title = _TITLE.search(text)
        message = title[1] if title else "a page in HTML"
        return ParsedReply(
            status=status, headers=headers, body=None, message=message, searchable=text.lower(), is_html=True
        )
    try:
        parsed: object = json.loads(body)
    except (ValueError, RecursionError):
        return ParsedReply(status=status, headers=headers, body=None, message=text, searchable=text.lower())
    return reply_from_json(status, headers, parsed)


def reply_from_json(status: int, headers: Mapping[str, str], body: object) -> ParsedReply:
    """Return the reply with this parsed body. An error status in the body replaces a status of success."""
    if isinstance(body, list) and value_at(body, 0, "error"):  # Gemini puts errors into a list
        body = body[0]
    status_in_body = count_at(body, "error", "code") or count_at(body, "code") or 0
    codes = [text_at(body, *path) for path in (("error", "code"), ("error", "type"), ("code",), ("error_type",))]
    return ParsedReply(
        status=status_in_body if status < 400 <= status_in_body < 600 else status,
        headers=headers,
        body=body,
        message=_message(body)[:_MAX_SEARCHED],
        code=" ".join(filter(None, codes)),
        parameter=text_at(body, "error", "param") or _invalid_field(body),
        searchable=" ".join(_own_texts(body))[:_MAX_SEARCHED].lower(),
    )


def excerpt(message: str) -> str:
    """Return a message on one line and of limited length. Mask secrets before."""
    line = " ".join("".join(char if char.isprintable() else " " for char in message).split())
    return line if len(line) <= _MAX_EXCERPT else f"{line[: _MAX_EXCERPT - 1]}…"


def order_by_index(indices: Sequence[int | None], n: int) -> list[int] | None:
    """Return the position of each of `n` results, from the indices a server sent; None if they are not 0 to n - 1.

    Without any index the results are in the order of the request.
    """
    if len(indices) == n and all(index is None for index in indices):
        return list(range(n))
    position_by_index = {index: position for position, index in enumerate(indices)}
    if len(indices) != n or set(position_by_index) != set(range(n)):
        return None
    return [position_by_index[index] for index in range(n)]


def parse_token_count(reply: ParsedReply) -> TokenCount | None:
    """Return how many tokens a service read for embeddings or scores; None if it reports none."""
    for path in (("usage", "prompt_tokens"), ("usage", "total_tokens"), ("meta", "billed_units", "input_tokens")):
        if n_tokens := count_at(reply.body, *path):
            return TokenCount(input=n_tokens)
    return None


def _message(body: object) -> str:
    for path in _MESSAGE_PATHS:
        if text := text_at(body, *path):
            upstream = text_at(body, "error", "metadata", "raw")  # OpenRouter quotes the service behind it
            return f"{text}: {upstream}" if upstream else text
        if problems := [text_at(problem, "msg") for problem in list_at(body, *path)]:
            return "; ".join(filter(None, problems))
    return json.dumps(body, ensure_ascii=False) if body is not None else ""


def _own_texts(body: object) -> Iterator[str]:
    """Yield the server's own words, as "name: value", without the request that some servers repeat in errors."""
    yield _message(body)
    for part in (body, value_at(body, "error"), *list_at(body, "error", "details")):
        if isinstance(part, Mapping):
            yield from (f"{name}: {value}" for name, value in part.items() if isinstance(value, str | int | float))
    yield _invalid_field(body)


def _invalid_field(body: object) -> str:
    """Return the field of a validation error, as FastAPI writes it: {"detail": [{"loc": ["body", "field"]}]}."""
    for path in (("detail",), ("message", "detail")):
        if field := text_at(body, *path, 0, "loc", -1):
            return field
    return ""


class EventStreamDecoder:
    """Decodes server-sent events: takes the bytes of a stream in any portions, returns the data of complete events.

    Comments and fields other than `data` are skipped. A line that is a JSON object counts as an event, because some
    servers report errors that way. Source: WHATWG HTML, section 9.2.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._line = ""
        self._data: list[str] = []

    def feed(self, received: bytes) -> list[str]:
        """Return the data of every event that these bytes complete. Raises Overloaded if a line does not end."""
        *lines, self._line = (self._line + self._decoder.decode(received)).split("\n")
        if len(self._line) > _MAX_LINE:
            raise Overloaded("A line of the stream does not end.")
        return [event for line in lines for event in self._add_line(line.rstrip("\r"))]

    def end(self) -> list[str]:
        """Return the data of a last event whose closing blank line is missing."""
        lines = ((self._line + self._decoder.decode(b"", True)).rstrip("\r"), "")
        self._line = ""
        return [event for line in lines for event in self._add_line(line)]

    def _add_line(self, line: str) -> list[str]:
        if line.startswith("data:"):
            self._data.append(line[6:] if line[5:6] == " " else line[5:])
        elif line.startswith("{"):
            return [line]
        elif not line and self._data:
            event = "\n".join(self._data)
            self._data.clear()
            return [event]
        return []


class ReplyAssembler:
    """Assembles one chat reply from events or from a whole reply. Its text can be written as UTF-8.

    Reasoning is counted but not part of the text; tool calls are skipped. `is_done`: the server has announced the end.
    Raises ErrorReply if the server reports an error before any text; after some text the reply is interrupted. A reply
    longer than `max_chars` is cut there, as at a token limit, because a server may never end.
    """

    def __init__(self, max_chars: int = 10_000_000) -> None:
        self.tokens: TokenCount | None = None
        self.refusal = ""
        self.is_done = False
        self.n_choices = 0
        self._pieces: list[str] = []
        self._reasoning: list[str] = []
        self._finish = ""
        self._half_char = ""
        self._has_error = False
        self._n_chars_left = max_chars

    @property
    def is_too_long(self) -> bool:
        """Whether more text has arrived than a reply may have."""
        return self._n_chars_left <= 0

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._pieces)

    @property
    def generated(self) -> str:
        """Everything the model wrote, as far as the server sent it: reasoning and text."""
        return "".join((*self._reasoning, *self._pieces))

    @property
    def finish(self) -> FinishReason:
        """Why the reply ended; INTERRUPTED if the server has sent neither an end nor a reason."""
        if self.is_too_long:
            return FinishReason.LENGTH
        reason = self._finish.lower()
        if self._has_error or reason in _ERROR_REASONS or not (reason or self.is_done):
            return FinishReason.INTERRUPTED
        if reason in _LENGTH_REASONS:
            return FinishReason.LENGTH
        if reason in _FILTER_REASONS:
            return FinishReason.FILTERED
        return FinishReason.STOP

    def add_event(self, event: str) -> str:
        """Add the data of one event; return the text it adds. Data that is not JSON is skipped."""
        if event.strip() == _DONE:
            self.is_done = True
            return ""
        try:
            parsed: object = json.loads(event)
        except (ValueError, RecursionError):
            return "".join(map(self.add_event, event.split("\n"))) if "\n" in event else ""
        return self.add_object(parsed)

    def add_object(self, parsed: object) -> str:
        """Add the parsed JSON of an event or of a whole reply; return the text it adds."""
        if not isinstance(parsed, dict):
            return ""
        choices = parsed.get("choices")
        if parsed.get("error"):
            if not choices and not self.text:
                raise ErrorReply(reply_from_json(200, {}, parsed))
            self._has_error = True
        if usage := parsed.get("usage") or value_at(parsed, "x_groq", "usage"):
            self.tokens = _usage_tokens(usage) or self.tokens
        if not isinstance(choices, list):
            return ""
        return "".join(
            [self._add_choice(choice) for choice in choices if isinstance(choice, dict) and not choice.get("index")]
        )

    def _add_choice(self, choice: Mapping[str, object]) -> str:
        """Add a part of the first choice. This runs for every token of a reply, so it is written for speed."""
        delta = choice.get("delta")
        message = delta if isinstance(delta, dict) else choice.get("message")
        self.n_choices += 1
        self._finish = text_at(choice, "finish_reason") if choice.get("finish_reason") else self._finish
        content = message.get("content") if isinstance(message, dict) else choice.get("text")
        if isinstance(message, dict) and (len(message) > 1 or not content):
            self.refusal += text_at(message, "refusal")
            self._reasoning.append(text_at(message, "reasoning_content") or text_at(message, "reasoning"))
        text = content if isinstance(content, str) else "".join(text_at(part, "text") for part in list_at(content))
        text = self._whole_chars(text)[: self._n_chars_left]
        self._n_chars_left -= len(text)
        self._pieces.append(text)
        return text

    def _whole_chars(self, text: str) -> str:
        """Return `text` without half of a surrogate pair at its end; the half is kept for the next piece."""
        text = self._half_char + text
        self._half_char = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        text = text[: len(text) - len(self._half_char)]
        return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _usage_tokens(usage: object) -> TokenCount | None:
    """Return the tokens a server counted; None for no count or a damaged one (a prompt never has 0 tokens).

    The totals of Gemini and xAI contain reasoning that their output count omits; it is paid for as output.
    """
    n_input, n_output = count_at(usage, "prompt_tokens"), count_at(usage, "completion_tokens")
    if not n_input or (n_output is None and value_at(usage, "completion_tokens") is not None):
        return None
    n_total = count_at(usage, "total_tokens") or 0
    n_cached = (
        count_at(usage, "prompt_tokens_details", "cached_tokens")
        or count_at(usage, "prompt_cache_hit_tokens")
        or count_at(usage, "cached_tokens")
        or 0
    )
    return TokenCount(input=n_input, cached=min(n_cached, n_input), output=max(n_output or 0, n_total - n_input))
