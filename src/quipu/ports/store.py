"""Store and ReadView: changes are committed as a Delta in one transaction, and read through snapshots."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np
import numpy.typing as npt

from quipu.model.delta import CommitResult, Delta, Job
from quipu.model.document import Document, DocumentStatus
from quipu.model.evidence import Scored
from quipu.model.graph import (
    AliasMention,
    Chunk,
    Claim,
    ClaimMention,
    Entity,
    EntityMention,
    IncidentRelation,
    Relation,
    RelationMention,
)
from quipu.model.query import Filter
from quipu.model.summary import SummaryTarget, SummaryTask
from quipu.model.usage import UsageRow
from quipu.ports.derivation_view import DerivationView
from quipu.ports.reply_cache import ReplyCache


class VectorSpace(StrEnum):
    """What a set of vectors represents.

    NAME (entity names without descriptions) and SENTENCE exist only while their derivations are kept. REPORT holds the
    reports of clusters.
    """

    CHUNK = "chunk"
    ENTITY = "entity"
    RELATION = "relation"
    NAME = "name"
    SENTENCE = "sentence"
    REPORT = "report"


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorBlock:
    """Vectors of one space: `rows` [n] int64 are row numbers (ascending, never reused), `vectors` is [n, d] float16."""

    rows: npt.NDArray[np.int64]
    vectors: npt.NDArray[np.float16]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexCounts:
    """The size of the index, and the work that waits.

    `jobs` maps a status to its number of jobs. `n_unsummarised` entities and relations have more descriptions than are
    shown, and no current summary. `extractors` maps the description of an extractor to the number of live documents it
    read; the description is "" if it was not recorded.
    """

    documents: int
    chunks: int
    entities: int
    relations: int
    mentions: int
    links: int
    vectors: int
    replies: int
    jobs: Mapping[str, int]
    stale_vectors: int
    n_unsummarised: int
    extractors: Mapping[str, int]


class ReadView(DerivationView, Protocol):
    """A read-only snapshot of the index at one revision, restricted to the documents that its filter allows.

    Methods take and return public ids: chunk ids, entity keys, relation ids. Ids that are unknown, or that the filter
    excludes, are omitted from results without an error. A method whose docstring says "ignores the filter" returns the
    same result for every filter.

    Under a filter, entities and relations are folded from the allowed mentions alone. A summary is used only if the
    allowed mentions contain all its descriptions.
    """

    @property
    def revision(self) -> int:
        """The revision of the snapshot: how many commits it contains."""
        ...

    @property
    def filter(self) -> Filter:
        """The filter with which this view was opened."""
        ...

    async def counts(self) -> IndexCounts:
        """Return the size of the whole index; ignores the filter."""
        ...

    async def n_chunks(self) -> int:
        """Return the number of chunks of the whole index; ignores the filter."""
        ...

    async def documents(self, ids: Sequence[str] | None = None) -> list[Document]:
        """Return the given documents in the given order, or all by id, including those queued or failed."""
        ...

    async def chunks(self, ids: Sequence[str]) -> list[Chunk]:
        """Return the given chunks, in the given order."""
        ...

    async def document_chunks(self, document_id: str) -> list[Chunk]:
        """Return a document's chunks in order."""
        ...

    async def entities(self, keys: Sequence[str]) -> list[Entity]:
        """Return the given entities, in the given order."""
        ...

    async def relations(self, ids: Sequence[str]) -> list[Relation]:
        """Return the given relations, in the given order."""
        ...

    async def incident_relations(self, keys: Sequence[str]) -> list[Relation]:
        """Return every relation that has an end among `keys`, each once, ordered by id."""
        ...

    async def strongest_relations(self, keys: Sequence[str], k: int) -> tuple[list[IncidentRelation], int]:
        """Return the k highest-ranked relations that have an end among `keys`, and the number of all such relations.

        Relations are ranked by the sum of the degrees of both ends, then by weight (largest first), then by id.
        """
        ...

    async def degrees(self, keys: Sequence[str]) -> dict[str, int]:
        """Return the number of relations of each entity."""
        ...

    async def keys_by_name(self, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return, for each normalised name (`text.names.entity_key`), the entities that have it as key or alias."""
        ...

    async def search_entities(self, text: str, k: int) -> list[Scored]:
        """Return up to k entities whose name starts with or contains the words of `text`, most mentions first.

        This search is for people, not for strategies.
        """
        ...

    async def chunks_of_entities(self, keys: Sequence[str], k: int) -> dict[str, dict[str, int]]:
        """Return, for each entity, the k chunks with the most occurrences of it, with the number of occurrences.

        Occurrences are mentions or links, whichever are more. Most first; equal numbers are ordered by chunk id.
        """
        ...

    async def chunks_mentioning(self, keys: Sequence[str], k: int) -> dict[str, list[str]]:
        """Return, for each entity, the first k chunks by id that mention it. A link alone is not a mention."""
        ...

    async def chunks_of_relations(self, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return, for each relation, the chunks that state it, ordered by id."""
        ...

    async def entity_mentions(self, chunk_ids: Sequence[str]) -> dict[str, list[EntityMention]]:
        """Return the entity mentions of each chunk, in the order of extraction."""
        ...

    async def relation_mentions(self, chunk_ids: Sequence[str]) -> dict[str, list[RelationMention]]:
        """Return the relation mentions of each chunk, in the order of extraction."""
        ...

    async def alias_mentions(self, chunk_ids: Sequence[str]) -> dict[str, list[AliasMention]]:
        """Return the aliases that each chunk states, in the order of extraction."""
        ...

    async def claim_mentions(self, chunk_ids: Sequence[str]) -> dict[str, list[ClaimMention]]:
        """Return the claims of each chunk, in the order of extraction."""
        ...

    async def claims(self, ids: Sequence[str]) -> list[Claim]:
        """Return the given claims, in the given order."""
        ...

    async def claims_of_entities(self, keys: Sequence[str], k: int) -> dict[str, list[Claim]]:
        """Return, for each entity, the first k claims whose subject it is, by chunk id and order of extraction."""
        ...

    async def full_text(self, text: str, k: int) -> list[Scored]:
        """Return the k chunks that match the words of `text` best by BM25; equal scores are ordered by id."""
        ...

    async def vector_dimension(self, space: VectorSpace) -> int:
        """Return the length of the vectors of the live embedder, 0 if there are none."""
        ...

    async def vectors_after(self, space: VectorSpace, row: int) -> VectorBlock:
        """Return the vectors of a space whose row number is greater than `row` (-1: all); ignores the filter."""
        ...

    async def deleted_vector_rows(self, space: VectorSpace, revision: int) -> npt.NDArray[np.int64] | None:
        """Return the rows deleted after `revision`, ascending, or None if the change log no longer reaches back to it.

        After None, a vector index must be rebuilt.
        """
        ...

    async def allowed_vector_rows(self, space: VectorSpace) -> npt.NDArray[np.int64] | None:
        """Return the rows that belong to an id the filter allows, ascending; None if the view has no filter."""
        ...

    async def vector_owners(self, space: VectorSpace, rows: Sequence[int]) -> dict[int, tuple[str, ...]]:
        """Return, for each row, the allowed ids whose text it represents. Ids with equal texts share a row."""
        ...

    async def vector_rows(self, space: VectorSpace, ids: Sequence[str]) -> dict[str, int]:
        """Return the row of each id's vector. Ids without a vector are omitted."""
        ...

    async def chunk_vector_rows(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the numbers of all chunks with a vector, ascending, and their rows, both [n]; ignores the filter."""
        ...

    async def stale_notes(self) -> tuple[str, ...]:
        """Return messages about what is out of date in this snapshot, for example "not computed yet: 12 vectors".

        Missing summaries are not reported, because without a language model they are never written.
        """
        ...

    def dump(self) -> AsyncIterator[str]:
        """Yield the canonical state as sorted JSON lines. Two equal indexes yield the same bytes."""
        ...


class Store(ReplyCache, Protocol):
    """The database of an index: facts, folds, vectors, jobs, cached replies and usage.

    Every change of facts or derivations is one `commit`, which is applied completely or not at all and increments the
    revision. Reading happens through `view`, which never blocks writers. Jobs and the derivation lease coordinate
    several processes; both are held under a lease that its holder must renew.

    Views and writing methods raise Mismatch if another version of Quipu has changed the schema since this store was
    opened. The methods of ReplyCache do not change the revision.
    """

    async def commit(self, delta: Delta) -> CommitResult:
        """Apply the whole change in one transaction, or raise and change nothing.

        Raises InvalidDelta for a change that violates the data model, and Busy if another process keeps the database
        locked.
        """
        ...

    def view(self, allowed: Filter | None = None) -> AbstractAsyncContextManager[ReadView]:
        """Open a snapshot of the documents that the filter allows. Close it before any call of a model.

        Raises InvalidInput for a filter that cannot be evaluated.
        """
        ...

    async def claim_jobs(self, limit: int) -> list[Job]:
        """Claim up to `limit` jobs under a lease, oldest first: queued jobs, and jobs whose owner is dead.

        Fewer are returned if their documents are large, so that one call needs a limited amount of memory.
        """
        ...

    async def advance_jobs(self, job_ids: Sequence[int], status: DocumentStatus) -> set[int]:
        """Set the status of claimed jobs and renew their leases. Return those that this store still holds."""
        ...

    @property
    def schema(self) -> int:
        """The schema version that this version of Quipu writes."""
        ...

    @property
    def lease_s(self) -> float:
        """The duration of a lease in seconds, unless it is renewed."""
        ...

    async def renew_leases(self) -> None:
        """Renew the lease of every job that this store holds, and of the derivation lease if it holds it."""
        ...

    async def acquire_derivation_lease(self) -> bool:
        """Try to acquire the derivation lease: only its holder refreshes derivations.

        Returns False while another store holds it and that store's process lives.
        """
        ...

    async def release_derivation_lease(self) -> None:
        """Release the derivation lease if this store holds it."""
        ...

    async def release_jobs(self) -> None:
        """Return every job that this store still holds to the queue, unfinished."""
        ...

    async def cancel_jobs(self, document_ids: Sequence[str]) -> list[str]:
        """Delete queued, running and failed jobs of these documents. Their live versions stay.

        Return the ids of the documents that had such a job.
        """
        ...

    async def retry_jobs(self, document_ids: Sequence[str] | None = None) -> int:
        """Queue failed jobs again, all or those of the given documents. Return how many."""
        ...

    async def usage(self, since: str = "", until: str = "") -> list[UsageRow]:
        """Return the usage on the days from `since` to `until`, both included.

        Days are ISO 8601 dates, "" for no limit. Rows are ordered by day, stage, model and subject.
        """
        ...

    async def summary_targets(self) -> list[SummaryTarget]:
        """Return the entities and relations that have more descriptions than are shown and no current summary, ordered.

        A summary is current if it covers every description.
        """
        ...

    async def summary_tasks(self, targets: Sequence[SummaryTarget]) -> list[SummaryTask]:
        """Return the descriptions to summarise for each target, in the given order. Others are omitted."""
        ...

    async def texts_without_vector(self, model: str, limit: int) -> dict[str, str]:
        """Return up to `limit` texts that have no vector of this embedding model yet, by text hash."""
        ...

    async def embedder(self) -> tuple[str, int] | None:
        """Return the identity and dimension of the live embedder, None if none is recorded yet."""
        ...

    async def set_embedder(self, identity: str, dimension: int) -> None:
        """Record the embedder of an empty index. Later calls raise Mismatch for a different embedder.

        If several processes record one at the same time, the first to add content wins: `commit` raises Mismatch for
        the others.
        """
        ...

    async def begin_reembedding(self, identity: str, dimension: int) -> None:
        """Start a second set of vectors. The live set answers queries until `finish_reembedding`."""
        ...

    async def finish_reembedding(self, identity: str) -> None:
        """Make the second set the live one and delete the first. Raises Stale while texts have no new vector."""
        ...

    async def rebuild_text_index(self) -> None:
        """Rebuild full text and links from the chunks with the tokenizer of this version."""
        ...

    async def purge(self, *, text_only: bool = False) -> int:
        """Delete replies that no live document needs and vectors of an abandoned re-embedding. Return how many rows.

        A re-embedding is not abandoned while any store holds the derivation lease. These replies are needed: an
        extractor's reply while a chunk has its input, a reply to a single call while its document has the same version,
        and a reply made from several documents while all of them are live. The costs of removed documents and of old
        questions are added to the row without a subject. Deleted text is also overwritten in the files.

        `text_only` only overwrites deleted text: always after a removal, but after updates only once they are many.
        """
        ...

    async def verify(self, *, files_only: bool = False) -> list[str]:
        """Recompute every fold, link and count from the facts. Return the differences as messages (none: correct).

        The errors that the database finds in its files come first; `files_only` returns these alone, which is faster.
        """
        ...

    async def close(self) -> None:
        """Close every connection."""
        ...
