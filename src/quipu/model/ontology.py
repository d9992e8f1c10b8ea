"""Ontology: which types and relations a graph shall have, and the names a user already knows."""

from dataclasses import dataclass

from quipu.model.extraction import FoundEntity, FoundRelation


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeRule:
    """An entity type; a name among `aliases` means the same type."""

    name: str
    description: str = ""
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationRule:
    """A relation by name, from entities of the types `domain` to those of the types `range`; () allows every type."""

    name: str
    description: str = ""
    domain: tuple[str, ...] = ()
    range: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A name of the glossary: what it means, its type if that is known, and the other names it goes by."""

    name: str
    definition: str = ""
    type: str = ""
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A short text of such documents, and what shall be written down of it."""

    text: str
    entities: tuple[FoundEntity, ...]
    relations: tuple[FoundRelation, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ontology:
    """What extraction is guided by and checked against.

    `domain` says what the documents are about and what matters in them; it and the examples are told to a model.

    Strict: what has another type, or a relation of another name or between other types, is dropped. Soft: it is kept,
    an unknown type as `Other`. Without `types` or `relations` every type of the default ones, or every relation, goes.
    """

    is_strict: bool = False
    types: tuple[TypeRule, ...] = ()
    relations: tuple[RelationRule, ...] = ()
    glossary: tuple[Term, ...] = ()
    domain: str = ""
    examples: tuple[Example, ...] = ()
