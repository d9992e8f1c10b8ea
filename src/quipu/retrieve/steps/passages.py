"""Passages: the chunks that entities and relations come from, by similarity to the question, and their sentences."""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from typing import Literal

import numpy as np

from quipu.algo.similarity import largest_with_ties, round_robin
from quipu.model.evidence import Hit
from quipu.model.query import Options, Query, option
from quipu.ports.derivation_view import NodeKind
from quipu.ports.store import OccurrenceKind, ReadView, VectorSpace
from quipu.ports.topology import Floats
from quipu.retrieve.steps.seeds import Vector
from quipu.retrieve.strategy import Tools
from quipu.text.formatting import format_count
from quipu.text.names import count_occurrences, group_by_anchor, name_forms
from quipu.text.questions import asks_for_changes, is_release_notes
from quipu.text.references import MAX_PHRASE_TERMS, NAMED
from quipu.text.sentences import sentence_spans
from quipu.text.unicode import is_unspaced
from quipu.text.words import Words, content_terms, split_words

ChunksByOwner = Mapping[str, Iterable[str]]  # the chunks that each entity or relation comes from

# LightRAG's limit on the sources of an entity. Without it, a frequent name would cause the whole index to be read.
MAX_CHUNKS_PER_ENTITY = 200
MAX_NAMED_ALIKE = 8  # passages with one name
RELEASE_NOTES_SHARE, MAX_DEMOTED = 0.5, 200  # of a score; passages that are looked at


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions(Options):
    """The options of strategies that show the passages which entities and relations come from."""

    chunk_choice: Literal["vector", "weight"] = option(
        "vector", "How passages of entities and relations are chosen: by similarity, or by how many of these they have."
    )
    separate_chunks: bool = option(
        False, "Leave passages chosen for entities out of those chosen for relations.", faithful=True
    )


async def rank_source_passages(
    entities: Sequence[Hit], relations: Sequence[Hit], vector: Vector, *, query: Query, view: ReadView, tools: Tools
) -> list[list[Hit]]:
    """Return two rankings: chunks that mention the first `top_k` entities, chunks that state the first relations.

    The first ranking keeps the `related_chunks * n / 2` chunks nearest to the question, for n entities; the second
    does the same for relations (LightRAG's VECTOR method). With `chunk_choice` "weight" both keep the chunks of most
    entities or relations (WEIGHT, see `poll_by_weight`). With `separate_chunks` the second ranking has none of the
    first. LightRAG takes the entities and relations that remain after the token budget; here the first `top_k` replace
    them, because packing comes later.
    """
    options = query.options_of(SourceOptions)
    keys = [hit.id for hit in entities[: query.top_k]]
    relation_ids = [hit.id for hit in relations[: query.top_k]]
    chunks_by_key = await view.occurrences(OccurrenceKind.ENTITY, keys, MAX_CHUNKS_PER_ENTITY)
    chunks_by_relation = await view.occurrences(OccurrenceKind.RELATION, relation_ids)
    by_vector = options.chunk_choice == "vector"
    sources = (*chunks_by_key.values(), *chunks_by_relation.values()) if by_vector else ()
    chunks = sorted({chunk for ids in sources for chunk in ids})
    cosines = await tools.vectors.similarities(view, VectorSpace.CHUNK, vector, chunks)

    def rank(owners: Sequence[str], chunks_by_owner: ChunksByOwner, verb: str) -> list[Hit]:
        if not by_vector:
            return _rank_by_weight(owners, chunks_by_owner, verb, query.related_chunks)
        n = query.related_chunks * len(owners) // 2
        # When rankings are merged in turns, no chunk below rank `chunk_top_k` can be among the first `chunk_top_k`.
        n = n if options.separate_chunks else min(n, query.chunk_top_k)
        return _rank_by_cosine(_first_owners(owners, chunks_by_owner), verb, cosines, n)

    by_entity = rank(keys, chunks_by_key, "mentions")
    chosen = {hit.id for hit in by_entity} if options.separate_chunks else set()
    others = {relation: [chunk for chunk in ids if chunk not in chosen] for relation, ids in chunks_by_relation.items()}
    return [ranking[: query.chunk_top_k] for ranking in (by_entity, rank(relation_ids, others, "states"))]


def poll_by_weight(chunks_by_owner: Sequence[Sequence[str]], max_chunks: int) -> list[str]:
    """Return the first chunks of each owner, by quotas that fall evenly from `max_chunks` for the first to 1.

    What an owner lacks is taken from what the first ones have beyond their quotas (LightRAG's weighted polling).
    """
    fall = (max_chunks - min(max_chunks, 1)) / max(len(chunks_by_owner) - 1, 1)
    quotas = [round(max_chunks - fall * position) for position in range(len(chunks_by_owner))]
    owned = list(zip(chunks_by_owner, quotas, strict=True))
    n_missing = sum(max(quota - len(chunks), 0) for chunks, quota in owned)
    chosen = [chunk for chunks, quota in owned for chunk in chunks[:quota]]
    return chosen + [chunk for chunks, quota in owned for chunk in chunks[quota:]][:n_missing]


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


def _first_owners(owners: Sequence[str], chunks_by_owner: ChunksByOwner) -> dict[str, str]:
    """Return, for each chunk, the first entity or relation that it comes from."""
    owner_by_chunk: dict[str, str] = {}
    for owner in owners:
        for chunk in chunks_by_owner.get(owner, ()):
            owner_by_chunk.setdefault(chunk, owner)
    return owner_by_chunk


def _rank_by_weight(owners: Sequence[str], chunks_by_owner: ChunksByOwner, verb: str, max_chunks: int) -> list[Hit]:
    """Return the chunks that weighted polling chooses. Those of an owner are ordered by how many owners they have."""
    owner_by_chunk = _first_owners(owners, chunks_by_owner)
    n_owners = Counter(chunk for owner in dict.fromkeys(owners) for chunk in chunks_by_owner.get(owner, ()))
    chunks_of_first = {owner: list[str]() for owner in owners if chunks_by_owner.get(owner)}
    for chunk in sorted(owner_by_chunk, key=lambda chunk: (-n_owners[chunk], chunk)):
        chunks_of_first[owner_by_chunk[chunk]].append(chunk)
    hits = []
    for chunk in poll_by_weight(list(chunks_of_first.values()), max_chunks):
        n = n_owners[chunk]
        others = f" and {format_count(n - 1, 'other')}" if n > 1 else ""
        hits.append(Hit(id=chunk, score=float(n), reason=f"{verb} {owner_by_chunk[chunk]}{others}"))
    return hits


def _rank_by_cosine(owner_by_chunk: Mapping[str, str], verb: str, cosines: Mapping[str, float], n: int) -> list[Hit]:
    """Return the first n chunks by cosine, equal ones by id. A chunk without a vector counts as cosine 0."""
    ranking = nsmallest(n, ((-cosines.get(chunk, 0.0), chunk) for chunk in owner_by_chunk))
    return [
        Hit(id=chunk, score=-negative, reason=f"{verb} {owner_by_chunk[chunk]}; cosine {-negative:.3f} to the question")
        for negative, chunk in ranking
    ]


def nearness(texts: Sequence[str], terms: Sequence[str], reach: int) -> list[float]:
    """Return, for each text, the largest share of the terms that stand within `reach` characters of it, 0 to 1.

    Terms weigh their IDF among these texts.
    """
    places_by_text = [term_places(text, terms) for text in texts]
    n_texts_with = Counter(term for places in places_by_text for term in {term for _, term in places})
    idf = {term: math.log((len(texts) + 1) / (n_texts_with[term] + 0.5)) for term in terms}
    shares = []
    for places in places_by_text:
        ends = [bisect_right(places, (start + reach, "")) for start, _ in places]
        groups = {frozenset(term for _, term in places[first:end]) for first, end in enumerate(ends)}
        shares.append(max((sum(sorted(map(idf.__getitem__, group))) for group in groups), default=0.0))
    whole = sum(sorted(idf.values())) or 1.0
    return [share / whole for share in shares]


async def shares_of_names(terms: Sequence[str], n_chunks: int, view: ReadView) -> Floats:
    """Return, for each passage, the share of a question's terms in the longest phrase of it that names the passage.

    The phrase is a heading, title or defined term, and has at least half of the terms. One that is the name of many
    passages says little. The result is [n_chunks], 0 where there is no such phrase.
    """
    share_by_key = {
        NAMED + " ".join(terms[start:end]): (end - start) / len(terms)
        for start in range(len(terms))
        for end in range(start + 1, min(start + MAX_PHRASE_TERMS, len(terms)) + 1)
        if 2 * (end - start) >= len(terms)
    }
    ids_by_key = await view.occurrences(OccurrenceKind.TERM, sorted(share_by_key), MAX_NAMED_ALIKE)
    shares: dict[str, float] = {}
    for key, ids in ids_by_key.items():
        shares |= {chunk: max(share_by_key[key], shares.get(chunk, 0.0)) for chunk in ids}
    by_chunk = np.zeros(n_chunks)
    for chunk, number in (await view.numbers(NodeKind.CHUNK, sorted(shares)) if shares else {}).items():
        by_chunk[number] = shares[chunk]
    return by_chunk


async def demote_release_notes(scores: Floats, query: Query, view: ReadView) -> Floats:
    """Return scores, [n_chunks], in which release notes among the best have `RELEASE_NOTES_SHARE` of theirs.

    They name all that a product has ever had. A question about changes leaves them where they are.
    """
    demoted, seen = scores.copy(), set[str]()
    while len(seen) <= MAX_DEMOTED and not asks_for_changes(query.text):
        best = largest_with_ties(demoted, query.chunk_top_k)
        ids = await view.ids(NodeKind.CHUNK, best[demoted[best] > 0].tolist())
        numbers = {chunk: number for number, chunk in ids.items() if chunk not in seen}
        if not numbers:
            break
        for chunk in await view.chunks(sorted(numbers)):
            if is_release_notes(chunk.document_id, chunk.title):
                demoted[numbers[chunk.id]] *= RELEASE_NOTES_SHARE
        seen |= numbers.keys()
    return demoted


def densest_part(text: str, terms: Sequence[str], n_chars: int) -> str:
    """Return at most `n_chars` characters of a text, with as many of the terms as such a part has; the first of equals.

    A quarter of it stands before the first of these terms.
    """
    if len(text) <= n_chars:
        return text
    places = term_places(text, terms)
    reach = n_chars - n_chars // 4
    counts = [
        len({term for _, term in places[first : bisect_right(places, (start + reach, ""))]})
        for first, (start, _) in enumerate(places)
    ]
    best = places[counts.index(max(counts))][0] if places else 0
    start = min(max(0, best - n_chars // 4), len(text) - n_chars)
    return text[start : start + n_chars]


def term_places(text: str, terms: Iterable[str]) -> list[tuple[int, str]]:
    """Return the places in `text` of words that begin with these content terms, in order.

    It is far faster than splitting the text into words, and nearly as exact: "print" is also seen in "printf", and a
    term without accents is not seen in a word with them.
    """
    folded = text.casefold()
    places: list[tuple[int, str]] = []
    for term in terms:
        may_follow_letter, place = is_unspaced(term), folded.find(term)
        while place >= 0:
            if may_follow_letter or not (place and folded[place - 1].isalnum()):
                places.append((place, term))
            place = folded.find(term, place + 1)
    return sorted(places)
