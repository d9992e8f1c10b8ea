"""What an extractor sees of a chunk and what it says about it, before names become keys."""

from dataclasses import dataclass, field

from quipu.model.ids import digest


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkInput:
    """All an extractor may look at: a chunk's text and, above it, title, headings and table header.

    `documents` are the ids of those that hold the chunk: whom the work is for, no part of what is read.
    """

    text: str
    title: str = ""
    headings: tuple[str, ...] = ()
    header: str = ""
    documents: tuple[str, ...] = field(default=(), compare=False)

    def hash(self, extractor_identity: str) -> str:
        """Return the key under which the reply of the extractor of that identity is kept."""
        if self.header:
            return digest(
                "extract under header", extractor_identity, self.header, self.text, self.title, *self.headings
            )
        return digest("extract", extractor_identity, self.text, self.title, *self.headings)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractedEntity:
    """An entity as named in the text. [start, end) is its first occurrence in the chunk's text, or (0, 0)."""

    name: str
    type: str
    description: str = ""
    start: int = 0
    end: int = 0
    is_definition: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractedRelation:
    """Two names the text relates; either may be missing among the entities.

    `weight` is 1 for a plain statement; a model's strength from 1 to 10 is a weight from 0.1 to 1.
    """

    source: str
    target: str
    keywords: tuple[str, ...] = ()
    description: str = ""
    weight: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractedAlias:
    """The text says `alias` is another name for `name`."""

    name: str
    alias: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractedClaim:
    """A claim about the subject: of what kind, how sure ("true", "false", "suspected") and when, as the text says.

    `object` is the other party, or "".
    """

    subject: str
    object: str = ""
    type: str = ""
    status: str = ""
    dates: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """Everything one extractor says about one chunk."""

    entities: tuple[ExtractedEntity, ...] = ()
    relations: tuple[ExtractedRelation, ...] = ()
    aliases: tuple[ExtractedAlias, ...] = ()
    claims: tuple[ExtractedClaim, ...] = ()


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
class GlossaryTerm:
    """A name of the glossary: what it means, its type if that is known, and the other names it goes by."""

    name: str
    definition: str = ""
    type: str = ""
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionExample:
    """A short text of such documents, and what shall be written down of it."""

    text: str
    entities: tuple[ExtractedEntity, ...]
    relations: tuple[ExtractedRelation, ...] = ()


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
    glossary: tuple[GlossaryTerm, ...] = ()
    domain: str = ""
    examples: tuple[ExtractionExample, ...] = ()
