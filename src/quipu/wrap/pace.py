"""Pace: how many calls at once a service bears, learned from how it answers.

The number grows by two with each success until the first overload (so it triples each latency), then by one each
latency. A call that meets an overload takes away half a slot: where all calls of a latency do, the number halves; where
few do, it settles where what growth adds is what they take, at 2 / limit of all calls. It also falls back where more
calls at once only wait longer: see `_Kind`.
"""

import math
from dataclasses import dataclass, field

SLOW_START = 2.0
CUT = 0.5
LEAST_S = 0.05  # shorter calls are slowed by ourselves, not by the service
MEMORY = 32  # calls in a running mean
MAX_AGE_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """From when to when a call ran, in seconds of one clock, and how many ran then, itself included."""

    start: float
    end: float
    n_at_start: int
    n_at_end: int


@dataclass(slots=True)
class _Mean:
    """Running mean of the logarithms of latencies, over about the last `MEMORY`."""

    n: int = 0
    value: float = 0.0
    at: float = 0.0

    def add(self, value: float, now: float) -> None:
        self.n = min(self.n + 1, MEMORY)
        self.value += (value - self.value) / self.n
        self.at = now


@dataclass(slots=True)
class _Kind:
    """Latencies of calls of one kind and about one length of reply, by how many ran when they began (powers of two).

    When r times as many calls at once take more than √r times as long, more than half of what was added only waits in a
    queue of the service. With logarithms of latencies that vary by a standard deviation of one or less, the difference
    of two means must be twice its error beyond that.
    """

    by_level: dict[int, _Mean] = field(default_factory=dict)

    def useful(self, level: int, now: float) -> float | None:
        """Return how many calls at once are worth it, None where more than now may be."""
        here = self.by_level[level]
        for lower, mean in self.by_level.items():
            if lower < level and now - mean.at < MAX_AGE_S:
                rise = here.value - mean.value
                growth = (level - lower) * math.log(2)
                if rise - growth / 2 > 2 * math.sqrt(1 / here.n + 1 / mean.n):
                    return float(2 ** (lower + 1) * math.exp(max(growth - rise, 0.0)))
        return None


class Pace:
    """The number of calls at once, from 1 to `max_limit`."""

    def __init__(self, max_limit: int, *, start: int = 4) -> None:
        self._max = max(max_limit, 1)
        self._limit = float(min(max(start, 1), self._max))
        self._is_starting = True
        self._step = 1.0  # what a whole latency of successes adds
        self._fell_at = -math.inf
        self._kinds: dict[str, _Kind] = {}

    @property
    def limit(self) -> int:
        """How many calls may run now."""
        return int(self._limit)

    def succeeded(self, kind: str, span: Span, *, n_tokens: int = 0) -> None:
        """Note a call that was answered, and the length of its reply."""
        if span.n_at_end < self.limit:
            return  # nothing is learned of a limit that is not met
        if self._is_worth_more(kind, span, n_tokens):
            step = SLOW_START if self._is_starting else self._step / self._limit
            self._step += 1 / self._limit
            self._limit = min(self._limit + step, float(self._max))

    def overloaded(self, span: Span) -> None:
        """Note a call the service could not answer. One that began before the last fall belongs to what led to that."""
        if span.start < self._fell_at:
            return
        if self._is_starting:
            self._fall_to(self._limit / 2, span.end)
        else:
            self._limit = max(self._limit - CUT, 1.0)
            self._step = 1.0

    def _is_worth_more(self, kind: str, span: Span, n_tokens: int) -> bool:
        # Replies of about one length are compared: what a model is asked decides most of how long it takes.
        seen = self._kinds.setdefault(f"{kind} {n_tokens.bit_length()}", _Kind())
        level = span.n_at_start.bit_length() - 1
        latency = max(span.end - span.start, LEAST_S)
        seen.by_level.setdefault(level, _Mean()).add(math.log(latency), span.end)
        useful = seen.useful(level, span.end)
        if useful is None or useful >= self._limit:
            return True
        self._fall_to(useful, span.end)
        for above in [each for each in seen.by_level if each >= self.limit.bit_length()]:
            del seen.by_level[above]
        return False

    def _fall_to(self, limit: float, now: float) -> None:
        self._limit = min(max(limit, 1.0), float(self._max))
        self._is_starting = False
        self._step = 1.0
        self._fell_at = now
