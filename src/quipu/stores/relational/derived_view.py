"""DerivedReads: the part of a view that tells of derivations; see ports.derived for what each method promises."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Concatenate, ParamSpec, TypeVar

from quipu.model.cluster import Cluster, ClusterCount, ClusterRelation, ClusterReport, Hierarchy
from quipu.model.derivation import NAMES, SENTENCES, SYNONYMS, DerivationRecord
from quipu.ports.derivation_view import (
    AliasRows,
    ChangeSet,
    DerivationCounts,
    EntityTypes,
    GraphRows,
    Ints,
    Sentence,
    SynonymRows,
)
from quipu.stores.relational import (
    change_log,
    cluster_relations,
    clusters,
    entity_names,
    entity_types,
    graph_rows,
    numbers,
    reports,
    sentences,
    synonyms,
)
from quipu.stores.relational.snapshot import Snapshot

P = ParamSpec("P")
R = TypeVar("R")


_HELD = {NAMES: entity_names.held, SYNONYMS: synonyms.held, SENTENCES: sentences.held}


class DerivedReads(ABC):
    """What RelationalView reads of derivations."""

    @abstractmethod
    async def _read(self, read: Callable[Concatenate[Snapshot, P], R], *args: P.args, **kwargs: P.kwargs) -> R: ...

    async def entity_numbers(self, keys: Sequence[str]) -> dict[str, int]:
        return await self._read(numbers.entity_numbers, keys)

    async def entity_keys(self, rids: Sequence[int]) -> dict[int, str]:
        return await self._read(numbers.entity_keys, rids)

    async def chunk_numbers(self, ids: Sequence[str]) -> dict[str, int]:
        return await self._read(numbers.chunk_numbers, ids)

    async def chunk_ids(self, rids: Sequence[int]) -> dict[int, str]:
        return await self._read(numbers.chunk_ids, rids)

    async def chunks_allowed(self) -> Ints | None:
        return await self._read(numbers.chunks_allowed)

    async def changed_since(self, revision: int) -> ChangeSet | None:
        return await self._read(lambda snapshot: change_log.changes_since(snapshot.connection, revision))

    async def graph_rows(self, changed: ChangeSet | None = None) -> GraphRows:
        return await self._read(graph_rows.read, changed)

    async def alias_rows(self) -> AliasRows:
        return await self._read(graph_rows.aliases)

    async def seal(self, revision: int) -> int | None:
        return await self._read(lambda snapshot: change_log.history_nonce(snapshot.connection, revision))

    async def derivations(self) -> Mapping[str, DerivationRecord]:
        return await self._read(lambda snapshot: change_log.derivation_records(snapshot.connection))

    async def clusters(
        self, hierarchy: Hierarchy, ids: Sequence[str] | None = None, *, with_members: bool = True
    ) -> list[Cluster]:
        return await self._read(clusters.read, hierarchy, ids, with_members=with_members)

    async def clusters_of(self, hierarchy: Hierarchy, keys: Sequence[str]) -> dict[str, str]:
        return await self._read(clusters.of_entities, hierarchy, keys)

    async def cluster_reports(self, ids: Sequence[str]) -> list[ClusterReport]:
        return await self._read(reports.read, ids)

    async def report_ratings(self, ids: Sequence[str]) -> dict[str, float]:
        return await self._read(reports.ratings, ids)

    async def cluster_counts(self, hierarchy: Hierarchy) -> list[ClusterCount]:
        return await self._read(clusters.counts, hierarchy)

    async def unreported(self, hierarchy: Hierarchy, not_by: str = "") -> list[str]:
        return await self._read(clusters.unreported, hierarchy, not_by)

    async def cluster_documents(self, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        return await self._read(clusters.documents, ids)

    async def cluster_relations(self, ids: Sequence[str]) -> list[ClusterRelation]:
        return await self._read(cluster_relations.read, ids)

    async def n_cluster_relations(self, by: str) -> int:
        return await self._read(cluster_relations.n_by, by)

    async def synonyms(self, keys: Sequence[str]) -> dict[str, list[tuple[str, float]]]:
        return await self._read(synonyms.read, keys)

    async def entity_types(self) -> EntityTypes:
        return await self._read(entity_types.read)

    async def synonym_rows(self, entities: Ints | None = None) -> SynonymRows:
        return await self._read(synonyms.rows, entities)

    async def names_to_compare(self, limit: int) -> list[str]:
        return await self._read(synonyms.to_compare, limit)

    async def undivided_chunks(self, limit: int) -> list[str]:
        return await self._read(sentences.undivided, limit)

    async def held(self, derivation: str) -> DerivationCounts:
        return await self._read(_HELD[derivation])

    async def sentences(self, chunk_ids: Sequence[str]) -> dict[str, list[Sentence]]:
        return await self._read(sentences.read, chunk_ids)
