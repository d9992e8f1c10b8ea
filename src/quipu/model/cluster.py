"""Clusters: groups of entities in levels (communities and aggregates), and the reports about them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Hierarchy(StrEnum):
    """A method to group entities into levels.

    COMMUNITIES are densely connected entities. Level 0 is the coarsest, as in Microsoft GraphRAG. AGGREGATES
    are semantically similar entities (LeanRAG). Level 1 is the finest, directly above the entities.
    """

    COMMUNITIES = "communities"
    AGGREGATES = "aggregates"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A group of entities. `parent` is the cluster that contains it, "" at the coarsest level.

    `members` are the keys of the entities directly in it, in order. A cluster that is split into finer clusters has
    no members of its own. `n_entities` also counts the entities of those finer clusters. `inputs_hash` identifies the
    inputs of its report, "" until they are computed.
    """

    id: str
    hierarchy: Hierarchy
    level: int
    parent: str = ""
    members: tuple[str, ...] = ()
    n_entities: int = 0
    inputs_hash: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One finding of a report: a summary sentence and an explanation ("" if there is none)."""

    summary: str
    explanation: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterReport:
    """The report on a cluster. `rating` is its importance, from 0 to 10.

    `chunks` are the chunks it is based on, most important first; citations of the report point to them. `inputs_hash`
    is the cluster's hash at the time of writing. `model` names the author: a language model or "extractive/1".
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
    """The numbers of clusters and reports on one level.

    `n_pending` clusters contain something that changed, and their inputs are not computed yet. `n_outdated` reports
    describe earlier contents of their cluster. `n_entities` includes the entities of finer clusters.
    """

    level: int
    n_clusters: int
    n_entities: int
    n_pending: int
    n_reports: int
    n_outdated: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRelation:
    """The connection of two clusters of one level, `source < target` as ids.

    It combines `n_relations` relations between their entities.
    """

    source: str
    target: str
    level: int
    description: str
    weight: float
    n_relations: int
    inputs_hash: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRelationUpdate:
    """Cluster relations to write; each replaces the relation with the same ends. `removed` are ends to delete.

    `revision` is the revision they were computed from. A relation is not written if an entity in one of its clusters
    has gained or lost a mention since then, because it could quote removed text.
    """

    relations: Sequence[ClusterRelation]
    revision: int
    removed: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """All clusters of one hierarchy, which replace the existing ones. Clusters that stay keep their reports.

    `revision` is the revision of the graph that was partitioned.
    """

    hierarchy: Hierarchy
    clusters: Sequence[Cluster]
    revision: int


def report_text(report: ClusterReport) -> str:
    """Return a report as text (title, summary, findings), which is also the text that is embedded."""
    findings = (
        f"{finding.summary}\n{finding.explanation}" if finding.explanation else finding.summary
        for finding in report.findings
    )
    return "\n\n".join(part for part in (report.title, report.summary, *findings) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFamily:
    """A cluster with its ancestors, the coarsest first, its children, and itself with all its descendants."""

    cluster: Cluster
    ancestors: Sequence[str]
    children: Sequence[str]
    subtree: Sequence[str]

    @classmethod
    def of(cls, cluster: Cluster, cluster_by_id: Mapping[str, Cluster]) -> "ClusterFamily":
        """Return the family of a cluster among all clusters."""
        ancestors: list[str] = []
        current = cluster
        while current.parent:
            current = cluster_by_id[current.parent]
            ancestors.append(current.id)
        children = defaultdict[str, list[str]](list)
        for other in cluster_by_id.values():
            children[other.parent].append(other.id)
        subtree = [cluster.id]
        for descendant in subtree:  # the list grows while it is read: breadth first
            subtree += children[descendant]
        return cls(cluster=cluster, ancestors=ancestors[::-1], children=children[cluster.id], subtree=subtree)
