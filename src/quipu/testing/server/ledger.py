"""Ledger: the server's own count of what it was asked and what it gave."""

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

from pydantic import TypeAdapter

from quipu.model.chat import TokenCount
from quipu.testing.scripted.kind import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """One request.

    `is_completed`: the reply was whole, and its last byte was handed to the client's connection; `tokens` are what it
    cost, or would have. `latency_s` is how long the script made it take; `started_s` and `ended_s` are of the machine's
    monotonic clock. `n_under_way` counts the requests in work when it came, itself included. `key` identifies the
    request, `text_hash` (quipu.model.ids.digest) the text between its boundary lines.
    """

    n: int
    kind: Kind
    model: str
    status: int
    is_completed: bool = False
    fault: str = ""
    attempt: int = 1
    tokens: TokenCount = field(default_factory=TokenCount)
    latency_s: float = 0.0
    started_s: float = 0.0
    ended_s: float = 0.0
    n_under_way: int = 1
    key: str = ""
    text_hash: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KindTotal:
    """Completed calls of one kind, what they cost and how long they were made to take."""

    n_completed: int = 0
    n_other: int = 0
    tokens: TokenCount = field(default_factory=TokenCount)
    latency_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """All requests that have ended, in the order of their end, and their sums.

    `n_under_way` are still being answered. `own_cpu_s` is the CPU time of the server's process since it was reset.
    """

    requests: tuple[Served, ...] = ()
    by_kind: dict[Kind, KindTotal] = field(default_factory=dict)
    n_under_way: int = 0
    peak_under_way: int = 0
    own_cpu_s: float = 0.0

    def total(self, *kinds: Kind) -> KindTotal:
        """Return the sum over these kinds, or over all."""
        wanted = [total for kind, total in self.by_kind.items() if not kinds or kind in kinds]
        return KindTotal(
            n_completed=sum(total.n_completed for total in wanted),
            n_other=sum(total.n_other for total in wanted),
            tokens=sum((total.tokens for total in wanted), TokenCount()),
            latency_s=sum(total.latency_s for total in wanted),
        )


STATS = TypeAdapter(Stats)
_SERVED = TypeAdapter(Served)


class Ledger:
    """Counts requests; with a log, each is written there at its end, before the next is looked at."""

    def __init__(self, log: Path | None = None) -> None:
        self.n_under_way = 0
        self.is_idle = asyncio.Event()
        self.is_idle.set()
        self._n_begun = 0
        self._peak = 0
        self._served: list[Served] = []
        self._by_kind: dict[Kind, KindTotal] = defaultdict(KindTotal)
        self._log: IO[bytes] | None = None
        self.write_to(log)

    def write_to(self, log: Path | None) -> None:
        """Write what ends from now on to this file, or nowhere."""
        self.close()
        self._log = log.open("ab", buffering=0) if log else None

    def begin(self) -> int:
        """Count a request that came; return its number, from 1."""
        self._n_begun += 1
        self.n_under_way += 1
        self.is_idle.clear()
        self._peak = max(self._peak, self.n_under_way)
        return self._n_begun

    def end(self, served: Served) -> None:
        """Count a request that has ended."""
        self.n_under_way -= 1
        self._served.append(served)
        self._by_kind[served.kind] = _added(self._by_kind[served.kind], served)
        if self._log:
            self._log.write(_SERVED.dump_json(served) + b"\n")
        if not self.n_under_way:
            self.is_idle.set()

    def stats(self, own_cpu_s: float, *, is_whole: bool = True) -> bytes:
        """Return all that was counted, as JSON of Stats; without the requests unless `is_whole`."""
        return STATS.dump_json(
            Stats(
                requests=tuple(self._served) if is_whole else (),
                by_kind=dict(self._by_kind),
                n_under_way=self.n_under_way,
                peak_under_way=self._peak,
                own_cpu_s=own_cpu_s,
            )
        )

    def close(self) -> None:
        """Close the log."""
        if self._log:
            self._log.close()
        self._log = None


def read_log(path: Path) -> list[Served]:
    """Return the requests written to a log, without a last line that is incomplete."""
    lines = path.read_bytes().split(b"\n")[:-1]
    return [_SERVED.validate_json(line) for line in lines]


def _added(total: KindTotal, served: Served) -> KindTotal:
    if not served.is_completed:
        return replace(total, n_other=total.n_other + 1)
    return replace(
        total,
        n_completed=total.n_completed + 1,
        tokens=total.tokens + served.tokens,
        latency_s=total.latency_s + served.latency_s,
    )
