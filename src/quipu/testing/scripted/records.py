"""Extraction records: as a model writes them, found in a text by simple rules or read from recorded extractions."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, TypeAdapter

from quipu.errors import InvalidInput
from quipu.model.graph import ENTITY_TYPES, OTHER_TYPE
from quipu.model.ids import digest

DELIMITER = "<|>"

_SENTENCE = re.compile(r"[^.!?。！？\n]+(?:[.!?。！？]+|\n|$)")
_WORD = re.compile(r"[^\W_]+(?:['’\-][^\W_]+)*")
_HAN = re.compile(r"[\u4e00-\u9fff]{2,4}")
_ACRONYM = re.compile(r"\(([A-Z]{2,8})\)")
_OPENERS = frozenset(
    re.findall(
        r"\w+",
        "A An The He She It They We I You His Her Its Their This That These Those There In On At By For From To Of As "
        "And But Or If When While After Before Since Because Although However What Which Who Where How Why Yes No Not",
    )
)
_MAX_FIELD = 160


@dataclass(frozen=True, slots=True)
class ExtractionRecord:
    """One line of an extraction: its tag (`entity`, `relation` or `alias`) and the fields behind it."""

    tag: str
    fields: tuple[str, ...]

    def line(self, delimiter: str = DELIMITER) -> str:
        """Return the record as one line."""
        return delimiter.join((self.tag, *self.fields))

    def key(self) -> tuple[str, ...]:
        """Return the tag and the names of the record, which identify it."""
        return (self.tag, *(name.casefold() for name in self.fields[: 1 if self.tag == "entity" else 2]))


def find_records(text: str, max_entities: int) -> list[ExtractionRecord]:
    """Return entities (runs of capitalised words), relations (neighbours in a sentence) and aliases (acronyms).

    At most `max_entities` entities and as many relations are returned.
    """
    records: list[ExtractionRecord] = []
    names: dict[str, None] = {}
    linked: set[tuple[str, str]] = set()
    for sentence in sentences(text):
        named = list(_names(sentence))
        new = [name for name in dict.fromkeys(named) if name not in names][: max_entities - len(names)]
        records += [entity(name, sentence) for name in new]
        names |= dict.fromkeys(new)
        known_names = [name for name in named if name in names]
        pairs = dict.fromkeys(pair for pair in pairwise(known_names) if pair[0] != pair[1] and pair not in linked)
        new_pairs = list(pairs)[: max_entities - len(linked)]
        linked.update(new_pairs)
        records += [relation(*pair, _keywords(sentence), sentence) for pair in new_pairs]
        records += _aliases(sentence, known_names)
    return records


def read_records(reply: str) -> list[ExtractionRecord]:
    """Return the records of an earlier reply, as lines or as JSON; other lines are skipped."""
    if reply.lstrip().startswith("{"):
        return _read_json(reply)
    split = (line.strip().split(DELIMITER) for line in reply.splitlines())
    return [ExtractionRecord(tag, tuple(fields)) for tag, *fields in split if fields]


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, each on one line."""
    stripped = (" ".join(match.group().split()) for match in _SENTENCE.finditer(text))
    return [sentence for sentence in stripped if len(sentence) > 1]


def find_names(text: str) -> list[str]:
    """Return all occurrences of names in `text`, in order."""
    return [name for sentence in sentences(text) for name in _names(sentence)]


def entity(name: str, sentence: str, kind: str = "") -> ExtractionRecord:
    """Return an entity record; without `kind` its type is a function of its name."""
    chosen = kind or ENTITY_TYPES[int(digest(name)[:6], 16) % len(ENTITY_TYPES)]
    return ExtractionRecord("entity", (field(name), field(chosen), field(sentence)))


def relation(source: str, target: str, keywords: str, sentence: str) -> ExtractionRecord:
    """Return a relation record; its strength is a function of its ends."""
    strength = 1 + int(digest(source, target)[:6], 16) % 10
    return ExtractionRecord("relation", (field(source), field(target), field(keywords), field(sentence), str(strength)))


def field(text: str) -> str:
    """Return `text` shortened and cleaned to fit into one field."""
    return " ".join(text.replace(DELIMITER, " ").split())[:_MAX_FIELD]


def _names(sentence: str) -> Iterator[str]:
    """Yield runs of capitalised words separated by single spaces, without a common first word of a sentence."""
    run: list[str] = []
    end = -1
    for match in _WORD.finditer(sentence):
        word = match.group()
        joined = run and sentence[end : match.start()] == " "
        if run and not (joined and word[0].isupper()):
            yield from _name(run)
            run = []
        if word[0].isupper():
            run.append(word)
        end = match.end()
    yield from _name(run)
    yield from dict.fromkeys(_HAN.findall(sentence))


def _name(run: list[str]) -> Iterable[str]:
    words = run[1:] if run and run[0] in _OPENERS else run
    name = " ".join(words)
    return [name] if len(name) > 1 and name not in _OPENERS else []


def _keywords(sentence: str) -> str:
    words = [word for word in _WORD.findall(sentence) if word.islower() and len(word) > 4]
    return ", ".join(dict.fromkeys(words[:2])) or "related"


def _read_json(reply: str) -> list[ExtractionRecord]:
    try:
        lists = json.loads(reply)
    except ValueError:
        return []
    ends = {
        "entities": ("entity", "name"),
        "relations": ("relation", "source", "target"),
        "aliases": ("alias", "name", "other"),
    }
    return [
        ExtractionRecord(tag, tuple(str(fields[name]) for name in names))
        for list_name, (tag, *names) in ends.items()
        for fields in lists.get(list_name, ())
    ]


def _aliases(sentence: str, names: list[str]) -> Iterator[ExtractionRecord]:
    for match in _ACRONYM.finditer(sentence):
        before = [name for name in names if sentence[: match.start()].rstrip().endswith(name)]
        if before and before[-1] != match.group(1):
            yield ExtractionRecord("alias", (field(before[-1]), match.group(1)))


_MIN_PART = 40  # characters; a shorter text may occur in many passages


class _CorpusPassage(BaseModel):
    id: str
    text: str


class _RecordedExtraction(BaseModel):
    passage_id: str
    entities: list[str]
    triples: list[list[str]]


R = TypeVar("R", bound=BaseModel)


class RecordedExtractions:
    """Recorded extractions of a real model, found by the text of their passages."""

    def __init__(self, path: Path) -> None:
        """Read the extractions in a file, and the passages in `corpus.jsonl` beside it."""
        passages = _read(path.with_name("corpus.jsonl"), TypeAdapter(_CorpusPassage))
        self._id_by_text: Mapping[str, str] = {_normal(passage.text): passage.id for passage in passages}
        extractions = _read(path, TypeAdapter(_RecordedExtraction))
        self._by_id: Mapping[str, _RecordedExtraction] = {
            extraction.passage_id: extraction for extraction in extractions
        }

    def find(self, text: str) -> list[ExtractionRecord] | None:
        """Return the records of the passage that equals, contains or begins with this text, or None.

        For a part of a passage only records that name something in it are returned.
        """
        normal = _normal(text)
        passage_id = self._id_by_text.get(normal)
        if passage_id is not None:
            extraction = self._by_id.get(passage_id)
            return None if extraction is None else list(_records(extraction, text))
        if len(normal) < _MIN_PART:
            return None
        whole = next((identifier for passage, identifier in self._id_by_text.items() if normal in passage), None)
        extraction = self._by_id.get(whole) if whole is not None else None
        return None if extraction is None else list(_records(_within(extraction, normal), text))


def _records(extraction: _RecordedExtraction, text: str) -> Iterator[ExtractionRecord]:
    """Yield an entity for each name, then a relation for each complete triple with two different ends."""
    whole = (triple for triple in extraction.triples if len(triple) == 3 and all(part.strip() for part in triple))
    triples = [triple for triple in whole if triple[0] != triple[2]]
    names = [*extraction.entities, *(name for subject, _, object_ in triples for name in (subject, object_))]
    text_sentences = sentences(text)
    for name in dict.fromkeys(name for name in names if name.strip()):
        sentence = next((sentence for sentence in text_sentences if name in sentence), "")
        yield entity(name, sentence, OTHER_TYPE)
    for subject, predicate, object_ in triples:
        yield relation(subject, object_, predicate, f"{subject} {predicate} {object_}")


def _within(extraction: _RecordedExtraction, text: str) -> _RecordedExtraction:
    return _RecordedExtraction(
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
        raise InvalidInput(f"{path} is not a file of recorded extractions: {error}") from error


def _normal(text: str) -> str:
    return " ".join(text.split()).casefold()
