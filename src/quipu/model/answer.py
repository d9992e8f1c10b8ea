"""Answers: a text with numbered citations, and the comparison of several strategies' answers."""

from collections.abc import Callable
from dataclasses import dataclass

from quipu.model.evidence import Trace
from quipu.model.markdown import escape_markdown, markdown_table
from quipu.model.usage import UsageRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """The source of a statement: characters [start, end) of a document's text, quoted in `quote`.

    The document's text is the parsed text: Markdown without front matter, HTML reduced to its readable text.
    `Quipu.text` returns it, `quipu show text ID` prints it. `page` is the page where the quote begins, if the format
    has pages. `date` is the one that the document states, `valid_from` or `date` in its metadata, "" for none.
    `also_in` are the other documents with the same whole text.
    """

    number: int
    document_id: str
    title: str
    chunk_id: str
    start: int
    end: int
    quote: str
    page: int | None = None
    headings: tuple[str, ...] = ()
    source: str = ""
    date: str = ""
    also_in: tuple[str, ...] = ()

    def _repr_markdown_(self) -> str:
        title, document_id = escape_markdown(self.title or self.document_id), escape_markdown(self.document_id)
        date = f", dated {self.date}" if self.date else ""
        page = f", page {self.page}" if self.page else ""
        copies = f"; also in {escape_markdown(', '.join(self.also_in))}" if self.also_in else ""
        return f"- [{self.number}] **{title}** — {document_id}{date}{page}, characters {self.start}–{self.end}{copies}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A sentence of an answer that makes a claim: characters [start, end) of the answer, and its citations.

    `is_supported` is False if the sentence cites nothing, or if the cited passages lack its numbers, its names or most
    of its other words.
    """

    text: str
    start: int
    end: int
    citations: tuple[Citation, ...] = ()
    is_supported: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to a query.

    `generator` names what wrote `text`: "extractive" or a model. `is_supported` is False if nothing in the index
    supports an answer. `context` is the packed evidence. `prompt` is what the model was sent, or would be sent: its
    messages, separated by empty lines. `highlights` are the characters [start, end) of `text` that answer, in a quoted
    answer: the best sentence of each quote. `citation_marks` are the characters [start, end) of `text` that cite, such
    as "[1]"; the same characters within a quote cite nothing. `statements` are the checked sentences of a model's
    answer; an extractive answer has none, because it only quotes. `notes` are warnings for the reader, for example that
    the answer was cut short. `usage` is what the answer cost.
    """

    text: str
    generator: str
    citations: tuple[Citation, ...]
    trace: Trace
    is_supported: bool = True
    context: str = ""
    prompt: str = ""
    statements: tuple[Statement, ...] = ()
    highlights: tuple[tuple[int, int], ...] = ()
    citation_marks: tuple[tuple[int, int], ...] = ()
    notes: tuple[str, ...] = ()
    usage: tuple[UsageRow, ...] = ()

    def _repr_markdown_(self) -> str:
        """Return the answer, its notes and a list of its sources, for a notebook."""
        sources = dict.fromkeys(citation._repr_markdown_() for citation in self.citations)
        notes = [f"> {escape_markdown(note)}" for note in (*self.notes, *self.trace.stale)]
        return "\n\n".join(filter(None, (self.text, "\n>\n".join(notes), "\n".join(sources))))


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerPiece:
    """A piece of an answer while it is streamed. The last piece has no text and holds the whole answer.

    A piece with a `stage` and no text says what is done from now on: "understand", "retrieve", "rerank" or "generate".
    The piece "generate" counts the passages that the answer is made of.
    In a conversation, the piece "generate" names the `documents` whose words a model may be sent, None if they may be
    any of the index, and the last piece has the id of the conversation and the number of the exchange (0: not saved).
    """

    text: str = ""
    answer: Answer | None = None
    stage: str = ""
    n_passages: int = 0
    documents: tuple[str, ...] | None = ()
    conversation: str = ""
    number: int = 0


PieceSink = Callable[[AnswerPiece], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedChunk:
    """A passage that a strategy retrieved: its id, its document, its score and the reason for it."""

    id: str
    document_id: str
    title: str
    score: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyResult:
    """What one strategy returned for the compared question. If it failed, `answer` is None and `error` says why.

    `chunks`, `entities` (names) and `reports` (ids and titles) are the first of each kind, best first. The `n_*`
    counts cover all of them. `ms` is the time of all stages. `n_calls` counts calls of a language model, including
    those answered from the reply cache.
    """

    strategy: str
    answer: Answer | None = None
    error: str = ""
    chunks: tuple[RankedChunk, ...] = ()
    entities: tuple[str, ...] = ()
    reports: tuple[tuple[str, str], ...] = ()
    n_chunks: int = 0
    n_entities: int = 0
    n_relations: int = 0
    n_claims: int = 0
    n_reports: int = 0
    n_context_tokens: int = 0
    n_calls: int = 0
    ms: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """How many passages two strategies share: `n_both`, and the Jaccard index of the two sets."""

    first: str
    second: str
    jaccard: float
    n_both: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One question answered by several strategies. `skipped` are (strategy, reason) pairs."""

    question: str
    results: tuple[StrategyResult, ...]
    overlaps: tuple[Overlap, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()

    def _repr_markdown_(self) -> str:
        """Return a table of the strategies with their answers, for a notebook."""
        rows = [
            (
                result.strategy,
                result.answer.text if result.answer else result.error,
                result.n_chunks,
                f"{result.ms:,.0f}",
            )
            for result in self.results
        ]
        return markdown_table(("strategy", "answer", "passages", "ms"), rows)
