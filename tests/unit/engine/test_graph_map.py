"""The map of the graph: the same whatever the history, bounded on every level, and filtered as asked."""

import asyncio
import random
import threading
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from quipu.engine import Quipu
from quipu.engine.graph_map import MAX_ON_MAP, GraphMap, MapLevel, MappedGraph, MapQuery, map_graph
from quipu.errors import InvalidInput, NotFound
from quipu.model.delta import DocumentFacts
from quipu.model.graph import EntityMention
from quipu.testing.contract.steps import publish, remove
from quipu.testing.facts import FactMention, document, entity, passage, relation
from tests.laws.world import engine

FAR, MIDDLE, NEAR = MapLevel.FAR, MapLevel.MIDDLE, MapLevel.NEAR


def _documents(n_entities: int, *, per_document: int = 50, seed: int = 0) -> list[DocumentFacts]:
    """Return documents that name entities of their own, and relate most of them to each other."""
    chance = random.Random(seed)
    names = [f"Name {number:05}" for number in range(n_entities)]
    documents = []
    for start in range(0, n_entities, per_document):
        own = names[start : start + per_document]
        mentions: list[FactMention] = [_mention(name) for name in own]
        for _ in range(2 * len(own)):
            first, second = chance.choice(own), chance.choice(own if chance.random() < 0.8 else names)
            if first != second:
                foreign = [] if second in own else [_mention(second)]
                mentions += [*foreign, relation(first, second, weight=1.0 + chance.randrange(3))]
        documents.append(document(f"d{start}", passage(f"Names from {start}, drawn with {seed}.", *mentions)))
    return documents


def _mention(name: str) -> EntityMention:
    return entity(name, "Person" if int(name[-1]) < 5 else "Place")


@pytest.fixture
async def kb(tmp_path: Path) -> AsyncIterator[Quipu]:
    async with engine(tmp_path / "kb") as kb:
        await publish(kb._components.store, *_documents(480))
        yield kb


def _drawn(graph_map: GraphMap) -> list[tuple[object, ...]]:
    """Return all that a map says but its revision."""
    arrays = [(name, column.tolist()) for name, column in (*graph_map.nodes.items(), *graph_map.edges.items())]
    return [(graph_map.ids, graph_map.labels, graph_map.types, graph_map.communities, graph_map.bounds), *arrays]


def _queries(names: Sequence[str]) -> list[MapQuery]:
    return [
        MapQuery(),
        MapQuery(level=MIDDLE, box=(-40, -30, 20, 30)),
        MapQuery(level=NEAR, names=names, types=["Person"]),
    ]


async def test_the_same_documents_have_the_same_map_whatever_the_history(kb: Quipu, tmp_path: Path) -> None:
    documents = _documents(480)
    random.Random(5).shuffle(documents)
    async with engine(tmp_path / "other") as other:
        store = other._components.store
        await publish(store, *_documents(100, seed=7), document("gone", passage("Zug.", entity("Zug"))))
        await other.graph_map()
        await other.refresh(["communities"])
        await remove(store, "gone")
        for published in documents:
            await publish(store, published)
        for query in _queries(["Name 00007"]):
            assert _drawn(await other.graph_map(query)) == _drawn(await kb.graph_map(query))


async def test_the_layout_is_kept_until_the_graph_changes(kb: Quipu) -> None:
    before = await kb.graph_map()
    layout = kb._mapped.layout if kb._mapped else None
    await publish(kb._components.store, document("empty", passage("It names nothing.")))
    after = await kb.graph_map()
    assert after.revision > before.revision
    assert kb._mapped
    assert kb._mapped.layout is layout
    await publish(kb._components.store, document("new", passage("Zug.", entity("Zug"))))
    assert (await kb.graph_map()).n_entities == before.n_entities + 1
    assert kb._mapped.layout is not layout


async def test_a_layout_that_nobody_waits_for_is_finished_and_kept(kb: Quipu, monkeypatch: pytest.MonkeyPatch) -> None:
    has_begun, may_end = threading.Event(), threading.Event()
    n_computed = 0

    def slow_layout(*arguments: Any) -> MappedGraph:
        nonlocal n_computed
        n_computed += 1
        has_begun.set()
        assert may_end.wait(60)
        return map_graph(*arguments)

    monkeypatch.setattr("quipu.engine.graph_map.map_graph", slow_layout)
    first = asyncio.create_task(kb.graph_map())
    await asyncio.to_thread(has_begun.wait, 60)
    first.cancel()
    second = asyncio.create_task(kb.graph_map())
    may_end.set()
    assert (await second).ids
    with pytest.raises(asyncio.CancelledError):
        await first
    assert n_computed == 1


async def test_every_level_is_bounded(tmp_path: Path) -> None:
    async with engine(tmp_path / "kb") as kb:
        await publish(kb._components.store, *_documents(10_000, per_document=25))
        hub = [relation("Hub", f"Name {number:05}") for number in range(0, 10_000, 4)]
        names = [entity(f"Name {number:05}") for number in range(0, 10_000, 4)]
        await publish(kb._components.store, document("hub", passage("Hub.", entity("Hub"), *names, *hub)))
        for query in (MapQuery(), MapQuery(level=MIDDLE), MapQuery(level=NEAR, names=["Hub"])):
            drawn = await kb.graph_map(query)
            max_nodes, max_edges = MAX_ON_MAP[query.level]
            assert 1_000 < len(drawn.ids) == len(drawn.labels) <= max_nodes
            assert len(drawn.edges["weight"]) <= max_edges
            assert {len(column) for column in drawn.nodes.values()} == {len(drawn.ids)}
        assert len(drawn.ids) == 2_000
        assert drawn.n_more_nodes == 501
        few = await kb.graph_map(MapQuery(max_nodes=7))
        assert len(few.ids) == 7
        assert few.n_more_nodes == (await kb.graph_map()).n_more_nodes + len((await kb.graph_map()).ids) - 7


async def test_far_parents_come_before_their_parts_and_sizes_add_up(kb: Quipu) -> None:
    drawn = await kb.graph_map()
    parents, sizes = drawn.nodes["parent"], drawn.nodes["size"]
    assert (parents < np.arange(len(parents))).all()
    assert sizes[parents < 0].sum() == drawn.n_entities == 480
    for parent in set(parents[parents >= 0].tolist()):
        assert sizes[parents == parent].sum() == sizes[parent]
    assert [drawn.communities[place] for place in drawn.nodes["community"][parents < 0]] == [
        identifier for identifier, parent in zip(drawn.ids, parents, strict=True) if parent < 0
    ]


async def test_far_edges_sum_the_relations_between_communities_and_never_lead_inside(kb: Quipu) -> None:
    drawn = await kb.graph_map(MapQuery(max_nodes=12))
    coarse = {node for node in range(len(drawn.ids)) if drawn.nodes["parent"][node] < 0}
    ends = list(zip(drawn.edges["source"].tolist(), drawn.edges["target"].tolist(), strict=True))
    assert ends
    assert all(drawn.nodes["parent"][a] != b and drawn.nodes["parent"][b] != a for a, b in ends)
    if len(coarse) == 12:
        total = sum(edge.weight for edge in (await kb.relations(k=1_000)).relations)
        assert 0 < drawn.edges["weight"].sum() < total
    weights = drawn.edges["weight"]
    assert (np.diff(weights) <= 0).all()


async def test_a_community_has_the_title_of_its_report_or_the_name_of_its_strongest_entity(kb: Quipu) -> None:
    before = await kb.graph_map()
    middle = await kb.graph_map(MapQuery(level=MIDDLE, communities=[before.ids[0]]))
    assert before.labels[0] == middle.labels[0]
    assert len(middle.ids) == before.nodes["size"][0]
    await kb.refresh(["reports"])
    after = await kb.graph_map()
    assert after.ids == before.ids
    report = (await kb.report(after.ids[0])).report
    assert report is not None
    assert after.labels[0] == report.title != before.labels[0]


async def test_the_middle_shows_the_strongest_entities_in_the_box_and_their_relations(kb: Quipu) -> None:
    whole = await kb.graph_map(MapQuery(level=MIDDLE))
    assert (len(whole.ids), len(whole.edges["weight"])) == (whole.n_entities, whole.n_relations)
    assert (np.diff(whole.nodes["size"].astype(int)) <= 0).all()
    box = (-20.0, -20.0, 10.0, 15.0)
    part = await kb.graph_map(MapQuery(level=MIDDLE, box=box, max_nodes=20))
    is_inside = (
        (whole.nodes["x"] >= box[0])
        & (whole.nodes["x"] <= box[2])
        & (whole.nodes["y"] >= box[1])
        & (whole.nodes["y"] <= box[3])
    )
    inside = [key for key, here in zip(whole.ids, is_inside, strict=True) if here]
    assert part.ids == tuple(inside[:20])
    assert part.n_more_nodes == len(inside) - 20 > 0
    pairs = {
        frozenset((part.ids[a], part.ids[b])) for a, b in zip(part.edges["source"], part.edges["target"], strict=True)
    }
    relations = (await kb.relations(k=1_000)).relations
    listed = {frozenset((edge.source, edge.target)) for edge in relations}
    assert pairs == {pair for pair in listed if pair <= set(part.ids)}


async def test_near_shows_the_neighbours_by_weight_and_how_many_more(kb: Quipu) -> None:
    name = "Name 00123"
    page = await kb.neighbours(name, k=100)
    near = await kb.graph_map(MapQuery(level=NEAR, names=[name], max_nodes=3))
    assert near.labels == (name, *(neighbour.name for _, neighbour in page.neighbours[:2]))
    assert near.n_more_nodes == page.n_total - 2
    whole = await kb.graph_map(MapQuery(level=MIDDLE))
    place = whole.ids.index(near.ids[0])
    assert (near.nodes["x"][0], near.nodes["y"][0]) == (whole.nodes["x"][place], whole.nodes["y"][place])
    path = (await kb.paths(name, "Name 00456"))[0]
    keys = [step.key for step in path.entities]
    drawn = await kb.graph_map(MapQuery(level=NEAR, names=keys, max_nodes=len(keys)))
    assert list(drawn.ids) == keys


async def test_a_type_filters_nodes_sizes_and_edges(kb: Quipu) -> None:
    everything = await kb.graph_map()
    people = await kb.graph_map(MapQuery(types=["Person"]))
    assert people.nodes["size"][people.nodes["parent"] < 0].sum() == 240
    assert people.edges["weight"].sum() < everything.edges["weight"].sum()
    persons = await kb.graph_map(MapQuery(level=MIDDLE, types=["Person"]))
    assert len(persons.ids) == 240
    assert {persons.types[code] for code in persons.nodes["type"]} == {"Person"}
    assert not (await kb.graph_map(MapQuery(level=MIDDLE, types=["Ship"]))).ids


async def test_a_box_shows_the_communities_that_reach_into_it(kb: Quipu) -> None:
    whole = await kb.graph_map()
    x, y, radius = (float(whole.nodes[name][-1]) for name in ("x", "y", "radius"))
    part = await kb.graph_map(MapQuery(box=(x - radius / 9, y - radius / 9, x + radius / 9, y + radius / 9)))
    assert whole.ids[-1] in part.ids
    assert 0 < len(part.ids) < len(whole.ids)
    outside = await kb.graph_map(MapQuery(box=(1e6, 1e6, 2e6, 2e6)))
    assert (outside.ids, len(outside.edges["weight"]), outside.bounds) == ((), 0, whole.bounds)


async def test_an_empty_graph_and_one_entity_have_a_map(tmp_path: Path) -> None:
    async with engine(tmp_path / "kb") as kb:
        for level in (FAR, MIDDLE):
            drawn = await kb.graph_map(MapQuery(level=level))
            assert (drawn.ids, drawn.bounds, drawn.communities) == ((), (0, 0, 0, 0), ())
        await publish(kb._components.store, document("one", passage("Ada.", entity("Ada"))))
        for query in (MapQuery(), MapQuery(level=MIDDLE), MapQuery(level=NEAR, names=["Ada"])):
            assert (await kb.graph_map(query)).labels == ("Ada",)


@pytest.mark.parametrize(
    "query",
    [
        MapQuery(box=(0, 0, 0, 1)),
        MapQuery(box=(0, 5, 1, 4)),
        MapQuery(box=(0, 0, float("nan"), 1)),
        MapQuery(box=(0, 0, float("inf"), 1)),
        MapQuery(max_nodes=2_001),
        MapQuery(level=MIDDLE, max_nodes=-1),
        MapQuery(level=NEAR),
        MapQuery(level=FAR, names=["Name 00001"]),
    ],
)
async def test_a_wrong_query_is_refused(kb: Quipu, query: MapQuery) -> None:
    with pytest.raises(InvalidInput):
        await kb.graph_map(query)


async def test_an_unknown_community_or_entity_is_named(kb: Quipu) -> None:
    with pytest.raises(NotFound, match="nowhere"):
        await kb.graph_map(MapQuery(communities=["nowhere"]))
    with pytest.raises(NotFound, match="Nobody"):
        await kb.graph_map(MapQuery(level=NEAR, names=["Nobody"]))
