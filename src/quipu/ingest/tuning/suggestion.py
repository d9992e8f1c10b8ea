"""Suggestion: what a model says of how documents should be read, cleaned and checked; what is no use is dropped."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from quipu.model.extraction import RelationRule, TypeRule
from quipu.model.graph import OTHER_TYPE
from quipu.prompts.fence import escape_control_tokens
from quipu.prompts.tuning import MAX_RELATIONS, MAX_TYPES
from quipu.text.lenient_json import parse_lenient_json
from quipu.text.sentences import sentence_spans

LEAST_TYPES = 2  # fewer are no guide
MAX_SENTENCES, MAX_DOMAIN = 3, 600  # of the domain: sentences, characters
MAX_NAME, MAX_DESCRIPTION = 40, 160  # characters

_NAME = re.compile(r"[^\W\d_][\w '’/&-]*")


@dataclass(slots=True)
class Suggestion:
    """What a reply suggests; `notes` tell what of it was dropped."""

    domain: str = ""
    types: list[TypeRule] = field(default_factory=list)
    relations: list[RelationRule] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def read_suggestion(reply: str, known: Sequence[TypeRule]) -> Suggestion | None:
    """Return what a reply suggests, None where it is none; a type of `known` keeps the spelling it has there."""
    said = parse_lenient_json(reply)
    if not isinstance(said, dict):
        return None
    found = Suggestion(domain=_domain(said.get("domain")))
    spelling = {_form(rule.name): rule.name for rule in known}
    for each in _objects(said.get("types")):
        _take_type(each, spelling, found)
    if len(found.types) < LEAST_TYPES:
        return None
    spelling = {_form(rule.name): rule.name for rule in found.types}
    for each in _objects(said.get("relations")):
        _take_relation(each, spelling, found)
    return found


def _take_type(said: Mapping[str, object], spelling: Mapping[str, str], found: Suggestion) -> None:
    written = _line(said.get("name"))
    name = spelling.get(_form(written), written)
    if name == OTHER_TYPE:  # which is always there
        return
    problem = _problem(name, (rule.name for rule in found.types), is_full=len(found.types) >= MAX_TYPES)
    if problem:
        found.notes.append(f"The type {written[:MAX_NAME]!r} was left out: {problem}.")
        return
    found.types.append(TypeRule(name=name, description=_line(said.get("description"))[:MAX_DESCRIPTION]))


def _take_relation(said: Mapping[str, object], spelling: Mapping[str, str], found: Suggestion) -> None:
    name = _line(said.get("name"))
    named = (rule.name for rule in found.relations)
    problem = _problem(name, named, is_full=len(found.relations) >= MAX_RELATIONS)
    ends: list[tuple[str, ...]] = []
    for key in ("from", "to"):
        written = _lines(said.get(key))
        known = tuple(dict.fromkeys(spelling[_form(each)] for each in written if _form(each) in spelling))
        if written and not known:
            problem = problem or f"none of its ends ({', '.join(written)[:MAX_NAME]}) is among the types"
        ends.append(known)
    if problem:
        found.notes.append(f"The relation {name[:MAX_NAME]!r} was left out: {problem}.")
        return
    description = _line(said.get("description"))[:MAX_DESCRIPTION]
    found.relations.append(RelationRule(name=name, description=description, domain=ends[0], range=ends[1]))


def _problem(name: str, others: Iterator[str], *, is_full: bool) -> str:
    """Return why a name cannot be taken, "" where it can."""
    if len(name) > MAX_NAME or not _NAME.fullmatch(name):
        return "it has no usable name"
    if _form(name) in map(_form, others):
        return "it is there already"
    return "there are enough" if is_full else ""


def _domain(said: object) -> str:
    text = _line(said)
    ends = [end for _, end in sentence_spans(text)[:MAX_SENTENCES] if end <= MAX_DOMAIN]
    return text[: ends[-1]] if ends else text[:MAX_DOMAIN]


def _objects(said: object) -> Iterator[Mapping[str, object]]:
    """Yield the objects of a list; a plain text in it is a name, and so is each key of an object."""
    if isinstance(said, dict):
        said = [
            {"name": name, **(each if isinstance(each, dict) else {"description": each})} for name, each in said.items()
        ]
    for each in said if isinstance(said, list) else ():
        if isinstance(each, dict):
            yield each
        elif isinstance(each, str):
            yield {"name": each}


def _lines(said: object) -> list[str]:
    parts = [said] if isinstance(said, str) else said
    return [line for each in (parts if isinstance(parts, list) else ()) if (line := _line(each))]


def _line(said: object) -> str:
    return escape_control_tokens(" ".join(said.split())) if isinstance(said, str) else ""


def _form(name: str) -> str:
    """Return what a name has in common with another spelling of it, as in "Natural objects" and "NaturalObject"."""
    form = re.sub(r"[\W_]+", "", name.casefold())
    return form.removesuffix("s") if len(form) > 3 else form
