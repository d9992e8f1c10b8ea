"""The graph: chunks, their mentions (facts), and the fold that makes entities and relations of the mentions.

The fold combines all mentions of one entity or relation into one value, independent of their order. `IndexCounts`
counts what an index has of each.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from quipu.model.document import DocumentStatus
from quipu.model.ids import digest

UNKNOWN_TYPE = "Unknown"
OTHER_TYPE = "Other"
ENTITY_TYPES = (
    "Person",
    "Creature",
    "Organization",
    "Location",
    "Event",
    "Concept",
    "Method",
    "Content",
    "Data",
    "Artifact",
    "NaturalObject",
    OTHER_TYPE,
)

MAX_DESCRIPTIONS = 6
MAX_DESCRIPTION_CHARS = 1_200
MAX_RELATION_KEYWORDS = 8
NO_DESCRIPTION = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A passage of one document: characters [start, end) of the document's text.

    `header` is the header row of the table in which the chunk begins, if that row is in an earlier chunk. `text_hash`
    identifies the text; `input_hash` identifies everything the extractor reads (text, title, headings, header) and the
    extractor. `error` is "" unless extraction failed.
    """

    id: str
    document_id: str
    title: str
    ordinal: int
    text: str
    start: int
    end: int
    n_tokens: int
    text_hash: str
    input_hash: str = ""
    headings: tuple[str, ...] = ()
    page: int | None = None
    header: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityMention:
    """What one chunk says about one entity. [start, end) is the first occurrence in the chunk, or (0, 0).

    `surface` is the name as the chunk spells it.
    """

    key: str
    surface: str
    type: str
    description: str = ""
    start: int = 0
    end: int = 0
    is_definition: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationMention:
    """What one chunk says about the relation of two entities (keys). `weight` is stored with three decimals."""

    source: str
    target: str
    keywords: tuple[str, ...] = ()
    description: str = ""
    weight: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AliasMention:
    """A chunk states that the key `alias` also names the entity `key`, as in "World Health Organization (WHO)"."""

    key: str
    alias: str
    surface: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimMention:
    """What one chunk claims about the entity `subject` and, unless it is "", the entity `object` (keys).

    `status` ("true", "false", "suspected") and `dates` are as the text gives them, "" if it does not.
    """

    subject: str
    object: str = ""
    type: str = ""
    status: str = ""
    dates: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """The fold of an entity's mentions (and edits). `degree` is the number of its relations."""

    key: str
    name: str
    type: str
    description: str
    n_mentions: int
    n_chunks: int
    degree: int
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """The fold of the mentions of an unordered pair of entities; `source < target` as keys."""

    id: str
    source: str
    target: str
    source_name: str
    target_name: str
    keywords: tuple[str, ...]
    description: str
    weight: float
    n_mentions: int
    n_chunks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentRelation:
    """A relation of a given entity with the values that rank it, but without its text; `source < target` as keys.

    `degree_sum` is the sum of the degrees of both ends.
    """

    id: str
    source: str
    target: str
    source_name: str
    target_name: str
    weight: float
    degree_sum: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A claim of one chunk about the entity `subject` and, unless it is "", the entity `object` (keys).

    Claims are not folded: each comes from exactly one chunk.
    """

    id: str
    chunk_id: str
    subject: str
    object: str
    subject_name: str
    object_name: str
    type: str
    status: str
    dates: str
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DatedStatement:
    """What a document says of two entities (their names), and since when and until when it holds.

    `text` is its sentence at the characters [start, end) of the document, or what was read from the chunk there.
    `differs_in` is what alone distinguishes it from a sentence of another document: "name" (of `other`), "negation",
    "number" or "status" (of a claim); empty where no sentence has the same words.
    """

    entity: str
    other: str
    text: str
    document_id: str
    title: str
    chunk_id: str
    start: int
    end: int
    holds_from: str
    holds_until: str = ""
    differs_in: tuple[str, ...] = ()


def chunk_text(title: str, header: str, text: str) -> str:
    """Return the text of a chunk that is searched and embedded: document title, table header, chunk text."""
    return "\n".join(part for part in (title, header, text) if part)


def entity_text(name: str, description: str) -> str:
    """Return the text of an entity that is embedded: its name, then its description."""
    return f"{name}\n{description}" if description else name


def relation_text(keywords: Sequence[str], source: str, target: str, description: str) -> str:
    """Return the text of a relation that is embedded: keywords, both entity keys, description.

    It uses keys, not display names, so that a new most frequent spelling of an entity does not change its relations.
    """
    return f"{', '.join(keywords)}\n{source}\n{target}\n{description}"


def claim_title(claim: Claim) -> str:
    """Return the names a claim is about, then its type, status and dates if known.

    Example: "Genoa — Acre (arson, suspected, 1258)".
    """
    names = " — ".join(name for name in (claim.subject_name, claim.object_name) if name)
    details = ", ".join(part for part in (claim.type, claim.status, claim.dates) if part)
    return f"{names} ({details})" if details else names


def claim_text(claim: Claim) -> str:
    """Return a claim as shown to models and users: its title, then its description."""
    return f"{claim_title(claim)}\n{claim.description}"


def display_name(counts: Mapping[str, int]) -> str:
    """Return the most frequent spelling of a name. Equal counts are ordered by text."""
    return min(counts, key=lambda surface: (-counts[surface], surface))


def most_common_type(counts: Mapping[str, int]) -> str:
    """Return the type that most mentions give. A specific type beats `Other`, and `Other` beats `Unknown`."""
    vague_rank = {UNKNOWN_TYPE: 2, OTHER_TYPE: 1}
    return min(counts, key=lambda type_name: (vague_rank.get(type_name, 0), -counts[type_name], type_name))


def description_rank(description: str, *, is_definition: bool = False) -> int:
    """Return the rank of a description: definitions first, then by digest. An empty description has rank -1.

    The rank depends on the words alone. A new description therefore rarely displaces one of the first few, and the
    text, summary and vector of an entity with many mentions stay stable while documents are added and removed.
    """
    if not description:
        return NO_DESCRIPTION
    return int(digest(description)[:15], 16) | (0 if is_definition else 1 << 61)


def distinct_descriptions(ranked: Sequence[tuple[int, str]]) -> list[str]:
    """Return the distinct descriptions in order of rank. `ranked` are (rank, description) pairs in any order."""
    text_by_rank = {rank: text for rank, text in ranked if rank != NO_DESCRIPTION}
    return [text_by_rank[rank] for rank in sorted(text_by_rank)]


def join_descriptions(descriptions: Iterable[str]) -> str:
    """Return the first descriptions that fit the limits, one per line and without duplicates.

    The limits are MAX_DESCRIPTIONS and MAX_DESCRIPTION_CHARS. `descriptions` are in order of rank.
    """
    return "\n".join(_fitting(descriptions))


def needs_summary(descriptions: Sequence[str]) -> bool:
    """Return whether `join_descriptions` would omit some of these descriptions, given in order of rank.

    The first MAX_DESCRIPTIONS + 1 descriptions are enough to decide. A text that occurs twice, once as a definition,
    may count as omitted although the join contains it.
    """
    if len(descriptions) > MAX_DESCRIPTIONS:
        return True
    return len(descriptions) > 1 and not set(descriptions) <= set(_fitting(descriptions))


def descriptions_hash(descriptions: Iterable[str]) -> str:
    """Return a digest of all descriptions of an entity or relation, given in order of rank."""
    return digest("descriptions", *descriptions)


def _fitting(descriptions: Iterable[str]) -> list[str]:
    lines: list[str] = []
    n_chars_free = MAX_DESCRIPTION_CHARS
    for description in islice(descriptions, MAX_DESCRIPTIONS):
        if lines and len(description) > n_chars_free:
            break
        if description not in lines:
            lines.append(description)
            n_chars_free -= len(description)
    return lines


def top_keywords(counts: Mapping[str, int]) -> tuple[str, ...]:
    """Return the MAX_RELATION_KEYWORDS most frequent keywords of a relation. Equal counts are ordered by text."""
    return tuple(sorted(counts, key=lambda keyword: (-counts[keyword], keyword))[:MAX_RELATION_KEYWORDS])


MAX_WEIGHT = 1e9  # of one relation in one text: a sum over millions of texts is still a 64-bit number


def weight_to_thousandths(weight: float) -> int:
    """Return a weight in thousandths. Integer sums are exact in any order."""
    return round(weight * 1000)


def thousandths_to_weight(total: int) -> float:
    """Return the weight for a sum of thousandths."""
    return total / 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexCounts:
    """What the index consists of, and the work that waits. Values that were not requested are 0 or empty.

    `jobs` maps a status to its number of jobs. `n_unsummarised` entities and relations have more descriptions than are
    shown, and no current summary. `extractors` maps the description of an extractor to the number of live documents it
    read; the description is "" if it was not recorded. `embedder` is the identity and dimension of the live embedder,
    None if none is recorded yet. `schema` is the version of the database's tables. `database_bytes` is the size of the
    tables that are not in a file of the index.
    """

    documents: int = 0
    chunks: int = 0
    entities: int = 0
    relations: int = 0
    mentions: int = 0
    links: int = 0
    vectors: int = 0
    replies: int = 0
    jobs: Mapping[str, int] = field(default_factory=dict)
    stale_vectors: int = 0
    n_unsummarised: int = 0
    extractors: Mapping[str, int] = field(default_factory=dict)
    embedder: tuple[str, int] | None = None
    schema: int = 0
    database_bytes: int = 0

    @property
    def vector_dimension(self) -> int:
        """The length of the vectors of the live embedder, 0 if there are none."""
        return self.embedder[1] if self.embedder is not None else 0

    @property
    def n_waiting(self) -> int:
        """The number of documents that are queued or running: jobs that are neither failed nor partial."""
        return sum(
            n for status, n in self.jobs.items() if status not in (DocumentStatus.FAILED, DocumentStatus.PARTIAL)
        )
