"""Recorded graphs: what another system, or a model before, has read out of documents."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from quipu.model.cluster import Finding
from quipu.model.document import SourceDocument
from quipu.model.extraction import ExtractedClaim, ExtractedEntity, ExtractedRelation


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedClaim:
    """A claim, and the words of the document it was read from, "" where these are not recorded."""

    claim: ExtractedClaim
    quote: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedExtraction:
    """What is recorded of one document; where a name stands in it is not."""

    document: str
    entities: tuple[ExtractedEntity, ...] = ()
    relations: tuple[ExtractedRelation, ...] = ()
    claims: tuple[ImportedClaim, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedCommunity:
    """A community by the names of its entities; `parent` is the id of the one that holds it, "" at level 0.

    `where` is the file and line it stands in.
    """

    id: str
    level: int
    parent: str = ""
    entities: tuple[str, ...] = ()
    where: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedReport:
    """What is written of a community; `rating` from 0 to 10."""

    community: str
    title: str
    summary: str
    findings: tuple[Finding, ...] = ()
    rating: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedGraph:
    """Documents with what is recorded of them, by id; perhaps communities and their reports.

    `identity` changes with anything that is recorded. `left_out` says where something was that cannot be taken over.
    """

    identity: str
    documents: tuple[SourceDocument, ...] = ()
    recordings: Mapping[str, ImportedExtraction] = field(default_factory=dict)
    communities: tuple[ImportedCommunity, ...] = ()
    reports: tuple[ImportedReport, ...] = ()
    left_out: tuple[str, ...] = ()
