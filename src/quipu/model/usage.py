"""Usage: counts and costs of calls to models, prices, spending limits, and estimates of future costs."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import reduce

from quipu.model.chat import TokenCount

USD = "USD"  # the currency of the built-in prices, and the default
MICRO = 1_000_000  # money is counted in millionths of the currency unit, so that sums are exact


class Stage(StrEnum):
    """The purpose of a call: the roles of chat models, and the other services."""

    EXTRACT = "extract"
    KEYWORDS = "keywords"
    SUMMARISE = "summarise"
    REPORT = "report"
    ANSWER = "answer"
    JUDGE = "judge"
    VISION = "vision"
    EMBED = "embed"
    RERANK = "rerank"
    CHECK = "check"


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRow:
    """The total of all calls of one stage, model and subject on one day.

    `day` is an ISO 8601 date in UTC. `subject` is a document id, the text of a question, or "" for shared work. `cost`
    is in millionths of the currency unit of the price table. `n_unpriced` counts calls of models without a price.
    `n_interrupted` calls returned no complete reply; `interrupted_tokens` and `interrupted_cost` are upper bounds of
    what they may have cost, and the other fields do not include them.
    """

    day: str
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
        """Day, stage, model and subject. Rows with the same key are added up."""
        return self.day, self.stage.value, self.model, self.subject

    def __add__(self, other: "UsageRow") -> "UsageRow":
        """Return the sum of both rows with the key of the first."""
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
    """Return the sum of the rows with the key of the first. Raises TypeError if there are none."""
    return reduce(UsageRow.__add__, rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """The price of a million tokens, in units of `currency`. `cached` is None if it equals `input`."""

    input: float
    output: float
    cached: float | None = None
    currency: str = USD

    def cost(self, tokens: TokenCount) -> int:
        """Return the cost of these tokens in millionths of a unit, rounded up."""
        cached = self.input if self.cached is None else self.cached
        cost = (tokens.input - tokens.cached) * self.input + tokens.cached * cached + tokens.output * self.output
        return math.ceil(round(cost, 6))  # round first: binary fractions may exceed the exact value


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendingLimit:
    """The most that a piece of work may spend; None means no limit. `cost` is in millionths of a unit of `currency`."""

    cost: int | None = None
    tokens: int | None = None
    calls: int | None = None
    currency: str = USD


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """An estimated number: the likely value and its lower and upper bounds."""

    low: float
    likely: float
    high: float

    def times(self, factor: "float | Range") -> "Range":
        """Return the product. Two ranges are multiplied bound by bound."""
        by = factor if isinstance(factor, Range) else Range(low=factor, likely=factor, high=factor)
        return Range(low=self.low * by.low, likely=self.likely * by.likely, high=self.high * by.high)

    def plus(self, other: "Range") -> "Range":
        """Return the sum."""
        return Range(low=self.low + other.low, likely=self.likely + other.likely, high=self.high + other.high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The estimated cost of adding documents. `basis` says what the figures are based on.

    - `n_cached` of the chunks have a cached reply and cost nothing.
    - `cost` is in millionths of the currency unit, None if the model has no price. `seconds` is the time of the model
      at the configured concurrency.
    - `embedder`, `embedded_tokens` and `embedding_cost` are set if a service computes the vectors. They are extra.
    - `n_pictures` have no cached description. `picture_tokens`, sent and received, and `picture_cost` are extra.
    - `sample_calls` and `sample_cost` were spent on this estimate. `n_sample_failed` of the `n_sampled` chunks could
      not be read; `sample_error` is the first error.
    - `extractor` describes the configured extractor. `n_other_extractor` of the unchanged documents were read by
      another extractor or other settings: `other_extractors`.
    """

    n_documents: int
    n_unchanged: int
    n_unreadable: int
    n_chunks: int
    n_cached: int
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
    n_other_extractor: int = 0
    other_extractors: tuple[str, ...] = ()
    embedder: str = ""
    embedded_tokens: Range | None = None
    embedding_cost: Range | None = None
    n_pictures: int = 0
    picture_model: str = ""
    picture_tokens: Range | None = None
    picture_cost: Range | None = None

    @property
    def n_to_read(self) -> int:
        """The number of chunks that a model has to read."""
        return self.n_chunks - self.n_cached
