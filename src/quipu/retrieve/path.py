"""path: paths of two relations from what the question names to what may be its answer, and their passages.

Source: T. Fan et al., "MiniRAG: Towards Extremely Simple Retrieval-Augmented Generation" (2025), sections 3.2 and 3.3.

1. A language model names the entities in the question and the types its answer may have.
2. Start nodes are the entities whose names are similar to these names. Answer candidates are the entities of these
   types. Key relations are those near the question that have a start node or an answer candidate as an end.
3. Every path of two relations from a start node scores ω_p = ω_v(start) · (1 + α + ε): α is the number of answer
   candidates on it, ε the sum of the weights ω_e of its key relations. The best 30 paths are kept.
4. The score of a path is passed to its entities and relations, and shared among the passages that mention or state
   them. A passage that is also among the nearest to the question scores ten times as much.

Differences from the paper and its code:
- In the paper ω_e counts the start nodes and answer candidates within k hops of a key relation → it is 1, as in the
  code, or this number within `path_hops`, if that is not 0, because a walk around each relation takes long.
- A model names entities and answer types → without a model entity names are found in the question and types follow from
  its question words, because no strategy needs a model.
- Paths of any length in the paper, of two relations in the code → `path_length` relations, or fewer where it ends
  there, because the number of paths is a power of the degree.
- All relations of an entity are followed → `path_links` of them, because hubs would dominate; a note says when this
  happened.
- 60 start nodes and 60 relations for a name → `top_k` of each, because it is an option of all strategies.
- The first start node of a name counts twice → each counts by its similarity alone, because the paper does so.
- Of a hub, passages are chosen by the spelling of its descriptions → every passage of an entity gets an equal share,
  because spelling does not tell what answers the question.
- 30 nearest passages multiply a start node's passages by ten → `chunk_top_k` nearest passages score `BOOST` times as
  much themselves, because the others are not near.
- 30 passages, 500 tokens of entities → `chunk_top_k`, `entity_tokens`, because limits are the same for all strategies.

Faults of the authors' code that are not copied: entity types are never found; the last path of a start node decides for
all of its paths; a relation counts in one direction only.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from quipu.algo.relation_paths import NO_NODE, PathGraph, RelationPaths, best_paths, count_near, pair_codes
from quipu.model.chat import ChatRequest, ReplyLifetime, Role
from quipu.model.derivation import NAMES
from quipu.model.evidence import Evidence, Hit, Scored, Seed
from quipu.model.ids import relation_ends, relation_id
from quipu.model.query import Options, Query, option
from quipu.ports.derivation_view import EntityTypes, NodeKind
from quipu.ports.store import OccurrenceKind, ReadView, VectorSpace
from quipu.ports.topology import EdgeWeight, Floats, Ints, Topology
from quipu.prompts import question as prompt
from quipu.retrieve.steps.graph_walk import round_scores, top_chunks
from quipu.retrieve.steps.model_replies import read_texts
from quipu.retrieve.steps.seeds import Vector, embed, find_nearest, find_nearest_passages, link_names
from quipu.retrieve.strategy import Model, Strategy, Tools
from quipu.text.formatting import format_count
from quipu.text.names import entity_key
from quipu.text.questions import answer_entity_types

N_PATHS = 30
BOOST = 10.0  # for a passage that is also among the nearest to the question


@dataclass(frozen=True, slots=True, kw_only=True)
class PathOptions(Options):
    """The options of `path`."""

    path_length: int = option(2, "Relations of a path.", between=(1, 4))
    path_links: int = option(32, "Relations followed from one entity.", between=(1, 10**6), faithful=10**6)
    path_hops: int = option(0, "Hops around a key relation that weigh (ω_e); 0: it is 1.", between=(0, 4), faithful=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionTerms:
    """The names in a question, the entity types its answer may have, and notes for the trace."""

    names: tuple[str, ...]
    answer_types: tuple[str, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PathScores:
    """The summed scores of the paths through each entity (by key), relation (by id) and chunk ([n_chunks]).

    `key_paths` are the paths as entity keys, best first.
    """

    entities: Mapping[str, float]
    relations: Mapping[str, float]
    chunks: Floats
    key_paths: tuple[tuple[str, ...], ...]


async def retrieve(query: Query, view: ReadView, tools: Tools) -> Evidence:
    """Return the `chunk_top_k` best passages along the best paths, with the entities and relations of the paths."""
    types = await view.entity_types()
    terms = await find_terms(query, types.types, view, tools.model)  # step 1
    vectors = await embed([query.text, *terms.names], tools.embedder)
    vector = vectors[query.text]
    seeds = await _find_start_nodes({name: vectors[name] for name in terms.names}, query, view, tools)
    k = query.top_k * len(terms.names)
    near_relations = await find_nearest(VectorSpace.RELATION, vector, query=query, k=k, view=view, tools=tools)
    topology = await tools.topology.open(view)
    options, graph = query.options_of(PathOptions), _path_graph(terms.answer_types, types, topology)
    paths = await _find_paths(seeds, near_relations, graph, options, view)  # steps 2 and 3
    nearest, dense_seed = await find_nearest_passages(query, vector, view, tools)
    if not len(paths.nodes):
        note = "no entity has a similar name: the passages nearest to the question are used instead"
        return Evidence(chunks=nearest, seeds=(dense_seed,), notes=(*terms.notes, note))
    scores = await _score_paths(paths, topology, view)  # step 4
    boosted = await view.numbers(NodeKind.CHUNK, [hit.id for hit in nearest])
    scores.chunks[list(boosted.values())] *= BOOST
    chunks = await top_chunks(scores.chunks, query.chunk_top_k, view)
    best_path = await _best_path_by_chunk([chunk.id for chunk in chunks], scores, topology, view)
    hubs = f"only {options.path_links} relations were followed from each of {format_count(paths.n_hubs, 'hub')}"
    dropped = f"too many paths: {format_count(paths.n_dropped, 'path')} of low score not followed further"
    return Evidence(
        chunks=tuple(_passage_hit(chunk, best_path, is_near=chunk.id in boosted) for chunk in chunks),
        entities=_graph_hits(scores.entities, query.top_k),
        relations=_graph_hits(scores.relations, query.top_k),
        seeds=(*seeds, dense_seed),
        notes=(*terms.notes, *((hubs,) if paths.n_hubs else ()), *((dropped,) if paths.n_dropped else ())),
    )


async def find_terms(query: Query, types: Sequence[str], view: ReadView, model: Model | None) -> QuestionTerms:
    """Return the names and answer types of a question, by a model or by rules; `types` are those of the index.

    If there is no name, the question as a whole is used as one.
    """
    if model is None:
        note = "no language model: names and answer types are taken from the words of the question"
        return await _find_terms_by_rules(query, types, view, note)
    request = ChatRequest(
        messages=prompt.render_terms(query.text, types, query.prompts),
        role=Role.KEYWORDS,
        max_output_tokens=prompt.MAX_OUTPUT_TOKENS,
        schema=prompt.TERMS_SCHEMA,
        lifetime=ReplyLifetime.REVISION,  # the types come from the documents
        subject=query.text,
    )
    (reply,) = await model.ask([request])
    names, proposed = read_texts(reply, "names"), read_texts(reply, "answer_types")
    if not names and not proposed:
        note = "the model's reply contains no names: they are taken from the words of the question"
        return await _find_terms_by_rules(query, types, view, note)
    type_by_folded = {name.casefold(): name for name in types}
    existing = [type_by_folded[name.casefold()] for name in proposed if name.casefold() in type_by_folded]
    return QuestionTerms(
        names=names[: prompt.MAX_NAMES] or (query.text,),
        answer_types=tuple(dict.fromkeys(existing))[: prompt.MAX_TYPES],
    )


async def _find_terms_by_rules(query: Query, types: Sequence[str], view: ReadView, note: str) -> QuestionTerms:
    names = tuple(dict.fromkeys(name.surface for name in await link_names(query.text, view)))
    return QuestionTerms(
        names=names[: prompt.MAX_NAMES] or (query.text,),
        answer_types=answer_entity_types(query.text, types)[: prompt.MAX_TYPES],
        notes=(note,),
    )


async def _find_start_nodes(
    names: Mapping[str, Vector], query: Query, view: ReadView, tools: Tools
) -> tuple[Seed, ...]:
    """Return, for each name, the entities with that name or alias, and the `top_k` entities with similar names."""
    keys_by_name = await view.keys_by_name([entity_key(name) for name in names])
    rows = np.stack(list(names.values()))
    nearest = await tools.vectors.nearest(view, VectorSpace.NAME, rows, k=query.top_k, min_score=query.min_similarity)
    seeds: list[Seed] = []
    for name, similar in zip(names, nearest, strict=True):
        keys = keys_by_name.get(entity_key(name), ())
        exact = [Scored(id=key, score=1.0) for key in keys]
        others = [entity for entity in similar if entity.id not in keys]
        seeds.append(Seed(text=name, kind="vector", matches=(*exact, *others)))
    return tuple(seeds)


def _path_graph(answer_types: Sequence[str], types: EntityTypes, topology: Topology) -> PathGraph:
    """Return the graph that paths follow, with its answer candidates, and without key relations."""
    is_answer = np.zeros(topology.n_entities, dtype=bool)
    codes = [code for code, name in enumerate(types.types) if name in answer_types]
    is_answer[types.numbers[np.isin(types.codes, codes)]] = True
    order, no_relation = np.zeros(topology.n_entities, dtype=np.int64), np.empty(0, dtype=np.int64)
    order[types.numbers] = np.arange(len(types.numbers))
    return PathGraph(
        relations=topology.relations(EdgeWeight.WEIGHT),
        order=order,
        is_answer=is_answer,
        key_relations=no_relation,
        key_weights=no_relation,
    )


async def _find_paths(
    seeds: Sequence[Seed], near_relations: Sequence[Scored], graph: PathGraph, options: PathOptions, view: ReadView
) -> RelationPaths:
    """Return the best paths from the start nodes over pairs of related entities; `graph` has no key relations yet."""
    score_by_key: dict[str, float] = {}
    for match in (match for seed in seeds for match in seed.matches):
        score_by_key[match.id] = max(match.score, score_by_key.get(match.id, 0.0))
    ends = [relation_ends(relation.id) for relation in near_relations]
    keys = {*score_by_key, *(key for pair in ends for key in pair)}
    number_by_key = await view.numbers(NodeKind.ENTITY, sorted(keys))
    starts = {number_by_key[key]: score for key, score in score_by_key.items() if key in number_by_key}
    pairs = [(number_by_key[a], number_by_key[b]) for a, b in ends if a in number_by_key and b in number_by_key]
    pairs = [pair for pair in pairs if any(number in starts or graph.is_answer[number] for number in pair)]
    numbers, scores = np.array(list(starts), dtype=np.int64), np.array(list(starts.values()))

    def search() -> RelationPaths:
        with_keys = _with_key_relations(graph, pairs, numbers, options.path_hops)
        length, max_edges = options.path_length, options.path_links
        return best_paths(numbers, scores, with_keys, n=N_PATHS, max_edges=max_edges, length=length)

    return await asyncio.to_thread(search)


def _with_key_relations(graph: PathGraph, pairs: Sequence[tuple[int, int]], starts: Ints, n_hops: int) -> PathGraph:
    """Return the graph with these pairs of entity numbers as key relations, and their weights ω_e."""
    first, second = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    codes, positions = np.unique(pair_codes(first, second, len(graph.order)), return_index=True)
    weights = np.ones(len(codes), dtype=np.int64)
    if n_hops:
        candidates = graph.is_answer.astype(np.int64)
        candidates[starts] += 1
        weights = count_near([pairs[position] for position in positions], candidates, graph.relations, n_hops)
    return replace(graph, key_relations=codes, key_weights=weights)


async def _score_paths(paths: RelationPaths, topology: Topology, view: ReadView) -> PathScores:
    """Pass the score of each path to its entities, its relations, and in equal shares to the passages of these."""
    numbers = np.unique(paths.nodes[paths.nodes != NO_NODE])
    key_by_number = await view.ids(NodeKind.ENTITY, numbers.tolist())
    entities: dict[str, float] = {}
    relations: dict[str, float] = {}
    key_paths: list[tuple[str, ...]] = []
    for nodes, score in zip(paths.nodes.tolist(), paths.scores.tolist(), strict=True):
        keys = [key_by_number[number] for number in nodes if number in key_by_number]
        key_paths.append(tuple(keys))
        for key in keys:
            entities[key] = entities.get(key, 0.0) + score
        for source, target in pairwise(keys):
            relation = relation_id(source, target)
            relations[relation] = relations.get(relation, 0.0) + score
    mentions = topology.occurrences().neighbours(numbers)
    n_chunks = np.maximum(np.bincount(mentions.positions, minlength=len(numbers)), 1)
    shares = np.array([entities.get(key_by_number.get(number, ""), 0.0) for number in numbers.tolist()]) / n_chunks
    chunks = np.bincount(mentions.columns, shares[mentions.positions], minlength=topology.n_chunks).astype(np.float64)
    stating = await view.occurrences(OccurrenceKind.RELATION, list(relations))
    number_by_chunk = await view.numbers(NodeKind.CHUNK, sorted({id_ for ids in stating.values() for id_ in ids}))
    for relation, ids in stating.items():
        for chunk in ids:
            if chunk in number_by_chunk:
                chunks[number_by_chunk[chunk]] += relations[relation] / len(ids)
    return PathScores(entities=entities, relations=relations, chunks=round_scores(chunks), key_paths=tuple(key_paths))


async def _best_path_by_chunk(
    chunks: Sequence[str], scores: PathScores, topology: Topology, view: ReadView
) -> dict[str, str]:
    """Return, for each chunk, the best path with an entity that the chunk mentions, in words; "" if there is none."""
    numbers = await view.numbers(NodeKind.CHUNK, chunks)
    mentions = topology.occurrences_by_chunk().neighbours(np.array(list(numbers.values()), dtype=np.int64))
    key_by_number = await view.ids(NodeKind.ENTITY, np.unique(mentions.columns).tolist())
    keys: list[set[str]] = [set() for _ in numbers]
    for row, entity in zip(mentions.positions.tolist(), mentions.columns.tolist(), strict=True):
        keys[row].add(key_by_number.get(entity, ""))
    return {
        chunk: " → ".join(next((path for path in scores.key_paths if mentioned.intersection(path)), ()))
        for chunk, mentioned in zip(numbers, keys, strict=True)
    }


def _passage_hit(chunk: Scored, best_path: Mapping[str, str], *, is_near: bool) -> Hit:
    path = best_path.get(chunk.id)
    reason = f"on the path {path}" if path else "states a relation of a path"
    return Hit(id=chunk.id, score=chunk.score, reason=f"{reason}, and near the question" if is_near else reason)


def _graph_hits(scores: Mapping[str, float], k: int) -> tuple[Hit, ...]:
    best = sorted((-round(score, 6), identifier) for identifier, score in scores.items())[:k]
    return tuple(
        Hit(id=identifier, score=-negative, reason=f"the paths through it score {-negative:.3f} in all")
        for negative, identifier in best
    )


STRATEGY = Strategy(
    name="path",
    retrieve=retrieve,
    options=(PathOptions,),
    faithful={"top_k": 60, "chunk_top_k": 30, "entity_tokens": 500},
    summary="short paths from what the question names to what may be its answer, and the passages along them",
    after="MiniRAG",
    when="the question asks for a person, place or time one or two relations away from what it names",
    needs=(NAMES, "relation vectors", "chunk vectors", "relations", "topology"),
    n_model_calls=1,
)
