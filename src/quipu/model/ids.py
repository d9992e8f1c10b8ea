"""Ids and digests: every id is computed from content, never from order or time."""

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from hashlib import blake2b
from types import MappingProxyType

# Class names in `stable_repr`, where they differ from the names in this code: digests in existing indexes hold them.
ADDED_LATER = "added later"  # metadata of a field that came after indexes had digests of its class
_STABLE_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "ExtractedClaim": "FoundClaim",
        "ExtractedEntity": "FoundEntity",
        "ExtractedRelation": "FoundRelation",
        "ExtractionExample": "Example",
        "GlossaryTerm": "Term",
        "ImportedClaim": "RecordedClaim",
        "ImportedExtraction": "Recording",
    }
)


def digest(*parts: str) -> str:
    """Return 32 hex digits that identify the sequence of `parts` (BLAKE2b, 128 bits, each part length-prefixed)."""
    state = blake2b(digest_size=16)
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass")
        state.update(len(encoded).to_bytes(8, "little"))
        state.update(encoded)
    return state.hexdigest()


def digest_bytes(content: bytes) -> str:
    """Return 32 hex digits that identify `content` (BLAKE2b, 128 bits)."""
    return digest_parts([content])


def digest_parts(parts: Iterable[bytes]) -> str:
    """Return the digest of these bytes as one, with one part in memory at a time."""
    state = blake2b(digest_size=16)
    for part in parts:
        state.update(part)
    return state.hexdigest()


def stable_repr(value: object) -> str:
    """Return the `repr` of a value made of dataclasses and tuples, for use in a digest that indexes store.

    It does not change when a class is renamed, if the former name is in `_STABLE_NAMES`. Renaming a field changes it.
    A field with ADDED_LATER in its metadata is left out while it has its default.
    """
    if isinstance(value, tuple):
        parts = [stable_repr(part) for part in value]
        return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"
    if is_dataclass(value):
        name = type(value).__name__
        values = [(field, getattr(value, field.name)) for field in fields(value) if field.repr]
        written = [(f.name, v) for f, v in values if not (f.metadata.get(ADDED_LATER) and v == f.default)]
        parts = [f"{field_name}={stable_repr(v)}" for field_name, v in written]
        return f"{_STABLE_NAMES.get(name, name)}({', '.join(parts)})"
    return repr(value)


def chunk_id(document_id: str, text_hash: str, occurrence: int) -> str:
    """Return the id of the `occurrence`-th chunk (from 0) with this text in this document.

    A chunk keeps its id while its text stays the same, even if it moves within its document.
    """
    return digest("chunk", document_id, text_hash, str(occurrence))[:16]


def sentence_id(chunk: str, ordinal: int) -> str:
    """Return the id of a sentence, or of the question of a record: its chunk's id and its position in it, from 0."""
    return f"{chunk}#{ordinal}"


def sentence_place(identifier: str) -> tuple[str, int]:
    """Return the chunk and the position in it that the id of a sentence or question states."""
    chunk, _, ordinal = identifier.partition("#")
    return chunk, int(ordinal)


def claim_id(chunk: str, ordinal: int) -> str:
    """Return the id of a claim: its chunk's id and its position among the chunk's claims, from 0."""
    return f"{chunk}:{ordinal}"


def relation_id(first: str, second: str) -> str:
    """Return the id of the relation between two entity keys, the same for both orders.

    Entity keys never contain "--" (normalisation removes punctuation), so the id can be split again.
    """
    source, target = sorted((first, second))
    return f"{source} -- {target}"


def relation_ends(relation: str) -> tuple[str, str]:
    """Return the two entity keys of a relation id. Raises ValueError for a string that is not a relation id."""
    source, target = relation.split(" -- ")
    return source, target
