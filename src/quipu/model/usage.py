"""Usage: what models were asked and what it cost, counted by day, stage, model and subject."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import reduce

from quipu.model.chat import TokenCount

MICRO = 1_000_000  # money is counted in millionths, so that sums are exact


class Stage(StrEnum):
    """What a call was made for: the roles of chat models, and the other services."""

    EXTRACT = "extract"
    KEYWORDS = "keywords"
    SUMMARISE = "summarise"
    REPORT = "report"
    ANSWER = "answer"
    JUDGE = "judge"
    EMBED = "embed"
    RERANK = "rerank"
    CHECK = "check"


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRow:
    """Calls of one stage, model and subject on one day, added up.

    `subject` is the id of a document, the text of a question, or "" (shared work). `cost` is in millionths of the
    currency of the price table; calls of a model without a price are counted in `n_unpriced`. `n_interrupted` calls
    gave no full reply: what they may have cost is at most `interrupted_tokens` and `interrupted_cost`, which the other
    figures do not include.
    """

    day: str  # ISO 8601, UTC
    stage: Stage
    model: str
    subject: str = ""
    n_calls: int = 0
    tokens: TokenCount = field(default_factory=TokenCount)
    cost: int = 0
    n_unpriced: int = 0
    n_interrupted: int = 0
    interrupted_tokens: TokenCount = field(default_factory=TokenCount)
    interrupted_cost: int = 0

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Day, stage, model and subject: rows of one key are added up."""
        return self.day, self.stage.value, self.model, self.subject

    def __add__(self, other: "UsageRow") -> "UsageRow":
        """Return both together, under the key of the first."""
        return replace(
            self,
            n_calls=self.n_calls + other.n_calls,
            tokens=self.tokens + other.tokens,
            cost=self.cost + other.cost,
            n_unpriced=self.n_unpriced + other.n_unpriced,
            n_interrupted=self.n_interrupted + other.n_interrupted,
            interrupted_tokens=self.interrupted_tokens + other.interrupted_tokens,
            interrupted_cost=self.interrupted_cost + other.interrupted_cost,
        )


def total(rows: Iterable[UsageRow]) -> UsageRow:
    """Return rows added up under the key of the first; raises TypeError where there is none."""
    return reduce(UsageRow.__add__, rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Price of a million tokens, in units of the currency."""

    input: float
    output: float
    cached: float | None = None  # None: as `input`

    def of(self, tokens: TokenCount) -> int:
        """Return what tokens cost, in millionths of a unit, rounded up."""
        cached = self.input if self.cached is None else self.cached
        cost = (tokens.input - tokens.cached) * self.input + tokens.cached * cached + tokens.output * self.output
        return math.ceil(round(cost, 6))  # rounded first, for what binary fractions add


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendingLimit:
    """A limit on what a piece of work may spend; None: no limit. `cost` is in millionths of a unit."""

    cost: int | None = None
    tokens: int | None = None
    calls: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """A number that is not known yet: what is likely, and between what it should lie."""

    low: float
    likely: float
    high: float

    def times(self, factor: "float | Range") -> "Range":
        """Return the product; with another range, low with low and high with high."""
        by = factor if isinstance(factor, Range) else Range(low=factor, likely=factor, high=factor)
        return Range(low=self.low * by.low, likely=self.likely * by.likely, high=self.high * by.high)

    def plus(self, other: "Range") -> "Range":
        """Return the sum."""
        return Range(low=self.low + other.low, likely=self.likely + other.likely, high=self.high + other.high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What adding documents would take. `basis` says where the figures come from.

    `n_known` of the chunks are known from before and cost nothing. `cost` is in millionths of the price table's unit,
    None where the model has no price. `seconds` is the time of the model at the concurrency of the settings. Where a
    service computes the vectors, `embedder` is its model, and `embedded_tokens` and `embedding_cost` come on top.
    `sample_calls` and `sample_cost` are what was spent for this estimate; `n_sample_failed` of the `n_sampled` chunks
    could not be read, the first of them for `sample_error`. `extractor` says what would read; `n_read_otherwise` of
    the unchanged documents were not read by it, or by other settings, but as `read_otherwise_by` has it.
    """

    n_documents: int
    n_unchanged: int
    n_unreadable: int
    n_chunks: int
    n_known: int
    model: str
    basis: str
    calls: Range
    input_tokens: Range
    output_tokens: Range
    seconds: Range
    cost: Range | None
    sample_cost: int = 0
    sample_calls: int = 0
    n_sampled: int = 0
    n_sample_failed: int = 0
    sample_error: str = ""
    extractor: str = ""
    n_read_otherwise: int = 0
    read_otherwise_by: tuple[str, ...] = ()
    embedder: str = ""
    embedded_tokens: Range | None = None
    embedding_cost: Range | None = None

    @property
    def n_to_read(self) -> int:
        """How many chunks a model would be asked about."""
        return self.n_chunks - self.n_known
