"""Questions about documents: how they are stored, and when a text holds the answer."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KINDS = ("single", "howto", "definition", "value", "comparison", "multihop", "list", "overview", "unanswerable")
LANGUAGES = ("en", "ru", "zh")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question with its gold: alternatives, each a list of regular expressions that must all match.

    With `min_match`, that many expressions of the first alternative are enough. `also` holds looser wordings, which
    count only for an answer that a model wrote.
    """

    id: str
    kind: str
    lang: str
    question: str
    gold_documents: tuple[str, ...]
    gold: tuple[tuple[str, ...], ...]
    answer: str
    also: tuple[tuple[str, ...], ...] = ()
    min_match: int | None = None
    cross_language: bool = False
    window_rate: float | None = None

    @property
    def is_answerable(self) -> bool:
        """Say whether the documents hold an answer."""
        return self.kind != "unanswerable"

    def is_held_by(self, text: str, *, is_written: bool = False) -> bool:
        """Say whether `text` holds the gold; `is_written` where a model wrote it, so that `also` counts."""
        if self.min_match is not None:
            return sum(_matches(expression, text) for expression in self.gold[0]) >= self.min_match
        alternatives = self.gold + (self.also if is_written else ())
        return any(all(_matches(expression, text) for expression in alternative) for alternative in alternatives)


def _matches(expression: str, text: str) -> bool:
    return re.search(expression, text, re.IGNORECASE) is not None


def read_questions(file: Path) -> list[Question]:
    """Return the questions of a JSON-lines file, in its order."""
    with file.open(encoding="utf-8") as lines:
        return [_question(json.loads(line)) for line in lines]


def _question(row: dict[str, Any]) -> Question:
    return Question(
        **{
            **row,
            "gold_documents": tuple(row["gold_documents"]),
            "gold": tuple(map(tuple, row["gold"])),
            "also": tuple(map(tuple, row.get("also", ()))),
        }
    )


def write_questions(questions: list[Question], file: Path) -> None:
    """Write the questions, one a line; fields at their default are left out."""
    with file.open("w", encoding="utf-8") as output:
        for question in questions:
            output.write(json.dumps(_row(question), ensure_ascii=False) + "\n")


def _row(question: Question) -> dict[str, Any]:
    row: dict[str, Any] = {
        "id": question.id,
        "kind": question.kind,
        "lang": question.lang,
        "question": question.question,
        "gold_documents": question.gold_documents,
        "gold": question.gold,
    }
    optional = {
        "min_match": question.min_match,
        "also": question.also or None,
        "cross_language": question.cross_language or None,
        "answer": question.answer,
        "window_rate": question.window_rate,
    }
    return row | {name: value for name, value in optional.items() if value is not None}
