"""Passages: the chunks that entities and relations come from, by similarity to the question, and their sentences."""

from collections.abc import Iterable, Mapping, Sequence
from heapq import nsmallest

from quipu.algo.similarity import round_robin
from quipu.model.evidence import Hit
from quipu.model.query import Query
from quipu.ports.store import OccurrenceKind, ReadView, VectorSpace
from quipu.retrieve.steps.vector_search import Vector
from quipu.retrieve.strategy import Tools
from quipu.text.names import count_occurrences, group_by_anchor, name_forms
from quipu.text.sentences import sentence_spans
from quipu.text.words import Words, content_terms, split_words, term_places

# LightRAG's limit on the sources of an entity. Without it, a frequent name would cause the whole index to be read.
MAX_CHUNKS_PER_ENTITY = 200


async def rank_source_passages(
    entities: Sequence[Hit], relations: Sequence[Hit], vector: Vector, *, query: Query, view: ReadView, tools: Tools
) -> list[list[Hit]]:
    """Return two rankings: chunks that mention the first `top_k` entities, chunks that state the first relations.

    The first ranking keeps the `related_chunks * n / 2` chunks nearest to the question, for n entities; the second
    does the same for relations (LightRAG's VECTOR method). Differences from LightRAG: it takes the entities and
    relations that remain after the token budget, here the first `top_k` replace them because packing comes later. It
    also removes an entity's chunks from the relations' ranking; that lowered recall at 5 by 3 to 14 points on four
    sets, and merging removes duplicates anyway.
    """
    keys = [hit.id for hit in entities[: query.top_k]]
    relation_ids = [hit.id for hit in relations[: query.top_k]]
    chunks_by_key = await view.occurrences(OccurrenceKind.ENTITY, keys, MAX_CHUNKS_PER_ENTITY)
    key_by_chunk = _first_owners((key, chunks_by_key.get(key, ())) for key in keys)
    chunks_by_relation = await view.occurrences(OccurrenceKind.RELATION, relation_ids)
    relation_by_chunk = _first_owners((relation, chunks_by_relation.get(relation, ())) for relation in relation_ids)
    chunks = sorted(key_by_chunk.keys() | relation_by_chunk.keys())
    cosines = await tools.vectors.similarities(view, VectorSpace.CHUNK, vector, chunks)
    # When rankings are merged in turns, no chunk below rank `chunk_top_k` can be among the first `chunk_top_k`.
    n_by_entity, n_by_relation = (
        min(query.related_chunks * len(owners) // 2, query.chunk_top_k) for owners in (keys, relation_ids)
    )
    return [
        _rank_by_cosine(key_by_chunk, "mentions", cosines, n_by_entity),
        _rank_by_cosine(relation_by_chunk, "states", cosines, n_by_relation),
    ]


def merge_passages(query: Query, rankings: Sequence[Sequence[Hit]], weights: Sequence[float] = ()) -> tuple[Hit, ...]:
    """Return the first `chunk_top_k` chunks of the rankings, merged in turns. `weights` as in `round_robin`."""
    return tuple(round_robin(rankings, lambda hit: hit.id, weights)[: query.chunk_top_k])


def nearest_sentence(names: Iterable[str], texts: Mapping[int, str], terms: Sequence[str]) -> tuple[float, Words, int]:
    """Return the sentence with one of the names that has the largest share of the terms: share, words, chunk number."""
    keys_by_anchor, first_forms = group_by_anchor(names), {name_forms(key)[0] for key in names}
    best = 0.0, split_words(""), -1
    for number, text in texts.items():
        if len({term for _, term in term_places(text, terms)}) <= best[0] * len(terms):
            continue  # no sentence of this passage can be better
        for start, end in sentence_spans(text):
            sentence = text[start:end]
            if sentence.isascii() and not any(form in sentence.lower() for form in first_forms):
                continue
            if len({term for _, term in term_places(sentence, terms)}) <= best[0] * len(terms):
                continue
            words = split_words(sentence)
            share = len({*terms}.intersection(content_terms(words))) / len(terms)
            if share > best[0] and count_occurrences(words, keys_by_anchor):
                best = share, words, number
    return best


def _first_owners(chunks_by_owner: Iterable[tuple[str, Iterable[str]]]) -> dict[str, str]:
    """Return, for each chunk, the first entity or relation that it comes from."""
    owner_by_chunk: dict[str, str] = {}
    for owner, chunks in chunks_by_owner:
        for chunk in chunks:
            owner_by_chunk.setdefault(chunk, owner)
    return owner_by_chunk


def _rank_by_cosine(owner_by_chunk: Mapping[str, str], verb: str, cosines: Mapping[str, float], n: int) -> list[Hit]:
    """Return the first n chunks by cosine, equal ones by id. A chunk without a vector counts as cosine 0."""
    ranking = nsmallest(n, ((-cosines.get(chunk, 0.0), chunk) for chunk in owner_by_chunk))
    return [
        Hit(id=chunk, score=-negative, reason=f"{verb} {owner_by_chunk[chunk]}; cosine {-negative:.3f} to the question")
        for negative, chunk in ranking
    ]
