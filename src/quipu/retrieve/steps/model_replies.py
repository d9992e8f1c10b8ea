"""Model replies: what a model answers to a strategy's questions, read leniently. Malformed parts are left out."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from quipu.model.evidence import KeyPoint
from quipu.text.model_text import find_json_values, parse_lenient_json

MAX_POINTS = 20  # per reply
MAX_QUESTIONS = 20
MAX_TEXT = 4_000  # characters
MAX_QUESTION = 500
MAX_SCORE = 100.0

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredStatement:
    """A point or partial answer: its text, its score from 0 to 100, and the numbers of the sources it names."""

    text: str
    score: float
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialReply:
    """A partial answer, None if the reply has none with a score above 0, and its follow-up questions."""

    statement: ScoredStatement | None = None
    follow_ups: tuple[str, ...] = ()


def read_points(reply: str, n_sources: int) -> list[ScoredStatement] | None:
    """Return the points with a score above 0; `n_sources` is the number of sources in the prompt.

    Returns None if the reply has no list of points, or was cut off before its first point was complete.
    """
    parsed = parse_lenient_json(reply)
    points = parsed.get("points") if isinstance(parsed, dict) else parsed
    if not isinstance(points, list) or (not points and not any(v.is_complete for v in find_json_values(reply))):
        return None
    statements = (_statement(point, "text", "reports", n_sources) for point in points[:MAX_POINTS])
    return [statement for statement in statements if statement is not None]


def read_partial_answer(reply: str, n_sources: int) -> PartialReply | None:
    """Return the partial answer of a reply and its follow-up questions, None if the reply has neither."""
    parsed = parse_lenient_json(reply)
    if not isinstance(parsed, dict) or not parsed.keys() & {"answer", "follow_ups"}:
        return None
    statement = _statement(parsed, "answer", "sources", n_sources)
    return PartialReply(statement=statement, follow_ups=tuple(_questions(parsed.get("follow_ups"))))


def read_rating(reply: str) -> float | None:
    """Return the rating of a reply, None if it has none."""
    parsed = parse_lenient_json(reply)
    return _number(parsed.get("rating") if isinstance(parsed, dict) else parsed)


def read_numbers(reply: str, field: str, n_sources: int) -> tuple[int, ...] | None:
    """Return the distinct source numbers, 1 to `n_sources`, listed in a field; None if there is no such list."""
    parsed = parse_lenient_json(reply)
    values = parsed.get(field) if isinstance(parsed, dict) else parsed
    return tuple(dict.fromkeys(_source_numbers(values, n_sources))) if isinstance(values, list) else None


def read_texts(reply: str, field: str) -> tuple[str, ...]:
    """Return the distinct short texts listed in a field; none if there is no such list."""
    parsed = parse_lenient_json(reply)
    values = parsed.get(field) if isinstance(parsed, dict) else None
    texts = (" ".join(text.split()) for text in (values if isinstance(values, list) else ()) if isinstance(text, str))
    return tuple(dict.fromkeys(text for text in texts if text and len(text) <= MAX_QUESTION))


def sort_points(points: Sequence[KeyPoint]) -> list[KeyPoint]:
    """Return points by score, equal ones by text. Points with the same text are merged, with the sources of all."""
    point_by_text: dict[str, KeyPoint] = {}
    for point in points:
        earlier = point_by_text.get(point.text, point)
        point_by_text[point.text] = KeyPoint(
            text=point.text,
            score=max(earlier.score, point.score),
            reports=tuple(dict.fromkeys(earlier.reports + point.reports)),
            chunks=tuple(dict.fromkeys(earlier.chunks + point.chunks)),
        )
    return sorted(point_by_text.values(), key=lambda point: (-point.score, point.text))


def _statement(value: object, text_field: str, sources_field: str, n_sources: int) -> ScoredStatement | None:
    if not isinstance(value, dict) or not isinstance(text := value.get(text_field), str):
        return None
    score = _number(value.get("score")) or 0.0
    line = text.strip()[:MAX_TEXT]
    if not line or score <= 0:
        return None
    numbers = tuple(dict.fromkeys(_source_numbers(value.get(sources_field), n_sources)))
    return ScoredStatement(text=line, score=round(min(score, MAX_SCORE), 6), numbers=numbers)


def _questions(values: object) -> Iterator[str]:
    for value in values[:MAX_QUESTIONS] if isinstance(values, list) else ():
        question = " ".join(value.split()) if isinstance(value, str) else ""
        if question and len(question) <= MAX_QUESTION:
            yield question


def _source_numbers(values: object, n_sources: int) -> Iterator[int]:
    for value in values if isinstance(values, list) else [values]:
        number = _number(value)
        if number is not None and number.is_integer() and 1 <= number <= n_sources:
            yield int(number)


def _number(value: object) -> float | None:
    """Return a value as a number, also the first number of a text such as "85 of 100"; a bool is not a number."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value) if abs(value) < 1e9 else None
    match = _NUMBER.search(value) if isinstance(value, str) else None
    return float(match[0]) if match and len(match[0]) < 16 else None
