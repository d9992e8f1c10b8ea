"""Comparison: what several strategies found and said to one question, side by side."""

from dataclasses import dataclass

from quipu.model.answer import Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundChunk:
    """A passage a strategy found: its id, its document, and how it ranks."""

    id: str
    document_id: str
    title: str
    score: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What one strategy came to: `answer` is None where it failed, for the reason `error`.

    `chunks` are its passages, `entities` the names of its entities, `reports` the ids and titles of its reports: the
    first of each, best first. `ms` is the time of all stages, `n_calls` the calls of a language model, kept replies
    included.
    """

    strategy: str
    answer: Answer | None = None
    error: str = ""
    chunks: tuple[FoundChunk, ...] = ()
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
    compared: tuple[Compared, ...]
    overlaps: tuple[Overlap, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
