"""Context: the evidence that fits a budget, under numbers, and how it is rendered for people and for prompts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from quipu.algo.similarity import round_robin
from quipu.model.chat import Message
from quipu.model.evidence import DroppedHits
from quipu.model.graph import Chunk, Claim, Entity, Relation, claim_title
from quipu.model.query import Query
from quipu.prompts import answer as prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A chunk in the context under its number, counted from 1."""

    number: int
    chunk: Chunk

    def block(self, boundary: str = "") -> str:
        """Return the text under a line with number, title, headings and page; `boundary` opens that line.

        A chunk that begins within a table is shown with the header of the table.
        """
        chunk = self.chunk
        place = " › ".join(part for part in (chunk.title, *chunk.headings) if part) or chunk.document_id
        text = f"{_one_line(chunk.header)}\n{chunk.text.strip()}" if chunk.header else chunk.text.strip()
        page = f", page {chunk.page}" if chunk.page is not None else ""
        return f"{boundary}[{self.number}] {_one_line(place)}{page}\n{text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondarySource:
    """A point (without a title), a report or a claim in the context: text that a model or a rule wrote from chunks.

    It is never cited itself: a citation of its number leads to the `chunks` it rests on. Only a point has a `score`.
    """

    number: int
    text: str
    title: str = ""
    score: float = 0.0
    chunks: tuple[str, ...] = ()

    @classmethod
    def of_claim(cls, number: int, claim: Claim) -> "SecondarySource":
        """Return a claim as a source; it rests on the chunk that makes it."""
        return cls(number=number, text=claim.description, title=claim_title(claim), chunks=(claim.chunk_id,))

    def block(self, boundary: str = "") -> str:
        """Return the text under a line with number and title, or the score of a point; `boundary` opens that line."""
        heading = _one_line(self.title) if self.title else f"importance {self.score:g} of 100"
        return f"{boundary}[{self.number}] {heading}\n{self.text.strip()}"


def chunks_of_sources(sources: Iterable[SecondarySource], limit: int) -> list[str]:
    """Return up to `limit` chunk ids that sources rest on: the first of each source, then the second of each, ..."""
    return round_robin([source.chunks for source in sources], lambda chunk: chunk)[:limit]


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedEvidence:
    """The evidence that fits, in order, and what was dropped."""

    points: tuple[SecondarySource, ...] = ()
    reports: tuple[SecondarySource, ...] = ()
    entities: tuple[Entity, ...] = ()
    relations: tuple[Relation, ...] = ()
    claims: tuple[SecondarySource, ...] = ()
    passages: tuple[Passage, ...] = ()
    dropped: tuple[DroppedHits, ...] = ()

    @property
    def secondary(self) -> tuple[SecondarySource, ...]:
        """Points, reports and claims in the order of their numbers. Passages have higher numbers."""
        return self.points + self.reports + self.claims

    def context(self, boundary: str = "") -> str:
        """Return the evidence as numbered text; `boundary` opens each heading."""
        return ContextSections(
            points=[source.block(boundary) for source in self.points],
            reports=[source.block(boundary) for source in self.reports],
            entities=[entity_line(entity) for entity in self.entities],
            relations=[relation_line(relation) for relation in self.relations],
            claims=[source.block(boundary) for source in self.claims],
            passages=[passage.block(boundary) for passage in self.passages],
        ).text(boundary)

    def in_parts(self, n: int) -> list["PackedEvidence"]:
        """Return the evidence in parts of n passages; the first one holds everything else, too. 0: all in one part."""
        if not n or len(self.passages) <= n:
            return [self]
        first, *others = (self.passages[start : start + n] for start in range(0, len(self.passages), n))
        return [replace(self, passages=first), *(PackedEvidence(passages=passages) for passages in others)]

    def messages(self, query: Query, answer_so_far: str = "") -> tuple[Message, ...]:
        """Return the messages for a model, which answers, or refines the answer that it gave from other passages."""
        boundary = prompt.make_answer_boundary(query, f"{self.context()}\n{answer_so_far}")
        return prompt.render(query, self.context(boundary), boundary=boundary, answer_so_far=answer_so_far)

    def prompt(self, query: Query) -> str:
        """Return the messages for a model as one text."""
        return join_messages(self.messages(query))


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextSections:
    """Rendered evidence by kind, in the order in which it is shown."""

    points: Sequence[str] = ()
    reports: Sequence[str] = ()
    entities: Sequence[str] = ()
    relations: Sequence[str] = ()
    claims: Sequence[str] = ()
    passages: Sequence[str] = ()

    def text(self, boundary: str = "") -> str:
        """Return all sections that are not empty, under their headings; `boundary` opens each heading."""
        sections = (
            ("Points", "\n\n".join(self.points)),
            ("Reports", "\n\n".join(self.reports)),
            ("Entities", "\n".join(self.entities)),
            ("Relations", "\n".join(self.relations)),
            ("Claims (what is alleged or reported)", "\n\n".join(self.claims)),
            ("Passages", "\n\n".join(self.passages)),
        )
        return "\n\n".join(f"{boundary}{heading}\n{text}" for heading, text in sections if text)


def entity_line(entity: Entity) -> str:
    """Return an entity on one line: name, type, description."""
    return _line(f"- {entity.name} ({entity.type})", entity.description)


def relation_line(relation: Relation) -> str:
    """Return a relation on one line: both names, keywords, description."""
    keywords = f" ({', '.join(relation.keywords)})" if relation.keywords else ""
    return _line(f"- {relation.source_name} — {relation.target_name}{keywords}", relation.description)


def join_messages(messages: Sequence[Message]) -> str:
    """Return messages as one text, with an empty line between them."""
    return "\n\n".join(message.text for message in messages)


def _line(head: str, description: str) -> str:
    text = _one_line(description)
    return _one_line(head) + (f": {text}" if text else "")


def _one_line(text: str) -> str:
    return " ".join(text.split())
