"""Tests of ppr against its formulas, on full matrices and by hand."""

from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

from quipu.model.delta import Delta
from quipu.model.evidence import Evidence
from quipu.model.ids import relation_id
from quipu.model.query import Filter, Keywords, Query
from quipu.ports.store import ReadView, VectorSpace
from quipu.retrieve import naive, ppr
from quipu.retrieve.ppr import PprOptions
from quipu.retrieve.question import apply_preset
from quipu.retrieve.steps.seeds import find_low_level_keywords
from quipu.retrieve.strategy import Tools
from tests.unit.retrieve.dense import QUESTION, Dense, best, cosines, dense, derive, page_rank, world
from tests.unit.retrieve.fakes import Library, page, titles

_QUERY = Query(text=QUESTION, chunk_top_k=5)


async def _starts(found: Dense, query: Query, view: ReadView, tools: Tools) -> dict[str, float]:
    """Return the weights of entities the walk starts from: rows that sum to 1, put together by their maxima."""
    rows = [
        dict.fromkeys((scored.id for scored in seed.matches), 1.0)
        for seed in (await find_low_level_keywords(query, view)).names
    ]
    for text, k, least in [
        *((name, 1, 0.4) for name in query.model_keywords.low_level if name not in found.keys),
        *((theme, 20, 0.0) for theme in query.model_keywords.high_level),
        (query.text, 20, 0.0),
    ]:
        similarity = dict(
            zip(found.keys, await cosines(view, tools, VectorSpace.ENTITY, text, found.keys), strict=True)
        )
        near = sorted(similarity, key=lambda key: (-similarity[key], key))[:k]
        rows.append({key: (1 + similarity[key]) / 2 for key in near if similarity[key] >= least})
    starts: dict[str, float] = defaultdict(float)
    for row in rows:
        for key, weight in row.items():
            starts[key] = max(starts[key], weight / sum(row.values()))
    return starts


async def _expected(query: Query, view: ReadView, tools: Tools) -> tuple[list[str], list[str], list[str]]:
    """Return the entities, relations and chunks that the method's formulas give, each from full matrices."""
    found = await dense(view)
    starts = await _starts(found, query, view, tools)
    links = np.sign(found.mentions) + found.synonyms
    ranks = page_rank(links, np.array([starts.get(key, 0.0) for key in found.keys]), 0.85).round(6)
    entities = best({key: rank for key, rank in zip(found.keys, ranks.tolist(), strict=True) if rank >= 0.005}, 128)
    kept = np.array([rank if key in entities else 0.0 for key, rank in zip(found.keys, ranks.tolist(), strict=True)])
    relations: dict[str, tuple[float, float]] = {}
    for a, b in zip(*np.nonzero(np.triu(found.mentions)), strict=True):
        if kept[a] + kept[b]:
            relation = relation_id(found.keys[int(a)], found.keys[int(b)])
            relations[relation] = round(float(kept[a] + kept[b]), 6), round(float(ranks[a] + ranks[b]), 6)
    order = sorted(relations, key=lambda i: (-relations[i][0], -relations[i][1], i))[:64]
    scores: dict[str, float] = defaultdict(float)
    for relation in order:
        for chunk in found.stated[relation]:
            scores[chunk] += relations[relation][0]
    for key in entities:
        if not found.mentions[found.place(key)].any():
            for place in np.flatnonzero(found.appearances[found.place(key)]):
                scores[found.chunks[int(place)]] += kept[found.place(key)]
    return entities, order, best(scores, query.chunk_top_k)


def _ids(evidence: Evidence) -> tuple[list[str], list[str], list[str]]:
    entities, relations, chunks = (
        [hit.id for hit in hits] for hits in (evidence.entities, evidence.relations, evidence.chunks)
    )
    return entities, relations, chunks


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("with_keywords", [False, True])
async def test_evidence_is_that_of_the_formulas(library: Library, seed: int, with_keywords: bool) -> None:
    await library.publish(*world(seed))
    if seed % 2:
        await derive(library)
    said = Keywords(low_level=("Falk the amber", "Dorn"), high_level=("grain of the mill",))
    query = replace(_QUERY, model_keywords=said if with_keywords else Keywords())
    for allowed in (Filter(), Filter(exclude=("p0", "p3", "p5"))):
        async with library.view(allowed) as view:
            found = await ppr.retrieve(query, view, library.tools)
            assert _ids(found) == await _expected(query, view, library.tools)
            assert found.chunks


async def test_evidence_does_not_depend_on_the_order_of_insertion(tmp_path: Path) -> None:
    evidence = []
    for order in range(3):
        pages = world(2)
        Random(order).shuffle(pages)
        folder = tmp_path / str(order)
        folder.mkdir()
        library = Library(folder)
        await library.open()
        for each in pages:
            await library.publish(each)
        await library.publish(page("gone", "Dorn and Birch.", names={"Dorn": "Location", "Birch": "Location"}))
        await library._store.commit(Delta(remove=["gone"]))
        async with library.view() as view:
            evidence.append(await ppr.retrieve(_QUERY, view, library.tools))
        await library.close()
    assert evidence[0] == evidence[1] == evidence[2]


async def test_two_related_entities_by_hand(library: Library) -> None:
    """Ada is named: she weighs 1. Of the question's own row she has 2/3, Bob 1/3. So p = (3/4, 1/4).

    a = 0.85 b + 0.15 · 3/4 and b = 0.85 a + 0.15 · 1/4.
    """
    pair = page("Pair", "Ada and Bob.", names={"Ada": "Person", "Bob": "Person"}, relations=[("Ada", "Bob", "")])
    await library.publish(pair)
    async with library.view() as view:
        found = await ppr.retrieve(Query(text="Ada?"), view, library.tools)
        assert await titles(view, found.chunks) == ["Pair"]
    assert [(hit.id, hit.score) for hit in found.entities] == [("ada", 0.5202703), ("bob", 0.4797297)]
    assert [(hit.id, hit.score) for hit in found.relations] == [("ada -- bob", 1.0)]
    assert found.chunks[0].score == 1.0
    assert found.chunks[0].reason == "states ada -- bob"
    assert found.entities[0].reason == "PageRank 0.5203, a seed, matches 'Ada'"


async def test_the_damping_decides_how_far_the_walk_goes(library: Library) -> None:
    """As above, with a = 0.5 b + 0.5 · 3/4 and b = 0.5 a + 0.5 · 1/4: a = 7/12."""
    pair = page("Pair", "Ada and Bob.", names={"Ada": "Person", "Bob": "Person"}, relations=[("Ada", "Bob", "")])
    await library.publish(pair)
    query = Query(text="Ada?", options=(PprOptions(ppr_damping=0.5),))
    async with library.view() as view:
        found = await ppr.retrieve(query, view, library.tools)
    assert [hit.score for hit in found.entities] == pytest.approx([7 / 12, 5 / 12], abs=1e-6)


async def _ranks(library: Library, query: Query) -> dict[str, float]:
    async with library.view() as view:
        return {hit.id: hit.score for hit in (await ppr.retrieve(query, view, library.tools)).entities}


async def test_with_the_preset_a_pair_weighs_as_much_as_it_is_stated(library: Library) -> None:
    """Ada and Bob are stated three times, Ada and Cid once: three quarters of what leaves Ada reach Bob, else half.

    Ada is named: she weighs 1. In the question's own row she has 1 / 2, the others 1 / 4 each: p = (4, 1, 1) / 6.
    """
    people = {"Ada": "Person", "Bob": "Person", "Cid": "Person"}
    stated = [page(f"p{n}", f"Ada, Bob, {n}.", names=people, relations=[("Ada", "Bob", "")]) for n in range(3)]
    await library.publish(*stated, page("once", "Ada, Cid.", names=people, relations=[("Ada", "Cid", "")]))
    query = Query(text="Ada?", strategy="ppr")
    reset = np.array([4, 1, 1]) / 6
    for used, weight in ((query, 1.0), (apply_preset(replace(query, preset="faithful")), 3.0)):
        links = np.array([[0, weight, 1], [weight, 0, 0], [1, 0, 0]])
        expected = dict(zip(("ada", "bob", "cid"), page_rank(links, reset, 0.85).tolist(), strict=True))
        assert await _ranks(library, used) == pytest.approx(expected, abs=1e-6)


async def test_with_the_preset_an_identity_edge_weighs_as_much_as_a_relation(library: Library) -> None:
    """Amber Falk is related to Bob, and a synonym of Amber Falk Senior, whose cosine weighs by default."""
    people = {"Amber Falk": "Person", "Bob": "Person", "Amber Falk Senior": "Person"}
    await library.publish(page("One", "Amber Falk, Bob.", names=people, relations=[("Amber Falk", "Bob", "")]))
    await derive(library)
    cosine = float(np.float16(2 / 6**0.5))
    row = np.array([1.0, 0.5, (1 + cosine) / 2])  # of the question; of the name: 1, 0, 0
    reset = np.maximum(row / row.sum(), [1, 0, 0])
    query = Query(text="Amber Falk?", strategy="ppr")
    for used, weight in ((query, cosine), (apply_preset(replace(query, preset="faithful")), 1.0)):
        links = np.array([[0, 1, weight], [1, 0, 0], [weight, 0, 0]])
        expected = dict(zip(people, page_rank(links, reset, 0.85).tolist(), strict=True))
        found = await _ranks(library, used)
        assert found == pytest.approx({name.casefold(): rank for name, rank in expected.items()}, abs=1e-3)
    assert (await _ranks(library, query)) != (await _ranks(library, used))


async def test_without_the_fallback_nothing_is_found_where_the_source_finds_nothing(travels: Library) -> None:
    options = PprOptions(ppr_fallback=False)
    alone, unranked, unmatched = (
        Query(text="What is Paper?", options=(options,)),
        Query(text="Who ruled from Dadu?", options=(replace(options, ppr_min_rank=0.99),)),
        Query(text="Who?", filter=Filter(documents=("none",)), options=(options,)),
    )
    async with travels.view() as view:
        found = await ppr.retrieve(alone, view, travels.tools)
        assert "paper" in [hit.id for hit in found.entities]
        assert "Paper" not in await titles(view, found.chunks)
        found = await ppr.retrieve(unranked, view, travels.tools)
        assert _ids(found) == ([], [], []) and "so the threshold was ignored" not in "".join(found.notes)
    async with travels.view(unmatched.filter) as view:
        found = await ppr.retrieve(unmatched, view, travels.tools)
    assert _ids(found) == ([], [], []) and found.notes[-1] == "no entity matches the question"


async def test_with_the_preset_a_name_is_searched_for_by_its_vector(library: Library) -> None:
    pair = page("Pair", "Ada Low.", names={"Ada Low": "Person", "Byron": "Person"}, aliases={"Ada": "Byron"})
    await library.publish(pair)
    query = Query(text="Who is Ada?", strategy="ppr")
    async with library.view() as view:
        default = await ppr.retrieve(query, view, library.tools)
        faithful = await ppr.retrieve(apply_preset(replace(query, preset="faithful")), view, library.tools)
    first = [(seed.kind, [match.id for match in seed.matches]) for seed in (default.seeds[0], faithful.seeds[0])]
    assert first == [("name", ["byron"]), ("vector", ["ada low"])]


async def test_what_is_a_relation_away_is_found(travels: Library) -> None:
    async with travels.view() as view:
        found = await ppr.retrieve(Query(text="Who ruled from Dadu?"), view, travels.tools)
        assert await titles(view, found.chunks) == ["Marco Polo", "Kublai Khan", "Paper"]


async def test_an_entity_without_relations_leads_to_the_passages_that_name_it(travels: Library) -> None:
    async with travels.view() as view:
        found = await ppr.retrieve(Query(text="What is Paper?", chunk_top_k=1), view, travels.tools)
        assert await titles(view, found.chunks) == ["Paper"]
    assert found.chunks[0].reason == "mentions paper"


async def test_where_nothing_is_named_or_near_the_nearest_passages_stand_in(library: Library) -> None:
    await library.publish(page("Rain", "It rained."), page("Snow", "It snowed."))
    query = Query(text="Where did it rain? It rained.")
    async with library.view() as view:
        found = await ppr.retrieve(query, view, library.tools)
        assert found.chunks == (await naive.retrieve(query, view, library.tools)).chunks
    assert found.notes[-1] == "no entity matches the question: the passages nearest to it are used instead"


async def test_where_the_walk_is_nowhere_often_what_it_meets_most_counts(
    travels: Library,
) -> None:
    query = Query(text="Who ruled from Dadu?", options=(PprOptions(ppr_min_rank=0.99),))  # as with hundreds of seeds
    async with travels.view() as view:
        found = await ppr.retrieve(query, view, travels.tools)
    assert {hit.id for hit in found.entities} >= {"dadu", "kublai khan"}
    assert found.chunks
    assert any(note.startswith("no entity scored 0.99 or more (highest: 0.") for note in found.notes)


async def test_a_name_the_index_does_not_know_is_looked_for_by_its_vector(travels: Library) -> None:
    query = Query(text="Who?", low_level_keywords=("Khan of the Mongols Kublai",))
    async with travels.view() as view:
        found = await ppr.retrieve(query, view, travels.tools)
    assert [(seed.kind, [scored.id for scored in seed.matches]) for seed in found.seeds][:1] == [
        ("vector", ["kublai khan"])
    ]


async def test_every_text_is_embedded_in_one_call(travels: Library) -> None:
    said = Keywords(low_level=("Xanadu",), high_level=("courts", "travel"))
    async with travels.view() as view:
        await ppr.retrieve(Query(text="Who ruled?", model_keywords=said), view, travels.tools)
    assert travels.embedder.calls == [("Xanadu", "courts", "travel", "Who ruled?")]


async def test_an_empty_index_has_no_evidence(library: Library) -> None:
    async with library.view() as view:
        found = await ppr.retrieve(_QUERY, view, library.tools)
    assert _ids(found) == ([], [], [])


async def test_it_says_what_was_told_by_the_words_alone_and_what_synonyms_would_add(travels: Library) -> None:
    async with travels.view() as view:
        found = await ppr.retrieve(Query(text="Who ruled from Dadu?"), view, travels.tools)
        worded = await ppr.retrieve(Query(text="Who ruled?", low_level_keywords=("Dadu",)), view, travels.tools)
    no_model = "no language model: names and themes are taken from the words of the question"
    assert found.notes[0] == no_model and no_model not in worded.notes
    assert all("`quipu refresh synonyms`" in each.notes[-1] for each in (found, worded))
