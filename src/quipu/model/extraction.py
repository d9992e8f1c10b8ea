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
class FoundEntity:
    """An entity as named in the text. [start, end) is its first occurrence in the chunk's text, or (0, 0)."""

    name: str
    type: str
    description: str = ""
    start: int = 0
    end: int = 0
    is_definition: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRelation:
    """Two names the text relates; either may be missing among the entities.

    `weight` is 1 for a plain statement; a model's strength from 1 to 10 is a weight from 0.1 to 1.
    """

    source: str
    target: str
    keywords: tuple[str, ...] = ()
    description: str = ""
    weight: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundAlias:
    """The text says `alias` is another name for `name`."""

    name: str
    alias: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundClaim:
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

    entities: tuple[FoundEntity, ...] = ()
    relations: tuple[FoundRelation, ...] = ()
    aliases: tuple[FoundAlias, ...] = ()
    claims: tuple[FoundClaim, ...] = ()
