"""weave, the default: full text, vectors, names and a walk in one ranking, each trusted as far as the question allows.

Quipu's own method; no language model is asked. It joins parts of published ones: convex fusion of words and vectors
(S. Bruch et al., "An Analysis of Fusion Functions for Hybrid Retrieval", 2023), activation through sentences near the
question (LinearRAG, 2025), personalised PageRank from the named entities (HippoRAG, 2024), and links between passages
(Knowledge Graph Prompting, 2024).

1. Similarity: the mean of three shares. Words: BM25 over its highest score. Vectors: the scaled cosine, with the
   passage or with a question that it answers itself ("Q: …"), the higher one. Nearness, for the 20 passages best by
   the other two: the share of the question's terms, weighted by their IDF among these 20, within 200 characters. A
   passage whose heading, title or defined term is half of the question or more gets half of that share on top.
2. Trust in the walk: the mean selectivity of the names in the question, one over the number of home passages of a name
   or, if it has none, of all passages that it occurs in. A passage is home to the entity that its document's title
   names. A title leads to one passage, so the walk decides; the name of a speaker of a chat leads to hundreds, so
   similarity decides. Without names there is no walk.
3. Links: half of the trust, if it is at least 0.1, goes to the passages that the five most similar ones refer to by a
   heading, a defined term or a hyperlink, or share rare terms with (`passage_links`); the rest to similarity.
4. Seeds: the entities that the question names. Each activates what stands in the one sentence about it that shares the
   most terms with the question, by that share cubed.
5. Subgraph: the passages most similar to the question, those of each active entity, and the home passages of the
   entities that a first walk ranks best.
6. Walk: personalised PageRank over the subgraph. It restarts at the active entities, 2 % as often at passages, by
   similarity. Mentions weigh √IDF, homes thirty times as much, relations as often as they are stated.
7. Fusion: the logarithm (log1p) of the walk times the trust, and similarity times the rest, at least 0.1, so that
   similarity always orders what the walk does not reach.

Release notes count half, unless changes are asked for. A quotation, code, flag or identifier is looked for by words
and nearness alone, unless the walk is trusted more than similarity. An overview ("What is this about?") also gets the
reports on communities, where they are kept.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from quipu.algo.similarity import largest_with_ties, top_k
from quipu.model.derivation import REPORTS
from quipu.model.evidence import Evidence, Hit, Seed
from quipu.model.graph import Chunk
from quipu.model.ids import relation_id
from quipu.model.query import Query
from quipu.ports.derivation_view import NodeKind
from quipu.ports.store import ReadView
from quipu.ports.topology import Floats, Ints, Topology
from quipu.retrieve import community_global
from quipu.retrieve.steps.graph_walk import SubgraphWalk, read_subgraph, round_scores, top_chunks, top_entities
from quipu.retrieve.steps.passage_links import LinkWalk, follow_links
from quipu.retrieve.steps.passages import demote_release_notes, nearest_sentence, nearness, shares_of_names
from quipu.retrieve.steps.seeds import find_low_level_keywords, score_by_words_and_vectors
from quipu.retrieve.strategy import Strategy, Tools
from quipu.text.formatting import format_count
from quipu.text.names import count_occurrences, entity_key, group_by_anchor
from quipu.text.questions import asks_for_overview, find_literal
from quipu.text.words import Words, content_terms_of

N_NEAR, REACH = 20, 200  # passages that are read for nearness, and the characters within which terms are near
N_SIMILAR = 60  # passages of the subgraph by similarity
N_PASSAGES = 30  # passages of an entity, the most similar to the question
N_READ = 10  # passages of a seed that are read, and of an entity among which its home is looked for
N_HOMES = 64  # entities whose home passages are looked up
SHARPNESS, HOME_WEIGHT, NAME_WEIGHT = 3.0, 30.0, 0.5
PASSAGE_SHARE = 0.02  # of the reset, for passages by similarity
DAMPING = 0.85
N_FIRST_STEPS, N_STEPS = 4, 8  # eight steps order passages as well as all do
MIN_SIMILARITY_WEIGHT, MIN_TRUST_BESIDE_LITERAL = 0.1, 0.5
LINK_WEIGHT, MIN_TRUST_IN_LINKS = 0.5, 0.1
RANK_SCALE = 0.003  # above this share of the walk, ranks count by their logarithm
MAX_ENTITIES, MAX_RELATIONS, MAX_REPORTS = 20, 20, 10
NO_NAME = "the question names no entity of the index: words and vectors rank alone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What all steps read: the view, its graph, and the similarity of each chunk to the question, [n_chunks].

    `links` are those of the most similar passages, None where they do not count.
    """

    view: ReadView
    topology: Topology
    similarity: Floats
    links: LinkWalk | None = None

    def passages_of(self, entities: Iterable[int], k: int) -> dict[int, Ints]:
        """Return the chunks in which each entity occurs; of more than k the most similar to the question, with ties."""
        distinct = np.unique(np.array(list(entities), dtype=np.int64))
        occurrences = self.topology.occurrences().neighbours(distinct)
        chunks = np.split(occurrences.columns, np.searchsorted(occurrences.positions, np.arange(1, len(distinct))))
        nearest = (numbers[largest_with_ties(self.similarity[numbers], k)] for numbers in chunks)
        return dict(zip(distinct.tolist(), nearest, strict=False))

    def n_passages(self, entities: Ints) -> Floats:
        """Return the number of chunks in which each entity occurs."""
        counts: Floats = self.topology.occurrences().unweighted().row_sums()[entities]
        return counts

    def rarity(self, entities: Ints) -> Floats:
        """Return √IDF of each entity."""
        n_chunks = np.count_nonzero(self.topology.occurrences_by_chunk().unweighted().row_sums())
        idf = np.log((n_chunks + 1) / np.maximum(self.n_passages(entities), 1))
        roots: Floats = np.sqrt(idf.clip(0.01))
        return roots

    async def home_entities(self, chunks: Ints) -> Ints:
        """Return the entity that the title of each chunk's document names, -1 if there is none."""
        entities = await self.view.title_entities(chunks.tolist())
        return np.array([entities.get(chunk, -1) for chunk in chunks.tolist()], dtype=np.int64)

    async def read(self, chunks: Ints) -> dict[int, Chunk]:
        """Return the chunks with these numbers, in the order of their ids."""
        ids = await self.view.ids(NodeKind.CHUNK, chunks.tolist())
        number_by_id = {chunk_id: number for number, chunk_id in ids.items()}
        return {number_by_id[chunk.id]: chunk for chunk in await self.view.chunks(sorted(number_by_id))}


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """A name in the question, the numbers of its entities, and the keys by which texts call them."""

    entities: tuple[int, ...]
    keys: frozenset[str]


async def retrieve(query: Query, view: ReadView, tools: Tools) -> Evidence:
    """Return the `chunk_top_k` passages by similarity and walk, with the best ranked entities and relations."""
    topology = await tools.topology.open(view)
    terms = tuple(dict.fromkeys(content_terms_of(query.text)))
    (by_words, by_vector), searches = await score_by_words_and_vectors(query, topology, view, tools)
    scope = Scope(view=view, topology=topology, similarity=(by_words + by_vector) / 2)
    keywords = await find_low_level_keywords(query, view)
    names = await _find_names(keywords.names, view)
    trust = await _trust_in(names, scope) if names else 0.0
    if literal := find_literal(query.text) if trust < MIN_TRUST_BESIDE_LITERAL else "":
        trust, scope = 0.0, replace(scope, similarity=by_words)
    scope = replace(scope, similarity=await _add_nearness(terms, scope))
    if trust >= MIN_TRUST_IN_LINKS:
        weight, links = LINK_WEIGHT * trust, await follow_links(terms, scope.similarity, view)
        similarity = (1 - weight) * scope.similarity + weight * links.shares
        scope = replace(scope, similarity=similarity, links=links)
    reports, notes = await _reports(query, view, tools) if asks_for_overview(query.text) else ((), ())
    if not trust:
        note = f"full text ranks alone, because the question holds {literal} as it is written" if literal else NO_NAME
        chunks = await _fuse(None, 0.0, scope, query)
        return Evidence(chunks=chunks, reports=reports, seeds=searches, notes=(*notes, note))
    walk = await _walk_twice(await _activate(terms, names, scope), scope)
    entities, relations = await _graph_hits(walk, view)
    note = f"the walk from the names in the question weighs {trust:.2f}, by how few passages they lead to"
    return Evidence(
        chunks=await _fuse(walk, trust, scope, query),
        entities=entities,
        relations=relations,
        reports=reports,
        seeds=(*keywords.names, *searches),
        notes=(*keywords.notes, *notes, note),
    )


async def _reports(query: Query, view: ReadView, tools: Tools) -> tuple[tuple[Hit, ...], tuple[str, ...]]:
    """Return the reports on communities, best first, with a note; none where they have not been made."""
    if REPORTS not in await view.derivations():
        return (), ("an overview is asked for, and there are no reports on communities",)
    evidence = await community_global.retrieve(query, view, replace(tools, model=None))
    reports = evidence.reports[:MAX_REPORTS]
    return reports, (f"an overview is asked for: {format_count(len(reports), 'report')} on communities",)


async def _add_nearness(terms: Sequence[str], scope: Scope) -> Floats:
    """Return the similarity of the scope with nearness of the terms as a third of it, and the share of a name."""
    best = largest_with_ties(scope.similarity, N_NEAR)
    chunks = await scope.read(best[scope.similarity[best] > 0])
    near = np.zeros(len(scope.similarity))
    near[list(chunks)] = nearness([chunk.text for chunk in chunks.values()], terms, REACH)
    return (2 * scope.similarity + near) / 3 + NAME_WEIGHT * await shares_of_names(terms, len(near), scope.view)


async def _find_names(seeds: Sequence[Seed], view: ReadView) -> list[Name]:
    """Return the names that the seeds found in the question."""
    keys = sorted({match.id for seed in seeds for match in seed.matches})
    numbers = await view.numbers(NodeKind.ENTITY, keys) if keys else {}
    keys_by_seed = [[match.id for match in seed.matches if match.id in numbers] for seed in seeds]
    return [
        Name(entities=tuple(numbers[key] for key in keys), keys=frozenset((*keys, entity_key(seed.text))))
        for seed, keys in zip(seeds, keys_by_seed, strict=True)
        if keys
    ]


async def _trust_in(names: Sequence[Name], scope: Scope) -> float:
    """Return the mean selectivity of the names: one over the number of passages that each may mean."""
    passages = scope.passages_of((entity for name in names for entity in name.entities), N_PASSAGES)
    home_entities = await scope.home_entities(np.unique(np.concatenate(list(passages.values()))))
    shares = []
    for name in names:
        n_homes = [int((home_entities == entity).sum()) for entity in name.entities]
        n_passages = scope.n_passages(np.array(name.entities)).tolist()
        counts = [homes or n for homes, n in zip(n_homes, n_passages, strict=True)]
        shares.append(1 / min(filter(None, counts)) if any(counts) else 0.0)
    return round(sum(shares) / len(shares), 6)


async def _activate(terms: Sequence[str], names: Sequence[Name], scope: Scope) -> dict[int, float]:
    """Return the activation of what the question names, and of what stands in the nearest sentence about it."""
    passages = scope.passages_of((entity for name in names for entity in name.entities), N_READ)
    chunks = await scope.read(np.unique(np.concatenate(list(passages.values()))))
    active: dict[int, float] = defaultdict(float)
    for name in names:
        for entity in name.entities:
            active[entity] = max(active[entity], 1 / len(name.entities))
            texts = {number: chunk.text for number, chunk in chunks.items() if number in passages[entity]}
            share, words, number = nearest_sentence(name.keys, texts, terms)
            for other in await _entities_in(words, number, scope) if share else ():
                active[other] = max(active[other], active[entity] * share**SHARPNESS)
    return dict(active)


async def _entities_in(words: Words, chunk: int, scope: Scope) -> list[int]:
    """Return the entities that a sentence of this chunk names, and the one that the chunk is home to."""
    present = scope.topology.occurrences_by_chunk().neighbours(np.array([chunk])).columns
    keys = await scope.view.ids(NodeKind.ENTITY, present.tolist())
    named = count_occurrences(words, group_by_anchor(keys.values()))
    home = (await scope.home_entities(np.array([chunk]))).tolist()
    return [number for number in present.tolist() if keys.get(number) in named or number in home]


async def _walk_twice(active: Mapping[int, float], scope: Scope) -> SubgraphWalk:
    """Walk over the subgraph, add the home passages of the best ranked entities, and walk again."""
    similar = largest_with_ties(scope.similarity, N_SIMILAR)
    chunks = np.unique(np.concatenate([similar, *scope.passages_of(active, N_PASSAGES).values()]))
    first = await _walk(active, chunks, scope, n_steps=N_FIRST_STEPS)
    best = first.entities[largest_with_ties(first.ranks[: len(first.entities)], N_HOMES)]
    passages = np.unique(np.concatenate(list(scope.passages_of(best, N_READ).values())))
    homes = passages[np.isin(await scope.home_entities(passages), best)]
    return await _walk(active, np.union1d(chunks, homes), scope, n_steps=N_STEPS)


async def _walk(active: Mapping[int, float], chunks: Ints, scope: Scope, n_steps: int) -> SubgraphWalk:
    """Return the personalised PageRank of a subgraph: these chunks, their entities, and the active ones."""
    subgraph = read_subgraph(scope.topology, chunks, np.array(list(active), dtype=np.int64))
    entities, rows = subgraph.entities, subgraph.mention_rows
    rarity = scope.rarity(entities)
    is_home = entities[rows] == (await scope.home_entities(chunks))[subgraph.mention_columns]
    n_homes = np.bincount(rows[is_home], minlength=len(entities))
    weights = rarity[rows] * (1 + HOME_WEIGHT * is_home / np.maximum(n_homes[rows], 1))
    seeds = np.searchsorted(entities, list(active))
    by_entity = np.zeros(len(entities))
    by_entity[seeds] = np.array(list(active.values())) * rarity[seeds]
    similarity = scope.similarity[chunks]
    by_chunk = PASSAGE_SHARE * by_entity.sum() * similarity / max(float(similarity.sum()), 1e-12)
    return subgraph.walk(weights, np.concatenate([by_entity, by_chunk]), damping=DAMPING, n_steps=n_steps)


async def _fuse(walk: SubgraphWalk | None, trust: float, scope: Scope, query: Query) -> tuple[Hit, ...]:
    """Return the `chunk_top_k` passages with the highest mean of similarity and walk."""
    fused, ranks = max(1 - trust, MIN_SIMILARITY_WEIGHT) * scope.similarity, np.zeros(len(scope.similarity))
    if walk:
        ranks[walk.chunks] = walk.ranks[len(walk.entities) :]
        by_walk = np.log1p(ranks / RANK_SCALE)
        fused += trust * by_walk / max(float(by_walk.max()), 1e-12)
    fused = round_scores(await demote_release_notes(fused, query, scope.view))
    best = await top_chunks(fused, query.chunk_top_k, scope.view)
    numbers = await scope.view.numbers(NodeKind.CHUNK, [chunk.id for chunk in best])
    links = scope.links.reasons(numbers.values()) if scope.links else {}
    reasons = {
        chunk: f"similarity {scope.similarity[n]:.3f}, {ranks[n]:.3g} of the walk{links.get(n, '')}"
        for chunk, n in numbers.items()
    }
    return tuple(Hit(id=chunk.id, score=chunk.score, reason=reasons[chunk.id]) for chunk in best)


async def _graph_hits(walk: SubgraphWalk, view: ReadView) -> tuple[tuple[Hit, ...], tuple[Hit, ...]]:
    """Return the best ranked entities, and the relations among them with the highest sums of ranks."""
    ranks = np.zeros(int(walk.entities[-1]) + 1)
    ranks[walk.entities] = walk.ranks[: len(walk.entities)]
    rank_by_key = {entity.id: entity.score for entity in await top_entities(ranks, MAX_ENTITIES, view)}
    numbers = await view.numbers(NodeKind.ENTITY, list(rank_by_key))
    keys = {int(np.searchsorted(walk.entities, number)): key for key, number in numbers.items()}
    is_best = np.isin(walk.related, list(keys)).all(axis=1)
    ends = [(keys[first], keys[second]) for first, second in walk.related[is_best].tolist()]
    sums = {relation_id(*pair): round(sum(rank_by_key[key] for key in pair), 9) for pair in ends}
    return _as_hits(rank_by_key.items()), _as_hits(top_k(sums, MAX_RELATIONS))


def _as_hits(ranked: Iterable[tuple[str, float]]) -> tuple[Hit, ...]:
    return tuple(Hit(id=identifier, score=rank, reason=f"{rank:.3g} of the walk") for identifier, rank in ranked)


STRATEGY = Strategy(
    name="weave",
    retrieve=retrieve,
    summary="full text, vectors, names and a walk in one ranking, each trusted as far as the question allows",
    after="Quipu",
    when="nothing is known about the question: the default",
    needs=("full text", "chunk vectors", "relations", "topology"),
)
