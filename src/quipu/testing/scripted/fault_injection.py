"""Fault injection: draws latency and fault of a request from the script, the request and its attempt."""

from collections import Counter
from dataclasses import dataclass
from math import exp
from statistics import NormalDist

from quipu.model.ids import digest
from quipu.testing.scripted.script import Fault, Latency, RequestKind, Script

_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestDraw:
    """The random draw for one request. `key` identifies it; `attempt` counts, from 1, how often it was made."""

    kind: RequestKind
    key: str
    attempt: int
    latency_s: float
    fault: Fault | None

    def chance(self, *purpose: str) -> float:
        """Return a pseudo-random number in [0, 1) for this attempt and purpose."""
        return chance(self.key, str(self.attempt), *purpose)


class FaultInjector:
    """Draws latencies and faults. Equal requests get equal draws in two runs, in whatever order they arrive."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._n_attempts: Counter[str] = Counter()
        self._n_candidates: Counter[int] = Counter()

    def draw(self, kind: RequestKind, key: str, text: str) -> RequestDraw:
        """Return the draw for a request with this text, and count the request."""
        seeded_key = digest(self._script.seed, key)
        self._n_attempts[seeded_key] += 1
        attempt = self._n_attempts[seeded_key]
        latency_s = _draw_latency(self._script.latency, chance(seeded_key, str(attempt), "latency"))
        fault = self._fault(kind, seeded_key, attempt, text)
        return RequestDraw(kind=kind, key=seeded_key, attempt=attempt, latency_s=latency_s, fault=fault)

    def _fault(self, kind: RequestKind, key: str, attempt: int, text: str) -> Fault | None:
        """Return the first fault that applies; every fault counts the requests it could affect."""
        applicable = [
            fault
            for position, fault in enumerate(self._script.faults)
            if fault.can_strike(kind) and fault.containing in text and self._applies(fault, position, key, attempt)
        ]
        return applicable[0] if applicable else None

    def _applies(self, fault: Fault, position: int, key: str, attempt: int) -> bool:
        self._n_candidates[position] += 1
        if fault.calls and self._n_candidates[position] not in fault.calls:
            return False
        if fault.attempts and attempt not in fault.attempts:
            return False
        return fault.probability >= 1 or chance(key, str(attempt), str(position), fault.name) < fault.probability


def chance(*parts: str) -> float:
    """Return a number in [0, 1) that is a function of `parts`."""
    return int(digest(*parts)[:13], 16) / 16**13


def _draw_latency(latency: Latency, quantile: float) -> float:
    """Return seconds from a log-normal distribution with mean `mean_s`: mu = log(mean) - sigma²/2."""
    if not latency.sigma:
        return latency.mean_s
    normal = _NORMAL.inv_cdf(min(max(quantile, 1e-12), 1 - 1e-12))
    return latency.mean_s * exp(latency.sigma * normal - latency.sigma**2 / 2)
