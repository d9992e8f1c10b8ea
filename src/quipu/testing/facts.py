"""Facts for tests: short functions that make documents, chunks and mentions."""

from collections import Counter
from dataclasses import dataclass, replace

from quipu.model.delta import ChunkFacts, DocumentFacts
from quipu.model.document import Metadata, SourceDocument
from quipu.model.extraction import ChunkInput
from quipu.model.graph import OTHER_TYPE, AliasMention, Chunk, ClaimMention, EntityMention, RelationMention
from quipu.model.ids import chunk_id, digest
from quipu.text.names import entity_key

FactMention = EntityMention | RelationMention | AliasMention | ClaimMention

_GAP = "\n\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageSpec:
    """The input for one chunk: its text, its mentions, the headings above it, and why its extraction failed."""

    text: str
    mentions: tuple[FactMention, ...] = ()
    headings: tuple[str, ...] = ()
    error: str = ""


def entity(name: str, kind: str = OTHER_TYPE, description: str = "", *, is_definition: bool = False) -> EntityMention:
    """Return a mention of an entity by `name`."""
    return EntityMention(
        key=entity_key(name), surface=name, type=kind, description=description, is_definition=is_definition
    )


def relation(
    source: str, target: str, description: str = "", *, keywords: tuple[str, ...] = (), weight: float = 1.0
) -> RelationMention:
    """Return a mention of two entities together, by their names."""
    return RelationMention(
        source=entity_key(source),
        target=entity_key(target),
        keywords=keywords,
        description=description,
        weight=weight,
    )


def alias(name: str, other: str) -> AliasMention:
    """Return the statement that the entity `name` is also called `other`."""
    return AliasMention(key=entity_key(name), alias=entity_key(other), surface=other)


def claim(
    subject: str, description: str, other: str = "", *, kind: str = "", status: str = "", dates: str = ""
) -> ClaimMention:
    """Return a claim about the entity `subject`, and the entity `other` where one is named."""
    return ClaimMention(
        subject=entity_key(subject),
        object=entity_key(other),
        type=kind,
        status=status,
        dates=dates,
        description=description,
    )


def passage(text: str, *mentions: FactMention, headings: tuple[str, ...] = (), error: str = "") -> PassageSpec:
    """Return the input for one chunk of `document`."""
    return PassageSpec(text=text, mentions=mentions, headings=headings, error=error)


def document(
    document_id: str,
    *passages: PassageSpec | str,
    title: str = "",
    metadata: Metadata | None = None,
    job: int | None = None,
) -> DocumentFacts:
    """Return a document of these passages, in order, with a blank line between each two."""
    chunks: list[ChunkFacts] = []
    texts: list[str] = []
    n_by_text: Counter[str] = Counter()
    start = 0
    for part in passages:
        spec = part if isinstance(part, PassageSpec) else PassageSpec(text=part)
        chunk = _chunk(document_id, spec, title, occurrence=n_by_text[spec.text])
        n_by_text[spec.text] += 1
        placed = replace(chunk, ordinal=len(chunks), start=start, end=start + len(spec.text))
        chunks.append(_chunk_facts(placed, spec.mentions))
        texts.append(spec.text)
        start = placed.end + len(_GAP)
    return DocumentFacts(
        id=document_id,
        title=title,
        content_hash=digest(title, *(facts.chunk.text for facts in chunks)),
        chunks=tuple(chunks),
        source=f"{document_id}.txt",
        metadata=metadata or {},
        job=job,
        text=_GAP.join(texts),
        original=f"file: {_GAP.join(texts)}".encode("utf-8", "surrogatepass"),
    )


def source(document_id: str, text: str = "", *, title: str = "", metadata: Metadata | None = None) -> SourceDocument:
    """Return a source document before parsing."""
    return SourceDocument(id=document_id, content=text.encode(), title=title, metadata=metadata or {})


def _chunk(document_id: str, spec: PassageSpec, title: str, *, occurrence: int) -> Chunk:
    text_hash = digest(spec.text)
    return Chunk(
        id=chunk_id(document_id, text_hash, occurrence),
        document_id=document_id,
        title=title,
        ordinal=0,
        text=spec.text,
        start=0,
        end=0,
        n_tokens=-(-len(spec.text.encode()) // 4),
        text_hash=text_hash,
        input_hash=ChunkInput(text=spec.text, title=title, headings=spec.headings).hash("quipu.testing"),
        headings=spec.headings,
        error=spec.error,
    )


def _chunk_facts(chunk: Chunk, mentions: tuple[FactMention, ...]) -> ChunkFacts:
    return ChunkFacts(
        chunk=chunk,
        entities=tuple(_placed(mention, chunk.text) for mention in mentions if isinstance(mention, EntityMention)),
        relations=tuple(mention for mention in mentions if isinstance(mention, RelationMention)),
        aliases=tuple(mention for mention in mentions if isinstance(mention, AliasMention)),
        claims=tuple(mention for mention in mentions if isinstance(mention, ClaimMention)),
    )


def _placed(mention: EntityMention, text: str) -> EntityMention:
    """Return the mention with the span of its first occurrence, or unchanged if the text lacks it."""
    start = text.find(mention.surface)
    return replace(mention, start=start, end=start + len(mention.surface)) if start >= 0 else mention
