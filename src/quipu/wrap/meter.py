"""Usage metering: counts what calls cost, keeps them within budgets, and shows them to OpenTelemetry as spans."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from quipu.errors import OverBudget, Overloaded, QuipuError, Refused
from quipu.model.chat import TokenCount
from quipu.model.event import Event, EventSink, Spending, ignore_event
from quipu.model.usage import MICRO, Price, SpendingLimit, Stage, UsageRow
from quipu.text.formatting import format_count

T = TypeVar("T")

Attribute = str | int | float | bool

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


class SpendingLedger:
    """What was spent of a budget, and what is reserved. A subclass shares it with other processes.

    `look_s` is the time after which a call that waits looks again, None where only this process changes anything.
    """

    look_s: float | None = None

    def __init__(self) -> None:
        self._spent = NOTHING
        self._reserved = NOTHING

    def locked(self) -> AbstractContextManager[None]:
        """Keep all others from changing anything during the block."""
        return nullcontext()

    def sums(self) -> tuple[Amount, Amount]:
        """Return what settled calls cost, and what running calls may cost at most."""
        return self._spent, self._reserved

    def add(self, *, spent: Amount = NOTHING, reserved: Amount = NOTHING) -> None:
        """Add to both sums; inside `locked`."""
        self._spent += spent
        self._reserved += reserved


class SpendingBudget:
    """Keeps spending within a limit: each call reserves its highest possible cost before it starts.

    A call that does not fit because of reservations waits until running calls have settled.
    """

    def __init__(self, limit: SpendingLimit, ledger: SpendingLedger | None = None) -> None:
        self.limit = limit
        self._ledger = ledger or SpendingLedger()
        self._settled = asyncio.Event()

    @property
    def spent(self) -> Amount:
        """What settled calls cost."""
        return self._ledger.sums()[0]

    @property
    def reserved(self) -> Amount:
        """What running calls may cost at most."""
        return self._ledger.sums()[1]

    async def reserve(self, amount: Amount) -> None:
        """Reserve the highest possible cost of a call. Raises OverBudget if it can no longer fit."""
        while not self._reserve_now(amount):
            with suppress(TimeoutError):
                async with asyncio.timeout(self._ledger.look_s):
                    await self._settled.wait()

    def _reserve_now(self, amount: Amount) -> bool:
        with self._ledger.locked():
            spent, reserved = self._ledger.sums()
            if not self._exceeded_limit(spent + reserved + amount):
                self._ledger.add(reserved=amount)
                return True
        if name := self._exceeded_limit(spent + amount):
            raise self._over_budget(name, amount, spent)
        return False

    def settle(self, reserved: Amount, actual: Amount) -> None:
        """Replace what was reserved for a call by its actual cost."""
        with self._ledger.locked():
            self._ledger.add(spent=actual, reserved=NOTHING - reserved)
        settled, self._settled = self._settled, asyncio.Event()
        settled.set()  # all waiting calls check again, in the order they came

    def _exceeded_limit(self, amount: Amount) -> str:
        """Return the name of a limit that `amount` exceeds, "" if there is none."""
        limit = self.limit
        if limit.cost is not None and amount.cost > limit.cost:
            return "cost"
        if limit.tokens is not None and amount.tokens > limit.tokens:
            return "tokens"
        return "calls" if limit.calls is not None and amount.calls > limit.calls else ""

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
