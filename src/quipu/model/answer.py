"""Answers: text with numbered citations, each resolved to a document and a span of characters."""

from dataclasses import dataclass

from quipu.model.evidence import Trace
from quipu.model.usage import UsageRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """The source of a statement: characters [start, end) of the document's text, and the words there.

    The document's text is what its parser kept of it: of Markdown the body after the front matter, of HTML the readable
    text. `quipu show document ID` prints it. `page` is the one the words begin on, where the format has pages.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A sentence of an answer that claims something: characters [start, end) of its text, and what it rests on.

    `is_supported` is False where it cites nothing, or where the passages it cites lack its numbers, its names or most
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

    `generator` names what wrote `text` ("extractive", or a model); `is_supported` is False where nothing in the index
    supports an answer. `context` is the packed evidence the answer was made from, `prompt` what a model was or would be
    sent: each message after an empty line. `statements` are the sentences of a model, checked; of quotes there are
    none, they are what they cite. `notes` tell a reader what to know of this answer, as that it was cut short. `usage`
    is what it cost.
    """

    text: str
    generator: str
    citations: tuple[Citation, ...]
    trace: Trace
    is_supported: bool = True
    context: str = ""
    prompt: str = ""
    statements: tuple[Statement, ...] = ()
    notes: tuple[str, ...] = ()
    usage: tuple[UsageRow, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerPiece:
    """A piece of an answer as it is written. The last has no text and holds the whole answer."""

    text: str = ""
    answer: Answer | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedChunk:
    """A passage a strategy found: its id, its document, and how it ranks."""

    id: str
    document_id: str
    title: str
    score: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyResult:
    """What one strategy came to: `answer` is None where it failed, for the reason `error`.

    `chunks` are its passages, `entities` the names of its entities, `reports` the ids and titles of its reports: the
    first of each, best first. `ms` is the time of all stages, `n_calls` the calls of a language model, kept replies
    included.
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
    """How much two strategies found the same: passages in both of those in either (Jaccard), and in both."""

    first: str
    second: str
    jaccard: float
    n_both: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One question put to several strategies. `left_out` are those that were not asked, each with the reason."""

    question: str
    compared: tuple[StrategyResult, ...]
    overlaps: tuple[Overlap, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
