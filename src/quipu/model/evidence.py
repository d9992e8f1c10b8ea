"""Evidence: what a strategy retrieves (scored ids with reasons), its trace, and the explanation of single chunks."""

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
    """One piece of evidence: the id of a chunk, entity, relation, claim or report, its score, and the reason for it."""

    id: str
    score: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Seed:
    """A starting point of a strategy: a keyword or name, and the ids that match it with their scores.

    `kind` says how it was matched: "name", "vector", "full text", or "question": with the questions of records.
    """

    text: str
    kind: str
    matches: tuple[Scored, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPoint:
    """A partial answer that a model wrote from reports or passages, with its score (Microsoft GraphRAG, map step).

    `reports` and `chunks` are the ids of its sources; citations of the point lead to them.
    """

    text: str
    score: float
    reports: tuple[str, ...] = ()
    chunks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a strategy retrieved, best first: ids of chunks, entities, relations, claims and reports, never their text.

    `points` are partial answers, for methods that let a model write them. `omissions` say what was left out and why;
    they are shown if nothing was retrieved. `ranks_passages` is False for a strategy that ranks no passages (bypass),
    which passage metrics then skip. `searches_index` is False for a strategy that searches nothing (bypass); a model
    then answers without evidence.
    """

    chunks: tuple[Hit, ...] = ()
    entities: tuple[Hit, ...] = ()
    relations: tuple[Hit, ...] = ()
    claims: tuple[Hit, ...] = ()
    reports: tuple[Hit, ...] = ()
    points: tuple[KeyPoint, ...] = ()
    seeds: tuple[Seed, ...] = ()
    notes: tuple[str, ...] = ()
    omissions: tuple[str, ...] = ()
    ranks_passages: bool = True
    searches_index: bool = True

    def with_notes(self, notes: Sequence[str]) -> Self:
        """Return a copy with `notes` before its own notes."""
        return replace(self, notes=(*notes, *self.notes))


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedHits:
    """The ids that did not fit a token budget, in order.

    `section` is "points", "reports", "entities", "relations", "claims" or "chunks". `budget` is in tokens.
    """

    section: str
    budget: int
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """The duration of one stage in milliseconds."""

    stage: str
    ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """The record of how an answer was produced: evidence, hits dropped by each budget, timings and stale derivations.

    `n_calls` counts calls of a language model, including those answered from the reply cache. `support` is how well
    quotes hold the question: 1 is just enough for an answer, 0 is what a rule refuses. It is None for an overview, and
    for an answer that is computed over a table or written by a model.
    """

    strategy: str
    revision: int
    evidence: Evidence
    dropped: tuple[DroppedHits, ...] = ()
    timings: tuple[Timing, ...] = ()
    stale: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())
    n_calls: int = 0
    support: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SupportingHit:
    """A hit that leads to a chunk: an entity it mentions, a relation or claim it states, or a report or point on it.

    `kind` is "entity", "relation", "claim", "report" or "point". `rank` is its position among the hits of its kind,
    from 1. `connection` says how it is connected to the chunk.
    """

    kind: str
    id: str
    name: str
    rank: int
    score: float
    reason: str
    connection: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of a chain: a relation (id) of the evidence, from one entity to another (names as shown)."""

    source: str
    relation: str
    target: str
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """The path from a seed to a chunk: the seed's text and kind, the first entity, and the steps from there.

    `start` is "" if the seed matched the chunk itself. `steps` is empty if the chunk mentions the first entity.
    """

    seed: str
    kind: str
    score: float
    start: str = ""
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedChunk:
    """Why one chunk is in the evidence. `rank` is 0 if the strategy did not choose it.

    `supporting_hits` are the hits that lead to the chunk, also if it was not chosen. `chains` are the shortest paths:
    one from a seed that matched the chunk itself, and one from a seed through relations.
    """

    id: str
    document_id: str
    title: str
    text: str
    rank: int
    score: float
    reason: str
    supporting_hits: tuple[SupportingHit, ...] = ()
    chains: tuple[Chain, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why chunks are in the evidence of a strategy. `names` maps ids that the seeds matched to names, as pairs.

    If the strategy ranks no passages, `other_evidence` holds its first points and reports. `searches_index` is False
    if nothing was searched. A strategy that reads all reports searches the index but has no seeds. `dropped` is the
    evidence that the token budgets keep from an answer.
    """

    question: str
    strategy: str
    revision: int
    n_chunks: int
    n_claims: int = 0
    n_reports: int = 0
    n_points: int = 0
    ranks_passages: bool = True
    searches_index: bool = True
    seeds: tuple[Seed, ...] = ()
    chunks: tuple[ExplainedChunk, ...] = ()
    other_evidence: tuple[SupportingHit, ...] = ()
    names: tuple[tuple[str, str], ...] = ()
    dropped: tuple[DroppedHits, ...] = ()
    notes: tuple[str, ...] = ()
