"""Tests of lca: by hand on a small tree, against plain loops on random ones."""

import random
from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from quipu.answer.packing import pack_evidence
from quipu.model.cluster import Hierarchy
from quipu.model.delta import DocumentFacts
from quipu.model.evidence import Evidence
from quipu.model.ids import relation_id
from quipu.model.query import Filter, Query
from quipu.ports.store import OccurrenceKind, ReadView
from quipu.providers.local import ByteTokenizer
from quipu.retrieve.lca import DECAY, MAX_SEEDS, LcaOptions, retrieve
from quipu.retrieve.naive import retrieve as naive
from quipu.retrieve.question import apply_preset
from tests.unit.retrieve.aggregated import aggregate, build, crossing
from tests.unit.retrieve.fakes import Library, page, titles

#            root
#      cities        khans      (level 2: khans, promoted; north in cities)
#   north   south
# venice, genoa | acre, tyre |  kublai, mongke
_TREE = {
    "root": ("", 3, ()),
    "cities": ("root", 2, ()),
    "north": ("cities", 1, ("venice", "genoa")),
    "south": ("cities", 1, ("acre", "tyre")),
    "khans": ("root", 1, ("kublai", "mongke")),
}
_PAGES = (
    page("a", "Venice fought Genoa.", names={"Venice": "L", "Genoa": "L"}, relations=[("Venice", "Genoa", "War.")]),
    page("b", "Venice held Tyre.", names={"Venice": "L", "Tyre": "L"}, relations=[("Venice", "Tyre", "Held.")]),
    page("c", "Acre fell.", names={"Acre": "L"}),
    page("d", "Kublai followed Mongke.", names={"Kublai": "P", "Mongke": "P"}),
    page("e", "Paper burns.", names={"Paper": "A"}),
)


@dataclass(frozen=True)
class _Plain:
    """What plain loops find: chunks with their scores in order, aggregates with theirs, relations."""

    chunks: list[tuple[str, float]]
    reports: dict[str, float]
    relations: set[str]


@pytest.fixture
async def tree(library: Library) -> Library:
    """The small tree, with relations between its aggregates."""
    await library.publish(*_PAGES)
    await aggregate(library, _TREE, [crossing("north", "south", 1), crossing("cities", "khans", 2)])
    return library


async def _ask(library: Library, text: str, *, allowed: Filter | None = None, **changes: object) -> Evidence:
    async with library.view(allowed) as view:
        return await retrieve(Query(text=text, **changes), view, library.tools)  # type: ignore[arg-type]


async def _titles(library: Library, evidence: Evidence) -> list[str]:
    async with library.view() as view:
        return await titles(view, evidence.chunks)


async def test_paths_end_where_they_meet(tree: Library) -> None:
    """The cosine of a question of n words with a name of one of them is n^-1/2."""
    two = await _ask(tree, "venice tyre")
    cosine = round(2**-0.5, 6)
    assert [hit.id for hit in two.entities] == ["tyre", "venice"]
    assert {hit.id: hit.score for hit in two.reports} == {
        "north": pytest.approx(cosine / 2, abs=1e-6),
        "south": pytest.approx(cosine / 2, abs=1e-6),
        "cities": pytest.approx(cosine / 4, abs=1e-6),
    }
    assert [hit.id for hit in two.relations] == ["tyre -- venice", "north -- south"]
    assert two.reports[0].reason == "connects 1 of the seeds; layer 1"
    assert two.reports[-1].reason == "connects 2 of the seeds; layer 2"


async def test_two_of_one_aggregate_meet_there(tree: Library) -> None:
    found = await _ask(tree, "venice genoa")
    assert [hit.id for hit in found.reports] == ["north"]
    assert [hit.id for hit in found.relations] == ["genoa -- venice"]


async def test_a_promoted_group_keeps_its_ancestors(tree: Library) -> None:
    found = await _ask(tree, "kublai acre")
    assert [hit.id for hit in found.reports] == ["khans", "south", "cities", "root"]
    assert [hit.id for hit in found.relations] == ["cities -- khans"]


async def test_one_seed_leads_nowhere(tree: Library) -> None:
    found = await _ask(tree, "venice")
    assert (len(found.entities), found.reports, found.relations, found.notes) == (1, (), (), ())


async def test_passages_count_seeds_and_their_share_of_the_aggregates(tree: Library) -> None:
    """b names both seeds; a one of them, which both name, and all else that is north; c all else of the south."""
    found = await _ask(tree, "venice tyre")
    cosine = round(2**-0.5, 6)
    assert await _titles(tree, found) == ["b", "a", "c"]
    assert [hit.score for hit in found.chunks] == [
        pytest.approx((1 + 2**-0.5) * cosine, abs=1e-5),
        pytest.approx((0.5 + 2**-0.5) * cosine, abs=1e-5),
        pytest.approx(0.5 * cosine, abs=1e-5),
    ]
    assert found.chunks[0].reason == "mentions tyre, venice"
    assert found.chunks[2].reason == "mentions a member of an aggregate on the paths"
    assert len((await _ask(tree, "venice tyre", chunk_top_k=1)).chunks) == 1


@pytest.mark.parametrize(
    ("order", "counts"), [("seeds", {"b": 2, "a": 1}), ("paths", {"b": 4, "a": 2, "c": 1})], ids=str
)
async def test_passages_by_how_many_seeds_or_nodes_of_the_paths_they_mention(
    tree: Library, order: Literal["seeds", "paths"], counts: dict[str, int]
) -> None:
    """b names both seeds and members of north and south; a names Venice, of north; c names Acre, of the south."""
    found = await _ask(tree, "venice tyre", options=(LcaOptions(lca_passages=order),))
    assert dict(zip(await _titles(tree, found), [hit.score for hit in found.chunks], strict=True)) == counts


async def test_the_preset_orders_passages_by_the_nodes_of_the_paths(tree: Library) -> None:
    query = apply_preset(Query(text="venice tyre", strategy="lca", preset="faithful", min_similarity=0.3))
    async with tree.view() as view:
        found = await retrieve(query, view, tree.tools)
    assert [hit.score for hit in found.chunks] == [4.0, 2.0, 1.0]


async def test_aggregates_are_related_by_more_relations_of_their_members_than_the_option_says(tree: Library) -> None:
    relations = []
    for crossings in (0, 1):
        found = await _ask(tree, "venice tyre", options=(LcaOptions(lca_crossings=crossings),))
        relations.append([hit.id for hit in found.relations])
    assert relations == [["tyre -- venice", "north -- south"], ["tyre -- venice"]]


async def test_what_came_since_is_found_without_a_path(tree: Library) -> None:
    found = await _ask(tree, "paper venice")
    assert ([hit.id for hit in found.entities], found.reports) == (["paper", "venice"], ())
    assert found.notes == ("no aggregate connects the entities",)
    nothing = await _ask(tree, "quite unheard of")
    assert (nothing.chunks, nothing.notes) == ((), ("no entity is near to the question",))


async def test_it_may_begin_with_aggregates_too(tree: Library) -> None:
    found = await _ask(tree, "all khans", options=(LcaOptions(from_aggregates=True),))
    assert found.reports[0].id == "khans"
    assert found.reports[0].reason.startswith("cosine ")
    assert found.seeds[0].matches[0].id == "khans"
    assert (await _ask(tree, "all khans")).reports == ()
    assert (await _titles(tree, found))[0] == "d"  # the passages of what is in it, though no entity is near
    joined = await _ask(tree, "all khans venice", options=(LcaOptions(from_aggregates=True),))
    assert {hit.id for hit in joined.reports} >= {"khans", "north", "cities", "root"}


async def test_a_hidden_report_is_not_shown_and_its_aggregate_still_joins(tree: Library) -> None:
    found = await _ask(tree, "venice tyre", allowed=Filter(exclude=("c",)))
    assert {hit.id for hit in found.reports} == {"north"}
    assert found.notes == ("2 aggregates on the paths without an available report",)
    assert [hit.id for hit in found.relations] == ["tyre -- venice"]
    assert await _titles(tree, found) == ["b", "a"]
    only = await _ask(tree, "venice genoa", allowed=Filter(documents=("a",)))
    assert (await _titles(tree, only), only.reports) == (["a"], ())


async def test_relations_of_aggregates_reach_the_context(tree: Library) -> None:
    async with tree.view() as view:
        query = Query(text="venice tyre")
        evidence = await retrieve(query, view, tree.tools)
        packed = await pack_evidence(query, evidence, view, ByteTokenizer())
    assert "- On north — On south: north meets south." in packed.context()
    assert "- Tyre — Venice: Held." in packed.context()
    assert "All cities." in packed.context()


async def test_without_a_hierarchy_it_goes_by_seeds(library: Library) -> None:
    await library.publish(*_PAGES)
    found = await _ask(library, "venice tyre")
    assert await _titles(library, found) == ["b", "a"]
    assert found.reports == ()


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_it_agrees_with_plain_loops_on_random_graphs(tmp_path: Path, seed: int) -> None:
    library = Library(tmp_path)
    await library.open()
    await library.publish(*_random_pages(seed))
    await build(library)
    for text in ("red gate of the blue tower", "white harbour n7", "green bridge n3 red n5"):
        query = Query(text=text, min_similarity=0.0)
        async with library.view() as view:
            found = await retrieve(query, view, library.tools)
            expected = await _plainly(query, view, library)
            assert [(hit.id, hit.score) for hit in found.chunks] == expected.chunks[:20]
            assert {hit.id: hit.score for hit in found.reports} == expected.reports
            assert {hit.id for hit in found.relations} == expected.relations
            by_vector = await naive(query, view, library.tools)
            assert [hit.id for hit in found.chunks] != [hit.id for hit in by_vector.chunks]
    await library.close()


async def test_the_order_of_insertion_shows_nowhere(tmp_path: Path) -> None:
    found = []
    for turn in (1, -1):
        library = Library(tmp_path / str(turn))
        (tmp_path / str(turn)).mkdir()
        await library.open()
        for each in _random_pages(4)[::turn]:
            await library.publish(each)
        await build(library)
        found.append(await _ask(library, "green bridge n3 red n5", options=(LcaOptions(from_aggregates=True),)))
        await library.close()
    assert found[0] == found[1]


async def test_chinese_and_russian_questions_find_their_entities(library: Library) -> None:
    await library.publish(
        page("zh", "长城在北方。", names={"长城": "L", "北方": "L"}, relations=[("长城", "北方", "长城在北方。")]),
        page("ru", "Москва стоит на реке.", names={"Москва": "L"}),
    )
    await build(library)
    assert (await _titles(library, await _ask(library, "长城 北方")))[0] == "zh"
    assert (await _titles(library, await _ask(library, "Москва")))[0] == "ru"


def _random_pages(seed: int) -> list[DocumentFacts]:
    chance = random.Random(seed)
    names = [f"{c} {t} n{i}" for c in ("red", "blue", "green") for t in ("gate", "tower", "bridge") for i in range(16)]
    pages = []
    for number in range(40):
        some = chance.sample(names, 6)
        pages.append(
            page(
                f"p{number}",
                f"{number}: {'; '.join(some)}.",
                names=dict.fromkeys(some, "L"),
                relations=[(some[0], other, f"In p{number}.") for other in some[1:]],
            )
        )
    return pages


async def _plainly(query: Query, view: ReadView, library: Library) -> _Plain:
    """Return what the paper says, by loops over everything."""
    (vector,) = await library.embedder.embed_queries([query.text])
    clusters = {each.id: each for each in await view.clusters(Hierarchy.AGGREGATES)}
    parent = {key: each.id for each in clusters.values() for key in each.members}
    parent |= {each.id: each.parent for each in clusters.values() if each.parent}
    entities = await view.entities(sorted(key for each in clusters.values() for key in each.members))
    texts = [f"{e.name}\n{e.description}" if e.description else e.name for e in entities]
    stored = (await library.embedder.embed(texts)).astype(np.float16).astype(np.float64)
    cosines = {e.key: round(float(row @ vector), 6) for e, row in zip(entities, stored, strict=True)}
    seeds = sorted(cosines, key=lambda key: (-cosines[key], key))[:MAX_SEEDS]
    weight = _weights(seeds, cosines, parent)
    score: dict[str, float] = defaultdict(float)
    named = await view.occurrences(OccurrenceKind.ENTITY, [e.key for e in entities], 1_000)
    for key in seeds:
        for chunk in named[key]:
            score[chunk] += cosines[key] / len(named[key]) ** 0.5
    for node, value in sorted(weight.items()):
        inside = [key for key in clusters[node].members if key not in seeds]
        for key in inside:
            for chunk in named[key]:
                score[chunk] += value / len(inside) / len(named[key]) ** 0.5
    ranked = sorted(((chunk, round(value, 6)) for chunk, value in score.items()), key=lambda each: (-each[1], each[0]))
    pairs = {relation_id(a, b) for a in seeds for b in seeds if a != b}
    known = {relation.id for relation in await view.relations(sorted(pairs))}
    crossed = await view.cluster_relations(list(clusters))
    between = {relation_id(r.source, r.target) for r in crossed if r.source in weight and r.target in weight}
    return _Plain(ranked, weight, known | between)


def _weights(seeds: list[str], cosines: dict[str, float], parent: dict[str, str]) -> dict[str, float]:
    weight: dict[str, float] = {}

    def chain(node: str) -> list[str]:
        return [node, *chain(parent[node])] if node in parent else [node]

    for one, other in combinations(seeds, 2):
        top = next(node for node in chain(one) if node in chain(other))
        for start in (one, other):
            for steps, node in enumerate(chain(start)[: chain(start).index(top) + 1]):
                if steps:
                    weight[node] = max(weight.get(node, 0), round(cosines[start] * DECAY**steps, 6))
    return weight
