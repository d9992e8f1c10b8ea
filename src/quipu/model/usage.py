"""Usage: counts and costs of calls to models, prices, spending limits, and estimates of future costs."""

import json
import math
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from functools import reduce

from quipu.model.chat import TokenCount

USD = "USD"  # the currency of the built-in prices, and the default
_LEFT = ""  # stands in a ledger for the workers that have left
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

    def exceeded_by(self, amount: "Amount") -> str:
        """Return the name of a limit that `amount` exceeds, "" if there is none."""
        limits = {"cost": self.cost, "tokens": self.tokens, "calls": self.calls}
        return next((name for name, n in limits.items() if n is not None and getattr(amount, name) > n), "")


NO_LIMIT = SpendingLimit()


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """What calls cost, or may cost at most. `cost` is in millionths of a unit of money."""

    cost: int = 0
    tokens: int = 0
    calls: int = 0

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(cost=self.cost + other.cost, tokens=self.tokens + other.tokens, calls=self.calls + other.calls)

    def __sub__(self, other: "Amount") -> "Amount":
        return Amount(cost=self.cost - other.cost, tokens=self.tokens - other.tokens, calls=self.calls - other.calls)


NOTHING = Amount()


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerSums:
    """What settled calls cost, and what running calls may cost at most: of one process, or of `n_workers` together."""

    spent: Amount = NOTHING
    reserved: Amount = NOTHING
    n_workers: int = 0

    def __add__(self, other: "LedgerSums") -> "LedgerSums":
        n_workers = self.n_workers + other.n_workers
        return LedgerSums(spent=self.spent + other.spent, reserved=self.reserved + other.reserved, n_workers=n_workers)

    def fits(self, change: "LedgerSums", limit: SpendingLimit) -> bool:
        """Return whether these sums stay within a limit with the change."""
        return not limit.exceeded_by(self.spent + self.reserved + change.spent + change.reserved)


@dataclass(frozen=True, slots=True)
class SpendingByWorker:
    """What the workers of an index have spent since a time when there was none.

    `entries` has, by worker, the end of its lease in seconds since 1970 and its sums; those that have left share one.
    """

    entries: dict[str, tuple[float, LedgerSums]]

    @classmethod
    def from_json(cls, text: str) -> "SpendingByWorker":
        """Return what `to_json` wrote."""
        entries = dict[str, tuple[float, LedgerSums]]()
        for name, (end, spent, reserved) in json.loads(text).items():
            sums = LedgerSums(spent=Amount(**spent), reserved=Amount(**reserved), n_workers=int(name != _LEFT))
            entries[name] = end, sums
        return cls(entries)

    def to_json(self) -> str:
        """Return all entries as JSON."""
        entries = self.entries.items()
        return json.dumps({name: (end, asdict(sums.spent), asdict(sums.reserved)) for name, (end, sums) in entries})

    def add(self, worker: str, change: LedgerSums, limit: SpendingLimit, end: float) -> LedgerSums:
        """Add what a worker spent or reserved, if it fits, and set the end of its lease; return the sums before."""
        own = self.entries.setdefault(worker, (end, LedgerSums(n_workers=1)))[1]
        sums = sum((entry for _, entry in self.entries.values()), LedgerSums())
        self.entries[worker] = end, own + change if sums.fits(change, limit) else own
        return sums

    def end(self, workers: Collection[str]) -> None:
        """Count what these workers spent, or may have spent, for those that have left; forget it with the last."""
        for worker in workers:
            own, past = self.entries.pop(worker)[1], self.entries.get(_LEFT, (0.0, LedgerSums()))[1]
            self.entries[_LEFT] = 0.0, LedgerSums(spent=past.spent + own.spent + own.reserved)
        if self.entries.keys() <= {_LEFT}:
            self.entries.clear()


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
