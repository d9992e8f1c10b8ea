"""linear: from the entities a question names by sentences near it to others, and a walk over entities and passages.

Source: L. Zhuang et al., "LinearRAG" (2025), sections 3 and 4: a graph of entities, sentences and passages made without
a language model, semantic bridging, then PageRank. Not copied, where the authors' code departs from the paper: activity
adds up, so that a seed outgrows itself by its own sentence; a sentence used by one entity is denied to the next one of
the same step; names are counted as substrings; passages of different documents follow each other.
"""

from collections.abc import Mapping

import numpy as np

from quipu.model.derivation import NAMES, SENTENCES
from quipu.model.evidence import Evidence, Hit, Scored, Seed
from quipu.model.query import Query
from quipu.ports.derivation_view import NodeKind
from quipu.ports.store import ReadView, VectorSpace
from quipu.ports.topology import Floats, Topology
from quipu.retrieve.steps.activation import Active, Reach, Spread
from quipu.retrieve.steps.names import link_names
from quipu.retrieve.steps.prior import passage_prior
from quipu.retrieve.steps.search import Vector, embed, nearest_passages
from quipu.retrieve.steps.tracing import Trail, ways_to
from quipu.retrieve.steps.walk import Naming, Weights, ranked, top_chunks, walk_over
from quipu.retrieve.strategy import Strategy, Tools
from quipu.text.formatting import format_count
from quipu.text.names import capitalised_spans

REACH = Reach(least=0.2, n_sentences=3, n_steps=2)
PASSAGE_WEIGHT = 0.05
NEARNESS_WEIGHT = 1.5  # of the cosine beside the entities that stand in a passage
DAMPING = 0.5
WEIGHTS = Weights(naming=Naming.SHARE)


async def retrieve(query: Query, view: ReadView, tools: Tools) -> Evidence:
    """Return the `chunk_top_k` passages the walk is at most often, and the entities it starts from."""
    seeds, vector, notes = await _named(query, view, tools)
    if not seeds:
        near, start = await nearest_passages(query, vector, view, tools)
        note = "the question names no known entity: the nearest passages stand in"
        return Evidence(chunks=near, seeds=(start,), notes=(note, *notes))
    topology = await tools.topology.open(view)
    prior = await passage_prior(vector, topology, view, tools)
    spread = Spread(vector=vector, prior=prior, topology=topology, view=view, tools=tools)
    active = await spread.from_seeds({each.id: each.score for seed in seeds for each in seed.matches}, REACH)
    ordered = sorted(active.items(), key=lambda item: (-item[1].score, item[0]))[: query.top_k]
    return Evidence(
        chunks=await _walked(active, prior, query=query, topology=topology, view=view),
        entities=tuple(Hit(id=key, score=each.score, reason=_reason(each)) for key, each in ordered),
        seeds=seeds,
        notes=(
            *notes,
            *([f"left out of hubs: {format_count(spread.n_unread, 'neighbour')}"] if spread.n_unread else []),
        ),
    )


async def _named(query: Query, view: ReadView, tools: Tools) -> tuple[tuple[Seed, ...], Vector, tuple[str, ...]]:
    """Return the entities the question names, its vector and notes; a name that is unknown leads to the nearest one."""
    known = await link_names(query.text, view)
    unknown = [
        query.text[start:end]
        for start, end in capitalised_spans(query.text)
        if not any(name.start < end and start < name.end for name in known)
    ]
    has_names = NAMES in await view.derivations()
    vectors = await embed([query.text, *(unknown if has_names else ())], tools.embedder)
    seeds = [_seed(name.surface, "name", [Scored(id=key, score=1.0) for key in name.keys]) for name in known]
    if unknown and has_names:
        queries = np.stack([vectors[surface] for surface in unknown])
        least = max(REACH.least, query.min_similarity)
        near = await tools.vectors.nearest(view, VectorSpace.NAME, queries, k=1, min_score=least)
        seeds += [_seed(surface, "vector", found) for surface, found in zip(unknown, near, strict=True) if found]
    left_out = (
        f"names that are not known, left out: {', '.join(unknown)}; `quipu refresh {NAMES}` makes what finds them"
    )
    return tuple(seeds), vectors[query.text], (left_out,) if unknown and not has_names else ()


def _seed(surface: str, kind: str, found: "list[Scored] | tuple[Scored, ...]") -> Seed:
    return Seed(text=surface, kind=kind, matches=tuple(found))


async def _walked(
    active: Mapping[str, Active], prior: Floats, *, query: Query, topology: Topology, view: ReadView
) -> tuple[Hit, ...]:
    """Return the chunks of a walk that starts again at active entities and, by their prior, at all passages."""
    walk = walk_over(topology, WEIGHTS)
    reset = np.zeros(walk.n_nodes)
    numbers = await view.numbers(NodeKind.ENTITY, sorted(active))
    for key, number in numbers.items():
        reset[number] = active[key].score
    standing = topology.occurrences().neighbours(np.array(list(numbers.values()), dtype=np.int64))
    worth = np.array([active[key].score / active[key].tier for key in numbers])
    bonus = np.bincount(
        standing.columns, worth[standing.positions] * np.log1p(standing.weights), minlength=topology.n_chunks
    )
    reset[walk.n_entities :] = PASSAGE_WEIGHT * (NEARNESS_WEIGHT * prior + np.log1p(bonus))
    ranks = await ranked(walk, reset, DAMPING)
    found = await top_chunks(ranks[walk.n_entities :], query.chunk_top_k, view)
    ways = await ways_to(found, Trail(walk=walk, reset=reset, ranks=ranks, damping=DAMPING), view)
    return tuple(Hit(id=s.id, score=s.score, reason=f"the walk is here, {s.score:.4g}, {ways[s.id]}") for s in found)


def _reason(active: Active) -> str:
    return "named in the question" if active.tier == 1 else f"reached in step {active.tier - 1}, {active.score:.3f}"


STRATEGY = Strategy(
    name="linear",
    retrieve=retrieve,
    summary="from named entities by sentences near the question to others, and a walk over entities and passages",
    after="LinearRAG",
    when="the question names things and the answer takes several steps; no language model was or is to be asked",
    needs=("chunk vectors", "topology", SENTENCES),
    better_with=(NAMES,),
)
