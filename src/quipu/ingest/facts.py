"""From what an extractor found to facts: names become keys, and every end of a relation is an entity."""

from quipu.model.delta import ChunkFacts
from quipu.model.extraction import ExtractedAlias, ExtractedClaim, ExtractedEntity, ExtractedRelation, Extraction
from quipu.model.graph import UNKNOWN_TYPE, AliasMention, Chunk, ClaimMention, EntityMention, RelationMention
from quipu.text.names import entity_key


def chunk_facts(chunk: Chunk, extraction: Extraction) -> ChunkFacts:
    """Return what the chunk says, as the store takes it.

    Names without a key are dropped, as are relations of an entity with itself; a name that only a relation, an alias or
    a claim uses becomes an entity of unknown type.
    """
    said = [mention for mention in map(_entity, extraction.entities) if mention is not None]
    relations = [(found, said_of) for found in extraction.relations if (said_of := _relation(found)) is not None]
    aliases = [(found, stated) for found in extraction.aliases if (stated := _alias(found)) is not None]
    claims = [(found, claimed) for found in extraction.claims if (claimed := _claim(found)) is not None]
    known = {mention.key for mention in said}
    in_passing = [name for found, _ in relations for name in (found.source, found.target)]
    in_passing += [found.name for found, _ in aliases]
    in_passing += [name for found, _ in claims for name in (found.subject, found.object)]
    for name in dict.fromkeys(in_passing):
        key = entity_key(_valid(name))
        if key and key not in known:
            known.add(key)
            said.append(EntityMention(key=key, surface=_valid(name).strip(), type=UNKNOWN_TYPE))
    return ChunkFacts(
        chunk=chunk,
        entities=tuple(said),
        relations=tuple(mention for _, mention in relations),
        aliases=tuple(mention for _, mention in aliases),
        claims=tuple(mention for _, mention in claims),
    )


def _entity(found: ExtractedEntity) -> EntityMention | None:
    key = entity_key(_valid(found.name))
    if not key:
        return None
    return EntityMention(
        key=key,
        surface=_valid(found.name).strip(),
        type=_valid(found.type) or UNKNOWN_TYPE,
        description=_valid(found.description),
        start=found.start,
        end=found.end,
        is_definition=found.is_definition,
    )


def _relation(found: ExtractedRelation) -> RelationMention | None:
    source, target = entity_key(_valid(found.source)), entity_key(_valid(found.target))
    if not source or not target or source == target:
        return None
    return RelationMention(
        source=source,
        target=target,
        keywords=tuple(_valid(keyword) for keyword in found.keywords),
        description=_valid(found.description),
        weight=found.weight,
    )


def _alias(found: ExtractedAlias) -> AliasMention | None:
    key, alias = entity_key(_valid(found.name)), entity_key(_valid(found.alias))
    if not key or not alias or key == alias:
        return None
    return AliasMention(key=key, alias=alias, surface=_valid(found.alias).strip())


def _claim(found: ExtractedClaim) -> ClaimMention | None:
    subject = entity_key(_valid(found.subject))
    if not subject:
        return None
    return ClaimMention(
        subject=subject,
        object=entity_key(_valid(found.object)),
        type=_valid(found.type),
        status=_valid(found.status),
        dates=_valid(found.dates),
        description=_valid(found.description),
    )


def _valid(text: str) -> str:
    """Return text that can be stored: half of a surrogate pair, as a careless reply may hold, becomes a "?"."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
