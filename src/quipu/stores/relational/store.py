"""RelationalStore: facts, folds, links, vectors and work in one database.

`ports.store` describes every method.
"""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TypeVar

from sqlalchemy import Connection, inspect, select

from quipu.errors import Busy, Corrupt, Mismatch, Unavailable
from quipu.model.delta import CommitResult, Delta, DocumentFacts, Job
from quipu.model.document import DocumentStatus
from quipu.model.query import Filter
from quipu.model.summary import SummaryTarget, SummaryTask
from quipu.model.usage import UsageRow
from quipu.ports.store import RENEWALS_PER_LEASE, CallReply, ReadView
from quipu.stores.relational import (
    archive,
    change_log,
    commit,
    entities,
    filters,
    jobs,
    repair,
    replies,
    segments,
    summaries,
    vector_writes,
    vectors,
    verify,
)
from quipu.stores.relational import schema as s
from quipu.stores.relational.conversations import RelationalConversations
from quipu.stores.relational.edits import RelationalEdits
from quipu.stores.relational.history import RelationalHistory
from quipu.stores.relational.migrations import SCHEMA, explain_failed_migration, migrate
from quipu.stores.relational.snapshot import (
    BloomFilter,
    Snapshot,
    SnapshotCache,
    SnapshotCaches,
    check_tokenizer,
    schema_number,
)
from quipu.stores.relational.sql import (
    Backend,
    finish_in_thread,
    in_thread,
    read_meta,
    read_number,
    remembered_meta,
    write_meta,
)
from quipu.stores.relational.view import RelationalView
from quipu.text.words import Analyzer

T = TypeVar("T")


class RelationalStore:
    """A Store on any database with a Backend. Blocking work runs in threads, with one commit at a time."""

    def __init__(
        self, backend: Backend, *, lease_s: float, analyzer: Analyzer | None = None, keeps_history: bool = False
    ) -> None:
        self._backend = backend
        self._analyzer = analyzer or Analyzer()
        self._bloom = BloomFilter()
        self._lease_s = lease_s
        self._keeps_history = keeps_history
        self._lock = asyncio.Lock()
        self._is_closed = False
        self._claimed: set[int] = set()  # jobs that it may hold
        self._caches = SnapshotCaches()
        # Set until the first commit with documents: before that, another process may choose another embedder.
        self._embedder: tuple[str, int] | None = None
        self._find_requests = replies.RequestCoalescer(self._find)
        self._keep_requests = replies.RequestCoalescer(self._keep)

    @cached_property
    def _owner(self) -> str:
        return jobs.new_owner()  # reading needs no owner

    @property
    def conversations(self) -> RelationalConversations:
        """The conversations in this database."""
        return RelationalConversations(self._read, self._write, self._backend)

    @property
    def edits(self) -> RelationalEdits:
        """The edits in this database."""
        return RelationalEdits(self._read)

    @property
    def history(self) -> RelationalHistory:
        """The earlier versions in this database."""
        return RelationalHistory(self._read, self._write, self._backend, self._apply, self._keeps_history)

    def worker_ledger(self) -> jobs.RelationalLedger:
        """Return what the workers of this index have spent."""
        return jobs.RelationalLedger(self._write, self._owner, self._backend.clock_s(), self._lease_s)

    @property
    def archives(self) -> archive.RelationalArchive:
        """What makes archives of this database."""
        return archive.RelationalArchive(self._backend)

    async def prepare(self, *, any_tokenizer: bool = False) -> None:
        """Create or migrate the tables; must be called once, before anything else.

        `any_tokenizer` opens an index whose full text was built with another tokenizer, in order to rebuild it.
        """
        if await self._read(schema_number) != SCHEMA:  # else opening writes nothing
            try:
                await self._run(lambda connection: create_or_migrate(connection, self._backend, self._analyzer))
            except Unavailable as error:
                cause = error
                await self._read(lambda connection: explain_failed_migration(connection, cause))
                raise
        if not any_tokenizer:
            await self._read(lambda connection: check_tokenizer(connection, self._analyzer.identity))

    async def exists(self) -> bool:
        """Return whether there is an index in the database, of any version."""
        return bool(await self._read(schema_number))

    async def identity(self) -> str:
        """Return what tells this index from all others, "" for one made before indexes had identities."""
        return await self._read(lambda connection: read_meta(connection, "identity")) or ""

    async def copy_to(self, target: "RelationalStore") -> int:
        """Copy this index to where there is none, completely or not at all; return how many rows.

        Raises InvalidInput if there is anything, and Mismatch if this index has another schema: it is only read.
        """

        def copy() -> int:
            with self._backend.reading() as source, target._backend.writing() as connection:
                _check_copied(schema_number(source))
                archive.check_empty(connection)
                create_or_migrate(connection, target._backend, self._analyzer)
                return archive.copy_rows(source, connection)

        return await finish_in_thread(copy)

    async def commit(self, delta: Delta) -> CommitResult:
        at = (delta.at or datetime.now(UTC)).astimezone(UTC)
        committed = await self._write(lambda connection: self._commit(connection, delta, at))
        if delta.publish or delta.enqueue:
            self._embedder = None
        self._bloom.finish(committed.revision)
        published, failed = (document.job for document in delta.publish), (failure.job for failure in delta.fail)
        self._claimed.difference_update(delta.remove_claimed, published, failed)
        return committed

    @asynccontextmanager
    async def view(self, allowed: Filter | None = None) -> AsyncIterator[ReadView]:
        allowed = allowed or Filter()
        self._check_open()
        async with in_thread(self._backend.viewing(), lambda connection: self._open_view(connection, allowed)) as view:
            yield view

    async def claim_jobs(self, limit: int) -> list[Job]:
        def claim(connection: Connection) -> list[Job]:
            now_s = self._backend.clock_s()
            claimed = jobs.claim(connection, limit, owner=self._owner, now_s=now_s, until_s=now_s + self._lease_s)
            self._claimed.update(job.id for job in claimed)
            return claimed

        return await self._write(claim)

    async def update_jobs(self, status: DocumentStatus, job_ids: Sequence[int] | None = None) -> set[int]:
        claimed = self._claimed.copy() if job_ids is None else self._claimed.intersection(job_ids)
        if not claimed:
            return set()
        own_jobs = await self._write(
            lambda connection: jobs.update(
                connection, status, claimed, owner=self._owner, until_s=self._backend.clock_s() + self._lease_s
            )
        )
        self._claimed -= claimed if status is DocumentStatus.QUEUED else claimed - own_jobs
        return own_jobs

    @asynccontextmanager
    async def derivation_lease(self) -> AsyncIterator[bool]:
        def acquire(connection: Connection) -> bool:
            now_s = self._now_s(connection)
            until_s = now_s + self._lease_s
            return jobs.acquire_derivation_lease(connection, self._owner, now_s=now_s, until_s=until_s)

        is_held: bool | None = None  # unknown: a cancelled acquire may still have succeeded
        try:
            is_held = await self._write(acquire)
            yield is_held
        finally:
            if is_held is not False:
                release = self._write(lambda connection: jobs.release_derivation_lease(connection, self._owner))
                with suppress(Busy):  # the lease will end by itself
                    await asyncio.shield(release)

    async def renew_leases(self) -> float:
        await self._write(
            lambda connection: jobs.renew(connection, self._owner, self._now_s(connection) + self._lease_s)
        )
        return self._lease_s / RENEWALS_PER_LEASE

    async def find_replies(self, input_hashes: Sequence[str]) -> dict[str, str]:
        return await self._find_requests.submit(input_hashes)

    async def record_call(self, usage: Sequence[UsageRow], reply: CallReply | None = None) -> None:
        await self._keep_requests.submit((reply, usage))

    async def facts_revision(self) -> int:
        return await self._read(lambda connection: read_number(connection, replies.FACTS))

    async def usage(self, since: str = "", until: str = "") -> list[UsageRow]:
        return await self._read(lambda connection: replies.read_usage(connection, since, until))

    async def summary_tasks(self, owners: Sequence[SummaryTarget]) -> list[SummaryTask]:
        return await self._read(lambda connection: summaries.summary_tasks(connection, owners))

    async def texts_without_vector(self, model: str, limit: int) -> dict[str, str]:
        return await self._read(lambda connection: vectors.stale_texts(connection, model, limit))

    async def set_embedder(self, identity: str, dimension: int) -> None:
        if not await self._read(lambda connection: vectors.has_model(connection, identity, dimension)):
            await self._write(lambda connection: vectors.take_model(connection, identity, dimension))
        self._embedder = identity, dimension

    @asynccontextmanager
    async def reembedding(self, identity: str, dimension: int) -> AsyncIterator[None]:
        def finish(connection: Connection) -> None:
            if vector_writes.finish_model(connection, identity):
                revision = read_number(connection, "revision")
                restarted = entities.restart_synonyms(connection, revision)
                change_log.log_synonyms(connection, self._backend, revision, restarted)

        await self._write(lambda connection: vector_writes.begin_model(connection, identity, dimension, "building"))
        yield
        await self._write(finish)
        self._embedder = None

    async def purge(self, *, text_only: bool = False) -> int:
        def purge(connection: Connection) -> int:
            replies.purge_usage(connection, self._backend, datetime.now(UTC).date())
            # A derivation finds out from the changes since its revision whether it is fresh, so these stay.
            revision, oldest = read_number(connection, "revision"), change_log.oldest_derivation(connection)
            change_log.forget_before(connection, revision if oldest is None else min(revision, oldest))
            is_reembedding = jobs.is_derivation_leased(connection, now_s=self._now_s(connection))  # perhaps
            return replies.purge(connection) + vector_writes.purge(connection, is_reembedding=is_reembedding)

        if text_only and not await self._read(segments.is_erasure_due):
            return 0
        n_dropped = 0 if text_only else await self._write(purge)
        await segments.empty_log(self._read, self._write, self._backend)
        return n_dropped

    async def verify(
        self, *, files_only: bool = False, facts_only: bool = False, losses_only: bool = False
    ) -> list[str]:
        if files_only:
            return await self._read(lambda connection: self._backend.damage(connection, is_quick=True))
        check = repair.fact_faults if facts_only else repair.losses if losses_only else verify.differences
        return await self._read(lambda connection: check(self._unfiltered(connection)))

    async def close(self) -> None:
        await self._find_requests.finish()
        await self._keep_requests.finish()
        self._is_closed = True
        if "_owner" in vars(self):  # it was needed: see above
            jobs.end_owner(self._owner)
        await finish_in_thread(self._backend.close)

    def _commit(self, connection: Connection, delta: Delta, at: datetime) -> CommitResult:
        if delta.publish or delta.remove or delta.remove_claimed or delta.edits or delta.undo or delta.moved:
            # Another process may have rebuilt full text with another tokenizer.
            check_tokenizer(connection, self._analyzer.identity)
        if self._embedder and (delta.publish or delta.enqueue):
            vectors.take_model(connection, *self._embedder)
        snapshot = replace(self._unfiltered(connection), keeps_history=self._keeps_history)
        return commit.apply(snapshot, self._bloom, delta, at)

    def _apply(self, connection: Connection, publish: Sequence[DocumentFacts], remove: Sequence[str]) -> CommitResult:
        """Publish and remove documents of a copy; the next commit of this store reads the index anew."""
        self._bloom = BloomFilter()
        delta = Delta(publish=publish, remove=remove)
        return commit.apply(self._unfiltered(connection), self._bloom, delta, datetime.now(UTC))

    def _unfiltered(self, connection: Connection) -> Snapshot:
        """Return a snapshot that shares nothing: inside a write transaction, or for a reader that trusts no cache."""
        return Snapshot(connection=connection, backend=self._backend, analyzer=self._analyzer, cache=SnapshotCache())

    def _open_view(self, connection: Connection, allowed: Filter) -> RelationalView:
        is_filtered = not allowed.is_empty()
        if is_filtered:
            filters.apply_filter(connection, self._backend, allowed)
        with self._backend.guard():
            schema, revision, nonce = change_log.schema_revision_and_nonce(connection)
        _check_schema(schema)
        snapshot = Snapshot(
            connection=connection,
            backend=self._backend,
            analyzer=self._analyzer,
            cache=self._caches.at(revision, nonce, allowed),
            is_filtered=is_filtered,
        )
        return RelationalView(snapshot, revision=revision, history_nonce=nonce)

    async def _find(self, requests: Sequence[Sequence[str]]) -> list[dict[str, str]]:
        input_hashes = list(dict.fromkeys(input_hash for hashes in requests for input_hash in hashes))
        payload_by_hash = await self._read(lambda connection: replies.read(connection, input_hashes))
        return [{h: payload_by_hash[h] for h in hashes if h in payload_by_hash} for hashes in requests]

    async def _keep(self, requests: Sequence[tuple[CallReply | None, Sequence[UsageRow]]]) -> Sequence[None]:
        def keep(connection: Connection) -> None:
            replies.keep(connection, self._backend, [reply for reply, _ in requests if reply is not None])
            replies.add_usage(connection, self._backend, [row for _, rows in requests for row in rows])

        await self._write(keep)
        return [None] * len(requests)

    async def _read(self, read: Callable[[Connection], T]) -> T:
        def run() -> T:
            with self._backend.reading() as connection:
                return read(connection)

        return await finish_in_thread(run)

    async def _write(self, change: Callable[[Connection], T]) -> T:
        def checked(connection: Connection) -> T:
            with remembered_meta(connection):
                _check_schema(read_number(connection, "schema"))
                return change(connection)

        self._check_open()
        return await self._run(checked)

    async def _run(self, change: Callable[[Connection], T]) -> T:
        def run() -> T:
            with self._backend.writing() as connection:
                return change(connection)

        async with self._lock:
            return await finish_in_thread(run)

    def _now_s(self, connection: Connection) -> float:
        return connection.execute(select(self._backend.clock_s())).scalar_one()

    def _check_open(self) -> None:
        if self._is_closed:
            raise Unavailable(
                "The index has been closed.", remedy="Open it again: `async with quipu.open(PATH) as kb`."
            )


def create_or_migrate(connection: Connection, backend: Backend, analyzer: Analyzer) -> None:
    """Create the tables of a new index, or migrate an index of an older version.

    Raises Mismatch for the index of a newer version, and Corrupt for a database that is not an index.
    """
    if not inspect(connection).get_table_names():
        backend.create_tables(connection, s.metadata)
        write_meta(connection, "schema", SCHEMA)
        write_meta(connection, "tokenizer", analyzer.identity)
        write_meta(connection, "identity", uuid.uuid4().hex)
        return
    number = schema_number(connection)
    if not number:
        raise Corrupt("The database has other tables and is not a Quipu index.", remedy="Choose another folder.")
    migrate(connection, analyzer, number)


def _check_copied(number: int) -> None:
    if number != SCHEMA:
        raise Mismatch(
            f"The index has schema {number}; one with schema {SCHEMA} can be copied, and a copy only reads it.",
            remedy="Run `quipu --index FROM status` first, which migrates an older index."
            if number < SCHEMA
            else "Upgrade Quipu: pip install -U quipu-rag",
        )


def _check_schema(number: int) -> None:
    """Raise Mismatch if another version of Quipu has migrated the index since this store was opened."""
    if number != SCHEMA:
        raise Mismatch(
            f"Another version of Quipu migrated the index from schema {SCHEMA} to {number} while it was open.",
            remedy="Stop this process and start it with that version: pip install -U quipu-rag",
        )
