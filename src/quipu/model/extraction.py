"""Extraction: what an extractor reads of a chunk, the ontology that guides it, and what it returns."""

from dataclasses import dataclass, field

from quipu.model.ids import digest


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkInput:
    """Everything an extractor may read: a chunk's text, the document's title, the headings and the table header.

    `documents` are the ids of the documents that contain the chunk. They are used for accounting only.
    """

    text: str
    title: str = ""
    headings: tuple[str, ...] = ()
    header: str = ""
    documents: tuple[str, ...] = field(default=(), compare=False)

    def hash(self, extractor_identity: str) -> str:
        """Return the key of the cached reply of the extractor with this identity."""
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
    """A relation between two names. Either name may be missing among the extracted entities.

    `weight` is 1 for a plain statement. A model's strength from 1 to 10 becomes a weight from 0.1 to 1.
    """

    source: str
    target: str
    keywords: tuple[str, ...] = ()
    description: str = ""
    weight: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractedAlias:
    """The text says that `alias` is another name for `name`."""

    name: str
    alias: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractedClaim:
    """A claim about the subject. `object` is the other party, or "".

    `status` ("true", "false", "suspected") and `dates` are as the text gives them.
    """

    subject: str
    object: str = ""
    type: str = ""
    status: str = ""
    dates: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """Everything that one extractor found in one chunk."""

    entities: tuple[ExtractedEntity, ...] = ()
    relations: tuple[ExtractedRelation, ...] = ()
    aliases: tuple[ExtractedAlias, ...] = ()
    claims: tuple[ExtractedClaim, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeRule:
    """An entity type. `aliases` are other names of the same type."""

    name: str
    description: str = ""
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationRule:
    """A relation name, from entities of the types `domain` to entities of the types `range`; () allows every type."""

    name: str
    description: str = ""
    domain: tuple[str, ...] = ()
    range: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GlossaryTerm:
    """A term of the user's glossary: its definition, its type if known, and its other names."""

    name: str
    definition: str = ""
    type: str = ""
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionExample:
    """A short sample text and what should be extracted from it."""

    text: str
    entities: tuple[ExtractedEntity, ...]
    relations: tuple[ExtractedRelation, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ontology:
    """The types, relations and names that guide extraction and that its results are checked against.

    `domain` says what the documents are about and what matters in them. Models are sent `domain` and `examples`.

    If `is_strict`, entities of other types are dropped, and so are relations with other names or between other types.
    Otherwise they are kept, and an unknown type becomes `Other`. Empty `types` means the default types. Empty
    `relations` allows every relation.
    """

    is_strict: bool = False
    types: tuple[TypeRule, ...] = ()
    relations: tuple[RelationRule, ...] = ()
    glossary: tuple[GlossaryTerm, ...] = ()
    domain: str = ""
    examples: tuple[ExtractionExample, ...] = ()
