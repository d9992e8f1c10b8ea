"""Recorded extractions: what a real model once said of passages, given again when they come."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, TypeAdapter

from quipu.errors import InvalidInput
from quipu.model.graph import OTHER_TYPE
from quipu.testing.scripted.records import Record, entity, relation, sentences

_MIN_PART = 40  # characters: a shorter text is in too many passages to be a part of one


class _Passage(BaseModel):
    id: str
    text: str


class _Extraction(BaseModel):
    passage_id: str
    entities: list[str]
    triples: list[list[str]]


R = TypeVar("R", bound=BaseModel)


class RecordedExtractions:
    """Extractions by the text of their passages."""

    def __init__(self, path: Path) -> None:
        """Read the extractions in a file, and the passages in `corpus.jsonl` beside it."""
        passages = _read(path.with_name("corpus.jsonl"), TypeAdapter(_Passage))
        self._id_by_text: Mapping[str, str] = {_normal(passage.text): passage.id for passage in passages}
        extractions = _read(path, TypeAdapter(_Extraction))
        self._by_id: Mapping[str, _Extraction] = {extraction.passage_id: extraction for extraction in extractions}

    def find(self, text: str) -> list[Record] | None:
        """Return what was said of the passage that is, holds or begins this text, None where there is none.

        Of a part of a passage only what names something in it is returned.
        """
        normal = _normal(text)
        known = self._id_by_text.get(normal)
        if known is not None:
            extraction = self._by_id.get(known)
            return None if extraction is None else list(_records(extraction, text))
        if len(normal) < _MIN_PART:
            return None
        whole = next((identifier for passage, identifier in self._id_by_text.items() if normal in passage), None)
        found = self._by_id.get(whole) if whole is not None else None
        return None if found is None else list(_records(_within(found, normal), text))


def _records(extraction: _Extraction, text: str) -> Iterator[Record]:
    """Yield an entity for each name listed or linked, then the triples that have three parts and two ends."""
    whole = (triple for triple in extraction.triples if len(triple) == 3 and all(part.strip() for part in triple))
    triples = [triple for triple in whole if triple[0] != triple[2]]
    names = [*extraction.entities, *(name for subject, _, object_ in triples for name in (subject, object_))]
    said = sentences(text)
    for name in dict.fromkeys(name for name in names if name.strip()):
        sentence = next((each for each in said if name in each), "")
        yield entity(name, sentence, OTHER_TYPE)
    for subject, predicate, object_ in triples:
        yield relation(subject, object_, predicate, f"{subject} {predicate} {object_}")


def _within(extraction: _Extraction, text: str) -> _Extraction:
    return _Extraction(
        passage_id=extraction.passage_id,
        entities=[name for name in extraction.entities if _normal(name) in text],
        triples=[
            triple for triple in extraction.triples if any(_normal(name) in text for name in (triple[0], triple[-1]))
        ],
    )


def _read(path: Path, kind: TypeAdapter[R]) -> Iterator[R]:
    try:
        with path.open("rb") as lines:
            yield from (kind.validate_json(line) for line in lines if line.strip())
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path} is no file of recorded extractions: {error}") from error


def _normal(text: str) -> str:
    return " ".join(text.split()).casefold()
