"""Chains: the shortest ways from where a search began to a chunk, over relations of the evidence."""

from collections import deque
from collections.abc import Mapping, Sequence

from quipu.model.evidence import Chain, Seed, Step
from quipu.model.ids import relation_ends
from quipu.retrieve.grounds import Known

MAX_CHAINS = 3


def chains(chunk: str, known: Known) -> tuple[Chain, ...]:
    """Return the shortest chains from seeds to a chunk: those that found it itself first, then by number of steps."""
    direct, over = [], []
    targets = {key for key, chunks in known.named_in.items() if chunk in chunks}
    targets |= {
        end for relation, chunks in known.stated_in.items() if chunk in chunks for end in relation_ends(relation)
    }
    neighbours = _neighbours(known)
    for seed in known.evidence.seeds:
        for scored in seed.found:
            if scored.id.partition("#")[0] == chunk:  # the chunk, or one of its sentences
                direct.append(Chain(seed=seed.text, kind=seed.kind, score=scored.score))
                break
        else:
            over += _chain(seed, targets, neighbours, known)
    over.sort(key=lambda chain: (len(chain.steps), -chain.score))
    return (*direct, *over)[:MAX_CHAINS]


def _neighbours(known: Known) -> dict[str, list[tuple[str, str]]]:
    """Return, for each entity, the entities that relations of the evidence lead to, with the relation, best first."""
    found: dict[str, list[tuple[str, str]]] = {}
    for relation in known.relations:
        source, target = relation_ends(relation)
        found.setdefault(source, []).append((target, relation))
        found.setdefault(target, []).append((source, relation))
    return found


def _chain(
    seed: Seed, targets: set[str], neighbours: Mapping[str, Sequence[tuple[str, str]]], known: Known
) -> list[Chain]:
    """Return the shortest chain from what a seed found to one of the targets; of equal ones the first found."""
    came_by: dict[str, tuple[str, str] | None] = {}
    score_of: dict[str, float] = {}
    for scored in seed.found:
        ends = relation_ends(scored.id) if scored.id in known.relations else (scored.id,)
        for key in ends:
            if key in known.entities and key not in came_by:
                came_by[key], score_of[key] = None, scored.score
    waiting = deque(came_by)
    while waiting:
        key = waiting.popleft()
        if key in targets:
            steps = _steps(key, came_by, known)
            start = steps[0][0] if steps else key
            told = tuple(step for _, step in steps)
            name = known.names.get(start, start)
            return [Chain(seed=seed.text, kind=seed.kind, score=score_of[start], start=name, steps=told)]
        for other, relation in neighbours.get(key, ()):
            if other not in came_by:
                came_by[other] = (key, relation)
                waiting.append(other)
    return []


def _steps(key: str, came_by: Mapping[str, tuple[str, str] | None], known: Known) -> list[tuple[str, Step]]:
    """Return the steps that lead to an entity, in order, each with the key it begins at."""
    steps: list[tuple[str, Step]] = []
    while (before := came_by[key]) is not None:
        source, relation = before
        step = Step(
            source=known.names.get(source, source),
            relation=relation,
            target=known.names.get(key, key),
            description=known.relations[relation].description,
        )
        steps.append((source, step))
        key = source
    return steps[::-1]
