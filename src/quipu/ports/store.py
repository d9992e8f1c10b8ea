"""Store, ReadView and ReplyCache: what a database keeps, and what replies of models it has.

Changes are committed as a Delta in one transaction, and read through snapshots.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from quipu.model.chat import ChatRequest
from quipu.model.delta import CommitResult, Delta, Job
from quipu.model.document import Document, DocumentListing, DocumentStatus
from quipu.model.evidence import Scored
from quipu.model.graph import (
    AliasMention,
    Chunk,
    Claim,
    ClaimMention,
    Entity,
    EntityMention,
    IncidentRelation,
    IndexCounts,
    Relation,
    RelationMention,
)
from quipu.model.query import Filter
from quipu.model.summary import SummaryTarget, SummaryTask
from quipu.model.usage import NO_LIMIT, LedgerSums, SpendingLimit, UsageRow
from quipu.ports.derivation_view import DerivationView, NodeKind


class VectorSpace(StrEnum):
    """What a set of vectors represents.

    NAME (entity names without descriptions) and SENTENCE exist only while their derivations are kept. REPORT holds the
    reports of clusters, QUESTION the questions of records, which their chunks answer (`record_questions`).
    """

    CHUNK = "chunk"
    ENTITY = "entity"
    RELATION = "relation"
    NAME = "name"
    SENTENCE = "sentence"
    REPORT = "report"
    QUESTION = "question"


class OccurrenceKind(StrEnum):
    """What occurs in a chunk, and what counts as an occurrence.

    ENTITY: mentions of an entity or links to it, whichever are more. MENTION: mentions of an entity. RELATION: mentions
    of a relation. TERM: a term of full text, or a key under which it has the chunk (`text.references`).
    """

    ENTITY = "entity"
    MENTION = "mention"
    RELATION = "relation"
    TERM = "term"


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorBlock:
    """Vectors of one space: `rows` [n] int64 are row numbers (ascending, never reused), `vectors` is [n, d] float16.

    `deleted` are the rows deleted after a revision, ascending. It is None if no revision was given, or if the change
    log no longer reaches back to it.
    """

    rows: npt.NDArray[np.int64]
    vectors: npt.NDArray[np.float16]
    deleted: npt.NDArray[np.int64] | None = None


CountName = Literal[
    "documents",
    "chunks",
    "entities",
    "relations",
    "mentions",
    "links",
    "vectors",
    "replies",
    "jobs",
    "stale_vectors",
    "n_unsummarised",
    "extractors",
    "embedder",
    "schema",
    "database_bytes",
]
Mention = TypeVar("Mention", EntityMention, RelationMention, AliasMention, ClaimMention)


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

    async def counts(self, *names: CountName, of: Sequence[str] | None = None) -> IndexCounts:
        """Return the counts of the whole index, or only the named values, which is faster; ignores the filter.

        With `of`, `replies` are only those that removing these documents deletes.
        """

    async def documents(
        self, ids: Sequence[str] | None = None, listing: DocumentListing | None = None
    ) -> list[Document]:
        """Return the given documents in the given order, or a listing, by default all by id.

        Documents that are queued or failed are included; a filter hides them. Cursors stay valid while documents come
        and go.
        """

    async def content(self, content_hash: str, start: int = 0, n: int | None = None) -> bytes | None:
        """Return the kept text (UTF-8) or file with this hash, or `n` bytes of it from `start`; None if there is none.

        The hashes are those of documents: `text_hash` and `original_hash`. Raises Corrupt if a part is damaged.
        """

    async def chunks(
        self,
        ids: Sequence[str] = (),
        *,
        document_id: str | None = None,
        start: int = 0,
        n_first: int | None = None,
        with_neighbours: bool = False,
    ) -> list[Chunk]:
        """Return the given chunks in the given order, or the chunks of a document in order, all or the first ones.

        With `start`, the chunks of a document begin with that one; the first chunk of a document is 0.
        With `with_neighbours`, the chunks just before and after each of the given ones in its document follow, each
        once, by document and place.
        """

    async def entities(self, keys: Sequence[str], k: int | None = None) -> list[Entity]:
        """Return the given entities, in the given order.

        With `k`, return only the k with the most relations: most first, equal numbers ordered by key.
        """

    async def relations(
        self, ids: Sequence[str] = (), *, entities: Sequence[str] | None = None, k: int | None = None
    ) -> list[Relation]:
        """Return these relations in this order, or each with an end among `entities`: by id, or the `k` heaviest."""

    async def strongest_relations(self, keys: Sequence[str], k: int) -> tuple[list[IncidentRelation], int]:
        """Return the k highest-ranked relations that have an end among `keys`, and the number of all such relations.

        Relations are ranked by the sum of the degrees of both ends, then by weight (largest first), then by id.
        """

    async def claims(
        self, ids: Sequence[str] = (), *, subjects: Sequence[str] | None = None, k: int | None = None
    ) -> list[Claim]:
        """Return the given claims, in the given order, or the claims about `subjects`.

        With `subjects`, the first k claims of each are returned (None: all), by subject in the given order, then by
        chunk id, then in the order of extraction.
        """

    async def mentions(self, kind: type[Mention], chunk_ids: Sequence[str]) -> dict[str, list[Mention]]:
        """Return the mentions of one kind in each chunk, in the order of extraction.

        For example, `mentions(EntityMention, ids)` returns entity mentions.
        """

    async def occurrences(
        self, kind: OccurrenceKind, ids: Sequence[str], k: int | None = None
    ) -> dict[str, dict[str, int]]:
        """Return the first k chunks in which each entity or relation occurs (None: all), with how often it occurs.

        ENTITY: chunks with the most occurrences come first, and equal numbers are ordered by chunk id. The others:
        chunks are ordered by id. TERM: a term in more than k chunks of the index is left out; keys occur 0 times.
        """

    async def keys_by_name(self, names: Sequence[str], *, any_spelling: bool = False) -> dict[str, tuple[str, ...]]:
        """Return, for each normalised name (`text.names.entity_key`), the entities that have it as key or alias.

        With `any_spelling`, a name that no entity has stands for those with the same name in another script or with
        other accents (`text.spellings`).
        """

    async def search_text(self, kind: NodeKind, text: str, k: int) -> list[Scored]:
        """Return up to k chunks or entities that match `text`.

        Chunks match by their words and are ranked by BM25; equal scores are ordered by id. Entities match if their key
        starts with or contains `text`; those that start with it come first, then those with the most mentions. The
        search for entities is for people, not for strategies.
        """

    async def numbers(self, kind: NodeKind | VectorSpace, ids: Sequence[str]) -> dict[str, int]:
        """Return the number of each entity (by key) or chunk (by id), or the row of its vector in a vector space.

        Ids without a vector are omitted.
        """

    async def allowed_numbers(self, kind: Literal[NodeKind.CHUNK] | VectorSpace) -> npt.NDArray[np.int64] | None:
        """Return the numbers of allowed chunks, or the vector rows of allowed ids, ascending; None without a filter."""

    async def vectors(self, space: VectorSpace, after: int = -1, *, since: int | None = None) -> VectorBlock:
        """Return the vectors of a space whose row number is greater than `after`; ignores the filter.

        With `since`, `deleted` contains the rows deleted after that revision. If it is None, a vector index must be
        rebuilt.
        """

    async def vector_owners(self, space: VectorSpace, rows: Sequence[int]) -> dict[int, tuple[str, ...]]:
        """Return, for each row, the allowed ids whose text it represents. Ids with equal texts share a row."""

    async def chunk_vector_rows(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the numbers of all chunks with a vector, ascending, and their rows, both [n]; ignores the filter."""

    def dump(self) -> AsyncIterator[str]:
        """Yield the canonical state as sorted JSON lines. Two equal indexes yield the same bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallReply:
    """A model's reply to a single call, with the request and the hash under which it is stored."""

    input_hash: str
    payload: str
    request: ChatRequest


class ReplyCache(Protocol):
    """Stores replies durably, together with their cost. Concurrent calls share one transaction."""

    async def find_replies(self, input_hashes: Sequence[str]) -> dict[str, str]:
        """Return the replies stored under these hashes. Those that do not exist or cannot be read are omitted."""

    async def record_call(self, usage: Sequence[UsageRow], reply: CallReply | None = None) -> None:
        """Count what a call cost, and store its reply if there is one to store, in one transaction.

        Both are durable when this returns. The reply is kept for the documents and the lifetime of its request. If a
        reply with this hash exists, it stays, and is now also kept for the documents of this request. A reply of
        lifetime `revision` or `free` belongs to no document. A reply whose request names neither documents nor source
        replies is kept until `purge`.

        The cost is counted, but the reply is not stored, if meanwhile:
        - its documents were removed (lifetime `all documents`: any of them),
        - one of its source replies was deleted, or
        - (lifetime `revision`) a fact changed after the revision that the request names.
        """

    async def facts_revision(self) -> int:
        """Return the revision of the last change of facts, from which a reply of lifetime `revision` is valid."""


RENEWALS_PER_LEASE = 3  # so that two renewals may fail before the lease ends


class SpendingLedger(Protocol):
    """What the processes that share a budget have spent, and what their running calls may cost at most."""

    async def add(self, change: LedgerSums, limit: SpendingLimit = NO_LIMIT) -> LedgerSums:
        """Add to what this process has spent and reserved, unless all would then exceed `limit`; return sums before."""

    def settle(self, change: LedgerSums) -> None:
        """Add without a limit, and wait for nothing: each `add` that follows sees it."""


class WorkerLedger(SpendingLedger, Protocol):
    """What all workers of an index have spent since a time when there was none.

    A process is a worker from its first `add` until it leaves, if it adds something, even nothing, before `lease_s`
    seconds have passed again. What a dead worker had reserved counts as spent.
    """

    lease_s: float

    async def leave(self) -> None:
        """Settle all calls and stop being a worker; what this one has spent counts until no worker is left."""


class Store(ReplyCache, Protocol):
    """The database of an index: facts, folds, vectors, jobs, cached replies and usage.

    Every change of facts, derivations or the queue is one `commit`, which is applied completely or not at all and
    increments the revision. Reading happens through `view`, which never blocks writers. Jobs and the derivation lease
    coordinate several processes; both are held under a lease that its holder must renew.

    Views and writing methods raise Mismatch if another version of Quipu has changed the schema since this store was
    opened. The methods of ReplyCache do not change the revision.
    """

    async def commit(self, delta: Delta) -> CommitResult:
        """Apply the whole change in one transaction, or raise and change nothing.

        Raises InvalidDelta for a change that violates the data model, and Busy if another process keeps the database
        locked.
        """

    def view(self, allowed: Filter | None = None) -> AbstractAsyncContextManager[ReadView]:
        """Open a snapshot of the documents that the filter allows. Close it before any call of a model.

        Raises InvalidInput for a filter that cannot be evaluated.
        """

    async def claim_jobs(self, limit: int) -> list[Job]:
        """Claim up to `limit` jobs under a lease, oldest first: queued jobs, and jobs whose owner is dead.

        Fewer are returned if their documents are large, so that one call needs a limited amount of memory.
        """

    async def update_jobs(self, status: DocumentStatus, job_ids: Sequence[int] | None = None) -> set[int]:
        """Set the status of claimed jobs, None for all that this store holds; return those that it still held.

        QUEUED gives them back: they wait in the queue again, and any store may claim them. Every other status renews
        their leases.
        """

    def derivation_lease(self) -> AbstractAsyncContextManager[bool]:
        """Try to acquire the derivation lease for this context: only its holder refreshes derivations.

        Yields False while another store holds it and that store's process lives. A store that holds it acquires it
        again. At the end of the context it is released, also where acquiring it was cancelled. If the database is busy
        then, the lease ends by itself.
        """

    async def renew_leases(self) -> float:
        """Renew the leases of all jobs that this store holds, and the derivation lease if it holds that.

        Return after how many seconds they should be renewed again, long before they end.
        """

    async def usage(self, since: str = "", until: str = "") -> list[UsageRow]:
        """Return the usage on the days from `since` to `until`, both included.

        Days are ISO 8601 dates, "" for no limit. Rows are ordered by day, stage, model and subject.
        """

    async def summary_tasks(self, targets: Sequence[SummaryTarget]) -> list[SummaryTask]:
        """Return the descriptions to summarise for each target, in the given order.

        Targets that do not exist or need no summary are omitted. `ReadView.pending` lists those that need one.
        """

    async def texts_without_vector(self, model: str, limit: int) -> dict[str, str]:
        """Return up to `limit` texts that have no vector of this embedding model yet, by text hash."""

    async def set_embedder(self, identity: str, dimension: int) -> None:
        """Record the embedder of an empty index. Later calls raise Mismatch for a different embedder.

        If several processes record one at the same time, the first to add content wins: `commit` raises Mismatch for
        the others.
        """

    def reembedding(self, identity: str, dimension: int) -> AbstractAsyncContextManager[None]:
        """Keep a second set of vectors, of this embedder, in this context; make it the live one at the end.

        The live set answers queries until then, and is deleted then. The end raises Stale while texts have no new
        vector, and if the second set is gone: `purge` and a re-embedding with another embedder delete it. After any
        other error the second set stays, and the next re-embedding with this embedder completes it.
        """

    async def purge(self, *, text_only: bool = False) -> int:
        """Delete replies that no live document needs and vectors of an abandoned re-embedding. Return how many rows.

        A re-embedding is not abandoned while any store holds the derivation lease. These replies are needed: an
        extractor's reply while a chunk has its input, a reply to a single call while its document has the same version,
        and a reply made from several documents while all of them are live. The costs of removed documents and of old
        questions are added to the row without a subject. Deleted text is also overwritten in the files.

        `text_only` only overwrites deleted text: always after a removal, but after updates only once they are many.
        """

    async def verify(
        self, *, files_only: bool = False, facts_only: bool = False, losses_only: bool = False
    ) -> list[str]:
        """Recompute folds, links and counts; return the differences (none: correct), or only those of one kind."""

    async def close(self) -> None:
        """Close every connection."""
