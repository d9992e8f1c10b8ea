"""Usage: what models were asked and what it cost, counted by day, stage, model and subject."""

from dataclasses import dataclass, field
from enum import StrEnum

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
        return -int(-cost // 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """A limit on what a piece of work may spend; None: no limit. `cost` is in millionths of a unit."""

    cost: int | None = None
    tokens: int | None = None
    calls: int | None = None
