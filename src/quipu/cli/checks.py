"""A check: one thing `quipu doctor` tried, how it went, and what to do about it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was tried: "ok", "warning" or "failed", and what to do about it."""

    name: str
    outcome: str
    detail: str
    remedy: str = ""
