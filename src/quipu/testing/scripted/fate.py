"""Fate: what happens to a request, drawn from the script, the request and how often it was made."""

from collections import Counter
from dataclasses import dataclass
from math import exp
from statistics import NormalDist

from quipu.model.ids import digest
from quipu.testing.scripted.fault import Fault
from quipu.testing.scripted.kind import Kind
from quipu.testing.scripted.script import Latency, Script

_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lot:
    """What one request gets. `key` identifies it; `attempt` counts, from 1, how often it was made."""

    kind: Kind
    key: str
    attempt: int
    latency_s: float
    fault: Fault | None

    def chance(self, *purpose: str) -> float:
        """Return a number in [0, 1) for this attempt and purpose."""
        return chance(self.key, str(self.attempt), *purpose)


class Fate:
    """Draws lots. Two runs that make the same requests get the same lots, in whatever order they make them."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._n_made: Counter[str] = Counter()
        self._n_struck: Counter[int] = Counter()

    def draw(self, kind: Kind, key: str, text: str) -> Lot:
        """Return what happens to a request with this text, and count it."""
        seeded = digest(self._script.seed, key)
        self._n_made[seeded] += 1
        attempt = self._n_made[seeded]
        latency_s = _draw_latency(self._script.latency, chance(seeded, str(attempt), "latency"))
        fault = self._fault(kind, seeded, attempt, text)
        return Lot(kind=kind, key=seeded, attempt=attempt, latency_s=latency_s, fault=fault)

    def _fault(self, kind: Kind, key: str, attempt: int, text: str) -> Fault | None:
        """Return the first fault that strikes; every fault counts the calls it could have struck."""
        struck = [
            fault
            for place, fault in enumerate(self._script.faults)
            if fault.can_strike(kind) and fault.containing in text and self._strikes(fault, place, key, attempt)
        ]
        return struck[0] if struck else None

    def _strikes(self, fault: Fault, place: int, key: str, attempt: int) -> bool:
        self._n_struck[place] += 1
        if fault.calls and self._n_struck[place] not in fault.calls:
            return False
        if fault.attempts and attempt not in fault.attempts:
            return False
        return fault.probability >= 1 or chance(key, str(attempt), str(place), fault.name) < fault.probability


def chance(*parts: str) -> float:
    """Return a number in [0, 1) that is a function of `parts`."""
    return int(digest(*parts)[:13], 16) / 16**13


def _draw_latency(latency: Latency, drawn: float) -> float:
    """Return seconds from a log-normal distribution of this mean: mu = log(mean) - sigma²/2."""
    if not latency.sigma:
        return latency.mean_s
    normal = _NORMAL.inv_cdf(min(max(drawn, 1e-12), 1 - 1e-12))
    return latency.mean_s * exp(latency.sigma * normal - latency.sigma**2 / 2)
