"""Communities: groups of entities that are related to each other more than to the rest, level by level.

Hierarchical Leiden as in D. Edge et al., From Local to Global: A Graph RAG Approach (2024), on every component. This is
the one derivation with a memory: what changed is moved to where it belongs now, and all else stays as it was, so that a
community keeps its identity, and its report, while documents come and go. Made anew it depends on the documents alone.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version

import numpy as np

from quipu.algo.communities import Before, Community, divide
from quipu.algo.leiden import VERSION
from quipu.algo.pairs import Ints, inside
from quipu.derive.community_hashes import Plan, plan_clusters
from quipu.derive.derivation import Bench, Derivation
from quipu.derive.pair_graph import PairGraph, read_pair_graph
from quipu.model.cluster import Cluster, Hierarchy, Partition
from quipu.model.delta import Delta
from quipu.model.derivation import DerivationReport, DerivationState, Freshness
from quipu.model.made import Made
from quipu.ports.store import ReadView
from quipu.text.counted import counted

NAME = "communities"
MAX_SIZE = 10  # entities: larger communities are divided again, as in Microsoft GraphRAG
_ROW_BYTES = 60  # of a cluster, or of an entity in one


def identity() -> str:
    """Return what communities are made by: another version of the library finds others."""
    return f"communities/1 {VERSION} {version('graspologic-native')} size {MAX_SIZE}"


async def state(view: ReadView, _bench: Bench) -> DerivationState:
    """Return how many communities there are, and how many hold something that changed."""
    made, counts = (await view.derivations()).get(NAME), await view.cluster_counts(Hierarchy.COMMUNITIES)
    n, n_levels = sum(each.n_clusters for each in counts), len(counts)
    if made is None:
        freshness = Freshness.MISSING
    else:
        freshness = Freshness.STALE if await _is_stale(view, made) else Freshness.FRESH
    return DerivationState(
        name=NAME,
        freshness=freshness,
        holds=f"{counted(n, 'community')} in {counted(n_levels, 'level')}" if made is not None else "",
        n_items=n,
        n_stale=sum(each.n_unsettled for each in counts),
        n_bytes=_ROW_BYTES * (n + counts[0].n_entities) if counts else 0,
    )


async def refresh(bench: Bench, rebuild: bool) -> DerivationReport:
    """Bring communities up to date, or find all of them anew."""
    async with bench.store.view() as view:
        made = (await view.derivations()).get(NAME)
        stored = await view.clusters(Hierarchy.COMMUNITIES)
        is_anew = rebuild or made is None or made.identity != identity()
        if not is_anew and made is not None and not await _is_stale(view, made):
            return DerivationReport(name=NAME, n_kept=len(stored))
        graph = await read_pair_graph(view, await bench.topology.of(view))
        plan = await asyncio.to_thread(_divided, graph, [] if is_anew else stored, is_anew=is_anew)
        clusters = await asyncio.to_thread(plan.clusters, await plan.read(view))
        revision = view.revision
    partition = Partition(hierarchy=Hierarchy.COMMUNITIES, clusters=clusters, revision=revision)
    await bench.store.commit(Delta(partition=partition, made=[Made(name=NAME, identity=identity(), revision=revision)]))
    n_kept = len({(each.id, each.inputs_hash) for each in stored} & {(each.id, each.inputs_hash) for each in clusters})
    return DerivationReport(name=NAME, n_made=len(clusters) - n_kept, n_kept=n_kept)


async def _is_stale(view: ReadView, made: Made) -> bool:
    counts = await view.cluster_counts(Hierarchy.COMMUNITIES)
    if made.identity != identity() or any(each.n_unsettled for each in counts):
        return True
    changed = await view.changed_since(made.revision)
    return changed is None or len(changed.chunks) > 0


def divide_rest(graph: PairGraph, rest: Ints, stored: Sequence[Cluster]) -> list[Community]:
    """Return the communities of the entities at these places [n] among themselves, from those they were in before."""
    (within,) = inside(graph.tied, [rest])
    before = _before(stored, [graph.keys[place] for place in rest.tolist()])
    found = divide(within, max_size=MAX_SIZE, before=before)
    return [replace(each, nodes=rest[each.nodes]) for each in found]


def _divided(graph: PairGraph, stored: Sequence[Cluster], *, is_anew: bool) -> Plan:
    before = None if is_anew else _before(stored, graph.keys)
    found = divide(graph.tied, max_size=MAX_SIZE, before=before)
    return plan_clusters(graph.keys, graph.relations, found, stored)


def _before(stored: Sequence[Cluster], keys: Sequence[str]) -> Before:
    """Return how the entities were divided; those of finest clusters in which something changed may move."""
    place = {key: at for at, key in enumerate(keys)}
    number = {each.id: at for at, each in enumerate(stored)}
    levels = [np.full(len(keys), -1, dtype=np.int64) for _ in range(max((c.level for c in stored), default=-1) + 1)]
    free = np.ones(len(keys), dtype=np.bool_)
    for each in stored:
        nodes = np.array([place[key] for key in each.members if key in place], dtype=np.int64)
        free[nodes] = not each.inputs_hash
        at: Cluster | None = each
        while at is not None and len(nodes):
            levels[at.level][nodes] = number[at.id]
            at = stored[number[at.parent]] if at.parent else None
    return Before(levels, free)


DERIVATION = Derivation(
    name=NAME,
    summary="groups of entities that are related to each other more than to the rest",
    state=state,
    refresh=refresh,
)
