"""RelationalStore: facts, folds, links, vectors and work in one database; see ports.store for the promises."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TypeVar

from sqlalchemy import Connection

from quipu.errors import InvalidDelta, Unavailable
from quipu.model.chat import ChatRequest
from quipu.model.delta import CommitResult, Delta, DocumentFacts, Job
from quipu.model.document import DocumentStatus
from quipu.model.query import Filter
from quipu.model.summary import Summary, SummaryTarget, SummaryTask
from quipu.model.usage import UsageRow
from quipu.ports.store import ReadView
from quipu.stores.relational import changes as change_log
from quipu.stores.relational import (
    cluster_relations,
    deriving,
    documents,
    entity_names,
    filters,
    fold,
    jobs,
    links,
    made,
    mentions,
    meta,
    migrations,
    partitions,
    replies,
    sentences,
    summaries,
    synonyms,
    text_index,
    turn,
    usage_rows,
    vector_rows,
    verify,
    wiping,
)
from quipu.stores.relational.allowed import AllowedGraph
from quipu.stores.relational.backend import Backend
from quipu.stores.relational.documents import ChunkChanges
from quipu.stores.relational.fold import Folded
from quipu.stores.relational.grouped import Grouped
from quipu.stores.relational.lease import new_owner
from quipu.stores.relational.memo import Memos
from quipu.stores.relational.mentions import Tallies
from quipu.stores.relational.name_sieve import NameSieve
from quipu.stores.relational.replies import CallReply
from quipu.stores.relational.snapshot import Snapshot
from quipu.stores.relational.threads import finish_in_thread
from quipu.stores.relational.view import RelationalView
from quipu.text.words import Analyzer

T = TypeVar("T")


class RelationalStore:
    """A Store on any database with a Backend. Blocking work runs in threads; one commit at a time."""

    def __init__(self, backend: Backend, *, lease_s: float, analyzer: Analyzer | None = None) -> None:
        self._backend = backend
        self._analyzer = analyzer or Analyzer()
        self._sieve = NameSieve()
        self._lease_s = lease_s
        self._owner = new_owner()
        self._lock = asyncio.Lock()
        self._is_closed = False
        self._memos = Memos()
        self._embedder: tuple[str, int] | None = None  # until something is added: it may yet become another's
        self._found = Grouped(self._find)
        self._kept = Grouped(self._keep)

    async def prepare(self, *, any_tokenizer: bool = False) -> None:
        """Make or migrate the tables; to be called once, before anything else.

        `any_tokenizer` opens an index whose full text was built with another tokenizer, in order to rebuild it.
        """

        if not await self._read(migrations.is_current):
            try:
                await self._run(lambda connection: migrations.prepare(connection, self._backend, self._analyzer))
            except Unavailable as error:
                cause = error
                await self._read(lambda connection: migrations.explain(connection, cause))
                raise
        if not any_tokenizer:
            await self._read(lambda connection: migrations.check_tokenizer(connection, self._analyzer.identity))

    async def commit(self, delta: Delta) -> CommitResult:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        committed = await self._write(lambda connection: self._commit(connection, delta, now))
        if delta.publish or delta.enqueue:
            self._embedder = None
        self._sieve.finish(committed.revision)
        return committed

    @asynccontextmanager
    async def view(self, allowed: Filter | None = None) -> AsyncIterator[ReadView]:
        allowed = allowed or Filter()
        self._check_open()
        context = self._backend.viewing()
        try:
            yield await finish_in_thread(lambda: self._open_view(context.__enter__(), allowed))
        finally:
            await finish_in_thread(lambda: context.__exit__(None, None, None))

    async def claim(self, limit: int) -> list[Job]:
        return await self._write(
            lambda connection: jobs.claim(
                connection, limit, owner=self._owner, now_s=time.time(), lease_s=self._lease_s
            )
        )

    async def advance(self, job_ids: Sequence[int], status: DocumentStatus) -> set[int]:
        return await self._write(
            lambda connection: jobs.advance(
                connection, job_ids, status, owner=self._owner, now_s=time.time(), lease_s=self._lease_s
            )
        )

    @property
    def schema(self) -> int:
        return migrations.SCHEMA

    @property
    def lease_s(self) -> float:
        return self._lease_s

    async def renew(self) -> None:
        def renew(connection: Connection) -> None:
            until_s = time.time() + self._lease_s
            jobs.renew(connection, self._owner, until_s)
            turn.renew(connection, self._owner, until_s)

        await self._write(renew)

    async def begin_deriving(self) -> bool:
        return await self._write(
            lambda connection: turn.begin(connection, self._owner, now_s=time.time(), lease_s=self._lease_s)
        )

    async def end_deriving(self) -> None:
        await self._write(lambda connection: turn.end(connection, self._owner))

    async def release(self) -> None:
        await self._write(lambda connection: jobs.release(connection, self._owner))

    async def cancel(self, document_ids: Sequence[str]) -> list[str]:
        def cancel(connection: Connection) -> list[str]:
            dropped = jobs.cancel(connection, document_ids)
            replies.release(connection, dropped)
            return dropped

        return await self._write(cancel)

    async def retry(self, document_ids: Sequence[str] | None = None) -> int:
        return await self._write(lambda connection: jobs.retry(connection, document_ids))

    async def replies(self, input_hashes: Sequence[str]) -> dict[str, str]:
        return await self._read(lambda connection: replies.read(connection, input_hashes))

    async def find(self, input_hash: str) -> str | None:
        return await self._found.do(input_hash)

    async def keep(self, input_hash: str, payload: str, request: ChatRequest, usage: Sequence[UsageRow]) -> None:
        await self._kept.do((CallReply(input_hash=input_hash, payload=payload, request=request), usage))

    async def spend(self, usage: Sequence[UsageRow]) -> None:
        await self._kept.do((None, usage))

    async def facts_revision(self) -> int:
        return await self._read(lambda connection: meta.number(connection, replies.FACTS))

    async def usage(self, since: str = "", until: str = "") -> list[UsageRow]:
        return await self._read(lambda connection: usage_rows.read(connection, since, until))

    async def unsummarised(self) -> list[SummaryTarget]:
        return await self._read(summaries.waiting)

    async def summary_tasks(self, owners: Sequence[SummaryTarget]) -> list[SummaryTask]:
        return await self._read(lambda connection: summaries.tasks(connection, owners))

    async def stale_texts(self, model: str, limit: int) -> dict[str, str]:
        return await self._read(lambda connection: text_index.stale_texts(connection, model, limit))

    async def use_embedder(self, identity: str, dimension: int) -> None:
        if not await self._read(lambda connection: vector_rows.has_model(connection, identity, dimension)):
            await self._write(lambda connection: vector_rows.take_model(connection, identity, dimension))
        self._embedder = identity, dimension

    async def embedder(self) -> tuple[str, int] | None:
        return await self._read(vector_rows.live_model)

    async def begin_reembedding(self, identity: str, dimension: int) -> None:
        await self._write(lambda connection: vector_rows.begin_model(connection, identity, dimension, "building"))

    async def finish_reembedding(self, identity: str) -> None:
        def finish(connection: Connection) -> None:
            if vector_rows.finish_model(connection, identity):
                revision = meta.number(connection, "revision")
                synonyms.note(connection, self._backend, revision, synonyms.restart(connection, revision))

        await self._write(finish)
        self._embedder = None

    async def rebuild_text_index(self) -> None:
        def rebuild(connection: Connection) -> None:
            # A new revision: what processes remember of names is of the old one.
            revision = meta.number(connection, "revision") + 1
            meta.put(connection, "revision", revision)
            change_log.forget(connection, revision)
            text_index.rebuild(connection, self._backend, self._analyzer)

        await self._write(rebuild)

    async def purge(self) -> int:
        def run(connection: Connection) -> int:
            usage_rows.purge(connection, self._backend, datetime.now(UTC).date())
            # Derivations tell by what changed since whether they are fresh: that is no leftover.
            revision, oldest = meta.number(connection, "revision"), made.oldest(connection)
            change_log.forget(connection, revision if oldest is None else min(revision, oldest))
            wiping.wipe(connection, self._backend)
            is_deriving = turn.is_taken(connection, now_s=time.time())  # somebody, who may be re-embedding
            return replies.purge(connection) + vector_rows.purge(connection, is_reembedding=is_deriving)

        n_dropped = await self._write(run)
        await finish_in_thread(self._backend.empty_log)
        return n_dropped

    async def wipe(self) -> None:
        if await self._read(wiping.is_due):
            await self._write(lambda connection: wiping.wipe(connection, self._backend))
            await finish_in_thread(self._backend.empty_log)

    async def damage(self) -> list[str]:
        return await self._read(self._backend.damage)

    async def verify(self) -> list[str]:
        return await self._read(lambda connection: verify.differences(connection, self._backend, self._analyzer))

    async def close(self) -> None:
        await self._found.finish()
        await self._kept.finish()
        self._is_closed = True
        await finish_in_thread(self._backend.close)

    async def _write(self, change: Callable[[Connection], T]) -> T:
        def checked(connection: Connection) -> T:
            migrations.check_schema(meta.number(connection, "schema"))
            return change(connection)

        self._check_open()
        return await self._run(checked)

    async def _run(self, change: Callable[[Connection], T]) -> T:
        def run() -> T:
            with self._backend.writing() as connection:
                return change(connection)

        async with self._lock:
            return await finish_in_thread(run)

    async def _find(self, input_hashes: Sequence[str]) -> list[str | None]:
        found = await self.replies(input_hashes)
        return [found.get(input_hash) for input_hash in input_hashes]

    async def _keep(self, kept: Sequence[tuple[CallReply | None, Sequence[UsageRow]]]) -> Sequence[None]:
        def keep(connection: Connection) -> None:
            replies.keep(connection, self._backend, [reply for reply, _ in kept if reply is not None])
            usage_rows.add(connection, self._backend, [row for _, rows in kept for row in rows])

        await self._write(keep)
        return [None] * len(kept)

    def _check_open(self) -> None:
        if self._is_closed:
            raise Unavailable(
                "The index has been closed.", remedy="Open it again: `async with quipu.open(PATH) as kb`."
            )

    async def _read(self, read: Callable[[Connection], T]) -> T:
        def run() -> T:
            with self._backend.reading() as connection:
                return read(connection)

        return await finish_in_thread(run)

    def _commit(self, connection: Connection, delta: Delta, now: str) -> CommitResult:
        """Apply a Delta; the order of the steps is the order of what depends on what."""
        backend = self._backend
        if delta.publish or delta.remove or delta.remove_claimed:
            migrations.check_tokenizer(
                connection, self._analyzer.identity
            )  # another process may have rebuilt full text
        if self._embedder and (delta.publish or delta.enqueue):
            vector_rows.take_model(connection, *self._embedder)
        removals = [*delta.remove, *jobs.removals(connection, delta.remove_claimed)]
        if both := {document.id for document in delta.publish} & set(removals):
            raise InvalidDelta(f"One change publishes and removes the document {min(both)!r}.")
        revision = meta.number(connection, "revision") + 1
        meta.put(connection, "revision", revision)
        self._sieve.begin(revision - 1)
        jobs.enqueue(connection, delta.enqueue, delta.enqueue_removal, now=now)
        publish, superseded = jobs.still_wanted(connection, delta.publish)
        superseded += jobs.given_up(connection, delta.replies)
        changes, folded, tallies = ChunkChanges(), Folded(), Tallies()
        documents.publish(connection, publish, changes, folded.vectors, revision=revision, now=now)
        documents.remove(connection, removals, changes, folded.vectors)
        mentions.forget(connection, changes.unsaid, tallies)
        mentions.record(connection, changes.said, tallies)
        fold.refold(connection, backend, tallies, folded)
        references = links.references(
            [new.key for new in tallies.new_entities.values()], folded.gone_entities, tallies.aliases
        )
        text_index.update(connection, backend, self._analyzer, self._sieve, changes, references)
        wiping.note(connection, len(changes.removed) + len(changes.reworded), at_once=bool(removals))
        entities = {*tallies.new_entities, *folded.gone_rids, *tallies.aliased}
        change_log.note(connection, backend, revision, chunks=changes.rows(), entities=entities)
        renamed = entity_names.follow(connection, folded.names, folded.gone_rids, folded.vectors, revision)
        sentences.forget(connection, [chunk.rid for chunk in changes.removed], folded.vectors)
        synonyms.note(connection, backend, revision, synonyms.forget(connection, renamed))
        touched = partitions.follow(
            connection, backend, tallies.entity_mentions, tallies.entity_forgotten, folded.gone_rids, folded.vectors
        )
        cluster_relations.drop(connection, touched.robbed)
        vector_rows.retarget(connection, folded.vectors, revision)
        replies.record(connection, backend, delta.replies)
        _settle(connection, backend, publish, removals, revision)
        replies.drop_joint(connection, changes.retracted)
        jobs.fail(connection, delta.fail)
        n_outdated = _summarise(connection, backend, delta.summaries, revision) if delta.summaries else 0
        n_outdated += deriving.write(connection, backend, delta, revision)
        vector_rows.write(connection, delta.vectors)
        usage_rows.add(connection, backend, delta.usage)
        return CommitResult(revision=revision, superseded=superseded, n_outdated=n_outdated)

    def _open_view(self, connection: Connection, allowed: Filter) -> RelationalView:
        is_filtered = not allowed.is_empty()
        if is_filtered:
            self._backend.restrict(connection)
            filters.allow(connection, allowed)
        schema, revision = meta.numbers(connection, "schema", "revision")
        migrations.check_schema(schema)
        memo = self._memos.at(revision, change_log.seal(connection, revision), allowed)
        snapshot = Snapshot(
            connection=connection,
            backend=self._backend,
            analyzer=self._analyzer,
            memo=memo,
            allowed=AllowedGraph(connection, memo.arrays) if is_filtered else None,
        )
        return RelationalView(snapshot, revision=revision, allowed=allowed)


def _summarise(connection: Connection, backend: Backend, written: Sequence[Summary], revision: int) -> int:
    """Show summaries in place of joins; return how many are of descriptions that are others now."""
    changes, n_outdated = summaries.write(connection, written)
    partitions.unsettle(connection, backend, [each.owner for each in written])
    vector_rows.retarget(connection, changes, revision)
    return n_outdated


def _settle(
    connection: Connection, backend: Backend, publish: Sequence[DocumentFacts], removals: Sequence[str], revision: int
) -> None:
    """Close the jobs that are done and drop the replies nothing needs any more."""
    if publish or removals:
        replies.drop_of_revision(connection, revision)
    replies.drop_documents(connection, removals)
    uses = [(doc.id, facts.chunk.input_hash) for doc in publish for facts in doc.chunks if not facts.chunk.error]
    replies.use(connection, backend, uses)
    partial = [doc.job for doc in publish if doc.job is not None and any(f.chunk.error for f in doc.chunks)]
    done = [doc.job for doc in publish if doc.job is not None and doc.job not in partial]
    jobs.finish(connection, done, partial)
    jobs.cancel_removals(connection, removals)
