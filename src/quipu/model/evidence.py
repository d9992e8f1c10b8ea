"""Evidence: what a strategy found, as scored ids with reasons; and the trace of how an answer came about."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """An id and its score."""

    id: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One piece of evidence: the id of a chunk, entity, relation, claim or report, its score, and why it is here."""

    id: str
    score: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Seed:
    """Where a strategy started: a keyword or name, the ids it led to with their scores."""

    text: str
    kind: str  # "name" | "vector" | "full text"
    found: tuple[Scored, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Something a model said on the way, from reports or passages it was shown: a partial answer, with its score.

    `reports` and `chunks` are the ids of what it was drawn from: a citation of the point leads to them.
    """

    text: str
    score: float
    reports: tuple[str, ...] = ()
    chunks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a strategy found, best first: ids of chunks, entities, relations, claims and cluster reports, never text.

    `points` are what a model made of some of it where the method has one do so. `hidden` says what was not shown and
    why, for whoever is told that nothing was found.

    `ranks_passages` is False for a strategy that ranks none (bypass), which is then left out of passage metrics.
    `looks_up` is False for one that searches nothing at all (bypass): a model is then asked without evidence.
    """

    chunks: tuple[Hit, ...] = ()
    entities: tuple[Hit, ...] = ()
    relations: tuple[Hit, ...] = ()
    claims: tuple[Hit, ...] = ()
    reports: tuple[Hit, ...] = ()
    points: tuple[Point, ...] = ()
    seeds: tuple[Seed, ...] = ()
    notes: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    ranks_passages: bool = True
    looks_up: bool = True

    def with_notes(self, notes: Sequence[str]) -> Self:
        """Return this with notes of the steps before it ahead of its own."""
        return replace(self, notes=(*notes, *self.notes))


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """What a budget cut away: `section` is points, reports, entities, relations, claims or chunks; `ids` in order."""

    section: str
    budget: int
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How long one stage took, in milliseconds."""

    stage: str
    ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """How an answer came about: seeds, scores, reasons, what each budget dropped, timings, what was stale.

    `n_calls` are the calls of a language model it took, those among them included whose reply was kept from before.
    """

    strategy: str
    revision: int
    evidence: Evidence
    dropped: tuple[Dropped, ...] = ()
    timings: tuple[Timing, ...] = ()
    stale: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())
    n_calls: int = 0
