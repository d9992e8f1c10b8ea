"""Explanation: why a chunk is among the evidence for a question."""

from dataclasses import dataclass

from quipu.model.evidence import Seed


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
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
    grounds: tuple[Ground, ...] = ()
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
    beside: tuple[Ground, ...] = ()
    names: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
