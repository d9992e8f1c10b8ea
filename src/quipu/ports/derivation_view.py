"""DerivedView: what a view tells of derivations that are no part of every commit, and of the numbers arrays go by."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from quipu.model.cluster import Cluster, ClusterCount, ClusterRelation, ClusterReport, Hierarchy
from quipu.model.derivation import DerivationRecord

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeSet:
    """Numbers of what changed after a revision, rising.

    `chunks` came, went, moved or say something else; `entities` came, went or have other names, and so stand in other
    old chunks, or other synonyms.
    """

    chunks: Ints
    entities: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphRows:
    """What chunks say, as numbers; arrays of one group have one length.

    `entities` appear in `chunks`, `counts` times: `mentions` times mentioned, `keyed` times named by their own key,
    or by an alias; an entity is mentioned or named there, so `mentions` may be 0. `sources` and `targets` are related
    by the chunk `stated_in`, with `weights` in thousandths, a row for each mention. `documents` and `ordinals` tell the
    place of each of `placed`.
    """

    entities: Ints
    chunks: Ints
    counts: Ints
    mentions: Ints
    keyed: Ints
    sources: Ints
    targets: Ints
    stated_in: Ints
    weights: Ints
    placed: Ints
    documents: Ints
    ordinals: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class AliasRows:
    """How often aliases of `entities` stand in `chunks`, as numbers; arrays of one length, each pair once."""

    entities: Ints
    chunks: Ints
    counts: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class SynonymRows:
    """Pairs of entities by number, each once, in no order, and the cosine of their names; arrays of one length."""

    firsts: Ints
    seconds: Ints
    similarities: npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityTypes:
    """The entities of a view by number, ordered by key, and of which of `types` each is, by place: both [n]."""

    numbers: Ints
    types: tuple[str, ...]
    codes: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivationCounts:
    """What there is of a derivation, what is missing or out of date of it, and how many texts are to be embedded."""

    n_items: int
    n_stale: int
    n_texts: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """A sentence of a chunk: characters [start, end) of the chunk's text. Its id is `CHUNK#ORDINAL`."""

    chunk: str
    ordinal: int
    start: int
    end: int
    text: str


class DerivationView(Protocol):
    """The part of a ReadView that derivations and walks read; ids that are unknown or filtered out are left out."""

    async def entity_numbers(self, keys: Sequence[str]) -> dict[str, int]:
        """Return the number of each of these entities; see `quipu.ports.topology`."""
        ...

    async def entity_keys(self, numbers: Sequence[int]) -> dict[int, str]:
        """Return the key of each of these numbers."""
        ...

    async def chunk_numbers(self, ids: Sequence[str]) -> dict[str, int]:
        """Return the number of each of these chunks."""
        ...

    async def chunk_ids(self, numbers: Sequence[int]) -> dict[int, str]:
        """Return the id of each of these numbers."""
        ...

    async def chunks_allowed(self) -> Ints | None:
        """Return the numbers of the chunks the filter allows, rising; None where there is no filter."""
        ...

    async def changed_since(self, revision: int) -> ChangeSet | None:
        """Return what commits after `revision` changed, or None where that is no longer known (read all then)."""
        ...

    async def graph_rows(self, changed: ChangeSet | None = None) -> GraphRows:
        """Return what all chunks say, whatever the filter; or, of what changed, what there is now.

        With `changed`: the places, appearances and statements of its chunks, and the appearances of its entities in
        all chunks.
        """
        ...

    async def alias_rows(self) -> AliasRows:
        """Return how often the allowed chunks name entities by the aliases that allowed chunks state."""
        ...

    async def seal(self, revision: int) -> int | None:
        """Return a number that tells what led to `revision` from another history; None where it is not known."""
        ...

    async def derivations(self) -> Mapping[str, DerivationRecord]:
        """Return the derivations that are kept, by name."""
        ...

    async def clusters(
        self, hierarchy: Hierarchy, ids: Sequence[str] | None = None, *, with_members: bool = True
    ) -> list[Cluster]:
        """Return these clusters in their order, or all, by level and id. Under a filter, members are the allowed ones.

        A cluster none of whose entities is allowed is left out.
        """
        ...

    async def clusters_of(self, hierarchy: Hierarchy, keys: Sequence[str]) -> dict[str, str]:
        """Return the finest cluster of each of these entities; what came since the last partition has none."""
        ...

    async def cluster_reports(self, ids: Sequence[str]) -> list[ClusterReport]:
        """Return the reports of these clusters, in their order; those not written yet are left out.

        Under a filter, a report is left out unless the allowed chunks alone would have been its input.
        """
        ...

    async def report_ratings(self, ids: Sequence[str]) -> dict[str, float]:
        """Return the rating of each report that `cluster_reports` would return, in that order, by cluster."""
        ...

    async def cluster_counts(self, hierarchy: Hierarchy) -> list[ClusterCount]:
        """Return how many clusters and reports there are on each level, lowest first; the filter does not apply."""
        ...

    async def unreported(self, hierarchy: Hierarchy, not_by: str = "") -> list[str]:
        """Return the clusters without a report of what is in them now, highest level first, then by id.

        Reports by the model `not_by` count as none. The filter does not apply.
        """
        ...

    async def cluster_documents(self, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return the documents that mention an entity of each of these clusters or below it, ordered by id.

        The filter does not apply.
        """
        ...

    async def cluster_relations(self, ids: Sequence[str]) -> list[ClusterRelation]:
        """Return the relations with both ends among these clusters, ordered by ends; under a filter as reports."""
        ...

    async def n_cluster_relations(self, by: str) -> int:
        """Return how many relations between clusters are by the model `by`; the filter does not apply."""
        ...

    async def synonyms(self, keys: Sequence[str]) -> dict[str, list[tuple[str, float]]]:
        """Return, for each entity, the entities with a name much like its own, nearest first, with the cosine."""
        ...

    async def sentences(self, chunk_ids: Sequence[str]) -> dict[str, list[Sentence]]:
        """Return the sentences of these chunks, in order; of chunks that have not been divided yet, nothing."""
        ...

    async def entity_types(self) -> EntityTypes:
        """Return the entities there are with their types; under a filter, as the allowed mentions give them."""
        ...

    async def synonym_rows(self, entities: Ints | None = None) -> SynonymRows:
        """Return all synonyms, whatever the filter; or those with an end among these entities."""
        ...

    async def names_to_compare(self, limit: int) -> list[str]:
        """Return up to `limit` entities whose names have a vector and have not been compared with all others."""
        ...

    async def undivided_chunks(self, limit: int) -> list[str]:
        """Return up to `limit` chunks whose sentences are not known yet, whatever the filter."""
        ...

    async def held(self, derivation: str) -> DerivationCounts:
        """Return what there is of "names", "synonyms" or "sentences"; the filter does not apply."""
        ...
