"""Spreading: scores of entities carried over to their relations, and scores of both to the passages they come from."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from quipu.model.evidence import Hit, Scored
from quipu.model.ids import relation_id
from quipu.ports.derivation_view import NodeKind
from quipu.ports.store import ReadView
from quipu.ports.topology import EdgeWeight, Floats, Topology
from quipu.retrieve.steps.passages import MAX_CHUNKS_PER_ENTITY
from quipu.retrieve.steps.walk import rounded


async def spread_to_relations(
    entities: Sequence[Scored], ranks: Floats, k: int, *, topology: Topology, view: ReadView
) -> tuple[tuple[Hit, ...], list[Scored]]:
    """Return the k relations with the highest sum of ranks at their ends, and the entities that have none.

    Of `ranks` ([n_entities]) only those of `entities` count; where these are equal, those of the other ends tell
    relations apart, then ids.
    """
    number_by_key = await view.numbers(NodeKind.ENTITY, [entity.id for entity in entities])
    numbers = np.array([number_by_key[entity.id] for entity in entities], dtype=np.int64)
    counted = np.zeros(len(ranks))
    counted[numbers] = ranks[numbers]
    links = topology.relations(EdgeWeight.ONE).neighbours(numbers)
    ends = np.sort(np.stack([numbers[links.positions], links.columns], axis=1), axis=1)
    ends = np.unique(ends, axis=0) if len(ends) else ends
    sums, of_all = (rounded(each[ends].sum(axis=1)) for each in (counted, ranks))
    order = np.lexsort((-of_all, -sums))
    if len(order) > k:
        last = order[k - 1]
        order = order[(sums[order] > sums[last]) | (sums[order] == sums[last]) & (of_all[order] >= of_all[last])]
    keys = await view.ids(NodeKind.ENTITY, np.unique(ends[order]).tolist())
    hits = [
        (
            -total,
            Hit(id=relation_id(keys[a], keys[b]), score=score, reason=f"its ends have ranks that sum to {total:.4g}"),
        )
        for (a, b), score, total in zip(ends[order].tolist(), sums[order].tolist(), of_all[order].tolist(), strict=True)
    ]
    best = sorted(hits, key=lambda each: (-each[1].score, each[0], each[1].id))[:k]
    isolated = np.setdiff1d(np.arange(len(entities)), links.positions)
    return tuple(hit for _, hit in best), [entities[place] for place in isolated.tolist()]


async def spread_to_chunks(
    relations: Sequence[Hit], entities: Sequence[Scored], k: int, view: ReadView
) -> tuple[Hit, ...]:
    """Return the k chunks with the highest sum of the scores of the relations they state and the entities they name."""
    stated = await view.chunks_of_relations([relation.id for relation in relations])
    named = await view.chunks_of_entities([entity.id for entity in entities], MAX_CHUNKS_PER_ENTITY)
    scores: defaultdict[str, float] = defaultdict(float)
    reasons: defaultdict[str, list[str]] = defaultdict(list)
    for score, verb, i, chunks in [
        *((relation.score, "states", relation.id, stated.get(relation.id, ())) for relation in relations),
        *((entity.score, "names", entity.id, named.get(entity.id, ())) for entity in entities),
    ]:
        for chunk in chunks:
            scores[chunk] += score
            reasons[chunk].append(f"{verb} {i}")
    sums = dict(zip(scores, rounded(np.array(list(scores.values()))).tolist(), strict=True))
    best = sorted(sums, key=lambda chunk: (-sums[chunk], chunk))[:k]
    return tuple(Hit(id=chunk, score=sums[chunk], reason=_all_of(reasons[chunk])) for chunk in best)


def _all_of(reasons: Sequence[str]) -> str:
    return reasons[0] if len(reasons) == 1 else f"{reasons[0]}; {len(reasons) - 1} more of what ranks high"
