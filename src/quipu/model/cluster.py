"""Clusters: groups of entities in levels, and what is written of each: communities and aggregates."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Hierarchy(StrEnum):
    """A way to group entities, level by level.

    COMMUNITIES are densely related entities (Leiden): level 0 holds the coarsest, as in Microsoft GraphRAG. AGGREGATES
    are entities that mean something alike (LeanRAG): level 1 lies above the entities, the highest is the coarsest.
    """

    COMMUNITIES = "communities"
    AGGREGATES = "aggregates"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A group of entities. `parent` is the cluster that holds it, "" at the coarsest level.

    `members` are the keys of entities that are directly in it, ordered: none where it is divided into finer clusters.
    `inputs_hash` identifies what its report is made from; it is "" until that has been worked out.
    """

    id: str
    hierarchy: Hierarchy
    level: int
    parent: str = ""
    members: tuple[str, ...] = ()
    n_entities: int = 0  # in it and below it
    inputs_hash: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing a report says: a summary in a sentence, and its explanation ("" where there is none)."""

    summary: str
    explanation: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterReport:
    """What is written of a cluster. `rating` is its importance, 0 to 10.

    `chunks` are those it rests on, the most telling first: a citation of the report leads to them. `inputs_hash` is
    that of the cluster when it was written. `model` names what wrote it: a language model, or "extractive/1".
    """

    cluster: str
    title: str
    summary: str
    findings: tuple[Finding, ...] = ()
    rating: float = 0.0
    chunks: tuple[str, ...] = ()
    inputs_hash: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterCount:
    """The clusters of one level. `n_unsettled` of them hold something that changed: their inputs are to be worked out.

    `n_entities` are in them or in their parts. `n_outdated` of the reports are of what was in their clusters before.
    """

    level: int
    n_clusters: int
    n_entities: int
    n_unsettled: int
    n_reports: int
    n_outdated: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRelation:
    """What connects two clusters of one level: `n` relations between their entities; `source < target` as ids."""

    source: str
    target: str
    level: int
    description: str
    weight: float
    n: int
    inputs_hash: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRelationUpdate:
    """Relations between clusters, to be written in place of those of the same ends; `gone` are ends to be forgotten.

    `revision` is the one whose facts they were made from. Between clusters that hold an entity of which something has
    been said or taken back since, none is written: it may tell of what is no longer there.
    """

    relations: Sequence[ClusterRelation]
    revision: int
    gone: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """All clusters of one hierarchy, to take the place of those there are; reports of clusters that stay are kept.

    `revision` is the one whose graph was partitioned.
    """

    hierarchy: Hierarchy
    clusters: Sequence[Cluster]
    revision: int


def report_text(report: ClusterReport) -> str:
    """Return a report as text: title, summary, findings; its vector stands for this."""
    findings = (f"{each.summary}\n{each.explanation}" if each.explanation else each.summary for each in report.findings)
    return "\n\n".join(part for part in (report.title, report.summary, *findings) if part)
