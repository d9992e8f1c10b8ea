"""The graph: chunks, what each chunk says (mentions: facts), and the entities and relations folded from them."""

from collections.abc import Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A passage of one document: characters [start, end) of the document's text.

    `header` is the header row of the table the chunk begins in, where that row stands in an earlier chunk.
    `text_hash` identifies the text, `input_hash` all an extractor sees (text, title, headings, header, extractor).
    `error` is not empty where extraction failed.
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
    """What one chunk says about one entity. [start, end) is the first occurrence in the chunk, or (0, 0)."""

    key: str
    surface: str
    type: str
    description: str = ""
    start: int = 0
    end: int = 0
    is_definition: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationMention:
    """What one chunk says about two entities together. `weight` is kept to three decimals."""

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
    """What one chunk alleges or reports of the entity `subject`, and of the entity `object` where one is named.

    `status` ("true", "false", "suspected") and `dates` are as the text has them, "" where it does not say.
    """

    subject: str
    object: str = ""
    type: str = ""
    status: str = ""
    dates: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """The fold of an entity's mentions (and edits): what the whole index says about one name."""

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
    """A relation met at one of its ends: what it is ranked by, without what is said of it; `source < target`.

    `degree_sum` is how many relations its two ends have.
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
    """A claim as a view shows it: what one chunk alleges or reports of `subject`, and of `object` if not "".

    Claims are not folded: each stands for itself, and is no truer than its chunk.
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


def chunk_text(title: str, header: str, text: str) -> str:
    """Return the text by which a chunk is found: its document's title, its table's header, then its words."""
    return "\n".join(part for part in (title, header, text) if part)


def entity_text(name: str, description: str) -> str:
    """Return the text whose vector stands for an entity: its name, then its description."""
    return f"{name}\n{description}" if description else name


def relation_text(keywords: Sequence[str], source: str, target: str, description: str) -> str:
    """Return the text whose vector stands for a relation: keywords, both keys, description.

    Keys, not display names: a hub that changes its most frequent spelling must not change all its relations.
    """
    words = ", ".join(keywords)
    return f"{words}\n{source}\n{target}\n{description}"


def claim_title(claim: Claim) -> str:
    """Return the line a claim stands under: who it is about, then its type, status and dates as far as they are known.

    As in "Genoa — Acre (arson, suspected, 1258)".
    """
    names = " — ".join(name for name in (claim.subject_name, claim.object_name) if name)
    told = ", ".join(part for part in (claim.type, claim.status, claim.dates) if part)
    return f"{names} ({told})" if told else names


def claim_text(claim: Claim) -> str:
    """Return a claim as it is shown: its title, then what is claimed."""
    return f"{claim_title(claim)}\n{claim.description}"
