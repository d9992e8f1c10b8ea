"""JSON and JSON lines: a record a block, "key: value" a line, with the record's own text as it stands."""

import json
from collections.abc import Iterator, Mapping

from quipu.errors import InvalidDocument
from quipu.model.document import ParsedDocument, SourceDocument
from quipu.parse.decode import decode, name_of, normalise
from quipu.parse.draft import Draft
from quipu.parse.limits import MAX_JSON_VALUES

JSON_LINES = frozenset({"application/x-ndjson", "application/jsonl", "application/jsonlines"})
_TITLES = ("title", "name", "headline", "subject")
_TEXTS = ("text", "content", "body", "passage", "abstract")
_MAX_TITLE = 200  # characters
_MIN_TEXT = 20  # characters; a shorter "text" is a value like others
_MAX_KEY = 200  # characters of a path of keys: it is repeated for every value below
_MAX_DEPTH = 100


class JsonParser:
    """Reads records: each line of JSON lines, or the objects of a JSON file's list, wherever in it that list is."""

    media_types = frozenset({"application/json", *JSON_LINES})

    def parse(self, source: SourceDocument) -> ParsedDocument:
        """Return the records as blocks; nested values are flattened, as in "author.name: Alice".

        Raises InvalidDocument, saying where, for text that is not JSON and for more values than the limit.
        """
        text = decode(source)
        draft = Draft(name_of(source))
        if source.media_type.partition(";")[0].strip().lower() in JSON_LINES:
            for number, line in enumerate(_lines(text), 1):
                if line.strip():
                    _add_record(draft, _load(line, draft.name, number))
        else:
            _add_value(draft, _load(text, draft.name))
        return draft.document()


PARSER = JsonParser()


def _lines(text: str) -> Iterator[str]:
    start = 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield text[start:end]
        start = end + 1


def _load(text: str, name: str, number: int = 0) -> object:
    """Return the value `text` stands for; `number` is its line's, where it is one of many."""
    where = f"Line {number} of {name}" if number else name
    if sum(map(text.count, ",:[{")) > MAX_JSON_VALUES:
        raise InvalidDocument(
            f"{where} holds more than {MAX_JSON_VALUES:,} values.",
            remedy="Write it as JSON lines, a record a line, with the suffix .jsonl.",
        )
    try:
        value: object = json.loads(text) if text.strip() else None
    except json.JSONDecodeError as error:
        place = f"column {error.colno}" if number else f"line {error.lineno}, column {error.colno}"
        raise InvalidDocument(f"{where} is not valid JSON at {place}: {error.msg}.", remedy="Mend it there.") from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, brackets in thousands of brackets
        raise InvalidDocument(f"{where} cannot be read: {error}.", remedy="Write it more simply.") from error
    return value


def _add_value(draft: Draft, value: object) -> None:
    """Add a JSON file: the records of a list, or an object's own values and then the records of each list in it."""
    if isinstance(value, list):
        for record in value:
            _add_record(draft, record)
    elif isinstance(value, Mapping):
        lists = {key: each for key, each in value.items() if _holds_records(each)}
        _add_record(draft, {key: each for key, each in value.items() if key not in lists})
        for key, records in lists.items():
            draft.path.leave(1)
            draft.add_heading(str(key), 1)
            for record in records:
                _add_record(draft, record, level=2)
    else:
        _add_record(draft, value)


def _holds_records(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, Mapping) for each in value)


def _add_record(draft: Draft, record: object, level: int = 1) -> None:
    """Add a record: its title as a heading where it has one beside a text; its values; its text."""
    draft.path.leave(level)
    values = dict(record) if isinstance(record, Mapping) else {"": record}
    text_key = next((key for key in _TEXTS if _is_text(values.get(key))), None)
    text = str(values.pop(text_key)) if text_key else ""
    title_key = next((key for key in _TITLES if _is_title(values.get(key))), None) if text else None
    if title_key:
        draft.add_heading(str(values.pop(title_key)), level)
    lines: list[str] = []
    n_characters = len(text)
    for line in _flatten(values):
        lines.append(line)
        n_characters += len(line)
        draft.refuse_over(n_characters)
    draft.add("\n".join([*lines, *(["", text] if lines else [text])] if text else lines))


def _is_text(value: object) -> bool:
    return isinstance(value, str) and len(value.strip()) >= _MIN_TEXT


def _is_title(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value.strip()) <= _MAX_TITLE


def _flatten(values: Mapping[object, object], path: str = "", depth: int = 0) -> Iterator[str]:
    """Yield a line for each value below; a list of plain values is one line. What is null or empty is left out."""
    if depth > _MAX_DEPTH:
        raise InvalidDocument(f"A record nests more than {_MAX_DEPTH} deep.", remedy="Write it more simply.")
    for key, value in values.items():
        name = f"{path}.{key}".strip(".")[:_MAX_KEY]
        if isinstance(value, Mapping):
            yield from _flatten(value, name, depth + 1)
        elif isinstance(value, list) and any(isinstance(each, Mapping | list) for each in value):
            yield from _flatten(dict(enumerate(value, 1)), name, depth + 1)
        elif said := ", ".join(map(_plain, value)) if isinstance(value, list) else _plain(value):
            yield f"{name}: {said}" if name else said


def _plain(value: object) -> str:
    """Return a plain value on one line, as JSON writes it, text without its quotation marks."""
    if value is None:
        return ""
    return " ".join(normalise(value).split()) if isinstance(value, str) else json.dumps(value)
