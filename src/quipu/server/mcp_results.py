"""MCP results: what the tools return, each made from what the engine returns and bounded in size."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from pydantic import BaseModel

from quipu.engine import Quipu
from quipu.model.answer import Answer, Citation
from quipu.model.document import Document
from quipu.model.evidence import Chain, ExplainedChunk
from quipu.model.results import EntityDetails, NeighbourPage, RetrievedPassage

MAX_CHARS = 20_000  # of the text in one result; some clients drop longer ones
MAX_HIT_CHARS = 500  # of the passage that a search shows
_MAX_RELATION_CHARS = 300
_MAX_DOCUMENTS = 50

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

    `cursor` asks for more relations; it is empty at the end.
    """

    name: str
    type: str
    aliases: tuple[str, ...]
    description: str
    relations: tuple[str, ...]
    n_relations: int
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


def search_hit(link: Link, passage: RetrievedPassage) -> SearchHit:
    """Return a document with the beginning of its best passage."""
    source = source_passage(link, passage)
    return SearchHit(id=source.document, title=source.title, url=source.url, text=one_line(source.text, MAX_HIT_CHARS))


def source_passage(link: Link, passage: RetrievedPassage) -> SourcePassage:
    """Return a retrieved passage."""
    document, chunk = passage.document, passage.chunk
    return SourcePassage(
        document=document.id,
        title=document.title or document.id,
        url=link(document.id, chunk.start, chunk.end),
        start=chunk.start,
        end=chunk.end,
        text=chunk.text,
        reason=passage.reason,
    )


def cited_answer(link: Link, answer: Answer) -> CitedAnswer:
    """Return an answer with as many of its sources as fit."""
    text = answer.text[:MAX_CHARS]
    sources = that_fit([_source(link, citation) for citation in answer.citations], MAX_CHARS - len(text))
    notes = (*answer.notes, *answer.trace.stale)
    return CitedAnswer(answer=text, is_supported=answer.is_supported, sources=tuple(sources), notes=notes)


def _source(link: Link, citation: Citation) -> SourcePassage:
    return SourcePassage(
        document=citation.document_id,
        title=citation.title or citation.document_id,
        url=link(citation.document_id, citation.start, citation.end),
        start=citation.start,
        end=citation.end,
        text=citation.quote,
        reason="",
    )


def entity_facts(page: NeighbourPage, details: EntityDetails) -> EntityFacts:
    """Return an entity with a page of its relations, each as a line."""
    lines = (
        f"{relation.source_name} — {relation.target_name}: {one_line(relation.description, _MAX_RELATION_CHARS)}"
        for relation, _ in page.neighbours
    )
    documents = dict.fromkeys(chunk.document_id for chunk, _ in details.chunks)
    return EntityFacts(
        name=page.entity.name,
        type=page.entity.type,
        aliases=page.entity.aliases,
        description=page.entity.description[: MAX_CHARS // 4],
        relations=tuple(lines),
        n_relations=page.n_total,
        documents=tuple(documents)[:_MAX_DOCUMENTS],
        cursor=page.cursor,
    )


def document_line(link: Link, document: Document) -> DocumentLine:
    """Return a document as a line of a list."""
    return DocumentLine(
        id=document.id,
        title=document.title or document.id,
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
        reason=chunk.reason,
        paths=tuple(_path(chain) for chain in chunk.chains),
        mentions=tuple(f"{hit.name}: {hit.connection}" for hit in chunk.supporting_hits[:10]),
    )


def _path(chain: Chain) -> str:
    """Return a chain as in "Alice Kober (name) → Linear B → passage"."""
    names = [f"{one_line(chain.seed, 100)} ({chain.kind})", *filter(None, [chain.start])]
    return " → ".join((*names, *(step.target for step in chain.steps), "passage"))


def that_fit(passages: Sequence[SourcePassage], room: int = MAX_CHARS) -> list[SourcePassage]:
    """Return the first passages whose texts fit into `room` characters together; at least one, cut if need be."""
    fitting: list[SourcePassage] = []
    for passage in passages:
        room -= len(passage.text)
        if room < 0 and fitting:
            break
        fitting.append(passage.model_copy(update={"text": passage.text[:MAX_CHARS]}))
    return fitting


def one_line(text: str, limit: int) -> str:
    """Return a text as one line of at most `limit` characters."""
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}…"
