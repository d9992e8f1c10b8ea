"""Look-ups: what a view holds of one document, chunk, entity or relation, or NotFound with what is near."""

import asyncio
from collections.abc import Sequence
from difflib import get_close_matches

from quipu.errors import InvalidInput, NotFound
from quipu.model.delta import ChunkFacts
from quipu.model.ids import relation_id
from quipu.model.results import DocumentDetails, EntityDetails, RelationDetails, SearchResult
from quipu.ports.store import ReadView
from quipu.text.names import entity_key

MAX_LISTED = 50
_WITHOUT_SIGNS = str.maketrans("", "", "*?[]")  # of a pattern


async def search(view: ReadView, text: str, k: int) -> SearchResult:
    """Return passages that match words, by BM25, and entities by name. Raises InvalidInput where there are no words."""
    if not text.strip():
        raise InvalidInput("There is nothing to search for.", remedy="Give some words.")
    scored = await view.full_text(text, k)
    chunks = {chunk.id: chunk for chunk in await view.chunks([hit.id for hit in scored])}
    named = await view.search_entities(text, k)
    return SearchResult(
        chunks=tuple((hit, chunks[hit.id]) for hit in scored),
        entities=tuple(await view.entities([hit.id for hit in named])),
    )


async def document(view: ReadView, document_id: str) -> DocumentDetails:
    """Return one document with its chunks. Raises NotFound with near matches."""
    for found in await view.documents([document_id]):
        return DocumentDetails(document=found, chunks=tuple(await view.document_chunks(document_id)))
    raise await unknown_document(view, document_id)


async def chunk(view: ReadView, chunk_id: str) -> ChunkFacts:
    """Return one chunk with everything it says. Raises NotFound."""
    for facts in await _facts(view, [chunk_id]):
        return facts
    raise NotFound(f"There is no chunk {chunk_id!r}.", remedy="`quipu show document ID` lists chunk ids.")


async def entity(view: ReadView, name: str) -> EntityDetails:
    """Return what the index says about a name, alias or key. Raises NotFound with near matches."""
    keys = (await view.named([entity_key(name)])).get(entity_key(name), ())
    for found in await view.entities(keys[:1]):
        relations = sorted(await view.incident([found.key]), key=lambda r: (-r.weight, r.id))
        counts = (await view.chunks_of_entities([found.key], MAX_LISTED)).get(found.key, {})
        chunks = tuple((each, counts[each.id]) for each in await view.chunks(list(counts)))
        claims = (await view.claims_of_entities([found.key], MAX_LISTED)).get(found.key, ())
        return EntityDetails(entity=found, relations=tuple(relations[:MAX_LISTED]), chunks=chunks, claims=tuple(claims))
    near = await view.entities([hit.id for hit in await view.search_entities(entity_key(name), 3)])
    raise NotFound(f"There is no entity {name!r}.", remedy=_did_you_mean([each.name for each in near]))


async def relation(view: ReadView, first: str, second: str) -> RelationDetails:
    """Return what the index says about two names together. Raises NotFound, naming what they do relate to."""
    wanted = relation_id(entity_key(first), entity_key(second))
    for found in await view.relations([wanted]):
        chunk_ids = (await view.chunks_of_relations([found.id])).get(found.id, ())
        return RelationDetails(relation=found, chunks=tuple(await _facts(view, chunk_ids[:MAX_LISTED])))
    near = sorted(await view.incident([entity_key(first)]), key=lambda r: (-r.weight, r.id))[:3]
    others = [r.target_name if r.source == entity_key(first) else r.source_name for r in near]
    remedy = f"{first} relates to {', '.join(others)}." if others else "`quipu search` finds names."
    raise NotFound(f"Nothing relates {first!r} to {second!r}.", remedy=remedy)


def listed(ids: str | Sequence[str]) -> tuple[str, ...]:
    """Return ids, each once; a single text is one id, not one for each of its letters."""
    return (ids,) if isinstance(ids, str) else tuple(dict.fromkeys(ids))


async def check_known(view: ReadView, ids: Sequence[str]) -> None:
    """Raise NotFound naming the first document that is not known, with near matches."""
    known = {found.id for found in await view.documents(ids)}
    for document_id in ids:
        if document_id not in known:
            raise await unknown_document(view, document_id)


async def unknown_document(view: ReadView, document_id: str) -> NotFound:
    """Return the error for a document there is none of, with near matches."""
    known = [found.id for found in await view.documents()]
    near = await asyncio.to_thread(get_close_matches, document_id, known, n=3)  # takes long among thousands
    return NotFound(f"There is no document {document_id!r}.", remedy=_did_you_mean(near))


def unmatched(pattern: str, known: Sequence[str]) -> NotFound:
    """Return the error for a shell pattern that is no document's id and matches none, with ids that begin alike."""
    stem = pattern.translate(_WITHOUT_SIGNS)
    ids_by_start: dict[str, list[str]] = {}
    for each in known:
        ids_by_start.setdefault(each[: len(stem)], []).append(each)
    near = [name for start in get_close_matches(stem, ids_by_start, n=3) for name in sorted(ids_by_start[start])]
    return NotFound(f"No document matches {pattern!r}.", remedy=_did_you_mean(near[:3]))


async def _facts(view: ReadView, chunk_ids: Sequence[str]) -> list[ChunkFacts]:
    entities = await view.entity_mentions(chunk_ids)
    relations = await view.relation_mentions(chunk_ids)
    aliases = await view.alias_mentions(chunk_ids)
    claims = await view.claim_mentions(chunk_ids)
    return [
        ChunkFacts(
            chunk=each,
            entities=tuple(entities.get(each.id, ())),
            relations=tuple(relations.get(each.id, ())),
            aliases=tuple(aliases.get(each.id, ())),
            claims=tuple(claims.get(each.id, ())),
        )
        for each in await view.chunks(chunk_ids)
    ]


def _did_you_mean(near: Sequence[str]) -> str:
    return f"Did you mean {', '.join(near)}?" if near else "`quipu docs` lists documents, `quipu search` finds names."
