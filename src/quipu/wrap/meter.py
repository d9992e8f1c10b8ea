"""Meter: counts what calls cost, call by call, and keeps them within budgets."""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TypeVar

from quipu.errors import OverBudget, Overloaded, QuipuError, Refused
from quipu.model.chat import TokenCount
from quipu.model.usage import Price, Stage, UsageRow
from quipu.wrap.budget import NOTHING, Amount, SpendingBudget

T = TypeVar("T")


def utc_day() -> str:
    """Return the day in UTC, ISO 8601."""
    return datetime.now(UTC).date().isoformat()


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What calls of a model are counted as: its name, its price (None: unknown), and how tokens are estimated."""

    model: str
    price: Price | None
    count: Callable[[str], int]

    def cost(self, tokens: TokenCount) -> int:
        """Return what tokens cost in millionths, 0 without a price."""
        return self.price.of(tokens) if self.price else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attempt at a call: what it is for, on which terms, and how many tokens it may take at most."""

    stage: Stage
    terms: Terms
    most: Callable[[], TokenCount]
    subject: str = ""


class Meter:
    """Sums of what was asked. What a child counts its parents count too, each under its own subject.

    `subject` None counts rows under the subjects they come with; a child without a subject has its parent's.
    """

    def __init__(
        self,
        *,
        subject: str | None = "",
        budget: SpendingBudget | None = None,
        parent: "Meter | None" = None,
        today: Callable[[], str] = utc_day,
    ) -> None:
        self._subject = subject
        self._budget = budget
        self._parent = parent
        self._today = today
        self._rows: dict[tuple[str, str, str, str], UsageRow] = {}

    def child(self, subject: str | None = None, budget: SpendingBudget | None = None) -> "Meter":
        """Return a meter of a part of the work: a question, one call."""
        return Meter(subject=subject, budget=budget, parent=self, today=self._today)

    @property
    def subject(self) -> str:
        """What the work is for, "" for shared work."""
        return self._subject or (self._parent.subject if self._parent else "")

    def rows(self) -> tuple[UsageRow, ...]:
        """Return what was counted so far, one row for each day, stage, model and subject, ordered by these."""
        return tuple(self._rows[key] for key in sorted(self._rows))

    async def run(
        self, work: Callable[[], Awaitable[T]], attempt: Attempt, tokens_of: Callable[[T], TokenCount | None]
    ) -> T:
        """Return what `work` returns, and count it by `tokens_of`: None where it broke off. Raises OverBudget before.

        Whatever may have been paid for without a full reply, as when this is cancelled, counts as interrupted.
        """
        most = await self._reserve(attempt)
        actual = NOTHING
        try:
            try:
                result = await work()
            except QuipuError as error:
                if isinstance(error, Overloaded | Refused) and error.may_cost:
                    actual = self._interrupted(attempt)
                raise
            except BaseException:
                actual = self._interrupted(attempt)
                raise
            tokens = tokens_of(result)
            actual = self._interrupted(attempt) if tokens is None else self._completed(attempt, tokens)
            return result
        finally:
            for budget in self._budgets():
                budget.settle(most, actual)

    async def _reserve(self, attempt: Attempt) -> Amount:
        budgets = list(self._budgets())
        if not budgets:
            return NOTHING
        terms, tokens = attempt.terms, attempt.most()
        if terms.price is None and any(budget.limit.cost is not None for budget in budgets):
            raise OverBudget(
                f"No price is known of {terms.model}, so that no budget in money can be kept.",
                remedy="Add a [[price]] table for it to quipu.toml, or give the budget in tokens or calls.",
            )
        most = _amount(attempt, tokens)
        held: list[SpendingBudget] = []
        try:
            for budget in budgets:
                await budget.reserve(most)
                held.append(budget)
        except BaseException:
            for budget in held:
                budget.settle(most, NOTHING)
            raise
        return most

    def _completed(self, attempt: Attempt, tokens: TokenCount) -> Amount:
        amount = _amount(attempt, tokens)
        n_unpriced = int(attempt.terms.price is None)
        self._count(replace(self._row(attempt), n_calls=1, tokens=tokens, cost=amount.cost, n_unpriced=n_unpriced))
        return amount

    def _interrupted(self, attempt: Attempt) -> Amount:
        tokens = attempt.most()
        amount = _amount(attempt, tokens)
        self._count(
            replace(self._row(attempt), n_interrupted=1, interrupted_tokens=tokens, interrupted_cost=amount.cost)
        )
        return amount

    def _row(self, attempt: Attempt) -> UsageRow:
        subject = attempt.subject or self.subject
        return UsageRow(day=self._today(), stage=attempt.stage, model=attempt.terms.model, subject=subject)

    def _count(self, row: UsageRow) -> None:
        for meter in self._lineage():
            own = row if meter._subject is None else replace(row, subject=meter._subject)
            meter._rows[own.key] = meter._rows[own.key] + own if own.key in meter._rows else own

    def _budgets(self) -> Iterator[SpendingBudget]:
        for meter in self._lineage():
            if meter._budget is not None:
                yield meter._budget

    def _lineage(self) -> Iterator["Meter"]:
        meter: Meter | None = self
        while meter is not None:
            yield meter
            meter = meter._parent


def _amount(attempt: Attempt, tokens: TokenCount) -> Amount:
    return Amount(cost=attempt.terms.cost(tokens), tokens=tokens.input + tokens.output, calls=1)
