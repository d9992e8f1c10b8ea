"""What a scripted model says on the way to an answer: points, ratings, partial answers, facts of use, terms."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from quipu.testing.scripted.asked import Asked
from quipu.testing.scripted.fate import Lot
from quipu.testing.scripted.kind import Kind
from quipu.testing.scripted.records import names_in, sentences
from quipu.text.content_terms import content_terms
from quipu.text.questions import answer_entity_types
from quipu.text.words import split_words

_MAX_FOLLOW_UPS = 5


@dataclass(frozen=True, slots=True)
class _Block:
    """A numbered text of a prompt; `score` is the share of the question's words that it holds, 0 to 100."""

    number: int
    title: str
    text: str
    score: int


def _write_points(asked: Asked, _lot: Lot) -> str:
    """Return the first sentence of each report, scored by the share of the question's words that it holds."""
    points = [{"text": _first(each.text), "score": each.score, "reports": [each.number]} for each in _blocks(asked)]
    return _json({"points": points})


def _write_rating(asked: Asked, _lot: Lot) -> str:
    """Return 0 where the report holds no word of the question, 5 where it holds all."""
    return _json({"rating": max((-(-each.score // 20) for each in _blocks(asked)), default=0)})


def _write_imagined(asked: Asked, _lot: Lot) -> str:
    """Return a report on the question, under the title of the example."""
    title = next((each.title for each in _blocks(asked)), "")
    return f"{title}\n\n{asked.question}"


def _write_partial(asked: Asked, _lot: Lot) -> str:
    """Return the first sentence of the text that fits the question best, and a question for each name in the texts."""
    blocks = _blocks(asked)
    best = max(blocks, key=lambda each: (each.score, -each.number), default=None)
    names = dict.fromkeys(name for each in blocks for name in names_in(each.text))
    return _json(
        {
            "answer": _first(best.text) if best else "",
            "score": best.score if best else 0,
            "sources": [best.number] if best else [],
            "follow_ups": [f"What is known of {name}?" for name in names][:_MAX_FOLLOW_UPS],
        }
    )


def _write_facts(asked: Asked, _lot: Lot) -> str:
    """Return the numbers of the facts that hold a word of the question, those that hold most of them first."""
    found = sorted((-each.score, each.number) for each in _blocks(asked) if each.score)
    return _json({"relevant": [number for _, number in found]})


def _write_terms(asked: Asked, _lot: Lot) -> str:
    """Return the names in the question, and of the types listed those that its words tell."""
    listed = re.search(rf"^{re.escape(asked.boundary)}Types\n(.*)$", asked.text, re.MULTILINE)
    types = listed[1].split(", ") if listed else []
    names = list(dict.fromkeys(names_in(asked.question)))
    return _json({"answer_types": list(answer_entity_types(asked.question, types)), "names": names})


def _blocks(asked: Asked) -> list[_Block]:
    mark = re.escape(asked.boundary)
    block = re.compile(rf"^{mark}\[(\d+)\] ?([^\n]*)\n(.*?)(?=^{mark}|\Z)", re.MULTILINE | re.DOTALL)
    wanted = frozenset(content_terms(split_words(asked.question)))
    return [
        _Block(int(match[1]), match[2], match[3].strip(), _share(wanted, f"{match[2]}\n{match[3]}"))
        for match in block.finditer(asked.text)
    ]


def _share(wanted: frozenset[str], text: str) -> int:
    return round(100 * len(wanted & set(content_terms(split_words(text)))) / len(wanted)) if wanted else 0


def _first(text: str) -> str:
    return next(iter(sentences(text)), text).strip()


def _json(said: Mapping[str, object]) -> str:
    return json.dumps(said, ensure_ascii=False)


WRITERS: Mapping[Kind, Callable[[Asked, Lot], str]] = {
    Kind.POINTS: _write_points,
    Kind.RATE: _write_rating,
    Kind.IMAGINE: _write_imagined,
    Kind.PRIMER: _write_partial,
    Kind.FOLLOW_UP: _write_partial,
    Kind.FACTS: _write_facts,
    Kind.TERMS: _write_terms,
}
