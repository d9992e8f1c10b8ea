"""Imported graphs: entities, relations, claims and communities that another system extracted from documents."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from quipu.model.cluster import Finding
from quipu.model.document import SourceDocument
from quipu.model.extraction import ExtractedClaim, ExtractedEntity, ExtractedRelation
from quipu.model.ids import ADDED_LATER


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedClaim:
    """A claim, and the quote of the document it is based on, "" if it was not recorded."""

    claim: ExtractedClaim
    quote: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedChunk:
    """What was extracted from one chunk of another system. `text` is a passage of the document."""

    text: str
    entities: tuple[ExtractedEntity, ...] = ()
    relations: tuple[ExtractedRelation, ...] = ()
    claims: tuple[ImportedClaim, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedExtraction:
    """What was extracted from one document, without the positions of the names in its text.

    If the other system recorded which of its chunks each part comes from, `chunks` are these chunks in order, and what
    belongs to a chunk is in the chunk only.
    """

    document: str
    entities: tuple[ExtractedEntity, ...] = ()
    relations: tuple[ExtractedRelation, ...] = ()
    claims: tuple[ImportedClaim, ...] = ()
    chunks: tuple[ImportedChunk, ...] = field(default=(), metadata={ADDED_LATER: True})

    @property
    def parts(self) -> tuple["ImportedExtraction | ImportedChunk", ...]:
        """The extraction of the document as a whole, then that of each chunk."""
        return (self, *self.chunks)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedCommunity:
    """A community, given by the names of its entities. `parent` is the community that contains it, "" at level 0.

    `location` is the file and line it was read from.
    """

    id: str
    level: int
    parent: str = ""
    entities: tuple[str, ...] = ()
    location: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedReport:
    """The report on a community. `rating` is from 0 to 10."""

    community: str
    title: str
    summary: str
    findings: tuple[Finding, ...] = ()
    rating: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedGraph:
    """Documents, their extractions by document id, and optionally communities and their reports.

    `identity` changes if any of the contents change. `omissions` are messages about records that cannot be imported.
    `textless` are entities and relations that no document contains, by the name of the graph that they come from.
    """

    identity: str
    documents: tuple[SourceDocument, ...] = ()
    extractions: Mapping[str, ImportedExtraction] = field(default_factory=dict)
    communities: tuple[ImportedCommunity, ...] = ()
    reports: tuple[ImportedReport, ...] = ()
    omissions: tuple[str, ...] = ()
    textless: Mapping[str, ImportedChunk] = field(default_factory=dict)

    def size(self) -> "ImportedGraphSize":
        """Count what was extracted. Names are counted as written; a relation is counted once for both directions."""
        parts = [part for recording in self.extractions.values() for part in recording.parts]
        ends = [(relation.source, relation.target) for part in parts for relation in part.relations]
        named = {entity.name for part in parts for entity in part.entities}
        return ImportedGraphSize(
            n_entities=len(named.union(*ends)),
            n_relations=len({frozenset(pair) for pair in ends}),
            n_claims=sum(len(part.claims) for part in parts),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedGraphSize:
    """How many entities, relations and claims an imported graph has."""

    n_entities: int
    n_relations: int
    n_claims: int
