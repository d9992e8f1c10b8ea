"""Ontology files: types, relations, a glossary, a description of the documents and examples, in YAML, TOML or JSON."""

import json
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator

from quipu.errors import InvalidInput
from quipu.ingest.llm.grounding import GroundingText
from quipu.model.extraction import (
    ChunkInput,
    ExtractedEntity,
    ExtractedRelation,
    ExtractionExample,
    GlossaryTerm,
    Ontology,
    RelationRule,
    TypeRule,
)
from quipu.model.graph import ENTITY_TYPES, OTHER_TYPE
from quipu.text.names import entity_key

MAX_DOMAIN = 1_000  # characters: every request contains it
MAX_EXAMPLES = 3
MAX_EXAMPLE_TEXT = 1_000  # characters: every request contains it
MAX_EXAMPLE_RECORDS = 20  # entities, and relations, of an example

_REMEDY = "docs/extraction.md shows what such a file may contain."


def load_ontology(ontology: Path | None, glossary: Path | None, *, is_strict: bool = False) -> Ontology:
    """Return the ontology and glossary in the files of a user; a term in both files is taken from the glossary file.

    Raises InvalidInput naming the file and the line or field that is wrong.
    """
    result = read_ontology(ontology, is_strict=is_strict) if ontology else Ontology(is_strict=is_strict)
    terms = read_glossary(glossary) if glossary else ()
    term_by_name = {term.name: term for term in (*result.glossary, *terms)}
    result = replace(result, glossary=tuple(term_by_name.values()))
    if glossary:
        _check_types(result, glossary)
    return result


def read_ontology(path: Path, *, is_strict: bool = False) -> Ontology:
    """Return the ontology in a file.

    Raises InvalidInput naming the file and the line or field that is wrong, or a type that is not among the types.
    """
    file = _validated(_parsed(path), _OntologyFields, path)
    ontology = Ontology(
        is_strict=is_strict,
        types=tuple(
            TypeRule(name=name, description=fields.description, aliases=tuple(fields.aliases))
            for name, fields in file.types.items()
        ),
        relations=tuple(
            RelationRule(
                name=name,
                description=fields.description,
                domain=tuple(fields.from_),
                range=tuple(fields.to),
                aliases=tuple(fields.aliases),
            )
            for name, fields in file.relations.items()
        ),
        glossary=_terms(file.glossary),
        domain=" ".join(file.domain.split()),
        examples=tuple(example.example() for example in file.examples),
    )
    _check_types(ontology, path)
    _check_examples(ontology, path)
    return ontology


def read_glossary(path: Path) -> tuple[GlossaryTerm, ...]:
    """Return the terms of a file that contains only terms, or an ontology's `glossary`. Raises InvalidInput."""
    content = _parsed(path)
    if isinstance(content, dict) and set(content) != {"glossary"}:
        content = {"glossary": content}
    return _terms(_validated(content, _OntologyFields, path).glossary)


def _as_line(text: str) -> str:
    """Return a text on one line: a record is one line of a reply."""
    return " ".join(text.split())


_Line = Annotated[str, AfterValidator(_as_line)]
_Name = Annotated[str, AfterValidator(_as_line), Field(min_length=1)]


class _ExampleEntityFields(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: _Name
    type: _Name
    description: _Line = ""


class _ExampleRelationFields(BaseModel):
    model_config = ConfigDict(extra="forbid")

    source: _Name
    target: _Name
    keywords: list[_Name] = []
    description: _Line = ""
    strength: float = Field(5, ge=1, le=10)

    @field_validator("keywords", mode="before")
    @classmethod
    def _as_list(cls, value: object) -> object:
        """Accept one text with commas for a list."""
        if isinstance(value, str):
            return [word.strip() for word in value.split(",") if word.strip()]
        return value or []


class _ExampleFields(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: str = Field(min_length=1, max_length=MAX_EXAMPLE_TEXT)
    entities: list[_ExampleEntityFields] = Field(min_length=1, max_length=MAX_EXAMPLE_RECORDS)
    relations: list[_ExampleRelationFields] = Field([], max_length=MAX_EXAMPLE_RECORDS)

    def example(self) -> ExtractionExample:
        return ExtractionExample(
            text=self.text.strip(),
            entities=tuple(
                ExtractedEntity(name=entity.name, type=entity.type, description=entity.description)
                for entity in self.entities
            ),
            relations=tuple(
                ExtractedRelation(
                    source=relation.source,
                    target=relation.target,
                    keywords=tuple(relation.keywords),
                    description=relation.description,
                    weight=relation.strength / 10,
                )
                for relation in self.relations
            ),
        )


class _AliasFields(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    aliases: list[str] = []

    @field_validator("aliases", "from_", "to", mode="before", check_fields=False)
    @classmethod
    def _as_list(cls, value: object) -> object:
        return [value] if isinstance(value, str) else value or []


class _TypeFields(_AliasFields):
    description: str = ""


class _RelationFields(_AliasFields):
    description: str = ""
    from_: list[str] = Field([], alias="from")
    to: list[str] = []


class _TermFields(_AliasFields):
    definition: str = ""
    type: str = ""


class _OntologyFields(BaseModel):
    model_config = ConfigDict(extra="forbid")

    types: dict[str, _TypeFields] = {}
    relations: dict[str, _RelationFields] = {}
    glossary: dict[str, _TermFields] = {}
    domain: str = Field("", max_length=MAX_DOMAIN)
    examples: list[_ExampleFields] = Field([], max_length=MAX_EXAMPLES)

    @field_validator("domain", mode="before")
    @classmethod
    def _null_is_empty(cls, value: object) -> object:
        return "" if value is None else value

    @field_validator("examples", mode="before")
    @classmethod
    def _null_is_no_example(cls, value: object) -> object:
        return [] if value is None else value

    @field_validator("types", "relations", mode="before")
    @classmethod
    def _with_description(cls, value: object) -> object:
        return _as_objects(value, "description")

    @field_validator("glossary", mode="before")
    @classmethod
    def _with_definition(cls, value: object) -> object:
        return _as_objects(value, "definition")


def _as_objects(value: object, text_field: str) -> object:
    """Return a list of names, or a mapping of names to plain texts, as a mapping of names to objects."""
    if isinstance(value, list):
        return {str(name): {} for name in value}
    if isinstance(value, dict):
        return {
            name: {text_field: fields} if isinstance(fields, str) else fields or {} for name, fields in value.items()
        }
    return value or {}


def _terms(fields_by_name: dict[str, _TermFields]) -> tuple[GlossaryTerm, ...]:
    return tuple(
        GlossaryTerm(name=name, definition=fields.definition, type=fields.type, aliases=tuple(fields.aliases))
        for name, fields in fields_by_name.items()
    )


def _check_types(ontology: Ontology, path: Path) -> None:
    """Raise InvalidInput if a relation or a term has a type that is not among the types."""
    if not ontology.types:
        return
    types = {rule.name for rule in ontology.types} | {OTHER_TYPE}
    uses = [(f"relations.{rule.name}.from", name) for rule in ontology.relations for name in rule.domain]
    uses += [(f"relations.{rule.name}.to", name) for rule in ontology.relations for name in rule.range]
    uses += [(f"glossary.{term.name}.type", term.type) for term in ontology.glossary if term.type]
    for place, name in uses:
        if name not in types:
            raise InvalidInput(
                f"{path}, {place}: {name!r} is not among the types.", remedy=f"Types: {', '.join(sorted(types))}."
            )


def _check_examples(ontology: Ontology, path: Path) -> None:
    """Raise InvalidInput if an example names something that its text or the types do not support."""
    types = {rule.name for rule in ontology.types} or set(ENTITY_TYPES)
    types |= set() if ontology.is_strict else {OTHER_TYPE}
    for number, example in enumerate(ontology.examples):
        for field, problem, remedy in _example_problems(example, types):
            raise InvalidInput(f"{path}, examples.{number}.{field}: {problem}", remedy=remedy)


def _example_problems(example: ExtractionExample, types: Collection[str]) -> Iterator[tuple[str, str, str]]:
    """Yield (field, problem, remedy)."""
    text = GroundingText(ChunkInput(text=example.text))
    keys = {entity_key(entity.name) for entity in example.entities}
    for index, entity in enumerate(example.entities):
        if not text.contains_all_words(entity.name):
            problem = f"{entity.name!r} does not occur in the text of the example."
            yield f"entities.{index}.name", problem, "Write the name as it is in the text, or remove it."
        if entity.type not in types:
            problem = f"{entity.type!r} is not among the types."
            yield f"entities.{index}.type", problem, f"Types: {', '.join(sorted(types))}."
    for index, relation in enumerate(example.relations):
        for field, name in (("source", relation.source), ("target", relation.target)):
            if entity_key(name) not in keys:
                problem = f"{name!r} is not among the entities of the example."
                yield f"relations.{index}.{field}", problem, "Add it to the entities, or remove the relation."


F = TypeVar("F", bound=BaseModel)


def _validated(content: object, fields: type[F], path: Path) -> F:
    try:
        return fields.model_validate(content)
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(str(part) for part in problem["loc"] if part != "[key]") or "the whole file"
        raise InvalidInput(f"{path}, {place}: {problem['msg']}.", remedy=_REMEDY) from error


def _parsed(path: Path) -> Any:
    """Return the content of a file in the language of its suffix; YAML for any other suffix."""
    import tomllib

    import yaml

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
