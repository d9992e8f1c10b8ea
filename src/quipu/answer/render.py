"""Render: evidence as numbered text, for people and for a model's prompt."""

from collections.abc import Sequence
from dataclasses import dataclass

from quipu.model.graph import Chunk, Entity, Relation


@dataclass(frozen=True, slots=True, kw_only=True)
class Sections:
    """Rendered evidence by kind, in the order in which it is shown."""

    points: Sequence[str] = ()
    reports: Sequence[str] = ()
    entities: Sequence[str] = ()
    relations: Sequence[str] = ()
    claims: Sequence[str] = ()
    passages: Sequence[str] = ()

    def text(self, boundary: str = "") -> str:
        """Return all under their headings, without those that are empty; `boundary` opens each heading."""
        parts = (
            ("Points", "\n\n".join(self.points)),
            ("Reports", "\n\n".join(self.reports)),
            ("Entities", "\n".join(self.entities)),
            ("Relations", "\n".join(self.relations)),
            ("Claims (what is alleged or reported)", "\n\n".join(self.claims)),
            ("Passages", "\n\n".join(self.passages)),
        )
        return "\n\n".join(f"{boundary}{heading}\n{text}" for heading, text in parts if text)


def entity_line(entity: Entity) -> str:
    """Return an entity on one line: name, type, description."""
    return _line(f"- {entity.name} ({entity.type})", entity.description)


def relation_line(relation: Relation) -> str:
    """Return a relation on one line: both names, keywords, description."""
    keywords = f" ({', '.join(relation.keywords)})" if relation.keywords else ""
    return _line(f"- {relation.source_name} — {relation.target_name}{keywords}", relation.description)


def passage_block(number: int, chunk: Chunk, boundary: str = "") -> str:
    """Return a passage under a line with its number, title, headings and page; `boundary` opens that line.

    One that begins within a table opens with the table's header.
    """
    place = " › ".join(part for part in (chunk.title, *chunk.headings) if part) or chunk.document_id
    text = f"{_one_line(chunk.header)}\n{chunk.text.strip()}" if chunk.header else chunk.text.strip()
    page = f", page {chunk.page}" if chunk.page is not None else ""
    return f"{boundary}[{number}] {_one_line(place)}{page}\n{text}"


def titled_block(number: int, title: str, text: str, boundary: str = "") -> str:
    """Return a report or a claim under a line with its number and title; `boundary` opens that line."""
    return f"{boundary}[{number}] {_one_line(title)}\n{text.strip()}"


def point_block(number: int, score: float, text: str, boundary: str = "") -> str:
    """Return a point under a line with its number and its score of 100; `boundary` opens that line."""
    return f"{boundary}[{number}] importance {score:g} of 100\n{text.strip()}"


def _line(head: str, description: str) -> str:
    text = _one_line(description)
    return _one_line(head) + (f": {text}" if text else "")


def _one_line(text: str) -> str:
    return " ".join(text.split())
