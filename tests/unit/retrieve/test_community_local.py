"""community_local: entities, the reports on their communities, relations within before those outside, passages."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from quipu.model.cluster import report_text
from quipu.model.graph import entity_text, relation_text
from quipu.model.query import Budget, Filter, Query
from quipu.ports.store import ReadView, Space
from quipu.providers.local import ByteTokenizer
from quipu.retrieve.community_local import retrieve
from tests.unit.retrieve.communities import trades
from tests.unit.retrieve.fakes import Library, page, titles
from tests.unit.retrieve.random_world import QUESTION, World, cosines, settle, world

TOKENS = ByteTokenizer()


async def _dense(library: Library, view: ReadView, made: World, query: Query) -> dict[str, list[str]]:
    """Return the lists of ids the method's description gives, worked out on everything there is."""
    near = await cosines(library, view, Space.ENTITY, made.keys, query.text)
    ranked = sorted((key for key in near if near[key] >= query.min_similarity), key=lambda key: (-near[key], key))
    keys = ranked[: min(10, query.top_k)]
    return {
        "chunks": _dense_chunks(made, keys),
        "reports": _dense_reports(made, keys, query),
        "relations": _dense_relations(made, keys),
        "entities": keys,
    }


def _dense_reports(made: World, keys: list[str], query: Query) -> list[str]:
    reports = {each.cluster: each for each in made.reports}
    counts: Counter[str] = Counter()
    for key in keys:
        branch = made.branch(key)
        coarse = [cluster for cluster in branch if made.level(cluster) <= query.community_level]
        fine = [cluster for cluster in branch if made.level(cluster) > query.community_level]
        counts.update([cluster for cluster in [*coarse[-1:], *fine] if cluster in reports][:1])
    ranked = sorted(counts, key=lambda each: (-counts[each], -reports[each].rating, each))
    fitting, spent = [], 0
    for cluster in ranked:
        spent += TOKENS.count(report_text(reports[cluster]))
        if spent > 0.15 * query.budget.total:
            break
        fitting.append(cluster)
    return fitting


def _dense_relations(made: World, keys: list[str]) -> list[str]:
    degrees, relations = made.degrees(), made.relations()
    rank = {each: degrees[left] + degrees[right] for each, (left, right, _) in relations.items()}
    within = [each for each, (left, right, _) in relations.items() if left in keys and right in keys]
    without = [each for each, (left, right, _) in relations.items() if (left in keys) != (right in keys)]

    def n_links(identifier: str) -> int:
        left, right, _ = relations[identifier]
        outer = right if left in keys else left
        return sum({a, b} == {outer, key} for a, b, _ in relations.values() for key in keys)

    return (
        sorted(within, key=lambda each: (-rank[each], each))
        + sorted(without, key=lambda each: (-n_links(each), -rank[each], each))[: 10 * len(keys)]
    )


def _dense_chunks(made: World, keys: list[str]) -> list[str]:
    order: list[tuple[int, int, str]] = []
    for place, key in enumerate(keys):
        for title, names in made.names.items():
            if key in names:
                n_stated = sum(key in pair for pair in made.pairs[title])
                order.append((place, -n_stated, made.chunk_by_page[title]))
    return list(dict.fromkeys(chunk for _, _, chunk in sorted(order)))


@pytest.mark.parametrize("seed", range(6))
async def test_the_evidence_is_that_of_a_dense_reading(library: Library, seed: int) -> None:
    made = world(seed)
    await settle(library, made)
    query = Query(text=QUESTION, min_similarity=0.05, community_level=seed % 3, top_k=3 + 4 * (seed % 2))
    async with library.view() as view:
        dense = await _dense(library, view, made, query)
        found = await retrieve(query, view, library.tools)
    assert len(found.entities) == query.top_k
    assert {section: [hit.id for hit in getattr(found, section)] for section in dense} == dense


async def test_the_order_of_documents_does_not_matter(tmp_path: Path) -> None:
    found = []
    for order in range(2):
        library = Library(tmp_path / str(order))
        (tmp_path / str(order)).mkdir()
        await library.open()
        await settle(library, world(3), order=order)
        async with library.view() as view:
            found.append(await retrieve(Query(text=QUESTION, min_similarity=0.05), view, library.tools))
        await library.close()
    assert found[0] == found[1]


async def test_no_more_than_ten_entities_are_taken_however_many_are_near(library: Library) -> None:
    await library.publish(*(page(f"P{n}", f"Port {n}.", names={f"Port {n}": "Location"}) for n in range(14)))
    async with library.view() as view:
        found = await retrieve(Query(text="Which port?", min_similarity=0.05), view, library.tools)
    assert len(found.entities) == 10


async def test_entities_are_added_while_they_and_their_relations_fit_their_share(library: Library) -> None:
    await trades(library)
    query = Query(text="Of Bursa, Tabriz and Hallein", min_similarity=0.05)
    async with library.view() as view:
        whole = await retrieve(query, view, library.tools)
        assert [hit.id for hit in whole.entities] == ["bursa", "hallein", "tabriz"]
        bursa = await view.entities(["bursa"])
        relations = await view.relations(["anna -- bursa", "bursa -- tabriz"])
        cost = sum(TOKENS.count(entity_text(each.name, each.description)) for each in bursa)
        cost += sum(TOKENS.count(relation_text(r.keywords, r.source, r.target, r.description)) for r in relations)
        total = -(-cost * 100 // 35)
        for budget, kept in ((total, ["bursa"]), (total - 4, [])):
            tight = replace(query, budget=Budget(total=budget))
            assert [hit.id for hit in (await retrieve(tight, view, library.tools)).entities] == kept


async def test_what_a_filter_leaves_out_takes_its_reports_along(library: Library) -> None:
    await trades(library)
    query = Query(text="Who carried silk from Bursa to Tabriz?", min_similarity=0.05)
    async with library.view(Filter(exclude=("Caravans",))) as view:
        found = await retrieve(query, view, library.tools)
        assert await titles(view, found.chunks) == ["Weavers"]
    assert [hit.id for hit in found.entities] == ["bursa"]
    assert found.reports == ()
    assert "have no report that may be shown" in found.notes[0]


async def test_without_anything_near_it_says_so(library: Library) -> None:
    async with library.view() as view:
        found = await retrieve(Query(text="Who?"), view, library.tools)
    assert found.notes == ("no entity is near to the question",)
    assert found.chunks == found.reports == ()
