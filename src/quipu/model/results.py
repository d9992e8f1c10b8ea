"""Reports: what the engine tells a caller about work done, the state of the index, and one thing in it."""

from dataclasses import dataclass

from quipu.model.cluster import Cluster, ClusterReport
from quipu.model.delta import ChunkFacts
from quipu.model.derivation import DerivationResult, DerivationState
from quipu.model.document import Document
from quipu.model.evidence import Scored
from quipu.model.graph import Chunk, Claim, Entity, Relation
from quipu.model.summary import SummaryFailure
from quipu.model.usage import UsageRow


@dataclass(frozen=True, slots=True, kw_only=True)
class AddResult:
    """What adding documents did. `extractor` says what read them; `failed` tells what to do about each.

    `n_added`, `n_updated` and `n_unchanged` count documents handed in; `n_resumed` those that had been waiting from
    before. Failed documents are in none of them. `stopped` is why work ended before all was done, "" where it did not:
    the budget is spent, or a model is gone. Then `n_waiting` documents wait, and what was paid for is kept. `usage` is
    what models were asked and what it cost, by this
    piece of work alone. `n_dropped` records of a model were left out, since text or ontology do not bear them out.
    `notes` tell what a user should look at, though the work went on, as a model whose fallback stands in.
    `n_read_otherwise` of the unchanged documents were not read by `extractor`, or by other settings, but as
    `read_otherwise_by` has it. `readers` are who read the documents of the index, with how many each has read.
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
    skipped: tuple[tuple[str, int], ...] = ()  # (suffix, or what it is; files) inside folders, that are no documents
    n_summarised: int = 0
    unsummarised: tuple[SummaryFailure, ...] = ()
    extractor: str = ""
    seconds: float = 0.0
    stopped: str = ""
    n_waiting: int = 0
    usage: tuple[UsageRow, ...] = ()
    n_dropped: int = 0
    notes: tuple[str, ...] = ()
    n_read_otherwise: int = 0
    read_otherwise_by: tuple[str, ...] = ()
    readers: tuple[tuple[str, int], ...] = ()
    derivations: tuple[DerivationResult, ...] = ()
    n_removed: int = 0  # removals that had been cut short


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshResult:
    """What bringing the derivations up to date did: vectors computed, summaries written, summaries that failed.

    `derivations` are those made on demand that are kept or were asked for, in the order they were made. `stopped` is
    why it ended before all was done, "" where it did not. `usage` is what models were asked for it.
    """

    n_embedded: int = 0
    n_summarised: int = 0
    unsummarised: tuple[SummaryFailure, ...] = ()
    stopped: str = ""
    derivations: tuple[DerivationResult, ...] = ()
    usage: tuple[UsageRow, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether nothing is left to be done."""
        failed = any(each.failed or each.stopped for each in self.derivations)
        return not (self.stopped or self.unsummarised or failed)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveResult:
    """What removing documents did: their ids, and what was brought up to date after it."""

    removed: tuple[str, ...]
    refreshed: RefreshResult


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportResult:
    """What importing a recorded graph did: to documents, to communities and reports, and what was brought up to date.

    `failed` are (document, why); `unknown` are names in communities that no document has; `left_out` says where in the
    files something was that cannot be taken over.
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
    left_out: tuple[str, ...] = ()
    seconds: float = 0.0
    usage: tuple[UsageRow, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexStatus:
    """The state of an index: how much it holds, what waits, who reads it, what is stale.

    `extractor` is what is set now; `readers` are who read the documents there are, in words, with how many each has
    read, "" where that was not noted.
    `derivations` are those every index keeps, then those made on demand, in order of need. `models` are the language
    models that are set, by the work they are for. `embedder` is whose vectors the index holds; `other_embedder` is the
    one that is set where that is another, "" else: no question by vectors is answered until `quipu reembed`.
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
    jobs: tuple[tuple[str, int], ...]  # (status, documents), only where not zero
    stale: tuple[str, ...]
    extractor: str
    embedder: str
    dimension: int
    n_bytes: int
    schema: int
    models: tuple[tuple[str, str], ...] = ()  # (role, model)
    readers: tuple[tuple[str, int], ...] = ()
    derivations: tuple[DerivationState, ...] = ()
    other_embedder: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """Passages by BM25 with their scores, and entities by name."""

    chunks: tuple[tuple[Scored, Chunk], ...]
    entities: tuple[Entity, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentDetails:
    """A document and its chunks in order."""

    document: Document
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityDetails:
    """An entity, its relations (heaviest first), the chunks that name it with their counts (most first), its claims."""

    entity: Entity
    relations: tuple[Relation, ...]
    chunks: tuple[tuple[Chunk, int], ...]
    claims: tuple[Claim, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationDetails:
    """A relation and the chunks that state it."""

    relation: Relation
    chunks: tuple[ChunkFacts, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportDetails:
    """A community or an aggregate and what is written of it: `report` is None where nothing is, as yet.

    `is_current` says whether it is of what is in the group now. `entities` are those of it with the most relations,
    `chunks` those the report rests on. The groups around it are told by id and title ("" without a report): `above` it
    from the coarsest, directly `below` it, and `beside` it, with what connects them, the heaviest first.
    """

    cluster: Cluster
    report: ClusterReport | None
    is_current: bool
    entities: tuple[Entity, ...]
    chunks: tuple[Chunk, ...]
    above: tuple[tuple[str, str], ...] = ()
    below: tuple[tuple[str, str], ...] = ()
    beside: tuple[tuple[str, str, str], ...] = ()
