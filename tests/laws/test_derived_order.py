"""Law 1 with every derivation kept: any history ends in the state of a fresh build of its survivors."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import numpy as np
import pytest

from quipu.algo.graph_communities import Community
from quipu.derive import communities
from quipu.derive.community_partition import CommunityGraph, partition_graph
from quipu.engine import Quipu
from quipu.model.cluster import Cluster, Hierarchy
from quipu.stores.relational import chunks, cluster_writes, entities
from quipu.stores.relational.cluster_writes import Touched
from quipu.stores.relational.vector_writes import VectorChanges
from quipu.testing.llm import ScriptedLLM
from tests.laws.derived_world import (
    NAMES,
    canonical_state,
    history,
    keep_all,
    live,
    story,
    told_of,
)
from tests.laws.model_world import dump_of, script, scripted_engine
from tests.laws.world import engine

N_HISTORIES = 1


def opened(folder: Path, *, asks: bool) -> AbstractAsyncContextManager[Quipu]:
    """Open an engine without a model, or with a scripted one."""
    return scripted_engine(folder, ScriptedLLM(script())) if asks else engine(folder)


async def both(folder: Path, seed: int, *, asks: bool = False) -> tuple[object, object]:
    """Live through a history; return the state at its end, and that of a fresh build in another order."""
    async with opened(folder / "lived", asks=asks) as kb:
        await keep_all(kb)
        alive = await live(kb, history(seed))
        lived = await canonical_state(kb)
    async with opened(folder / "fresh", asks=asks) as kb:
        await kb.add(*sorted(alive, key=lambda source: source.id, reverse=True))
        await keep_all(kb)
        return lived, await canonical_state(kb)


async def differs(folder: Path, seed: int) -> bool:
    """Say whether a history shows in the dump, or in what `verify` finds."""
    found: list[tuple[list[str], list[str]]] = []
    try:
        async with engine(folder / "lived") as kb:
            await keep_all(kb)
            alive = await live(kb, history(seed))
            found.append((await kb.verify(), await dump_of(kb)))
        async with engine(folder / "fresh") as kb:
            await kb.add(*alive)
            await keep_all(kb)
            found.append(([], await dump_of(kb)))
    except Exception:  # a broken engine may fail in many ways
        return True
    return found[0] != found[1]


async def test_any_history_ends_in_the_state_of_a_fresh_build_of_its_survivors(laws_scale: int, tmp_path: Path) -> None:
    for seed in range(N_HISTORIES * laws_scale):
        lived, fresh = await both(tmp_path / str(seed), seed)
        assert lived == fresh, seed


async def test_so_it_does_where_a_model_tells(laws_scale: int, tmp_path: Path) -> None:
    for seed in range(100, 100 + laws_scale):
        lived, fresh = await both(tmp_path / str(seed), seed, asks=True)
        assert lived == fresh, seed


class StartFromEarlier:
    """Leaves the finest communities as they are while all their entities exist."""

    def __init__(self) -> None:
        self._members: list[tuple[str, ...]] = []

    def partition_graph(self, graph: CommunityGraph, stored: Sequence[Cluster], _: Sequence[Community]) -> object:
        """Return communities as `partition_graph` does, with the earlier ones in the place of imported ones."""
        place_by_key = {key: place for place, key in enumerate(graph.keys)}
        earlier = [
            Community(0, -1, np.array([place_by_key[key] for key in members]), True)
            for members in (self._members if stored else ())
            if place_by_key.keys() >= set(members)
        ]
        plan = partition_graph(graph, stored, earlier)
        self._members = [members for members in plan.members if members]
        return plan


async def never(*_: object) -> bool:
    """Say that nothing has changed."""
    return False


# What is broken, and the history in which it shows soonest.
FAULTS: Mapping[str, tuple[int, Callable[[pytest.MonkeyPatch], None]]] = {
    "synonyms stay": (2, lambda patch: patch.setattr(entities, "drop_synonyms", lambda *_: frozenset())),
    "sentences stay": (2, lambda patch: patch.setattr(chunks, "_drop_sentences", lambda *_: VectorChanges())),
    "changes unsettle nothing": (
        1,
        lambda patch: patch.setattr(cluster_writes, "follow_mentions", lambda *_: Touched()),
    ),
    "communities start from those before": (
        2,
        lambda patch: patch.setattr(communities, "partition_graph", StartFromEarlier().partition_graph),
    ),
    "communities stay until they are dropped": (2, lambda patch: patch.setattr(communities, "_is_stale", never)),
    "relations of aggregates stay": (4, lambda patch: patch.setattr(cluster_writes, "drop_relations", lambda *_: None)),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_the_law_fails_where(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seed, break_it = FAULTS[fault]
    break_it(monkeypatch)
    assert await differs(tmp_path, seed)


@pytest.mark.parametrize("asks", [False, True])
async def test_what_is_added_and_removed_again_was_never_there(asks: bool, tmp_path: Path) -> None:
    async with opened(tmp_path / "kb", asks=asks) as kb:
        await kb.add(*(story(name, 0) for name in NAMES[:3]))
        await keep_all(kb)
        before = await canonical_state(kb)
        await kb.add(story(NAMES[3], 1), story(NAMES[4], 2))
        assert await dump_of(kb) != before
        await kb.remove(NAMES[3:5])
        assert await canonical_state(kb) == before


@pytest.mark.parametrize("asks", [False, True])
async def test_a_rebuild_changes_nothing(asks: bool, tmp_path: Path) -> None:
    async with opened(tmp_path / "kb", asks=asks) as kb:
        await keep_all(kb)
        await live(kb, history(7))
        before = await canonical_state(kb)
        clusters, reports = await told_of(kb, Hierarchy.COMMUNITIES)
        assert len(reports) == len(clusters) > 2
        await kb.refresh(["communities", "reports"], rebuild=True)
        assert await canonical_state(kb) == before


async def test_the_law_of_reports_fails_where_changes_unsettle_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_writes, "follow_mentions", lambda *_: Touched())
    with pytest.raises(AssertionError):
        await test_a_rebuild_changes_nothing(False, tmp_path)
