"""Delta: one change of the index, applied completely or not at all, and the values it consists of."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
import numpy.typing as npt

from quipu.model.cluster import ClusterRelationUpdate, ClusterReport, Partition
from quipu.model.derivation import DerivationRecord
from quipu.model.document import DocumentStatus, Metadata, SourceDocument
from quipu.model.edit import Edit
from quipu.model.graph import AliasMention, Chunk, ClaimMention, EntityMention, RelationMention
from quipu.model.summary import Summary
from quipu.model.usage import UsageRow


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkFacts:
    """A chunk and its mentions. Every entity that a relation, alias or claim names must be among `entities`.

    If `chunk.error` is set, the mentions are those read before the error, and the chunk counts as failed.
    """

    chunk: Chunk
    entities: tuple[EntityMention, ...] = ()
    relations: tuple[RelationMention, ...] = ()
    aliases: tuple[AliasMention, ...] = ()
    claims: tuple[ClaimMention, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFacts:
    """A complete document, which replaces any earlier version of it.

    `chunks` are all chunks of the new version, in order. `job` is the job that did the work. If that job has been
    replaced, the document is not changed and the commit reports it as superseded. `text` is the whole text, in which
    each chunk stands at its offsets, None if it is not known. `original` is the file, None if it is not to be kept.
    """

    id: str
    title: str
    content_hash: str
    chunks: tuple[ChunkFacts, ...]
    source: str = ""
    media_type: str = "text/plain"
    metadata: Metadata = field(default_factory=dict)
    job: int | None = None
    text: str | None = field(default=None, repr=False)
    original: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionReply:
    """An extractor's reply for one exact input, kept so that the same input is never sent again.

    `document_id` is "" for a sample that adds no document. Such a reply is kept until `purge`, or, once its text is
    added, until its document is removed. If `job` has been replaced, the commit reports the document as superseded.
    """

    input_hash: str
    document_id: str
    payload: str
    job: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFailure:
    """A claimed job that failed, and why. `is_final`: the same bytes would fail again, so they are not kept."""

    job: int
    error: str
    is_final: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorRow:
    """The vector of one text under one embedding model: `vector` has shape [d], float16."""

    model: str
    text_hash: str
    vector: npt.NDArray[np.float16]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkSentences:
    """The sentences of a chunk as (start, end) spans of its text, in order. They replace the existing ones."""

    chunk: str
    spans: Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SynonymPair:
    """Two entity keys and the cosine similarity of the entities' names."""

    first: str
    second: str
    similarity: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SynonymUpdate:
    """The result of comparing the names of the entities `names` (keys) with all names, as of `revision`.

    Entities that were removed or renamed after `revision` are skipped when the update is written. `reset` deletes all
    existing pairs, so that every name is compared again; such an update contains nothing else.
    """

    revision: int = 0
    names: Sequence[str] = ()
    pairs: Sequence[SynonymPair] = ()
    reset: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """One change, applied completely or not at all. The parts are applied in the order of the fields.

    `cancel` are documents whose queued, running and failed jobs are deleted; their live versions stay. `retry` are
    documents whose failed jobs are queued again, None for all. `remove` are document ids. `remove_claimed` are claimed
    removal jobs; a job that was replaced because its document was added again removes nothing. A summary is written
    only if its descriptions are still current. `drop` are names of derivations to delete with all their data. `usage`
    is added to the existing counts. `rebuild_text` builds full text and links again from the chunks, with the tokenizer
    of this version. `repair` builds all that the store derives from facts again, and drops derivations and vectors with
    damaged rows. `edits` hold from now on, after those of earlier commits. `undo` are the ids of edits that hold no
    longer; unknown ids, and those of edits that are undone already, are ignored. `moved` are pairs of ids, before and
    after: edits that name the first document name the second from then on. `at` is the time of the change, with its
    zone; None: now.
    """

    cancel: Sequence[str] = ()
    retry: Sequence[str] | None = ()
    enqueue: Sequence[SourceDocument] = ()
    enqueue_removal: Sequence[str] = ()
    replies: Sequence[ExtractionReply] = ()
    publish: Sequence[DocumentFacts] = ()
    remove: Sequence[str] = ()
    remove_claimed: Sequence[int] = ()
    edits: Sequence[Edit] = ()
    undo: Sequence[int] = ()
    moved: Sequence[tuple[str, str]] = ()
    fail: Sequence[JobFailure] = ()
    summaries: Sequence[Summary] = ()
    partition: Partition | None = None
    reports: Sequence[ClusterReport] = ()
    cluster_relations: ClusterRelationUpdate | None = None
    drop: Sequence[str] = ()
    derivations: Sequence[DerivationRecord] = ()
    synonyms: SynonymUpdate | None = None
    sentences: Sequence[ChunkSentences] = ()
    vectors: Sequence[VectorRow] = ()
    usage: Sequence[UsageRow] = ()
    rebuild_text: bool = False
    repair: bool = False
    at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A claimed unit of queued work: a document to add, or a document to remove (`source` is None)."""

    id: int
    document_id: str
    status: DocumentStatus
    source: SourceDocument | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitResult:
    """The result of a commit: the new revision, and the ids of documents whose job had been replaced.

    `cancelled` are the documents that had a job to cancel, and `n_retried` jobs were queued again. `n_outdated`
    summaries were discarded because their descriptions had changed. `edits` are the ids of the new edits, in the given
    order, and `undone` those of the edits that this commit has undone.
    """

    revision: int
    cancelled: tuple[str, ...] = ()
    n_retried: int = 0
    superseded: tuple[str, ...] = ()
    n_outdated: int = 0
    edits: tuple[int, ...] = ()
    undone: tuple[int, ...] = ()
