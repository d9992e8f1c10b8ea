"""A Delta: one change of facts, applied whole or not at all."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from quipu.model.cluster import ClusterRelationUpdate, ClusterReport, Partition
from quipu.model.derivation import DerivationRecord
from quipu.model.document import DocumentStatus, Metadata, SourceDocument
from quipu.model.graph import AliasMention, Chunk, ClaimMention, EntityMention, RelationMention
from quipu.model.summary import Summary
from quipu.model.usage import UsageRow


@dataclass(frozen=True, slots=True, kw_only=True)
class SynonymPair:
    """Two entities and the cosine of their names."""

    first: str
    second: str
    similarity: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SynonymUpdate:
    """The names that were compared with all others as of a revision, and the pairs this found.

    What has another name since then, or is gone, is left out when this is written. `anew` first drops every pair there
    is, so that all names are to be compared again; it comes alone.
    """

    revision: int = 0
    names: Sequence[str] = ()  # keys of entities
    pairs: Sequence[SynonymPair] = ()
    anew: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkSentences:
    """Where the sentences of a chunk begin and end in its text, in order; they replace those there are."""

    chunk: str
    spans: Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkFacts:
    """A chunk with everything it says. Whatever a mention is of must be among the entities.

    Where `chunk.error` is set, it is what could be read before the error: the chunk counts as failed all the same.
    """

    chunk: Chunk
    entities: tuple[EntityMention, ...] = ()
    relations: tuple[RelationMention, ...] = ()
    aliases: tuple[AliasMention, ...] = ()
    claims: tuple[ClaimMention, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFacts:
    """A whole document, published in place of any earlier version of it.

    `chunks` holds every chunk of the new version in order. `job` is the claim under which the work was done: where the
    job has been replaced since, the document is left as it is and reported as superseded.
    """

    id: str
    title: str
    content_hash: str
    chunks: tuple[ChunkFacts, ...]
    source: str = ""
    media_type: str = "text/plain"
    metadata: Metadata = field(default_factory=dict)
    job: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionReply:
    """An extractor's reply to one exact input, kept so that it is never asked for twice.

    `document_id` is "" where nothing is added, as with a sample: it is then kept until `purge`, or with its documents
    once they are added.
    `job` is the one it was made for: where that has been replaced since, the document is reported as superseded.
    """

    input_hash: str
    document_id: str
    payload: str
    job: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFailure:
    """A claimed job that could not be finished, and why."""

    job: int
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorRow:
    """The vector of one text under one model: `data` has shape [d], float16."""

    model: str
    text_hash: str
    data: npt.NDArray[np.float16]


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """One change, all or nothing. Parts are applied in the order of the fields.

    `remove` names documents, `remove_claimed` the jobs of claimed removals: one that has been replaced since, because
    the document was added again, removes nothing. `summaries` count only where they were made of what is described
    now. `drop` names derivations that are kept no longer: nothing of them stays. `usage` is added to what was counted
    before.
    """

    enqueue: Sequence[SourceDocument] = ()
    enqueue_removal: Sequence[str] = ()
    replies: Sequence[ExtractionReply] = ()
    publish: Sequence[DocumentFacts] = ()
    remove: Sequence[str] = ()
    remove_claimed: Sequence[int] = ()
    fail: Sequence[JobFailure] = ()
    summaries: Sequence[Summary] = ()
    partition: Partition | None = None
    reports: Sequence[ClusterReport] = ()
    cluster_relations: ClusterRelationUpdate | None = None
    drop: Sequence[str] = ()
    made: Sequence[DerivationRecord] = ()
    synonyms: SynonymUpdate | None = None
    sentences: Sequence[ChunkSentences] = ()
    vectors: Sequence[VectorRow] = ()
    usage: Sequence[UsageRow] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A claimed piece of queued work: a document to read, or one to remove (`source` is None)."""

    id: int
    document_id: str
    status: DocumentStatus
    source: SourceDocument | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitResult:
    """What a commit did: the new revision, and the documents whose job had been replaced meanwhile.

    `n_outdated` summaries were of descriptions that are others now, and were dropped.
    """

    revision: int
    superseded: tuple[str, ...] = ()
    n_outdated: int = 0
