"""What an extractor sees of a chunk and what it says about it, before names become keys."""

from dataclasses import dataclass

from quipu.model.ids import digest


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkInput:
    """All an extractor may look at: a chunk's text and, above it, title, headings and table header."""

    text: str
    title: str = ""
    headings: tuple[str, ...] = ()
    header: str = ""

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
    """Two names the text relates; either may be missing among the entities."""

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
class Extraction:
    """Everything one extractor says about one chunk."""

    entities: tuple[FoundEntity, ...] = ()
    relations: tuple[FoundRelation, ...] = ()
    aliases: tuple[FoundAlias, ...] = ()
