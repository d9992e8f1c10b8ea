"""Budget: calls in flight are reserved before they start, so that what is spent stays within a limit."""

import asyncio
from dataclasses import dataclass

from quipu.errors import OverBudget
from quipu.model.usage import MICRO, SpendingLimit
from quipu.text.formatting import format_count

REMEDY = "Everything paid for is kept: go on with another budget, as in --budget 5.00."


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """What calls cost, or may cost at most; `cost` is in millionths of a unit of money."""

    cost: int = 0
    tokens: int = 0
    calls: int = 0

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(cost=self.cost + other.cost, tokens=self.tokens + other.tokens, calls=self.calls + other.calls)

    def __sub__(self, other: "Amount") -> "Amount":
        return Amount(cost=self.cost - other.cost, tokens=self.tokens - other.tokens, calls=self.calls - other.calls)


NOTHING = Amount()


class SpendingBudget:
    """A limit on what may be spent. A call that fits only if those in flight cost less than they may waits for them."""

    def __init__(self, limit: SpendingLimit) -> None:
        self.limit = limit
        self._spent = NOTHING
        self._reserved = NOTHING
        self._settled = asyncio.Event()

    @property
    def spent(self) -> Amount:
        """What settled calls cost."""
        return self._spent

    @property
    def reserved(self) -> Amount:
        """What calls in flight may cost at most."""
        return self._reserved

    async def reserve(self, most: Amount) -> None:
        """Reserve what a call may cost at most. Raises OverBudget where that cannot fit any more."""
        while self._exceeded(self._spent + self._reserved + most):
            if name := self._exceeded(self._spent + most):
                raise self._over(name, most)
            await self._settled.wait()
        self._reserved += most

    def settle(self, most: Amount, actual: Amount) -> None:
        """Give back what was reserved for a call, and note what it did cost."""
        self._reserved -= most
        self._spent += actual
        settled, self._settled = self._settled, asyncio.Event()
        settled.set()  # all who wait look again, in the order they came

    def _exceeded(self, amount: Amount) -> str:
        """Return the name of a limit that `amount` goes over, "" where there is none."""
        limit = self.limit
        if limit.cost is not None and amount.cost > limit.cost:
            return "cost"
        if limit.tokens is not None and amount.tokens > limit.tokens:
            return "tokens"
        return "calls" if limit.calls is not None and amount.calls > limit.calls else ""

    def _over(self, name: str, most: Amount) -> OverBudget:
        limit, spent, needed = (getattr(each, name) for each in (self.limit, self._spent, most))
        if name == "calls":
            return OverBudget(f"The budget of {format_count(limit, 'call')} is used up.", remedy=REMEDY)
        calls = format_count(self._spent.calls, "call")
        say = _money if name == "cost" else _tokens
        return OverBudget(
            f"The budget of {say(limit)} does not allow another call: {say(spent)} spent in {calls}, "
            f"{say(max(limit - spent, 0))} left, and the next may take {say(needed)}.",
            remedy=REMEDY,
        )


def _tokens(n: int) -> str:
    return format_count(n, "token")


def _money(cost: int) -> str:
    """Return an amount with two digits after the point, more where it is small."""
    return f"{cost / MICRO:,.2f}" if abs(cost) >= MICRO or not cost else f"{cost / MICRO:.6f}".rstrip("0")
