"""Results: what the engine returns about finished work, the state of the index, and single objects in it."""

from dataclasses import dataclass

from quipu.model.cluster import Cluster, ClusterReport
from quipu.model.delta import ChunkFacts
from quipu.model.derivation import DerivationResult, DerivationState
from quipu.model.document import Document
from quipu.model.edit import RecordedEdit
from quipu.model.evidence import Scored
from quipu.model.graph import Chunk, Claim, DatedStatement, Entity, Relation
from quipu.model.markdown import markdown_table
from quipu.model.summary import SummaryFailure
from quipu.model.usage import USD, UsageRow

UNREAD = "in a format that is not read"  # a reason why files are skipped; they are counted by suffix

# The largest parts of the graph that one call returns.
MAX_PAGE = 1_000
MAX_HOPS = 5
MAX_NODES = 2_000
MAX_EDGES = 6_000
MAX_PATHS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class EnqueuedDocuments:
    """The ids of documents that were put into the queue: new ones, and those that replace an older version.

    `unchanged` documents are in the index already. `unreadable` are (id, error with remedy).
    """

    added: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    unreadable: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AddResult:
    """The result of adding documents.

    - `n_added`, `n_updated`, `n_unchanged` count the documents passed in; `n_resumed` counts documents that were
      queued before. Failed documents are in none of these counts; `failed` and `partial` list them with the remedy.
    - `n_extracted` chunks were read, `n_reused` replies came from the cache. `n_dropped` records of a model were
      dropped because the text or the ontology does not support them.
    - `skipped` are (reason, suffix, count) of files that are not documents; only files in a format that is not read
      are counted by suffix. `assumed_encodings` are (document, encoding) for texts that did not say their encoding.
      `warnings` are (document, warning) for documents with scanned pages that could not be read, or only unsurely.
    - `stopped` says why the work ended early (budget spent, model unavailable), "" if it did not. Then `n_waiting`
      documents stay queued, and everything that was paid for is kept.
    - `extractor` describes the configured extractor. `extractors` are (description, documents) for the whole index.
      `n_other_extractor` unchanged documents were read by another extractor or other settings: `other_extractors`.
    - `n_removed` counts interrupted removals that were completed.
    - `usage` is the cost of this call alone. `notes` are warnings, for example that a fallback model was used.
    """

    n_added: int = 0
    n_updated: int = 0
    n_unchanged: int = 0
    n_resumed: int = 0
    failed: tuple[Document, ...] = ()
    partial: tuple[Document, ...] = ()
    n_chunks: int = 0
    n_extracted: int = 0
    n_reused: int = 0
    n_embedded: int = 0
    skipped: tuple[tuple[str, str, int], ...] = ()
    assumed_encodings: tuple[tuple[str, str], ...] = ()
    warnings: tuple[tuple[str, str], ...] = ()
    n_summarised: int = 0
    summary_failures: tuple[SummaryFailure, ...] = ()
    extractor: str = ""
    seconds: float = 0.0
    stopped: str = ""
    n_waiting: int = 0
    usage: tuple[UsageRow, ...] = ()
    n_dropped: int = 0
    notes: tuple[str, ...] = ()
    n_other_extractor: int = 0
    other_extractors: tuple[str, ...] = ()
    extractors: tuple[tuple[str, int], ...] = ()
    derivations: tuple[DerivationResult, ...] = ()
    n_removed: int = 0

    def _repr_markdown_(self) -> str:
        """Return the counts, and a table of the failed and partly read documents, for a notebook."""
        counts = f"{self.n_added:,} added, {self.n_updated:,} updated, {self.n_unchanged:,} unchanged"
        documents = (*self.failed, *self.partial)
        failures = markdown_table(("document", "error"), [(document.id, document.error) for document in documents])
        return "\n\n".join(filter(None, (counts, failures if documents else "", self.stopped)))


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshResult:
    """The result of refreshing derivations: embedded texts, summaries, summary failures, and named derivations.

    `derivations` are the on-demand derivations that are kept or were requested, in the order of computation. `stopped`
    says why the refresh ended early, "" if it did not.
    """

    n_embedded: int = 0
    n_summarised: int = 0
    summary_failures: tuple[SummaryFailure, ...] = ()
    stopped: str = ""
    derivations: tuple[DerivationResult, ...] = ()
    usage: tuple[UsageRow, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether the refresh finished without a failure."""
        has_failure = any(derivation.failed or derivation.stopped for derivation in self.derivations)
        return not (self.stopped or self.summary_failures or has_failure)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveResult:
    """The result of removing documents: their ids, the refresh that followed, and whether history keeps their words."""

    removed: tuple[str, ...]
    refreshed: RefreshResult
    is_kept: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorResult:
    """What mirroring a folder did; in a dry run, what it would do, and `added` is None.

    `new` documents have no earlier version, `changed` files were read again, `n_unchanged` were not. `removed`
    documents have no file any more; those whose file moved are also in `renamed`, as (old id, new id).
    """

    folder: str
    n_unchanged: int
    new: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    added: AddResult | None = None

    @property
    def has_changes(self) -> bool:
        """Whether anything came, changed or went."""
        n_read = self.added.n_updated + len(self.added.failed) if self.added is not None else len(self.changed)
        return bool(self.new or self.removed or n_read)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovalPreview:
    """What removing documents takes away; nothing is removed yet.

    - `n_chunks` go with all they state, as do `n_claims`. Entities and relations that nothing else states go with them;
      others lose a part: `n_entities_changed`, `n_relations_changed`.
    - `n_clusters_changed` communities and aggregates contain such an entity. Their reports may quote what goes, so
      `n_reports` go at once; the refresh after a removal writes them again.
    - `n_replies` saved replies of models go: reading these documents again costs as much as at first.
    - `n_answers` of saved conversations may quote these documents, and lose their text.
    - `edits_lost` will lack their target, `edits_changed` change fewer chunks than before.
    - The lists name at most the number of entities, relations and reports that was asked for: entities with the most
      relations, relations with the largest weight, and reports as (id, title), ordered by id.
    """

    documents: tuple[str, ...]
    n_chunks: int
    n_claims: int
    n_entities: int
    n_entities_changed: int
    n_relations: int
    n_relations_changed: int
    n_clusters_changed: int
    n_reports: int
    n_replies: int
    n_answers: int = 0
    entities: tuple[Entity, ...] = ()
    entities_changed: tuple[Entity, ...] = ()
    relations: tuple[Relation, ...] = ()
    relations_changed: tuple[Relation, ...] = ()
    reports: tuple[tuple[str, str], ...] = ()
    edits_lost: tuple[RecordedEdit, ...] = ()
    edits_changed: tuple[RecordedEdit, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportResult:
    """The result of importing a graph: counts of documents, communities and reports, and the refresh that followed.

    `failed` are (document, reason) pairs. `unknown` are names in communities that no document contains. `omissions`
    are messages about records in the files that cannot be imported. `n_entities`, `n_relations` and `n_claims` are
    those of the graph. With `is_dry_run`, nothing was added, and the counts say what would be.
    """

    n_added: int
    n_updated: int
    n_unchanged: int
    refreshed: RefreshResult
    failed: tuple[tuple[str, str], ...] = ()
    n_chunks: int = 0
    n_communities: int = 0
    n_reports: int = 0
    unknown: tuple[str, ...] = ()
    omissions: tuple[str, ...] = ()
    seconds: float = 0.0
    n_entities: int = 0
    n_relations: int = 0
    n_claims: int = 0
    is_dry_run: bool = False
    usage: tuple[UsageRow, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexStatus:
    """The state of an index: its size, queued jobs, extractors, models and stale derivations.

    - `jobs` are (status, documents) pairs without zeros. `models` are (role, model) pairs of the configured models.
    - `extractor` describes the configured extractor. `extractors` are (description, documents) pairs of the extractors
      that read the live documents; the description is "" if it was not recorded.
    - `derivations` are first those that every index keeps, then those on demand, each after what it needs.
    - `embedder` is the embedder of the stored vectors. `other_embedder` is the configured one if it differs, else "".
      If it differs, vector search is unavailable until `quipu reembed`.
    - `n_questions_waiting` are questions of this open index that wait while others search.
    - `currency` is that of all costs.
    """

    path: str
    revision: int
    n_documents: int
    n_chunks: int
    n_entities: int
    n_relations: int
    n_mentions: int
    n_links: int
    n_vectors: int
    n_replies: int
    jobs: tuple[tuple[str, int], ...]
    stale: tuple[str, ...]
    extractor: str
    embedder: str
    dimension: int
    n_bytes: int
    schema: int
    models: tuple[tuple[str, str], ...] = ()
    extractors: tuple[tuple[str, int], ...] = ()
    derivations: tuple[DerivationState, ...] = ()
    other_embedder: str = ""
    n_questions_waiting: int = 0
    currency: str = USD

    def _repr_markdown_(self) -> str:
        """Return a table of the counts, for a notebook."""
        names = ("documents", "chunks", "entities", "relations", "vectors")
        return markdown_table(names, [[f"{getattr(self, f'n_{name}'):,}" for name in names]])


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """Chunks found by BM25 with their scores, and entities found by name.

    `snippets` are the characters [start, end) of each chunk's text that say most about the words, in the same order.
    """

    chunks: tuple[tuple[Scored, Chunk], ...]
    entities: tuple[Entity, ...]
    snippets: tuple[tuple[int, int], ...] = ()

    def _repr_markdown_(self) -> str:
        """Return a table of the chunks, best first, for a notebook."""
        rows = [(f"{hit.score:.2f}", chunk.document_id, chunk.text) for hit, chunk in self.chunks]
        return markdown_table(("score", "document", "passage"), rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievedPassage:
    """A passage that a strategy ranks for a question: the chunk, its document, its score and the reason for it."""

    chunk: Chunk
    document: Document
    score: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentDetails:
    """A document and its chunks in order; `copies` are the other documents with the same whole text."""

    document: Document
    chunks: tuple[Chunk, ...]
    copies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkPage:
    """A page of the chunks of a document, in order.

    `n_total` counts the chunks on all pages. `cursor` is the argument `after` of the next page, "" at the end.
    """

    chunks: tuple[Chunk, ...]
    n_total: int
    cursor: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityDetails:
    """An entity, its relations (largest weight first), its claims, and chunks with the number of occurrences.

    `differing` are what these chunks say of it in the same words but for a detail: groups, the newest first.
    """

    entity: Entity
    relations: tuple[Relation, ...]
    chunks: tuple[tuple[Chunk, int], ...]
    claims: tuple[Claim, ...] = ()
    differing: tuple[tuple[DatedStatement, ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationDetails:
    """A relation, chunks that state it, and, if documents differ, what these say of the pair, the newest first."""

    relation: Relation
    chunks: tuple[ChunkFacts, ...]
    statements: tuple[DatedStatement, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportDetails:
    """A cluster and its report, None if no report is written yet.

    `is_current` says whether the report describes the cluster's current contents. `entities` are those with the most
    relations. `chunks` are the chunks the report is based on. Other clusters are given by id and title ("" without a
    report): `ancestors` from the coarsest down, direct `children`, and `neighbours` with a description of the
    connection, largest weight first.
    """

    cluster: Cluster
    report: ClusterReport | None
    is_current: bool
    entities: tuple[Entity, ...]
    chunks: tuple[Chunk, ...]
    ancestors: tuple[tuple[str, str], ...] = ()
    children: tuple[tuple[str, str], ...] = ()
    neighbours: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityPage:
    """A page of entities, those with the most relations first; equal ones are ordered by key.

    `n_total` counts the entities on all pages. `cursor` is the argument `after` of the next page, "" at the end.
    """

    entities: tuple[Entity, ...]
    n_total: int
    cursor: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationPage:
    """A page of relations, the largest weight first; equal ones are ordered by id. Counts as in EntityPage."""

    relations: tuple[Relation, ...]
    n_total: int
    cursor: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighbourPage:
    """An entity and a page of its neighbours with their relation: the heaviest, then by key. Counts as EntityPage."""

    entity: Entity
    neighbours: tuple[tuple[Relation, Entity], ...]
    n_total: int
    cursor: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subgraph:
    """The entities near some entities, and the relations between them, within bounds.

    `entities` are ordered by their distance from the nearest given entity, then as they were chosen; `distances` are
    these distances, in the same order. `relations` come with the largest weight first. `n_more_entities` are within
    the distance but were left out, as far as the search came: it does not continue from an entity that it leaves out.
    `n_more_relations` between the entities were left out.
    """

    entities: tuple[Entity, ...]
    distances: tuple[int, ...]
    relations: tuple[Relation, ...]
    n_more_entities: int = 0
    n_more_relations: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityPath:
    """A path: entities in order, and the relation of each to the next one."""

    entities: tuple[Entity, ...]
    relations: tuple[Relation, ...]
