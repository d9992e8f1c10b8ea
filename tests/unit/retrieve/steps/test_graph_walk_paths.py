"""Tests of tracing: the way by which most of a walk came to a passage, by hand."""

from pathlib import Path

import numpy as np
import pytest

from quipu.model.evidence import Scored
from quipu.ports.derivation_view import NodeKind
from quipu.ports.store import ReadView
from quipu.retrieve.steps import graph_walk
from quipu.retrieve.steps.graph_walk import (
    MentionWeight,
    WalkResult,
    WalkWeights,
    build_walk_graph,
    describe_paths,
    rank_nodes,
)
from quipu.topology import LocalTopologyIndex
from tests.unit.retrieve.fakes import Library, page

_PAGES = [
    page("One", "Ada met Bob.", names={"Ada": "Person", "Bob": "Person"}, relations=[("Ada", "Bob", "They met.")]),
    page("Two", "Bob met Cyril.", names={"Bob": "Person", "Cyril": "Person"}),
    page("Three", "Cyril left Dorn.", names={"Cyril": "Person", "Dorn": "Location"}),
    page("Four", "Nothing here."),
]


async def _ways(
    library: Library,
    folder: Path,
    starts: dict[str, float],
    near: dict[str, float],
    *,
    share: float = 1.0,
    excess: float = 0.0,
) -> dict[str, str]:
    """Return the way to each page by its title, of a walk that starts again at entities and near pages.

    Of all walks it is this share: the others are elsewhere. Bob's rank is told by this part of it too high.
    """
    async with library.view() as view:
        topology = await LocalTopologyIndex(folder / "topology").open(view)
        walk = build_walk_graph(topology, WalkWeights(facts=1.0, mentions=MentionWeight.ONE))
        reset = np.zeros(walk.n_nodes)
        for key, number in (await view.numbers(NodeKind.ENTITY, list(starts))).items():
            reset[number] = starts[key]
        title_by_id = await _titles(view)
        for chunk, number in (await view.numbers(NodeKind.CHUNK, list(title_by_id))).items():
            reset[walk.n_entities + number] = near.get(title_by_id[chunk], 0.0)
        ranks = share * await rank_nodes(walk, reset, 0.5)
        for number in (await view.numbers(NodeKind.ENTITY, ["bob"])).values():
            ranks[number] *= 1 + excess
        trail = WalkResult(graph=walk, reset=reset, ranks=ranks, damping=0.5)
        ways = await describe_paths([Scored(id=each, score=1.0) for each in title_by_id], trail, view)
    return {title_by_id[chunk]: way for chunk, way in ways.items()}


async def _titles(view: ReadView) -> dict[str, str]:
    documents = await view.documents()
    return {chunk.id: chunk.title for each in documents for chunk in await view.chunks(document_id=each.id)}


async def test_a_passage_some_steps_away_is_told_with_all_steps(library: Library, tmp_path: Path) -> None:
    await library.publish(*_PAGES)
    ways = await _ways(library, tmp_path, {"ada": 1.0}, {"Four": 0.1, "Two": 0.001})
    two = _PAGES[1].chunks[0].chunk.id
    assert ways == {
        "One": "reached by ada",
        "Two": "reached by ada → bob",
        "Three": f"reached by ada → bob → passage {two} → cyril",
        "Four": "mostly because it is similar to the question",
    }


async def test_a_way_too_long_to_follow_is_told_by_its_last_step(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph_walk, "MAX_STEPS", 3)
    await library.publish(*_PAGES)
    ways = await _ways(library, tmp_path, {"ada": 1.0}, {})
    assert ways["Three"] == "reached by … → cyril"


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
async def test_of_equal_ways_the_first_by_id_is_told(library: Library, tmp_path: Path, order: tuple[int, ...]) -> None:
    pages = [
        page("Both", "Ada met Bob.", names={"Ada": "Person", "Bob": "Person"}),
        page("Ada", "Ada slept.", names={"Ada": "Person"}),
        page("Bob", "Bob slept.", names={"Bob": "Person"}),
    ]
    for place in order:
        await library.publish(pages[place])
    ways = await _ways(library, tmp_path, {"ada": 1.0, "bob": 1.0}, {})
    assert ways == {"Both": "reached by ada", "Ada": "reached by ada", "Bob": "reached by bob"}


async def test_of_many_passages_too_the_way_by_which_more_comes_is_told(library: Library, tmp_path: Path) -> None:
    await library.publish(page("Both", "Ada met Bob.", names={"Ada": "Person", "Bob": "Person"}))
    ways = await _ways(library, tmp_path, {"ada": 1.0, "bob": 1.01}, {}, share=1e-7)
    assert ways == {"Both": "reached by bob"}


@pytest.mark.parametrize(
    ("share", "excess", "way"),
    [
        (1.0, 3e-7, "reached by ada"),  # 3.333333e-01 and 3.333334e-01
        (1.0, 1e-5, "reached by bob"),
        (1e-8, 3e-4, "reached by ada"),  # 3.333e-09 and 3.334e-09, which have no more decimals
        (1e-8, 1e-3, "reached by bob"),
    ],
)
async def test_ways_are_equal_where_ranks_differ_by_how_they_are_rounded(
    library: Library, tmp_path: Path, share: float, excess: float, way: str
) -> None:
    await library.publish(page("Both", "Ada met Bob.", names={"Ada": "Person", "Bob": "Person"}))
    ways = await _ways(library, tmp_path, {"ada": 1.0, "bob": 1.0}, {}, share=share, excess=excess)
    assert ways == {"Both": way}
