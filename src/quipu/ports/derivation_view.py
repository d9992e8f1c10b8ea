"""DerivationView: reads of derivations (clusters, reports, synonyms, sentences) and of the graph as arrays of numbers.

A number is the small integer by which arrays outside the store know an entity or a chunk; see `quipu.ports.topology`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np
import numpy.typing as npt

from quipu.model.cluster import Cluster, ClusterCount, ClusterRelation, ClusterReport, Hierarchy
from quipu.model.derivation import DerivationRecord

Ints = npt.NDArray[np.int64]


class NodeKind(StrEnum):
    """The kinds of things that have numbers: the nodes of the graph."""

    ENTITY = "entity"
    CHUNK = "chunk"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeSet:
    """The numbers of the chunks and entities that changed after a revision, ascending.

    `chunks` were added, removed or moved, or their text or mentions changed. `entities` were added or removed, or
    their names or synonyms changed, so that old chunks may link to them differently. `history_nonce` is the random
    number of the revision itself, None if unknown: two histories with the same revision number differ in it.
    """

    chunks: Ints
    entities: Ints
    history_nonce: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SynonymRows:
    """Pairs of entities by number, each once, in no order, and the cosine of their names; arrays of one length."""

    firsts: Ints
    seconds: Ints
    similarities: npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphRows:
    """What chunks state, as numbers, and synonyms; the arrays of one group have the same length.

    Occurrences: an entity of `entities` occurs in the chunk of `chunks` `counts` times, is mentioned there `mentions`
    times (which may be 0), and is named there by its own key `keyed` times. Statements: the chunk `stated_in` relates
    `sources` to `targets` with `weights` in thousandths, one row for each mention. Places: the chunk `placed` is
    number `ordinals` of the document `documents`.
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
    synonyms: SynonymRows


@dataclass(frozen=True, slots=True, kw_only=True)
class AliasRows:
    """How often aliases of `entities` occur in `chunks`, as numbers; arrays of one length, each pair once."""

    entities: Ints
    chunks: Ints
    counts: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityTypes:
    """The entities of a view as `numbers` [n], ordered by key; `codes` [n] are the positions of their `types`."""

    numbers: Ints
    types: tuple[str, ...]
    codes: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivationCounts:
    """How many items a derivation has, how many are missing or out of date, and how many texts need a vector.

    The items of a hierarchy are clusters, counted together and on each of its `levels`, lowest first.
    """

    n_items: int
    n_stale: int
    n_texts: int = 0
    levels: tuple[ClusterCount, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """A sentence of a chunk: characters [start, end) of the chunk's text. Its id is `CHUNK#ORDINAL`."""

    chunk: str
    ordinal: int
    start: int
    end: int
    text: str


class DerivationView(Protocol):
    """The part of a ReadView that derivations and graph walks read; unknown and filtered-out ids are left out."""

    async def ids(self, kind: NodeKind, numbers: Sequence[int]) -> dict[int, str]:
        """Return the entity key or the chunk id of each of these numbers."""

    async def title_entities(self, chunks: Sequence[int]) -> dict[int, int]:
        """Return the number of the entity that the title of each chunk's document names, all by number.

        A bracket at the end of a title, as in "Solaris (novel)", may be missing in the name. Chunks whose title names
        no entity are left out.
        """

    async def entity_types(self) -> EntityTypes:
        """Return all entities of the view with their types; under a filter, the types by the allowed mentions."""

    async def graph_rows(self, changed: ChangeSet | None = None) -> GraphRows:
        """Return places, occurrences and statements of all chunks, and all synonyms; the filter does not apply.

        With `changed`, return only current rows: the places, occurrences and statements of changed chunks, the
        occurrences of changed entities in all chunks, and the synonyms of changed entities.
        """

    async def alias_rows(self) -> AliasRows:
        """Return how often the allowed chunks name entities by the aliases that allowed chunks state."""

    async def changes_since(self, revision: int) -> ChangeSet | None:
        """Return what commits after `revision` changed; None if the log does not go back so far (read all then)."""

    async def derivations(self) -> Mapping[str, DerivationRecord]:
        """Return the record of each derivation that is kept up to date, by name."""

    async def derivation_counts(self, derivation: str) -> DerivationCounts:
        """Return the counts of "names", "synonyms", "sentences", "communities" or "hierarchy", whatever the filter."""

    async def pending(self, derivation: str, limit: int | None = None, *, not_by: str = "") -> list[str]:
        """Return the ids of what a derivation has not processed yet, at most `limit`; the filter does not apply.

        "summaries": entities and relations that have more descriptions than are shown and no summary of them all,
        entities first. "synonyms": entities whose names have a vector and are not compared with all others.
        "sentences": chunks that are not split. "reports" and "hierarchy": communities, or aggregates, without a report
        of their present content, highest level first, then by id; a report by the model `not_by` does not count.
        """

    async def sentences(self, chunk_ids: Sequence[str]) -> dict[str, list[Sentence]]:
        """Return the sentences of these chunks, in order; a chunk that is not split yet is left out."""

    async def clusters(
        self,
        hierarchy: Hierarchy,
        ids: Sequence[str] | None = None,
        *,
        entities: Sequence[str] | None = None,
        with_members: bool = True,
    ) -> list[Cluster]:
        """Return these clusters in the given order, or all, by level and id.

        With `entities`, return the finest cluster of each of these, with those of its members that are among them, by
        id; an entity added since the last partition has none. Under a filter, members are the allowed ones, and a
        cluster without any allowed entity is left out.
        """

    async def cluster_documents(self, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return the documents that mention an entity of each of these clusters or below it, ordered by id.

        The filter does not apply.
        """

    async def cluster_reports(self, ids: Sequence[str], *, with_text: bool = True) -> list[ClusterReport]:
        """Return the reports of these clusters, in the given order; clusters without a report are left out.

        Under a filter, a report is left out unless the allowed chunks alone would have been its input. Without text,
        title, summary, findings and chunks are empty, which is much quicker for many reports.
        """

    async def cluster_relations(self, ids: Sequence[str] | None = None, *, by: str = "") -> list[ClusterRelation]:
        """Return the relations with both ends among these clusters (None: all), ordered by ends.

        With `by`, only those by this model. Under a filter, the reports of both ends must be readable.
        """
