"""A commit: how a Delta becomes rows, from top to bottom, in one transaction."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, Table, delete, select

from quipu.errors import InvalidDelta
from quipu.model.cluster import Hierarchy, Partition
from quipu.model.delta import CommitResult, Delta, DocumentFacts
from quipu.model.derivation import NAMES, REPORTS, SENTENCES, SYNONYMS
from quipu.model.summary import Summary
from quipu.ports.store import VectorSpace
from quipu.stores.relational import (
    change_log,
    chunks,
    cluster_writes,
    conversations,
    documents,
    edits,
    entities,
    fold,
    history,
    jobs,
    mentions,
    repair,
    replies,
    segments,
    summaries,
    text_index,
    vector_writes,
    verify,
)
from quipu.stores.relational import schema as s
from quipu.stores.relational.change_log import CommitStamp
from quipu.stores.relational.documents import ChunkChanges
from quipu.stores.relational.edits import EditChanges
from quipu.stores.relational.fold import FoldChanges
from quipu.stores.relational.mentions import MentionChanges
from quipu.stores.relational.snapshot import BloomFilter, Snapshot
from quipu.stores.relational.sql import Backend, ByValues, next_rid, read_number, to_json, write_meta
from quipu.stores.relational.vector_writes import VectorChanges

_HIERARCHIES = {"communities": Hierarchy.COMMUNITIES, "hierarchy": Hierarchy.AGGREGATES}
_EMBEDDED: dict[str, tuple[VectorSpace, Table]] = {
    NAMES: (VectorSpace.NAME, s.entity_name),
    SENTENCES: (VectorSpace.SENTENCE, s.sentence),
}
_k, _c = s.cluster.c, s.chunk.c
_DOCUMENTS = ByValues(select(s.document), s.document.c.id)
_TEXT_HASHES = ByValues(select(_c.document, _c.text_hash).order_by(_c.document, _c.ordinal), _c.document)


@dataclass(frozen=True, slots=True)
class FactChanges:
    """What a commit changed: chunks, then their mentions, then the entities and relations folded from these."""

    chunks: ChunkChanges
    mentions: MentionChanges
    fold: FoldChanges

    def name_uses(self) -> Counter[str]:
        """Return the change in how many entities and alias mentions use each name."""
        uses = self.mentions.aliases.copy()
        uses.update(new.key for new in self.mentions.new_entities.values())
        uses.subtract(self.fold.gone_keys)
        return uses

    def renamed_entities(self) -> set[int]:
        """Return the entities that came, went, or gained or lost an alias mention."""
        return {*self.mentions.new_entities, *self.fold.gone_rids, *self.mentions.aliased}


def apply(snapshot: Snapshot, bloom: BloomFilter, delta: Delta, at: datetime) -> CommitResult:
    """Apply a Delta inside the write transaction of `snapshot`: each phase uses the results of those before it.

    `at` is the time of the commit in UTC. Raises InvalidDelta if the change breaks the data model.
    """
    connection, backend, analyzer = snapshot.connection, snapshot.backend, snapshot.analyzer
    cancelled, n_retried = _requeue(connection, delta)
    removals = [*delta.remove, *jobs.documents_to_remove(connection, delta.remove_claimed)]
    if both := {document.id for document in delta.publish} & set(removals):
        raise InvalidDelta(f"One change publishes and removes the document {min(both)!r}.")
    revision = read_number(connection, "revision") + 1
    write_meta(connection, "revision", revision)
    bloom.begin(revision - 1)
    stamp = CommitStamp(revision, at)
    jobs.enqueue(connection, delta.enqueue, delta.enqueue_removal, now=stamp.second)
    publish, superseded = jobs.split_superseded(connection, delta.publish, delta.replies)

    chunk_changes = _write_documents(snapshot, publish, removals, stamp)
    edit_changes = _write_edits(snapshot, delta, chunk_changes, stamp.second)
    facts = _write_mentions(connection, backend, chunk_changes)
    if facts.chunks.outdated_documents:
        conversations.drop_answers(connection, facts.chunks.outdated_documents, revision)
    text_index.update(connection, analyzer, bloom, facts.chunks, facts.name_uses())
    segments.note_removed(connection, facts.chunks.n_unindexed, at_once=bool(removals))
    change_log.log_changes(connection, backend, revision, chunks=facts.chunks.rids(), entities=facts.renamed_entities())
    derived_vectors = _follow_facts(connection, backend, facts, revision)
    vector_writes.retarget(connection, facts.chunks.vectors | facts.fold.vectors | derived_vectors, revision)

    replies.record(connection, backend, delta.replies)
    if publish or removals or delta.edits or delta.undo or delta.moved:
        replies.drop_of_revision(connection, revision)
    _close_jobs(connection, backend, publish, removals)
    replies.drop_joint(connection, facts.chunks.retracting_documents)
    jobs.fail(connection, delta.fail)
    n_outdated = _write_summaries(connection, backend, delta.summaries, revision) if delta.summaries else 0
    n_outdated += _write_derivations(connection, backend, delta, revision)
    vector_writes.write(connection, delta.vectors)
    replies.add_usage(connection, backend, delta.usage)
    _rebuild(snapshot, bloom, delta, revision)
    return CommitResult(
        revision=revision,
        cancelled=cancelled,
        n_retried=n_retried,
        superseded=superseded,
        n_outdated=n_outdated,
        edits=edit_changes.new,
        undone=edit_changes.undone,
    )


def _rebuild(snapshot: Snapshot, bloom: BloomFilter, delta: Delta, revision: int) -> None:
    """Build again what the change asks for: full text with links, or everything."""
    if delta.rebuild_text:
        change_log.forget_before(snapshot.connection, revision)
        text_index.rebuild(snapshot.connection, snapshot.analyzer, bloom)
    if delta.repair:
        repair.rebuild(snapshot, bloom, revision)


def _requeue(connection: Connection, delta: Delta) -> tuple[tuple[str, ...], int]:
    """Cancel jobs and queue failed ones again; return the documents with a cancelled job, and the number of retries."""
    cancelled = jobs.cancel(connection, delta.cancel)
    replies.release(connection, cancelled)
    n_retried = jobs.retry(connection, delta.retry) if delta.retry is None or delta.retry else 0
    return tuple(cancelled), n_retried


def _write_documents(
    snapshot: Snapshot, publish: Sequence[DocumentFacts], removals: Sequence[str], stamp: CommitStamp
) -> ChunkChanges:
    """Publish and remove documents; first keep what they said, if history is kept."""
    ids = dict.fromkeys([*(document.id for document in publish), *removals])
    live = {row.id: row for row in _DOCUMENTS.rows(snapshot.connection, ids)}
    ended = _ending(snapshot.connection, publish, removals, live)
    if snapshot.keeps_history:
        history.keep(snapshot, ended, stamp.moment)
    return documents.write(snapshot.connection, publish, removals, live, replace(stamp, ended=ended))


def _ending(
    connection: Connection, publish: Sequence[DocumentFacts], removals: Sequence[str], live: Mapping[str, Row[Any]]
) -> dict[str, bool]:
    """Return the live documents whose version a commit ends, and whether it removes them.

    A version ends when its title, its metadata or the texts of its chunks change. A document that is only read again,
    by another model for example, says what it said.
    """
    hashes: dict[int, list[str]] = {}
    for row in _TEXT_HASHES.rows(connection, [live[document.id].rid for document in publish if document.id in live]):
        hashes.setdefault(row.document, []).append(row.text_hash)
    ended = {name: True for name in removals if name in live}
    for document in publish:
        old = live.get(document.id)
        if old is not None:
            before = old.title, old.metadata, hashes.get(old.rid, [])
            after = document.title, to_json(document.metadata), [facts.chunk.text_hash for facts in document.chunks]
            ended |= {document.id: False} if before != after else {}
    return ended


def _write_edits(snapshot: Snapshot, delta: Delta, chunk_changes: ChunkChanges, now: str) -> EditChanges:
    """Make and undo edits, and apply all that hold to what the changed chunks state."""
    changes_facts = chunk_changes.stated or chunk_changes.retracted_chunks or delta.undo or delta.moved
    if not delta.edits and not (changes_facts and next_rid(snapshot.connection, s.edit) > 1):
        return EditChanges()  # nothing that an edit may change, or there was never one
    return edits.write(snapshot, delta, chunk_changes, now)


def _write_mentions(connection: Connection, backend: Backend, chunk_changes: ChunkChanges) -> FactChanges:
    """Write the mentions in changed chunks, and fold them into entities and relations."""
    mention_changes = mentions.write(connection, chunk_changes.retracted_chunks, chunk_changes.stated)
    return FactChanges(chunk_changes, mention_changes, fold.refold(connection, backend, mention_changes))


def _follow_facts(connection: Connection, backend: Backend, facts: FactChanges, revision: int) -> VectorChanges:
    """Adapt names, sentences, questions, synonyms and clusters to changed facts; return which texts changed."""
    renamed, names = entities.follow_names(connection, facts.fold.name_by_rid, facts.fold.gone_rids, revision)
    sentences = chunks.drop_sentences_of_removed(connection, [chunk.rid for chunk in facts.chunks.removed])
    change_log.log_synonyms(connection, backend, revision, entities.drop_synonyms(connection, renamed))
    mentioned, forgotten = facts.mentions.entity_mentions, facts.mentions.entity_forgotten
    touched = cluster_writes.follow_mentions(connection, backend, mentioned, forgotten, facts.fold.gone_rids)
    cluster_writes.drop_relations(connection, touched.robbed)
    return names | sentences | text_index.write_questions(connection, facts.chunks) | touched.vectors


def _close_jobs(
    connection: Connection, backend: Backend, publish: Sequence[DocumentFacts], removals: Sequence[str]
) -> None:
    """Finish the jobs of published and removed documents, and delete the replies that nothing needs any more."""
    replies.drop_documents(connection, removals)
    uses = [(doc.id, facts.chunk.input_hash) for doc in publish for facts in doc.chunks if not facts.chunk.error]
    replies.use(connection, backend, uses)
    partial = [doc.job for doc in publish if doc.job is not None and any(f.chunk.error for f in doc.chunks)]
    complete = [doc.job for doc in publish if doc.job is not None and doc.job not in partial]
    jobs.finish(connection, complete, partial)
    jobs.delete_removals(connection, removals)


def _write_summaries(connection: Connection, backend: Backend, written: Sequence[Summary], revision: int) -> int:
    """Replace joined descriptions by summaries; return how many are of descriptions that changed meanwhile."""
    vectors, n_outdated = summaries.write(connection, written)
    cluster_writes.unsettle_summarised(connection, backend, [summary.target for summary in written])
    vector_writes.retarget(connection, vectors, revision)
    return n_outdated


def _write_derivations(connection: Connection, backend: Backend, delta: Delta, revision: int) -> int:
    """Write and drop derivations; return how many texts about clusters were made from outdated inputs.

    Sentences and synonyms are ignored unless their derivation is kept up to date.
    """
    broken = verify.broken_derivations(connection) if delta.repair else []
    lonely, vectors = _drop_derivations(connection, [*delta.drop, *broken], revision)
    change_log.write_derivation_records(connection, delta.derivations)
    if delta.partition is not None:
        robbed, dropped = cluster_writes.write_partition(connection, delta.partition)
        cluster_writes.drop_relations(connection, robbed)
        vectors |= dropped
    written, n_outdated = cluster_writes.write_reports(connection, delta.reports) if delta.reports else (vectors, 0)
    if delta.cluster_relations is not None:
        n_outdated += cluster_writes.write_relations(connection, delta.cluster_relations)
    vector_writes.retarget(connection, vectors | written, revision)
    change_log.log_synonyms(connection, backend, revision, lonely)
    if any(record.name == NAMES for record in delta.derivations):
        vector_writes.retarget(connection, entities.write_names(connection, revision), revision)
    if delta.sentences and change_log.is_derived(connection, SENTENCES):
        vector_writes.retarget(connection, chunks.write_sentences(connection, delta.sentences), revision)
    if delta.synonyms is not None and change_log.is_derived(connection, SYNONYMS):
        changed = entities.write_synonyms(connection, delta.synonyms, revision)
        change_log.log_synonyms(connection, backend, revision, changed)
    return n_outdated


def _drop_derivations(
    connection: Connection, names: Sequence[str], revision: int
) -> tuple[frozenset[int], VectorChanges]:
    """Drop derivations with all their rows; return the entities that lost synonyms, and which texts are gone.

    Synonyms are dropped together with names.
    """
    vectors = VectorChanges()
    if not names:
        return frozenset(), vectors
    names = [*names, SYNONYMS] if NAMES in names else names
    connection.execute(delete(s.derivation).where(s.derivation.c.name.in_(names)))
    for name in names:
        if name == REPORTS:  # of communities
            communities = select(_k.rid).where(_k.hierarchy == Hierarchy.COMMUNITIES.value)
            vectors |= cluster_writes.drop_reports(connection, connection.execute(communities).scalars().all())
        elif name in _HIERARCHIES:
            empty = Partition(hierarchy=_HIERARCHIES[name], clusters=(), revision=revision)
            vectors |= cluster_writes.write_partition(connection, empty)[1]
            relation = s.cluster_relation
            connection.execute(delete(relation).where(relation.c.source.not_in(select(_k.rid))))
        elif name in _EMBEDDED:
            vectors |= _drop_embedded(connection, *_EMBEDDED[name])
    if SENTENCES in names:
        chunks.restart_sentences(connection)
    return entities.restart_synonyms(connection, revision) if SYNONYMS in names else frozenset(), vectors


def _drop_embedded(connection: Connection, space: VectorSpace, owner: Table) -> VectorChanges:
    hashes = connection.execute(select(owner.c.vector_hash).distinct()).scalars().all()
    connection.execute(delete(owner))
    return VectorChanges(before={(space, text_hash) for text_hash in hashes})
