"""Ontology files: types, relations, a glossary, what documents are about and examples, in YAML, TOML or JSON."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from quipu.errors import InvalidInput
from quipu.ingest.llm.example_file import MAX_EXAMPLES, ExamplePart, check_examples
from quipu.model.extraction import GlossaryTerm, Ontology, RelationRule, TypeRule
from quipu.model.graph import ENTITY_TYPES, OTHER_TYPE

MAX_DOMAIN = 1_000  # characters: each request holds it

_REMEDY = "docs/extraction.md shows what such a file may hold."


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    aliases: list[str] = []

    @field_validator("aliases", "from_", "to", mode="before", check_fields=False)
    @classmethod
    def _as_list(cls, value: object) -> object:
        return [value] if isinstance(value, str) else value or []


class _TypePart(_Part):
    description: str = ""


class _RelationPart(_Part):
    description: str = ""
    from_: list[str] = Field([], alias="from")
    to: list[str] = []


class _TermPart(_Part):
    definition: str = ""
    type: str = ""


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    types: dict[str, _TypePart] = {}
    relations: dict[str, _RelationPart] = {}
    glossary: dict[str, _TermPart] = {}
    domain: str = Field("", max_length=MAX_DOMAIN)
    examples: list[ExamplePart] = Field([], max_length=MAX_EXAMPLES)

    @field_validator("domain", mode="before")
    @classmethod
    def _said(cls, value: object) -> object:
        return "" if value is None else value

    @field_validator("examples", mode="before")
    @classmethod
    def _listed(cls, value: object) -> object:
        return [] if value is None else value

    @field_validator("types", "relations", mode="before")
    @classmethod
    def _described(cls, value: object) -> object:
        return _spelled_out(value, "description")

    @field_validator("glossary", mode="before")
    @classmethod
    def _defined(cls, value: object) -> object:
        return _spelled_out(value, "definition")


F = TypeVar("F", bound=BaseModel)


def load_ontology(ontology: Path | None, glossary: Path | None, *, is_strict: bool = False) -> Ontology:
    """Return what the files a user named say together; a term in both is that of the glossary. Raises InvalidInput."""
    found = read_ontology(ontology, is_strict=is_strict) if ontology else Ontology(is_strict=is_strict)
    terms = read_glossary(glossary) if glossary else ()
    by_name = {term.name: term for term in (*found.glossary, *terms)}
    found = replace(found, glossary=tuple(by_name.values()))
    if glossary:
        _check_types(found, glossary)
    return found


def read_ontology(path: Path, *, is_strict: bool = False) -> Ontology:
    """Return the ontology in a file.

    Raises InvalidInput naming the file and the line or field that is wrong, or a type no entity can have.
    """
    file = _validated(_parsed(path), _File, path)
    ontology = Ontology(
        is_strict=is_strict,
        types=tuple(
            TypeRule(name=name, description=part.description, aliases=tuple(part.aliases))
            for name, part in file.types.items()
        ),
        relations=tuple(
            RelationRule(
                name=name,
                description=part.description,
                domain=tuple(part.from_),
                range=tuple(part.to),
                aliases=tuple(part.aliases),
            )
            for name, part in file.relations.items()
        ),
        glossary=_terms(file.glossary),
        domain=" ".join(file.domain.split()),
        examples=tuple(part.example() for part in file.examples),
    )
    _check_types(ontology, path)
    check_examples(ontology.examples, _allowed(ontology), str(path))
    return ontology


def read_glossary(path: Path) -> tuple[GlossaryTerm, ...]:
    """Return the terms of a file that has nothing but terms, or an ontology's `glossary`. Raises InvalidInput."""
    data = _parsed(path)
    if isinstance(data, dict) and set(data) != {"glossary"}:
        data = {"glossary": data}
    return _terms(_validated(data, _File, path).glossary)


def _terms(parts: dict[str, _TermPart]) -> tuple[GlossaryTerm, ...]:
    return tuple(
        GlossaryTerm(name=name, definition=part.definition, type=part.type, aliases=tuple(part.aliases))
        for name, part in parts.items()
    )


def _spelled_out(value: object, field: str) -> object:
    """Return a list of names, or a mapping with plain texts in it, as a mapping of objects."""
    if isinstance(value, list):
        return {str(name): {} for name in value}
    if isinstance(value, dict):
        return {name: {field: part} if isinstance(part, str) else part or {} for name, part in value.items()}
    return value or {}


def _allowed(ontology: Ontology) -> set[str]:
    """Return the types an entity of an example may have."""
    names = {rule.name for rule in ontology.types} or set(ENTITY_TYPES)
    return names if ontology.is_strict else names | {OTHER_TYPE}


def _check_types(ontology: Ontology, path: Path) -> None:
    known = {rule.name for rule in ontology.types} | {OTHER_TYPE}
    if not ontology.types:
        return
    named = [(f"relations.{rule.name}.from", each) for rule in ontology.relations for each in rule.domain]
    named += [(f"relations.{rule.name}.to", each) for rule in ontology.relations for each in rule.range]
    named += [(f"glossary.{term.name}.type", term.type) for term in ontology.glossary if term.type]
    for place, name in named:
        if name not in known:
            raise InvalidInput(
                f"{path}, {place}: {name!r} is not among the types.", remedy=f"Types: {', '.join(sorted(known))}."
            )


def _validated(data: object, kind: type[F], path: Path) -> F:
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(str(part) for part in problem["loc"] if part != "[key]") or "the whole file"
        raise InvalidInput(f"{path}, {place}: {problem['msg']}.", remedy=_REMEDY) from error


def _parsed(path: Path) -> Any:
    """Return what a file holds; which language it is in is told by its suffix, YAML if by none."""
    import tomllib  # noqa: PLC0415 - read only where a user has such a file

    import yaml  # noqa: PLC0415

    try:
        text = path.read_text("utf-8-sig")
        if path.suffix == ".toml":
            return tomllib.loads(text)
        return json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read ({error.strerror}).", remedy="Name another file.") from error
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise InvalidInput(f"{path}{line}: {error.problem}.", remedy=_REMEDY) from error
    except (ValueError, yaml.YAMLError) as error:
        raise InvalidInput(f"{path}: {error}.", remedy=_REMEDY) from error
