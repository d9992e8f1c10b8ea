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
class KeyPoint:
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
    points: tuple[KeyPoint, ...] = ()
    seeds: tuple[Seed, ...] = ()
    notes: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    ranks_passages: bool = True
    looks_up: bool = True

    def with_notes(self, notes: Sequence[str]) -> Self:
        """Return this with notes of the steps before it ahead of its own."""
        return replace(self, notes=(*notes, *self.notes))


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedHits:
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
    dropped: tuple[DroppedHits, ...] = ()
    timings: tuple[Timing, ...] = ()
    stale: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())
    n_calls: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SupportingHit:
    """A piece of evidence that leads to a chunk: an entity it names, a relation or claim it states, a report of it.

    `rank` is its place among the evidence of its kind, from 1; `how` says what joins it to the chunk.
    """

    kind: str  # "entity" | "relation" | "claim" | "report" | "point"
    id: str
    name: str
    rank: int
    score: float
    reason: str
    how: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of a chain: from an entity, by a relation of the evidence, to another entity."""

    source: str  # names, as shown
    relation: str  # id
    target: str
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """How a seed leads to a chunk: its text and kind, the entity it begins with, and the steps from there.

    `start` is "" where the seed found the chunk itself. `steps` are none where the chunk names the entity at once.
    """

    seed: str
    kind: str
    score: float
    start: str = ""
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedChunk:
    """Why one chunk is there. `rank` is 0 where the strategy did not choose it: then `grounds` tell what it missed.

    `chains` are the shortest ones: from a seed that found the chunk itself, and from a seed over relations.
    """

    id: str
    document_id: str
    title: str
    text: str
    rank: int
    score: float
    reason: str
    grounds: tuple[SupportingHit, ...] = ()
    chains: tuple[Chain, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why chunks are among the evidence of a strategy. `names` are those of the ids the seeds found.

    Where a strategy ranks no passages, `beside` are the first points and reports it found instead.
    `looks_up` is False where nothing was searched; there are strategies that read all reports and begin with no seed.
    """

    question: str
    strategy: str
    revision: int
    n_chunks: int
    n_claims: int = 0
    n_reports: int = 0
    n_points: int = 0
    ranks_passages: bool = True
    looks_up: bool = True
    seeds: tuple[Seed, ...] = ()
    chunks: tuple[ExplainedChunk, ...] = ()
    beside: tuple[SupportingHit, ...] = ()
    names: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
