"""Request log: the server's own record of its requests and replies, with their sums."""

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

from pydantic import TypeAdapter

from quipu.model.chat import TokenCount
from quipu.testing.scripted.script import RequestKind


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedRequest:
    """One request.

    `is_completed`: the whole reply was passed to the client's connection; `tokens` are its cost, also if it was not.
    `latency_s` is the latency by the script; `started_s` and `ended_s` are times of the machine's monotonic clock.
    `n_under_way` counts the concurrent requests at its arrival, including itself. `key` identifies the request;
    `text_hash` (quipu.model.ids.digest) is the hash of the text between its boundary lines.
    """

    n: int
    kind: RequestKind
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
    """Completed requests of one kind, the number of others, and the sums of their tokens and latencies."""

    n_completed: int = 0
    n_other: int = 0
    tokens: TokenCount = field(default_factory=TokenCount)
    latency_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """All requests that have ended, in the order of their end, and their sums.

    `n_under_way` requests are not finished. `own_cpu_s` is the CPU time of the server's process since the last reset.
    """

    requests: tuple[LoggedRequest, ...] = ()
    by_kind: dict[RequestKind, KindTotal] = field(default_factory=dict)
    n_under_way: int = 0
    peak_under_way: int = 0
    own_cpu_s: float = 0.0

    def total(self, *kinds: RequestKind) -> KindTotal:
        """Return the sum over these kinds, or over all kinds."""
        totals = [total for kind, total in self.by_kind.items() if not kinds or kind in kinds]
        return KindTotal(
            n_completed=sum(total.n_completed for total in totals),
            n_other=sum(total.n_other for total in totals),
            tokens=sum((total.tokens for total in totals), TokenCount()),
            latency_s=sum(total.latency_s for total in totals),
        )


STATS = TypeAdapter(Stats)
_SERVED = TypeAdapter(LoggedRequest)


class RequestLog:
    """Counts requests. With a log file, each request is written there when it ends."""

    def __init__(self, log: Path | None = None) -> None:
        self.n_under_way = 0
        self.is_idle = asyncio.Event()
        self.is_idle.set()
        self._n_begun = 0
        self._peak = 0
        self._served: list[LoggedRequest] = []
        self._by_kind: dict[RequestKind, KindTotal] = defaultdict(KindTotal)
        self._log: IO[bytes] | None = None
        self.write_to(log)

    def write_to(self, log: Path | None) -> None:
        """From now on write requests to this file, or to no file."""
        self.close()
        self._log = log.open("ab", buffering=0) if log else None

    def begin(self) -> int:
        """Count an arriving request and return its number, from 1."""
        self._n_begun += 1
        self.n_under_way += 1
        self.is_idle.clear()
        self._peak = max(self._peak, self.n_under_way)
        return self._n_begun

    def end(self, entry: LoggedRequest) -> None:
        """Count a request that has ended."""
        self.n_under_way -= 1
        self._served.append(entry)
        self._by_kind[entry.kind] = _added(self._by_kind[entry.kind], entry)
        if self._log:
            self._log.write(_SERVED.dump_json(entry) + b"\n")
        if not self.n_under_way:
            self.is_idle.set()

    def stats(self, own_cpu_s: float, *, is_whole: bool = True) -> bytes:
        """Return all counts as the JSON of Stats; without the single requests unless `is_whole`."""
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


def read_log(path: Path) -> list[LoggedRequest]:
    """Return the requests in a log file; an incomplete last line is skipped."""
    lines = path.read_bytes().split(b"\n")[:-1]
    return [_SERVED.validate_json(line) for line in lines]


def _added(total: KindTotal, entry: LoggedRequest) -> KindTotal:
    if not entry.is_completed:
        return replace(total, n_other=total.n_other + 1)
    return replace(
        total,
        n_completed=total.n_completed + 1,
        tokens=total.tokens + entry.tokens,
        latency_s=total.latency_s + entry.latency_s,
    )
