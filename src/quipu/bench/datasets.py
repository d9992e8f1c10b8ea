"""Datasets: a folder with `corpus.jsonl` and `queries.jsonl`, as passages and questions with their gold."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from quipu.errors import InvalidInput, NotFound


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetPassage:
    """One passage of the corpus, indexed as one document under its id."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldQuestion:
    """A question with its answers and its gold: a group for each fact, any passage of which proves it.

    Without gold the corpus does not answer the question.
    """

    id: str
    text: str
    answers: tuple[str, ...]
    gold: tuple[frozenset[str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """A corpus and its questions, in the order of the files."""

    name: str
    passages: tuple[DatasetPassage, ...]
    questions: tuple[GoldQuestion, ...]


class _DatasetRecord(BaseModel):
    model_config = ConfigDict(coerce_numbers_to_str=True)

    id: str


class _PassageRecord(_DatasetRecord):
    title: str = ""
    text: str


class _QuestionRecord(_DatasetRecord):
    question: str
    answers: list[str] = []
    gold: list[str] = []
    gold_groups: list[list[str]] = []
    all_facts_mapped: bool = True


R = TypeVar("R", bound=_DatasetRecord)


def read_dataset(folder: Path) -> Dataset:
    """Return the data set in `folder`; questions whose gold is known to be incomplete are left out.

    Raises NotFound if a file is missing, and InvalidInput, which names the line, for an invalid record.
    """
    passages = (
        DatasetPassage(id=record.id, title=record.title, text=record.text)
        for record in _records(folder / "corpus.jsonl", _PassageRecord)
    )
    questions = (
        GoldQuestion(id=record.id, text=record.question, answers=tuple(record.answers), gold=_gold(record))
        for record in _records(folder / "queries.jsonl", _QuestionRecord)
        if record.all_facts_mapped
    )
    return Dataset(name=folder.name, passages=tuple(passages), questions=tuple(questions))


def _gold(record: _QuestionRecord) -> tuple[frozenset[str], ...]:
    groups = record.gold_groups or [[passage] for passage in record.gold]
    return tuple(frozenset(group) for group in groups if group)


def _records(path: Path, kind: type[R]) -> Iterator[R]:
    if not path.is_file():
        raise NotFound(f"There is no {path}.", remedy="Give a folder with corpus.jsonl and queries.jsonl.")
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                yield kind.model_validate_json(line)
            except ValidationError as error:
                problem = error.errors()[0]
                raise InvalidInput(f"{path}, line {number}, {problem['loc']}: {problem['msg']}.") from error
