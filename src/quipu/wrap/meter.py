"""Usage metering: counts what calls cost, keeps them within budgets, and shows them to OpenTelemetry as spans."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from quipu.errors import OverBudget, Overloaded, QuipuError, Refused
from quipu.model.chat import TokenCount
from quipu.model.event import Event, EventSink, Spending, ignore_event
from quipu.model.usage import (
    MICRO,
    NO_LIMIT,
    NOTHING,
    Amount,
    LedgerSums,
    Price,
    SpendingLimit,
    Stage,
    UsageRow,
)
from quipu.ports.store import SpendingLedger
from quipu.text.formatting import format_count
from quipu.wrap.persistence import wait_for_end

T = TypeVar("T")

Attribute = str | int | float | bool

_LOOK_S = 0.5  # after which a call that waits looks whether other processes have settled theirs
_REMEDY = "Everything paid for is kept: go on with another budget (--budget 5.00) or max_cost."


def utc_day() -> str:
    """Return the current day in UTC, ISO 8601."""
    return datetime.now(UTC).date().isoformat()


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPricing:
    """How calls of a model are counted: its name, its price (None: unknown), and how tokens are estimated."""

    model: str
    price: Price | None
    count_tokens: Callable[[str], int]

    def cost(self, tokens: TokenCount) -> int:
        """Return the cost of tokens in millionths of a unit of money; 0 without a price."""
        return self.price.cost(tokens) if self.price else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MeteredCall:
    """One attempt at a call: its stage, its pricing, its subject, and the most tokens it may take."""

    stage: Stage
    pricing: ModelPricing
    max_tokens: Callable[[], TokenCount]
    subject: str = ""

    def amount(self, tokens: TokenCount) -> "Amount":
        """Return what this call costs if it takes these tokens."""
        return Amount(cost=self.pricing.cost(tokens), tokens=tokens.input + tokens.output, calls=1)


class Meter:
    """Counts calls as usage rows. A call counted by a meter is counted by its parents too, each under its own subject.

    With `subject` None a meter keeps the subjects of the rows. A child without a subject has the subject of its parent.
    """

    def __init__(
        self,
        *,
        subject: str | None = "",
        budget: "SpendingBudget | None" = None,
        parent: "Meter | None" = None,
        today: Callable[[], str] = utc_day,
    ) -> None:
        self._subject = subject
        self._budget = budget
        self._parent = parent
        self._today = today
        self._rows: dict[tuple[str, str, str, str], UsageRow] = {}
        self._spent = NOTHING

    def child(self, subject: str | None = None, budget: "SpendingBudget | None" = None) -> "Meter":
        """Return a meter for a part of the work, such as a question or one call."""
        return Meter(subject=subject, budget=budget, parent=self, today=self._today)

    def sharing(self, ledger: SpendingLedger) -> "Meter":
        """Return a child with the same limit, within which all stay together who add to `ledger`."""
        return self.child(budget=self._budget and SpendingBudget(self._budget.limit, ledger))

    @property
    def subject(self) -> str:
        """What the work is for; "" for shared work."""
        return self._subject or (self._parent.subject if self._parent else "")

    def rows(self) -> tuple[UsageRow, ...]:
        """Return what was counted so far: one row per day, stage, model and subject, in this order."""
        return tuple(self._rows[key] for key in sorted(self._rows))

    def counting(self, on_event: EventSink) -> EventSink:
        """Return a sink that passes events on with what this meter has counted by then."""
        if on_event is ignore_event:
            return on_event

        def pass_on(event: Event) -> None:
            spent = self._spent
            on_event(replace(event, spent=Spending(n_calls=spent.calls, n_tokens=spent.tokens, cost=spent.cost)))

        return pass_on

    async def run(
        self, work: Callable[[], Awaitable[T]], call: MeteredCall, tokens_of: Callable[[T], TokenCount | None]
    ) -> T:
        """Return what `work` returns, and count the tokens that `tokens_of` finds in it (None: the reply broke off).

        Raises OverBudget before the call if the budget does not allow it. A call that may have to be paid for without a
        full reply, because it failed or was cancelled, is counted as interrupted.
        """
        reserved = await self._reserve(call)
        actual = NOTHING
        try:
            try:
                with span("quipu.call", stage=call.stage.value, model=call.pricing.model):
                    result = await work()
                    tokens = tokens_of(result)
                    if tokens is not None:
                        annotate(input_tokens=tokens.input, output_tokens=tokens.output)
            except QuipuError as error:
                if isinstance(error, Overloaded | Refused) and error.may_cost:
                    actual = self._count_interrupted(call)
                raise
            except BaseException:
                actual = self._count_interrupted(call)
                raise
            actual = self._count_interrupted(call) if tokens is None else self._count_completed(call, tokens)
            return result
        finally:
            for budget in self._budgets():
                budget.settle(reserved, actual)

    async def _reserve(self, call: MeteredCall) -> Amount:
        budgets = list(self._budgets())
        if not budgets:
            return NOTHING
        pricing, max_tokens = call.pricing, call.max_tokens()
        if pricing.price is None and any(budget.limit.cost is not None for budget in budgets):
            raise OverBudget(
                f"No price is known for {pricing.model}, so a budget in money cannot be kept.",
                remedy="Add a [[price]] table for it to quipu.toml, or give the budget in tokens or calls.",
            )
        amount = call.amount(max_tokens)
        reserved: list[SpendingBudget] = []
        try:
            for budget in budgets:
                await budget.reserve(amount)
                reserved.append(budget)
        except BaseException:
            for budget in reserved:
                budget.settle(amount, NOTHING)
            raise
        return amount

    def _count_completed(self, call: MeteredCall, tokens: TokenCount) -> Amount:
        amount = call.amount(tokens)
        n_unpriced = int(call.pricing.price is None)
        row = replace(self._row(call), n_calls=1, tokens=tokens, cost=amount.cost, n_unpriced=n_unpriced)
        self._count(row, amount)
        return amount

    def _count_interrupted(self, call: MeteredCall) -> Amount:
        tokens = call.max_tokens()
        amount = call.amount(tokens)
        row = replace(self._row(call), n_interrupted=1, interrupted_tokens=tokens, interrupted_cost=amount.cost)
        self._count(row, amount)
        return amount

    def _row(self, call: MeteredCall) -> UsageRow:
        subject = call.subject or self.subject
        return UsageRow(day=self._today(), stage=call.stage, model=call.pricing.model, subject=subject)

    def _count(self, row: UsageRow, amount: Amount) -> None:
        for meter in self._lineage():
            own = row if meter._subject is None else replace(row, subject=meter._subject)
            meter._rows[own.key] = meter._rows[own.key] + own if own.key in meter._rows else own
            meter._spent += amount

    def _budgets(self) -> Iterator["SpendingBudget"]:
        for meter in self._lineage():
            if meter._budget is not None:
                yield meter._budget

    def _lineage(self) -> Iterator["Meter"]:
        meter: Meter | None = self
        while meter is not None:
            yield meter
            meter = meter._parent


class LocalLedger:
    """What this process alone has spent of a budget, and what it has reserved."""

    def __init__(self) -> None:
        self._sums = LedgerSums()

    async def add(self, change: LedgerSums, limit: SpendingLimit = NO_LIMIT) -> LedgerSums:
        sums = self._sums
        if sums.fits(change, limit):
            self._sums += change
        return sums

    def settle(self, change: LedgerSums) -> None:
        self._sums += change


class SpendingBudget:
    """Keeps spending within a limit: each call reserves its highest possible cost before it starts.

    A call that does not fit because of reservations waits until running calls have settled.
    """

    def __init__(self, limit: SpendingLimit, ledger: SpendingLedger | None = None) -> None:
        self.limit = limit
        self.ledger: SpendingLedger = ledger or LocalLedger()
        self._settled = asyncio.Event()

    async def reserve(self, amount: Amount) -> None:
        """Reserve the highest possible cost of a call. Raises OverBudget if it can no longer fit."""
        change = LedgerSums(reserved=amount)
        while True:
            settled, sums = self._settled, await self._add(change)
            if sums.fits(change, self.limit):
                return
            if name := self.limit.exceeded_by(sums.spent + amount):
                raise self._over_budget(name, amount, sums.spent)
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_S):
                    await settled.wait()

    async def _add(self, change: LedgerSums) -> LedgerSums:
        """Add a reservation to the ledger if it fits; where this is cancelled, take it back."""
        adding = asyncio.ensure_future(self.ledger.add(change, self.limit))
        try:
            return await asyncio.shield(adding)
        except asyncio.CancelledError:
            await wait_for_end(adding)
            if not adding.cancelled() and not adding.exception() and adding.result().fits(change, self.limit):
                self.settle(change.reserved, NOTHING)
            raise

    def settle(self, reserved: Amount, actual: Amount) -> None:
        """Replace what was reserved for a call by its actual cost."""
        self.ledger.settle(LedgerSums(spent=actual, reserved=NOTHING - reserved))
        settled, self._settled = self._settled, asyncio.Event()
        settled.set()  # all waiting calls check again, in the order they came

    def _over_budget(self, name: str, amount: Amount, settled: Amount) -> OverBudget:
        limit, spent, needed = (getattr(figures, name) for figures in (self.limit, settled, amount))
        if name == "calls":
            return OverBudget(f"The budget of {format_count(limit, 'call')} is used up.", remedy=_REMEDY)
        calls = format_count(settled.calls, "call")
        as_money, as_tokens = partial(_write_money, currency=self.limit.currency), partial(format_count, noun="token")
        write = as_money if name == "cost" else as_tokens
        return OverBudget(
            f"The budget of {write(limit)} does not allow another call: {write(spent)} spent in {calls}, "
            f"{write(max(limit - spent, 0))} left, and the next call may take {write(needed)}.",
            remedy=_REMEDY,
        )


def _write_money(cost: int, currency: str) -> str:
    """Return an amount with two digits after the point, or more if it is small."""
    figure = f"{cost / MICRO:,.2f}" if abs(cost) >= MICRO or not cost else f"{cost / MICRO:.6f}".rstrip("0")
    return f"{figure} {currency}"


@contextmanager
def span(name: str, **attributes: Attribute) -> Iterator[None]:
    """Open a span around the block; it ends as failed, with the kind of the error, where the block raises one.

    A program that records spans has imported OpenTelemetry, so it is never imported here. Attributes are counts and
    names, never a key or the text of a question or document; so messages of errors are left out, too.
    """
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        yield
        return
    tracer = trace.get_tracer("quipu")
    with tracer.start_as_current_span(name, record_exception=False, set_status_on_exception=False) as opened:
        annotate(**attributes)
        try:
            yield
        except BaseException as error:
            opened.set_attribute("error.type", type(error).__name__)
            opened.set_status(trace.StatusCode.ERROR)
            raise


def annotate(**attributes: Attribute) -> None:
    """Set attributes of the innermost open span; their names begin with `quipu.`."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is not None:
        current = trace.get_current_span()
        for name, value in attributes.items():
            current.set_attribute(f"quipu.{name}", value)
