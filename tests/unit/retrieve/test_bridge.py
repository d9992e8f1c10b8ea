"""bridge: key entities of communities, the ways from each to the next, and what lies beside them."""

import math
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from quipu.algo.shortest_paths import UNIT
from quipu.model.cluster import report_text
from quipu.model.ids import relation_id
from quipu.model.query import Filter, Query
from quipu.ports.store import ReadView, VectorSpace
from quipu.providers.local import ByteTokenizer
from quipu.retrieve.bridge import BridgeOptions, retrieve
from quipu.retrieve.question import apply_preset
from tests.unit.retrieve.communities import report
from tests.unit.retrieve.fakes import Library, page, titles
from tests.unit.retrieve.random_world import QUESTION, World, cosines, settle, world

TOKENS = ByteTokenizer()


async def _dense(library: Library, view: ReadView, made: World, query: Query) -> dict[str, list[str]]:
    """Return the lists of ids the method's description gives, worked out on everything there is."""
    near = await cosines(library, view, VectorSpace.ENTITY, made.keys, query.text)
    wide = sorted((key for key in near if near[key] >= query.min_similarity), key=lambda key: (-near[key], key))
    n = min(20, query.top_k)
    keys, wide = wide[:n], wide[: 10 * n]
    options = query.options_of(BridgeOptions)
    used = _dense_used(made, keys, query)
    chain = {key for cluster in used for key in [each for each in wide if cluster in made.branch(each)][:10]}
    reports = {each.cluster for each in made.reports}
    return {
        "entities": keys,
        "reports": [cluster for cluster in used if cluster in reports],
        "relations": _dense_bridge(made, [key for key in wide if key in chain] or wide[:10], options),
        "chunks": _dense_chunks(made, keys),
    }


def _dense_used(made: World, keys: list[str], query: Query) -> list[str]:
    reports = {each.cluster: each for each in made.reports}
    counts = Counter(cluster for key in keys for cluster in made.branch(key))
    allowed = [cluster for cluster in counts if made.level(cluster) <= query.community_level]
    rating = {cluster: reports[cluster].rating if cluster in reports else 0 for cluster in allowed}
    used: list[str] = []
    spent = 0
    for cluster in sorted(allowed, key=lambda each: (-counts[each], -rating[each], each))[
        : query.options_of(BridgeOptions).bridge_communities
    ]:
        spent += TOKENS.count(report_text(reports[cluster])) if cluster in reports else 0
        if spent > 12.5 / 65 * query.budget.total:
            break
        used.append(cluster)
    return used


def _dense_bridge(made: World, chain: list[str], options: BridgeOptions) -> list[str]:
    chain = chain[: options.bridge_keys]
    degrees, relations = made.degrees(), made.relations()
    is_long = options.bridge_hub_lengths
    half = {key: round(UNIT * (1 + math.log(max(degree * is_long, 1))) / 2) for key, degree in degrees.items()}
    ways = [way for left, right in pairwise(chain) if (way := _way(relations, half, left, right))]
    on = list(dict.fromkeys(relation_id(*step) for way in ways for step in pairwise(way)))
    nodes = {key for way in ways for key in way}
    beside = [each for each, (a, b, _) in relations.items() if a in nodes and b in nodes and each not in on]

    def rank(identifier: str) -> tuple[int, int, str]:
        left, right, n = relations[identifier]
        return -degrees[left] - degrees[right], -n, identifier

    ordered = on + sorted(beside, key=rank) if options.bridge_paths_first else sorted([*on, *beside], key=rank)
    return ordered[: options.bridge_relations]


def _way(relations: dict[str, tuple[str, str, int]], half: dict[str, int], source: str, target: str) -> list[str]:
    """Return the shortest way, the first by names, found by relaxing every link until nothing changes."""
    links = [(a, b) for left, right, _ in relations.values() for a, b in ((left, right), (right, left))]
    best: dict[str, tuple[int, list[str]]] = {target: (0, [target])}
    for _ in half:
        for left, right in links:
            if right in best:
                length, way = best[right]
                best[left] = min(best.get(left, (10**9, [])), (length + half[left] + half[right], [left, *way]))
    return best.get(source, (0, []))[1]


def _dense_chunks(made: World, keys: list[str]) -> list[str]:
    relations = made.relations().values()
    order: list[tuple[int, int, str]] = []
    for place, key in enumerate(keys):
        neighbours = {b if a == key else a for a, b, _ in relations if key in (a, b)}
        for title, names in made.names.items():
            if key in names:
                order.append((place, -len(neighbours & set(names)), made.chunk_by_page[title]))
    return list(dict.fromkeys(chunk for _, _, chunk in sorted(order)))


_OPTIONS = [
    BridgeOptions(),
    BridgeOptions(bridge_hub_lengths=False),
    BridgeOptions(bridge_paths_first=False),
    BridgeOptions(bridge_relations=3, bridge_communities=1),
    BridgeOptions(bridge_keys=3),
]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("options", _OPTIONS)
async def test_the_evidence_is_that_of_a_dense_reading(library: Library, seed: int, options: BridgeOptions) -> None:
    made = world(seed)
    await settle(library, made)
    query = Query(
        text=QUESTION, min_similarity=0.05, community_level=seed % 3, top_k=1 + 4 * (seed % 2), options=(options,)
    )
    async with library.view() as view:
        dense = await _dense(library, view, made, query)
        found = await retrieve(query, view, library.tools)
    assert len(found.entities) == query.top_k
    assert {section: [hit.id for hit in getattr(found, section)] for section in dense} == dense


async def test_each_option_changes_the_bridge_of_some_world(library: Library) -> None:
    made = world(1)
    await settle(library, made)
    bridges = []
    async with library.view() as view:
        for options in _OPTIONS:
            query = Query(text=QUESTION, min_similarity=0.05, options=(options,))
            bridges.append([hit.id for hit in (await retrieve(query, view, library.tools)).relations])
    assert all(bridge != bridges[0] for bridge in bridges[1:])


async def test_the_preset_takes_the_shortest_path_through_a_hub(library: Library) -> None:
    """Two relations through the hub are the shortest; its many relations make three beside it shorter by default."""
    hub = [("Mid", f"Spoke {n}", "") for n in range(60)]
    relations = [("Aa", "Mid", ""), ("Mid", "Zz", ""), ("Aa", "Bb", ""), ("Bb", "Cc", ""), ("Cc", "Zz", ""), *hub]
    names = dict.fromkeys([name for pair in relations for name in pair[:2]], "Location")
    await library.publish(page("All", "All.", names=names, relations=relations))
    query = Query(text="Aa Zz", strategy="bridge")
    async with library.view() as view:
        default = await retrieve(query, view, library.tools)
        faithful = await retrieve(apply_preset(replace(query, preset="faithful")), view, library.tools)
    assert [hit.id for hit in default.relations] == ["aa -- bb", "bb -- cc", "cc -- zz"]
    assert sorted(hit.id for hit in faithful.relations) == ["aa -- mid", "mid -- zz"]


async def test_the_order_of_documents_does_not_matter(tmp_path: Path) -> None:
    found = []
    for order in range(2):
        library, made = Library(tmp_path / str(order)), world(3)
        (tmp_path / str(order)).mkdir()
        await library.open()
        await settle(library, made, order=order)
        async with library.view() as view:
            query = Query(text=QUESTION, min_similarity=0.05)
            found.append(await retrieve(query, view, library.tools))
        await library.close()
    assert found[0] == found[1]
    assert found[0].relations[0].reason.startswith("on the path from ")


ROAD = World(
    pages=tuple(
        page(
            title,
            f"{left} lies by {right}.",
            names=dict.fromkeys((left, right), "Location"),
            relations=[(left, right, "a road")],
        )
        for title, left, right in (("r1", "Aleppo", "Basra"), ("r2", "Basra", "Cairo"), ("r3", "Cairo", "Damascus"))
    ),
    names={"r1": ("aleppo", "basra"), "r2": ("basra", "cairo"), "r3": ("cairo", "damascus")},
    pairs={"r1": (("aleppo", "basra"),), "r2": (("basra", "cairo"),), "r3": (("cairo", "damascus"),)},
    tree={"west": ("", ("aleppo", "basra")), "east": ("", ("cairo", "damascus"))},
    reports=(report("west", "Of the west.", rating=2), report("east", "Of the east.", rating=7)),
)


async def test_two_ends_of_a_road_are_connected_by_all_of_it(library: Library) -> None:
    await settle(library, ROAD)
    async with library.view() as view:
        found = await retrieve(Query(text="From Aleppo to Damascus"), view, library.tools)
        assert await titles(view, found.chunks) == ["r1", "r3"]
    assert found.chunks[0].reason.endswith(" and 1 entity related to it")
    assert [(hit.id, hit.reason) for hit in found.relations] == [
        (each, "on the path from aleppo to damascus")
        for each in ("aleppo -- basra", "basra -- cairo", "cairo -- damascus")
    ]
    assert [hit.id for hit in found.reports] == ["east", "west"]  # one entity in each: by rating
    assert found.notes == ()


async def test_without_communities_the_most_similar_entities_are_connected(library: Library) -> None:
    made = replace(ROAD, tree={}, reports=())
    await library.publish(*made.pages)
    async with library.view() as view:
        found = await retrieve(Query(text="From Aleppo to Damascus"), view, library.tools)
    assert len(found.relations) == 3
    assert found.notes == ("no report on their communities is available",)


async def test_what_has_no_way_to_the_next_is_told(library: Library) -> None:
    await library.publish(ROAD.pages[0], ROAD.pages[2])
    async with library.view() as view:
        found = await retrieve(Query(text="From Aleppo to Damascus"), view, library.tools)
    assert found.relations == ()
    assert found.notes[-1] == "1 key entity without a path to the next"


async def test_a_filter_hides_what_it_excludes_and_its_reports(library: Library) -> None:
    await settle(library, ROAD)
    async with library.view(Filter(exclude=("r2",))) as view:
        found = await retrieve(Query(text="From Aleppo to Damascus"), view, library.tools)
        assert await titles(view, found.chunks) == ["r1", "r3"]
    assert found.relations == () == found.reports
