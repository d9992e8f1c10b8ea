"""Records: an extraction as a model would write it, found in a text by a few rules."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from quipu.model.graph import ENTITY_TYPES
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
class Record:
    """One line of an extraction: its tag (`entity`, `relation` or `alias`) and the fields behind it."""

    tag: str
    fields: tuple[str, ...]

    def line(self, delimiter: str = DELIMITER) -> str:
        """Return the record as a line."""
        return delimiter.join((self.tag, *self.fields))

    def key(self) -> tuple[str, ...]:
        """Return what makes it another record than others: its tag and the names it is about."""
        return (self.tag, *(name.casefold() for name in self.fields[: 1 if self.tag == "entity" else 2]))


def find_records(text: str, max_entities: int) -> list[Record]:
    """Return entities (runs of capitalised words), relations (neighbours in a sentence) and aliases (acronyms).

    There are at most `max_entities` entities and as many relations.
    """
    records: list[Record] = []
    names: dict[str, None] = {}
    linked: set[tuple[str, str]] = set()
    for sentence in sentences(text):
        named = list(_names(sentence))
        new = [name for name in dict.fromkeys(named) if name not in names][: max_entities - len(names)]
        records += [entity(name, sentence) for name in new]
        names |= dict.fromkeys(new)
        found = [name for name in named if name in names]
        pairs = dict.fromkeys(pair for pair in pairwise(found) if pair[0] != pair[1] and pair not in linked)
        kept = list(pairs)[: max_entities - len(linked)]
        linked.update(kept)
        records += [relation(*pair, _keywords(sentence), sentence) for pair in kept]
        records += _aliases(sentence, found)
    return records


def read_records(reply: str) -> list[Record]:
    """Return the records of an earlier reply, in lines or as JSON; what is none is left out."""
    if reply.lstrip().startswith("{"):
        return _read_json(reply)
    split = (line.strip().split(DELIMITER) for line in reply.splitlines())
    return [Record(tag, tuple(fields)) for tag, *fields in split if fields]


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, each on one line."""
    stripped = (" ".join(match.group().split()) for match in _SENTENCE.finditer(text))
    return [sentence for sentence in stripped if len(sentence) > 1]


def names_in(text: str) -> list[str]:
    """Return the names in a text in order, each as often as it stands there."""
    return [name for sentence in sentences(text) for name in _names(sentence)]


def entity(name: str, sentence: str, kind: str = "") -> Record:
    """Return an entity; without a kind it gets one by its name."""
    chosen = kind or ENTITY_TYPES[int(digest(name)[:6], 16) % len(ENTITY_TYPES)]
    return Record("entity", (field(name), field(chosen), field(sentence)))


def relation(source: str, target: str, keywords: str, sentence: str) -> Record:
    """Return a relation; its strength is a function of its ends."""
    strength = 1 + int(digest(source, target)[:6], 16) % 10
    return Record("relation", (field(source), field(target), field(keywords), field(sentence), str(strength)))


def field(text: str) -> str:
    """Return a text that fits into one field."""
    return " ".join(text.replace(DELIMITER, " ").split())[:_MAX_FIELD]


def _names(sentence: str) -> Iterator[str]:
    """Yield runs of capitalised words with single spaces between, without the word that merely opens a sentence."""
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
    kept = run[1:] if run and run[0] in _OPENERS else run
    name = " ".join(kept)
    return [name] if len(name) > 1 and name not in _OPENERS else []


def _keywords(sentence: str) -> str:
    words = [word for word in _WORD.findall(sentence) if word.islower() and len(word) > 4]
    return ", ".join(dict.fromkeys(words[:2])) or "related"


def _read_json(reply: str) -> list[Record]:
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
        Record(tag, tuple(str(said[name]) for name in names))
        for list_name, (tag, *names) in ends.items()
        for said in lists.get(list_name, ())
    ]


def _aliases(sentence: str, found: list[str]) -> Iterator[Record]:
    for match in _ACRONYM.finditer(sentence):
        before = [name for name in found if sentence[: match.start()].rstrip().endswith(name)]
        if before and before[-1] != match.group(1):
            yield Record("alias", (field(before[-1]), match.group(1)))
