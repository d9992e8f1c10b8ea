"""Tests of the pages of the graph: complete, bounded, and the same whatever the history of the index."""

import random
from collections.abc import AsyncIterator, Callable, Coroutine
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from quipu.engine import Quipu
from quipu.errors import InvalidInput, NotFound
from quipu.model.delta import DocumentFacts
from quipu.model.results import EntityPage, NeighbourPage, RelationPage
from quipu.testing.contract.steps import publish, remove
from quipu.testing.facts import alias, document, entity, passage, relation
from tests.laws.world import engine

# A hub that knows everybody, a chain beside it, and a pair that nothing connects with the rest.
_EDGES = (
    *(("Hub", name, 1.0) for name in ("Acre", "Bern", "Cairo", "Delft", "Essen")),
    ("Acre", "Bern", 3.0),
    ("Bern", "Cairo", 2.5),
    ("Acre", "Dover", 1.0),
    ("Dover", "Cairo", 1.0),
    ("Лхаса", "长城", 1.0),
)
_PEOPLE = {"Hub", "Dover"}

AnyPage = EntityPage | RelationPage | NeighbourPage


def _documents() -> list[DocumentFacts]:
    def kind(name: str) -> str:
        return "Person" if name in _PEOPLE else "Location"

    return [
        document(
            f"d{n}",
            passage(
                f"{first} and {second}.",
                entity(first, kind(first)),
                entity(second, kind(second)),
                relation(first, second, f"{first} meets {second}.", weight=weight),
            ),
        )
        for n, (first, second, weight) in enumerate(_EDGES)
    ]


@pytest.fixture
async def kb(tmp_path: Path) -> AsyncIterator[Quipu]:
    async with engine(tmp_path / "kb") as kb:
        store = kb._components.store
        documents = _documents()
        await publish(store, *documents[3:])
        await publish(store, document("gone", passage("x", entity("Hub"), entity("Zug"), relation("Hub", "Zug"))))
        await publish(store, *documents[:3])
        await remove(store, "gone")
        yield kb


async def _all_pages(read: Callable[[str], Coroutine[Any, Any, AnyPage]]) -> list[AnyPage]:
    pages = [await read("")]
    while pages[-1].cursor:
        pages.append(await read(pages[-1].cursor))
    return pages


async def test_entities_with_the_most_relations_come_first_then_by_key(kb: Quipu) -> None:
    page = await kb.entities()
    assert [(node.name, node.degree) for node in page.entities] == [
        ("Hub", 5),
        ("Acre", 3),
        ("Bern", 3),
        ("Cairo", 3),
        ("Dover", 2),
        ("Delft", 1),
        ("Essen", 1),
        ("Лхаса", 1),
        ("长城", 1),
    ]
    assert (page.n_total, page.cursor) == (9, "")


@pytest.mark.parametrize("k", [1, 2, 3, 8, 9])
async def test_the_pages_of_entities_hold_each_once(kb: Quipu, k: int) -> None:
    pages = await _all_pages(lambda after: kb.entities(k=k, after=after))
    nodes = [node.key for page in pages if isinstance(page, EntityPage) for node in page.entities]
    assert nodes == [node.key for node in (await kb.entities()).entities]
    assert {page.n_total for page in pages} == {9}


@pytest.mark.parametrize(
    ("prefix", "names"),
    [("d", ["Dover", "Delft"]), ("the DE", ["Delft"]), ("лх", ["Лхаса"]), ("长", ["长城"]), ("zug", [])],
)
async def test_a_prefix_in_any_script_is_searched_in_its_normal_form(kb: Quipu, prefix: str, names: list[str]) -> None:
    assert [node.name for node in (await kb.entities(prefix=prefix)).entities] == names


async def test_a_prefix_finds_an_acronym_and_words_alike(kb: Quipu) -> None:
    await publish(kb._components.store, document("who", passage("x", entity("WHO"), entity("whole"))))
    assert {node.name for node in (await kb.entities(prefix="who")).entities} == {"WHO", "whole"}
    assert {node.name for node in (await kb.entities(prefix="WHO")).entities} == {"WHO", "whole"}


async def test_a_type_filters_entities_relations_and_neighbours(kb: Quipu) -> None:
    assert [node.name for node in (await kb.entities(types=["Person"])).entities] == ["Hub", "Dover"]
    assert (await kb.entities(types=["Ship"])).n_total == 0
    between_places = await kb.relations(types=["Location"])
    assert [edge.id for edge in between_places.relations] == ["acre -- bern", "bern -- cairo", "лхаса -- 长城"]
    neighbours = await kb.neighbours("Acre", types=["Person"])
    assert [node.name for _, node in neighbours.neighbours] == ["Dover", "Hub"]


@pytest.mark.parametrize("k", [1, 2, 3, 9, 10])
async def test_the_pages_of_relations_hold_each_once_the_heaviest_first(kb: Quipu, k: int) -> None:
    pages = await _all_pages(lambda after: kb.relations(k=k, after=after))
    edges = [(edge.weight, edge.id) for page in pages if isinstance(page, RelationPage) for edge in page.relations]
    assert edges == sorted(edges, key=lambda edge: (-edge[0], edge[1]))
    assert len(set(edges)) == len(edges) == len(_EDGES) == pages[0].n_total


@pytest.mark.parametrize("k", [1, 2, 5])
async def test_the_pages_of_neighbours_hold_each_once_with_its_relation(kb: Quipu, k: int) -> None:
    pages = await _all_pages(lambda after: kb.neighbours("the hub", k=k, after=after))
    pairs = [pair for page in pages if isinstance(page, NeighbourPage) for pair in page.neighbours]
    assert [node.key for _, node in pairs] == ["acre", "bern", "cairo", "delft", "essen"]
    assert all({edge.source, edge.target} == {"hub", node.key} for edge, node in pairs)
    heaviest = await kb.neighbours("Bern", k=2)
    assert [(edge.weight, node.key) for edge, node in heaviest.neighbours] == [(3.0, "acre"), (2.5, "cairo")]


async def test_a_page_continues_though_its_last_entry_was_removed(kb: Quipu) -> None:
    entities, relations = await kb.entities(k=5), await kb.relations(k=7)
    assert entities.entities[-1].key == "dover"
    assert relations.relations[-1].id == "cairo -- hub"
    await remove(kb._components.store, "d2", "d7", "d8")
    rest = await kb.entities(after=entities.cursor)
    assert [node.key for node in rest.entities] == ["cairo", "delft", "essen", "лхаса", "长城"]
    edges = await kb.relations(after=relations.cursor)
    assert [edge.id for edge in edges.relations] == ["delft -- hub", "essen -- hub", "лхаса -- 长城"]


async def test_a_subgraph_says_how_far_each_entity_is_and_what_was_cut(kb: Quipu) -> None:
    near = await kb.subgraph("Dover", hops=1)
    assert [(node.key, n) for node, n in zip(near.entities, near.distances, strict=True)] == [
        ("dover", 0),
        ("acre", 1),
        ("cairo", 1),
    ]
    assert [edge.id for edge in near.relations] == ["acre -- dover", "cairo -- dover"]
    assert (near.n_more_entities, near.n_more_relations) == (0, 0)
    cut = await kb.subgraph(["Dover"], hops=3, max_entities=4, max_relations=2)
    assert [node.key for node in cut.entities] == ["dover", "acre", "cairo", "bern"]
    assert [edge.id for edge in cut.relations] == ["acre -- bern", "bern -- cairo"]
    assert (cut.n_more_entities, cut.n_more_relations) == (1, 2)
    whole = await kb.subgraph(["Dover", "Лхаса"], hops=5)
    assert (len(whole.entities), len(whole.relations)) == (9, len(_EDGES))


async def test_shortest_paths_avoid_what_is_connected_to_everything(kb: Quipu) -> None:
    paths = await kb.paths("Acre", "Cairo")
    assert [[node.key for node in path.entities] for path in paths] == [
        ["acre", "dover", "cairo"],
        ["acre", "bern", "cairo"],
        ["acre", "hub", "cairo"],
    ]
    assert [edge.id for edge in paths[0].relations] == ["acre -- dover", "cairo -- dover"]
    assert len(await kb.paths("Acre", "Cairo", k=1)) == 1


async def test_a_path_may_be_missing_or_have_no_relation(kb: Quipu) -> None:
    assert await kb.paths("Acre", "长城") == ()
    (alone,) = await kb.paths("Acre", "acre")
    assert ([node.key for node in alone.entities], alone.relations) == (["acre"], ())


async def test_an_alias_names_an_entity(kb: Quipu) -> None:
    await publish(kb._components.store, document("z", passage("x", entity("Acre"), alias("Acre", "Akko"))))
    assert (await kb.neighbours("Akko")).entity.key == "acre"


async def test_a_relation_is_found_by_the_aliases_of_its_ends(kb: Quipu) -> None:
    passage_facts = passage("x", entity("Acre"), entity("Haifa"), relation("Acre", "Haifa"), alias("Acre", "Akko"))
    await publish(kb._components.store, document("z", passage_facts))
    for pair in (("Akko", "Haifa"), ("Haifa", "akko"), ("Acre", "Haifa")):
        assert (await kb.relation(*pair)).relation.id == "acre -- haifa"
    with pytest.raises(NotFound, match="Nothing relates 'Akko' to 'Rome'"):
        await kb.relation("Akko", "Rome")


def _distances(neighbours: dict[str, set[str]], start: str) -> dict[str, int]:
    distances, frontier = {start: 0}, [start]
    for name in frontier:  # the list grows while it is read: breadth first
        new = neighbours[name] - distances.keys()
        distances |= dict.fromkeys(new, distances[name] + 1)
        frontier += new
    return distances


def _shortest_paths(neighbours: dict[str, set[str]], first: str, second: str) -> list[list[str]]:
    if first == second:
        return [[first]]
    distances = _distances(neighbours, second)
    nearer = [name for name in neighbours[first] if distances.get(name, -1) == distances.get(first, -1) - 1]
    return sorted(
        [first, *path] for name in nearer if name in distances for path in _shortest_paths(neighbours, name, second)
    )


async def test_pages_equal_a_simple_search_of_a_random_graph(tmp_path: Path) -> None:
    choose = random.Random(7)
    names = {f"name {choose.randrange(10_000)}" for _ in range(120)}
    pairs = choose.sample(list(combinations(sorted(names), 2)), 200)
    neighbours: dict[str, set[str]] = {}
    for first, second in pairs:
        neighbours.setdefault(first, set()).add(second)
        neighbours.setdefault(second, set()).add(first)
    facts = [
        document(f"d{n}", passage(f"text {n}", entity(first), entity(second), relation(first, second)))
        for n, (first, second) in enumerate(pairs)
    ]
    async with engine(tmp_path / "kb") as kb:
        await publish(kb._components.store, *facts)
        listed = [node.key for node in (await kb.entities(k=1_000)).entities]
        assert listed == sorted(neighbours, key=lambda name: (-len(neighbours[name]), name))
        for prefix in ("name 1", "name 99", "name 5"):
            page = await kb.entities(prefix=prefix, k=1_000)
            assert [node.key for node in page.entities] == [key for key in listed if key.startswith(prefix)]
        for name in listed[:3]:
            near = await kb.subgraph(name, hops=2)
            distances = {key: n for key, n in _distances(neighbours, name).items() if n <= 2}
            assert dict(zip((node.key for node in near.entities), near.distances, strict=True)) == distances
            inside = [pair for pair in pairs if set(pair) <= distances.keys()]
            assert {edge.id for edge in near.relations} == {" -- ".join(pair) for pair in inside}
        n_paths = 0
        for first, second in choose.sample(list(combinations(listed, 2)), 20):
            expected = _shortest_paths(neighbours, first, second)
            paths = [[node.key for node in path.entities] for path in await kb.paths(first, second, k=20)]
            assert sorted(paths) == expected
            n_paths += len(paths)
        assert n_paths > 20


async def test_wrong_names_sizes_and_cursors_are_told(kb: Quipu) -> None:
    with pytest.raises(NotFound, match="There is no entity 'Nowhere'"):
        await kb.paths("Acre", "Nowhere")
    for call in (kb.entities(k=0), kb.relations(k=1_001), kb.subgraph("Acre", hops=6), kb.paths("Acre", "Bern", k=21)):
        with pytest.raises(InvalidInput, match="Give a number from 1 to"):
            await call
    for cursor in ("acre", "x:acre", "3:"):
        with pytest.raises(InvalidInput, match="is not a cursor"):
            await kb.entities(after=cursor)
    with pytest.raises(InvalidInput, match="has no letter or digit"):
        await kb.entities(prefix="!?")
