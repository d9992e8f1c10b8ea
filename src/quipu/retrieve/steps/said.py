"""Said: what a model replied on the way to an answer, read without trust; anything malformed is left out."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from quipu.text.lenient_json import find_json_values, parse_lenient_json

MAX_POINTS = 20  # of one reply
MAX_QUESTIONS = 20
MAX_TEXT = 4_000  # characters
MAX_QUESTION = 500
MAX_SCORE = 100.0

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidPoint:
    """A point or partial answer: its text, its score from 0 to 100, the numbers it says it rests on."""

    text: str
    score: float
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidAnswer:
    """A partial answer, None where there is none of any worth, and the questions that follow from it."""

    point: SaidPoint | None = None
    follow_ups: tuple[str, ...] = ()


def read_points(reply: str, n_items: int) -> list[SaidPoint] | None:
    """Return the points that are worth something; `n_items` were shown.

    None stands for a reply that holds no list, or one that was cut off before its first point was whole.
    """
    said = parse_lenient_json(reply)
    listed = said.get("points") if isinstance(said, dict) else said
    if not isinstance(listed, list) or (not listed and not any(each.is_complete for each in find_json_values(reply))):
        return None
    points = (_point(each, "text", "reports", n_items) for each in listed[:MAX_POINTS])
    return [point for point in points if point is not None]


def read_answer(reply: str, n_items: int) -> SaidAnswer | None:
    """Return the partial answer of a reply and the questions it led to, None where it holds neither."""
    said = parse_lenient_json(reply)
    if not isinstance(said, dict) or not said.keys() & {"answer", "follow_ups"}:
        return None
    return SaidAnswer(point=_point(said, "answer", "sources", n_items), follow_ups=tuple(_questions(said)))


def read_rating(reply: str) -> float | None:
    """Return the rating of a reply, None where there is none."""
    said = parse_lenient_json(reply)
    return _number(said.get("rating") if isinstance(said, dict) else said)


def read_numbers(reply: str, field: str, n_items: int) -> tuple[int, ...] | None:
    """Return the numbers a reply lists in a field, each once, of `n_items` shown; None where there is no such list."""
    said = parse_lenient_json(reply)
    listed = said.get(field) if isinstance(said, dict) else said
    return tuple(dict.fromkeys(_numbers(listed, n_items))) if isinstance(listed, list) else None


def read_texts(reply: str, field: str) -> tuple[str, ...]:
    """Return the short texts a reply lists in a field, each once; none where there is no such list."""
    said = parse_lenient_json(reply)
    listed = said.get(field) if isinstance(said, dict) else None
    texts = (" ".join(each.split()) for each in (listed if isinstance(listed, list) else ()) if isinstance(each, str))
    return tuple(dict.fromkeys(each for each in texts if each and len(each) <= MAX_QUESTION))


def _point(said: object, text: str, numbers: str, n_items: int) -> SaidPoint | None:
    if not isinstance(said, dict) or not isinstance(words := said.get(text), str):
        return None
    score = _number(said.get("score")) or 0.0
    line = words.strip()[:MAX_TEXT]
    if not line or score <= 0:
        return None
    found = tuple(dict.fromkeys(_numbers(said.get(numbers), n_items)))
    return SaidPoint(text=line, score=round(min(score, MAX_SCORE), 6), numbers=found)


def _questions(said: dict[str, object]) -> Iterator[str]:
    listed = said.get("follow_ups")
    for each in listed[:MAX_QUESTIONS] if isinstance(listed, list) else ():
        question = " ".join(each.split()) if isinstance(each, str) else ""
        if question and len(question) <= MAX_QUESTION:
            yield question


def _numbers(said: object, n_items: int) -> Iterator[int]:
    for each in said if isinstance(said, list) else [said]:
        number = _number(each)
        if number is not None and number.is_integer() and 1 <= number <= n_items:
            yield int(number)


def _number(said: object) -> float | None:
    """Return a number, also one in words as "85 of 100"; no bool is one."""
    if isinstance(said, bool):
        return None
    if isinstance(said, int | float):
        return float(said) if abs(said) < 1e9 else None
    found = _NUMBER.search(said) if isinstance(said, str) else None
    return float(found[0]) if found and len(found[0]) < 16 else None
