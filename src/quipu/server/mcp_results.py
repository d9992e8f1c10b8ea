"""MCP results: what the tools return, each made from what the engine returns and bounded in size."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import quote

from pydantic import BaseModel
from pydantic_core import to_json

from quipu.engine import Quipu
from quipu.model.answer import Answer, Citation
from quipu.model.document import Document
from quipu.model.evidence import Chain, ExplainedChunk
from quipu.model.graph import DatedStatement
from quipu.model.results import EntityDetails, NeighbourPage, RetrievedPassage

MAX_CHARS = 20_000  # of one result as JSON; some clients drop longer ones
MAX_HIT_CHARS = 500  # of the passage that a search shows
_FRAME_CHARS = 200  # of what surrounds the parts of a result
_INDENT_CHARS = 8  # before each line of a part
_MAX_TEXT_CHARS = MAX_CHARS // 2  # of an answer or a passage, so that there is room for what proves it
_MAX_NAME_CHARS = 100
_MAX_LINE_CHARS = 300
_MAX_LINES = 10

# Makes the address of a document: its id, then the first character and the end, if they are given.
Link = Callable[..., str]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexForTools:
    """An open index for one call. `link` makes the address of a document, at some characters if they are given."""

    kb: Quipu
    link: Link
    check_write: Callable[[], None] = lambda: None


class ToolResult(BaseModel, frozen=True):
    """What a tool returns; its JSON schema, with the descriptions, is what a model sees."""


Part = TypeVar("Part", bound=ToolResult)


class SearchHit(ToolResult, frozen=True):
    """A document that fits, and its best passage. `fetch` takes the id."""

    id: str
    title: str
    url: str
    text: str


class SearchHits(ToolResult, frozen=True):
    """Documents that fit, best first."""

    results: tuple[SearchHit, ...]


class DocumentPart(ToolResult, frozen=True):
    """The text of a document, or a part of it. `cursor` asks for the next part; it is empty at the end."""

    id: str
    title: str
    url: str
    text: str
    cursor: str
    metadata: dict[str, str]


class SourcePassage(ToolResult, frozen=True):
    """A passage of a document: characters [start, end) of its text. `reason` says why it was chosen."""

    document: str
    title: str
    url: str
    start: int
    end: int
    text: str
    reason: str


class EvidencePart(ToolResult, frozen=True):
    """Passages that belong to a question, best first. `cursor` asks for those that follow; it is empty at the end."""

    passages: tuple[SourcePassage, ...]
    cursor: str


class CitedAnswer(ToolResult, frozen=True):
    """An answer; [1] in it stands for the first source. `is_supported` is false if the documents do not answer."""

    answer: str
    is_supported: bool
    sources: tuple[SourcePassage, ...]
    notes: tuple[str, ...]


class EntityFacts(ToolResult, frozen=True):
    """What the documents say about a name: relations, the most often stated first, and the documents that mention it.

    `differing` are sentences, with dates, that documents have in the same words but for a name, number or negation.
    `cursor` asks for more relations; it is empty at the end.
    """

    name: str
    type: str
    aliases: tuple[str, ...]
    description: str
    relations: tuple[str, ...]
    n_relations: int
    differing: tuple[str, ...]
    documents: tuple[str, ...]
    cursor: str


class DocumentLine(ToolResult, frozen=True):
    """A document: `status` is "ready" once it can be asked; `error` says what is wrong with one that failed."""

    id: str
    title: str
    status: str
    url: str
    error: str


class DocumentLines(ToolResult, frozen=True):
    """Documents by id. `cursor` asks for those that follow; it is empty at the end."""

    documents: tuple[DocumentLine, ...]
    cursor: str


class PassageReason(ToolResult, frozen=True):
    """Why a passage is in the evidence. `paths` lead from words of the question over entities to it."""

    rank: int
    document: str
    url: str
    reason: str
    paths: tuple[str, ...]
    mentions: tuple[str, ...]


class PassageReasons(ToolResult, frozen=True):
    """Why the best passages are in the evidence."""

    passages: tuple[PassageReason, ...]


class ChangedDocument(ToolResult, frozen=True):
    """A document that was added, replaced or removed."""

    id: str
    outcome: str


def document_uri(document_id: str, start: int | None = None, end: int | None = None) -> str:
    """Return the address of a document as a resource; the characters are part of it if they are given."""
    place = "" if start is None else f"?start={start}&end={end}"
    return f"quipu://documents/{quote(document_id, safe='')}{place}"


def document_part(document: Document, url: str, text: str, start: int) -> DocumentPart:
    """Return as much of the text of a document as fits, from the character `start` on."""
    part = DocumentPart(
        id=document.id,
        title=one_line(document.title or document.id, _MAX_LINE_CHARS),
        url=url,
        text="",
        cursor=str(len(text)),
        metadata=_described(document.metadata),
    )
    fitting = beginning(text[start : start + MAX_CHARS], MAX_CHARS - _size(part))
    end = start + len(fitting)
    return part.model_copy(update={"text": fitting, "cursor": str(end) if end < len(text) else ""})


def _described(metadata: Mapping[str, object]) -> dict[str, str]:
    names = list(metadata)[:_MAX_LINES]
    return {one_line(name, _MAX_NAME_CHARS): one_line(str(metadata[name]), _MAX_LINE_CHARS) for name in names}


def search_hit(link: Link, passage: RetrievedPassage) -> SearchHit:
    """Return a document with the beginning of its best passage."""
    source = source_passage(link, passage)
    return SearchHit(id=source.document, title=source.title, url=source.url, text=one_line(source.text, MAX_HIT_CHARS))


def source_passage(link: Link, passage: RetrievedPassage) -> SourcePassage:
    """Return a retrieved passage."""
    document, chunk = passage.document, passage.chunk
    return SourcePassage(
        document=document.id,
        title=one_line(document.title or document.id, _MAX_LINE_CHARS),
        url=link(document.id, chunk.start, chunk.end),
        start=chunk.start,
        end=chunk.end,
        text=beginning(chunk.text, _MAX_TEXT_CHARS),
        reason=one_line(passage.reason, _MAX_LINE_CHARS),
    )


def cited_answer(link: Link, answer: Answer) -> CitedAnswer:
    """Return an answer with as many of its sources as fit."""
    text = beginning(answer.text, _MAX_TEXT_CHARS)
    notes = [one_line(note, _MAX_LINE_CHARS) for note in (*answer.notes, *answer.trace.stale)][:_MAX_LINES]
    if len(text) < len(answer.text):
        notes.append("The answer is cut; call `evidence` to read all that belongs to the question.")
    part = CitedAnswer(answer=text, is_supported=answer.is_supported, sources=(), notes=tuple(notes))
    sources = that_fit([_source(link, citation) for citation in answer.citations], MAX_CHARS - _size(part))
    n_left = len(answer.citations) - len(sources)
    more = (f"{n_left} more sources do not fit here; `evidence` returns them.",) if n_left else ()
    return part.model_copy(update={"sources": tuple(sources), "notes": (*part.notes, *more)})


def _source(link: Link, citation: Citation) -> SourcePassage:
    return SourcePassage(
        document=citation.document_id,
        title=one_line(citation.title or citation.document_id, _MAX_LINE_CHARS),
        url=link(citation.document_id, citation.start, citation.end),
        start=citation.start,
        end=citation.end,
        text=beginning(citation.quote, _MAX_TEXT_CHARS // 2),
        reason="",
    )


def entity_facts(page: NeighbourPage, details: EntityDetails) -> EntityFacts:
    """Return an entity with a page of its relations, each as a line."""
    lines = (
        f"{one_line(relation.source_name, _MAX_NAME_CHARS)} — {one_line(relation.target_name, _MAX_NAME_CHARS)}: "
        f"{one_line(relation.description, _MAX_LINE_CHARS)}"
        for relation, _ in page.neighbours
    )
    documents = dict.fromkeys(chunk.document_id for chunk, _ in details.chunks)
    return EntityFacts(
        name=one_line(page.entity.name, _MAX_LINE_CHARS),
        type=one_line(page.entity.type, _MAX_NAME_CHARS),
        aliases=_first_lines(page.entity.aliases, 1_000),
        description=beginning(page.entity.description, 4_000),
        relations=tuple(lines),
        n_relations=page.n_total,
        differing=_first_lines([_dated(statement) for group in details.differing for statement in group], 2_000),
        documents=_first_lines(documents, 2_000),
        cursor=page.cursor,
    )


def _dated(statement: DatedStatement) -> str:
    """Return a statement as a line: since when it holds, until when if it ends, its document and its text."""
    until = f" until {statement.holds_until}" if statement.holds_until else ""
    where = one_line(statement.document_id, _MAX_NAME_CHARS)
    return f"{statement.holds_from[:10]}{until}, {where}: {one_line(statement.text, _MAX_LINE_CHARS)}"


def document_line(link: Link, document: Document) -> DocumentLine:
    """Return a document as a line of a list."""
    return DocumentLine(
        id=document.id,
        title=one_line(document.title or document.id, _MAX_LINE_CHARS),
        status=document.status.value,
        url=link(document.id),
        error=one_line(document.error, MAX_HIT_CHARS),
    )


def passage_reason(link: Link, chunk: ExplainedChunk) -> PassageReason:
    """Return why a passage is in the evidence."""
    return PassageReason(
        rank=chunk.rank,
        document=chunk.document_id,
        url=link(chunk.document_id),
        reason=one_line(chunk.reason, _MAX_LINE_CHARS),
        paths=tuple(one_line(_path(chain), _MAX_LINE_CHARS) for chain in chunk.chains[:_MAX_LINES]),
        mentions=tuple(
            one_line(f"{hit.name}: {hit.connection}", _MAX_NAME_CHARS) for hit in chunk.supporting_hits[:_MAX_LINES]
        ),
    )


def _path(chain: Chain) -> str:
    """Return a chain as in "Alice Kober (name) → Linear B → passage"."""
    names = [f"{one_line(chain.seed, 100)} ({chain.kind})", *filter(None, [chain.start])]
    return " → ".join((*names, *(step.target for step in chain.steps), "passage"))


def that_fit(parts: Sequence[Part], room: int = MAX_CHARS - _FRAME_CHARS) -> list[Part]:
    """Return the first parts of a result that fit into `room` characters of JSON together."""
    fitting: list[Part] = []
    for part in parts:
        room -= _size(part)
        if room < 0:
            break
        fitting.append(part)
    return fitting


def _first_lines(lines: Iterable[str], room: int) -> tuple[str, ...]:
    """Return the first lines that fit into `room` characters of JSON together."""
    fitting: list[str] = []
    for line in lines:
        room -= _json_chars(line) + _INDENT_CHARS
        if room < 0:
            break
        fitting.append(line)
    return tuple(fitting)


def _size(part: ToolResult) -> int:
    """Return how many characters a part of a result takes as JSON with a line for each field."""
    written = part.model_dump_json(indent=2)
    return len(written) + _INDENT_CHARS * (written.count("\n") + 1)


def beginning(text: str, room: int) -> str:
    """Return the beginning of a text that takes at most `room` characters of JSON."""
    end = min(len(text), room)
    while end > 0 and (size := _json_chars(text[:end])) > room:
        end = min(end - 1, end * room // size)
    return text[: max(end, 0)]


def _json_chars(text: str) -> int:
    return len(to_json(text).decode())


def one_line(text: str, limit: int) -> str:
    """Return a text as one line of at most `limit` characters."""
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}…"
