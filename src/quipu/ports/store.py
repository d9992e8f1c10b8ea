"""Store and ReadView: one transaction in, one snapshot out."""

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
    """A family of vectors: what the vectors stand for."""

    CHUNK = "chunk"
    ENTITY = "entity"
    RELATION = "relation"
    NAME = "name"  # of entities, without their descriptions; while kept
    SENTENCE = "sentence"  # while kept
    REPORT = "report"  # of clusters


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorBlock:
    """Vectors of one space: `rows` [n] int64 row numbers (rising, never reused), `data` [n, d] float16."""

    rows: npt.NDArray[np.int64]
    data: npt.NDArray[np.float16]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexCounts:
    """How much the index holds, and how much work is waiting.

    `n_unsummarised` entities and relations have more descriptions than are shown: a language model may sum them up.
    `readers` are who read the live documents, in words, with how many each has read; "" where that was not noted.
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
    readers: Mapping[str, int]


class ReadView(DerivationView, Protocol):
    """A snapshot of the index at one revision, restricted to the documents its filter allows.

    Ids are public ids (chunk ids, entity keys, relation ids). Unknown or filtered-out ids are left out of results.
    Under a filter, entities and relations are folded again from the allowed mentions alone; a summary is shown only
    where these say all it was made of.
    """

    @property
    def revision(self) -> int:
        """The number of commits this snapshot contains."""
        ...

    @property
    def filter(self) -> Filter:
        """The filter this view was opened with."""
        ...

    async def counts(self) -> IndexCounts:
        """Return how much the whole index holds (the filter does not apply)."""
        ...

    async def n_chunks(self) -> int:
        """Return how many chunks the whole index holds (the filter does not apply)."""
        ...

    async def documents(self, ids: Sequence[str] | None = None) -> list[Document]:
        """Return the given documents in their order, or all (also those waiting or failed) ordered by id."""
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

    async def incident(self, keys: Sequence[str]) -> list[Relation]:
        """Return every relation with an end among `keys`, once each, ordered by id."""
        ...

    async def strongest_relations(self, keys: Sequence[str], k: int) -> tuple[list[IncidentRelation], int]:
        """Return the k relations with an end among `keys` that rank first, and how many have one.

        Those whose ends have the most relations together come first, then the heaviest, then by id.
        """
        ...

    async def degrees(self, keys: Sequence[str]) -> dict[str, int]:
        """Return the number of relations of each entity."""
        ...

    async def named(self, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return, for each normal form (`text.names.entity_key`), the keys of entities with that key or alias."""
        ...

    async def search_entities(self, text: str, k: int) -> list[Scored]:
        """Return entities whose name starts with or contains the words of `text`, most mentioned first; for people."""
        ...

    async def chunks_of_entities(self, keys: Sequence[str], k: int) -> dict[str, dict[str, int]]:
        """Return, for each entity, the k chunks that name it most, with the number of occurrences (mentions or links).

        Most first, equal ones by id.
        """
        ...

    async def chunks_mentioning(self, keys: Sequence[str], k: int) -> dict[str, list[str]]:
        """Return, for each entity, the first k chunks, by id, that mention it: its name alone is no mention."""
        ...

    async def chunks_of_relations(self, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return, for each relation, the chunks that state it, ordered by id."""
        ...

    async def entity_mentions(self, chunk_ids: Sequence[str]) -> dict[str, list[EntityMention]]:
        """Return what each chunk says about entities, in the order it was said."""
        ...

    async def relation_mentions(self, chunk_ids: Sequence[str]) -> dict[str, list[RelationMention]]:
        """Return what each chunk says about pairs of entities, in the order it was said."""
        ...

    async def alias_mentions(self, chunk_ids: Sequence[str]) -> dict[str, list[AliasMention]]:
        """Return the aliases each chunk states, in the order they were said."""
        ...

    async def claim_mentions(self, chunk_ids: Sequence[str]) -> dict[str, list[ClaimMention]]:
        """Return what each chunk claims, in the order it was said."""
        ...

    async def claims(self, ids: Sequence[str]) -> list[Claim]:
        """Return the given claims, in the given order."""
        ...

    async def claims_of_entities(self, keys: Sequence[str], k: int) -> dict[str, list[Claim]]:
        """Return, for each entity, the first k claims of which it is the subject.

        Ordered by chunk id, then as they were said.
        """
        ...

    async def full_text(self, text: str, k: int) -> list[Scored]:
        """Return the k chunks that match the words of `text` best by BM25, best first, equal scores by id."""
        ...

    async def vector_dimension(self, space: VectorSpace) -> int:
        """Return the length of the vectors of the live model, 0 where there are none."""
        ...

    async def vectors_after(self, space: VectorSpace, row: int) -> VectorBlock:
        """Return the space's vectors with a row number above `row` (-1: all), whatever the filter."""
        ...

    async def vectors_gone(self, space: VectorSpace, revision: int) -> npt.NDArray[np.int64] | None:
        """Return the rows deleted after `revision`, or None where that is no longer known (rebuild then)."""
        ...

    async def vectors_allowed(self, space: VectorSpace) -> npt.NDArray[np.int64] | None:
        """Return the rows whose owner the filter allows, rising; None where there is no filter."""
        ...

    async def vector_owners(self, space: VectorSpace, rows: Sequence[int]) -> dict[int, tuple[str, ...]]:
        """Return the allowed ids each row stands for; equal texts share a row."""
        ...

    async def vector_rows(self, space: VectorSpace, ids: Sequence[str]) -> dict[str, int]:
        """Return the row of each of the given ids' vectors; ids without a vector are left out."""
        ...

    async def chunk_vector_rows(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the numbers of the chunks with a vector, rising, and the row of each, [n], whatever the filter."""
        ...

    async def stale(self) -> tuple[str, ...]:
        """Return, in words, what is not up to date in this snapshot, as in "not computed yet: 12 vectors".

        What waits for a summary is not: without a language model it may wait for ever.
        """
        ...

    def dump(self) -> AsyncIterator[str]:
        """Return the canonical state as JSON lines, sorted: what two equal indexes agree on to the byte."""
        ...


class Store(ReplyCache, Protocol):
    """One place for everything: facts, their folds, vectors, work, replies, costs.

    `commit` is all or nothing; views never block. Views and whatever writes raise Mismatch where another version of
    Quipu has changed the schema since the index was opened. `find`, `keep` and `spend` leave the revision as it is.
    """

    async def commit(self, delta: Delta) -> CommitResult:
        """Apply the whole change in one transaction, or raise and change nothing.

        Raises InvalidDelta for a change that breaks the data model, Busy where another process does not let go.
        """
        ...

    def view(self, allowed: Filter | None = None) -> AbstractAsyncContextManager[ReadView]:
        """Open a snapshot; release it before any model call. Raises InvalidInput for a filter that cannot be read."""
        ...

    async def claim(self, limit: int) -> list[Job]:
        """Take up to `limit` queued jobs, and those whose owner is dead, oldest first, under a lease.

        Fewer are taken where their documents are large: one call returns little more than memory is meant for.
        """
        ...

    async def advance(self, job_ids: Sequence[int], status: DocumentStatus) -> set[int]:
        """Record that claimed jobs reached a stage, and renew their lease; return those this store still holds."""
        ...

    @property
    def schema(self) -> int:
        """The number of the schema this version writes."""
        ...

    @property
    def lease_s(self) -> float:
        """For how many seconds a claim holds unless renewed."""
        ...

    async def renew(self) -> None:
        """Renew the lease of every job this store holds, and of its turn to derive."""
        ...

    async def begin_deriving(self) -> bool:
        """Take the turn to derive under a lease; False while another store has it whose process lives."""
        ...

    async def end_deriving(self) -> None:
        """Give the turn to derive back, where this store has it."""
        ...

    async def release(self) -> None:
        """Give every job this store still holds back to the queue, unfinished."""
        ...

    async def cancel(self, document_ids: Sequence[str]) -> list[str]:
        """Drop waiting, running or failed jobs of these documents; live versions stay. Return whose were dropped."""
        ...

    async def retry(self, document_ids: Sequence[str] | None = None) -> int:
        """Queue failed jobs again (all, or of these documents). Return how many."""
        ...

    async def replies(self, input_hashes: Sequence[str]) -> dict[str, str]:
        """Return the kept replies to these inputs."""
        ...

    async def usage(self, since: str = "", until: str = "") -> list[UsageRow]:
        """Return what models were asked and what it cost on the days from `since` to `until`, both included.

        Days are ISO dates, "" for no limit. Rows are ordered by day, stage, model and subject.
        """
        ...

    async def unsummarised(self) -> list[SummaryTarget]:
        """Return the entities and relations whose descriptions are more than their join shows, ordered.

        Those with a summary of all they are described by are none of them.
        """
        ...

    async def summary_tasks(self, owners: Sequence[SummaryTarget]) -> list[SummaryTask]:
        """Return what is to be summed up of each, in the given order; owners that want no summary are left out."""
        ...

    async def stale_texts(self, model: str, limit: int) -> dict[str, str]:
        """Return up to `limit` texts that have no vector under this model yet, by text hash."""
        ...

    async def embedder(self) -> tuple[str, int] | None:
        """Return identity and dimension of the embedder whose vectors answer, None where there is none yet."""
        ...

    async def use_embedder(self, identity: str, dimension: int) -> None:
        """Record the embedder of an index that holds nothing yet; afterwards raise Mismatch where it is another one.

        Of several that are recorded meanwhile the first to add something stays: `commit` raises Mismatch to the others.
        """
        ...

    async def begin_reembedding(self, identity: str, dimension: int) -> None:
        """Start a second set of vectors beside the live one, which answers until `finish_reembedding`."""
        ...

    async def finish_reembedding(self, identity: str) -> None:
        """Make the second set the live one and drop the first; raises Stale while texts lack vectors."""
        ...

    async def rebuild_text_index(self) -> None:
        """Build full text and links again from the chunks, with the tokenizer of this version."""
        ...

    async def wipe(self) -> None:
        """Leave no words of removed documents in the files, nor of what was updated once that has become much."""
        ...

    async def purge(self) -> int:
        """Drop replies no live document needs and vectors of a re-embedding given up; return rows dropped.

        A re-embedding is not given up while any store has the turn to derive.
        Needed are an extractor's replies while a chunk has their input, replies to single calls while their document
        stays in the version they were made for, and those made from several documents, which go with the first of them.
        Costs of documents that are gone, and of questions asked long ago, are added to those of no subject. No words of
        what was removed or updated are left in the files.
        """
        ...

    async def damage(self) -> list[str]:
        """Return what the database finds wrong with its files, in words: quicker than `verify`, which includes it."""
        ...

    async def verify(self) -> list[str]:
        """Recompute every fold, link and count from the facts; return what differs, in words (empty: sound)."""
        ...

    async def close(self) -> None:
        """Release every connection."""
        ...
