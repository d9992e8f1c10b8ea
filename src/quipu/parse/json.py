"""JSON and JSON lines: each record is a block with one line per value ("key: value") and the record's own text."""

import json
from collections.abc import Iterator, Mapping

from quipu.errors import InvalidDocument
from quipu.model.document import ParsedDocument, SourceDocument
from quipu.parse.builder import DocumentBuilder
from quipu.parse.decode import decode, display_name, normalise
from quipu.parse.limits import MAX_JSON_VALUES

JSON_LINES = frozenset({"application/x-ndjson", "application/jsonl", "application/jsonlines"})
_TITLES = ("title", "name", "headline", "subject")
_TEXTS = ("text", "content", "body", "passage", "abstract")
_MAX_TITLE = 200  # characters
_MIN_TEXT = 20  # characters; a shorter "text" is an ordinary value
_MAX_KEY = 200  # characters of a key path, which is repeated for every value below it
_MAX_DEPTH = 100


class JsonParser:
    """Reads records: each line of a JSON lines file, or the objects of a list in a JSON file."""

    media_types = frozenset({"application/json", *JSON_LINES})

    def parse(self, source: SourceDocument) -> ParsedDocument:
        """Return the records as blocks; nested values are flattened, as in "author.name: Alice".

        Raises InvalidDocument, with the position, for invalid JSON and for more values than the limit.
        """
        text = decode(source)
        builder = DocumentBuilder(display_name(source))
        if source.media_type.partition(";")[0].strip().lower() in JSON_LINES:
            for number, line in enumerate(_lines(text), 1):
                if line.strip():
                    _add_record(builder, _parse(line, builder.name, number))
        else:
            _add_value(builder, _parse(text, builder.name))
        return builder.build()


PARSER = JsonParser()


def _lines(text: str) -> Iterator[str]:
    start = 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield text[start:end]
        start = end + 1


def _parse(text: str, name: str, number: int = 0) -> object:
    """Return the JSON value of `text`; `number` is its line number in a JSON lines file, otherwise 0."""
    where = f"Line {number} of {name}" if number else name
    if sum(map(text.count, ",:[{")) > MAX_JSON_VALUES:
        raise InvalidDocument(
            f"{where} holds more than {MAX_JSON_VALUES:,} values.",
            remedy="Write it as JSON lines, one record per line, with the suffix .jsonl.",
        )
    try:
        value: object = json.loads(text) if text.strip() else None
    except json.JSONDecodeError as error:
        place = f"column {error.colno}" if number else f"line {error.lineno}, column {error.colno}"
        raise InvalidDocument(
            f"{where} is not valid JSON at {place}: {error.msg}.", remedy="Correct it there."
        ) from error
    except (ValueError, RecursionError) as error:  # very long numbers, very deep nesting
        raise InvalidDocument(f"{where} cannot be read: {error}.", remedy="Write it more simply.") from error
    return value


def _add_value(builder: DocumentBuilder, value: object) -> None:
    """Add the value of a JSON file: the records of a list, or an object's own values and then its lists of records."""
    if isinstance(value, list):
        for record in value:
            _add_record(builder, record)
    elif isinstance(value, Mapping):
        lists = {key: child for key, child in value.items() if _is_record_list(child)}
        _add_record(builder, {key: child for key, child in value.items() if key not in lists})
        for key, records in lists.items():
            builder.path.leave(1)
            builder.add_heading(str(key), 1)
            for record in records:
                _add_record(builder, record, level=2)
    else:
        _add_record(builder, value)


def _is_record_list(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(record, Mapping) for record in value)


def _add_record(builder: DocumentBuilder, record: object, level: int = 1) -> None:
    """Add a record: its title as a heading if it also has a text, then its values, then its text."""
    builder.path.leave(level)
    values = dict(record) if isinstance(record, Mapping) else {"": record}
    texts = {key: str(value).strip() for key, value in values.items() if isinstance(value, str)}
    text_key = next((key for key in _TEXTS if len(texts.get(key, "")) >= _MIN_TEXT), None)
    text = str(values.pop(text_key)) if text_key else ""
    title_key = next((key for key in _TITLES if 0 < len(texts.get(key, "")) <= _MAX_TITLE), None) if text else None
    if title_key:
        builder.add_heading(str(values.pop(title_key)), level)
    lines: list[str] = []
    n_characters = len(text)
    for line in _flatten(values):
        lines.append(line)
        n_characters += len(line)
        builder.check_room_for(n_characters)
    builder.add("\n".join([*lines, *(["", text] if lines else [text])] if text else lines))


def _flatten(values: Mapping[object, object], path: str = "", depth: int = 0) -> Iterator[str]:
    """Yield one line for each value, also for a list of plain values. Empty and null values are left out."""
    if depth > _MAX_DEPTH:
        raise InvalidDocument(f"A record nests more than {_MAX_DEPTH} deep.", remedy="Write it more simply.")
    for key, value in values.items():
        name = f"{path}.{key}".strip(".")[:_MAX_KEY]
        if isinstance(value, Mapping):
            yield from _flatten(value, name, depth + 1)
        elif isinstance(value, list) and any(isinstance(element, Mapping | list) for element in value):
            yield from _flatten(dict(enumerate(value, 1)), name, depth + 1)
        elif text := ", ".join(map(_plain, value)) if isinstance(value, list) else _plain(value):
            yield f"{name}: {text}" if name else text


def _plain(value: object) -> str:
    """Return a plain value on one line as in JSON; a string has no quotation marks, null is empty."""
    if value is None:
        return ""
    return " ".join(normalise(value).split()) if isinstance(value, str) else json.dumps(value)
