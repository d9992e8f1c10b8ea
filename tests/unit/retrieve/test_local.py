"""local: entities, their relations, the passages that name them."""

from dataclasses import replace

from quipu.model.ids import relation_id
from quipu.model.query import Query
from quipu.retrieve.local import retrieve
from quipu.retrieve.question import apply_preset
from tests.unit.retrieve.fakes import Library, page, titles

POLO_KHAN = relation_id("marco polo", "kublai khan")
POLO_VENICE = relation_id("marco polo", "venice")
KHAN_DADU = relation_id("kublai khan", "dadu")


async def test_named_entities_come_before_similar_ones(travels: Library) -> None:
    async with travels.view() as view:
        evidence = await retrieve(Query(text="Where was Kublai Khan?"), view, travels.tools)
    first = evidence.entities[0]
    assert (first.id, first.score, first.reason) == ("kublai khan", 1.0, "named in the question: 'Kublai Khan'")
    assert [seed.kind for seed in evidence.seeds] == ["name", "vector"]
    assert len({hit.id for hit in evidence.entities}) == len(evidence.entities)


async def test_relations_with_the_best_connected_ends_come_first(travels: Library) -> None:
    query = Query(text="Tell of Marco Polo and Kublai Khan", min_similarity=0.99)
    async with travels.view() as view:
        evidence = await retrieve(query, view, travels.tools)
    assert [(hit.id, hit.score) for hit in evidence.relations] == [
        (POLO_KHAN, 4.0),
        (KHAN_DADU, 3.0),
        (POLO_VENICE, 3.0),
    ]


async def test_of_equally_connected_relations_the_heavier_comes_first(travels: Library) -> None:
    again = page(
        "Life",
        "Marco Polo came back to Venice.",
        names={"Marco Polo": "Person", "Venice": "Location"},
        relations=[("Marco Polo", "Venice", "Marco Polo came back to Venice.")],
    )
    await travels.publish(again)
    query = Query(text="Tell of Marco Polo and Kublai Khan", min_similarity=0.99)
    async with travels.view() as view:
        evidence = await retrieve(query, view, travels.tools)
    assert [hit.id for hit in evidence.relations] == [POLO_KHAN, POLO_VENICE, KHAN_DADU]


async def test_passages_are_those_that_name_the_entities(travels: Library) -> None:
    async with travels.view() as view:
        evidence = await retrieve(Query(text="When was Marco Polo born?", min_similarity=0.99), view, travels.tools)
        assert await titles(view, evidence.chunks) == ["Marco Polo"]


async def test_a_question_that_names_nothing_searches_by_vector_and_says_so(travels: Library) -> None:
    async with travels.view() as view:
        evidence = await retrieve(Query(text="How was the paper made?"), view, travels.tools)
    assert evidence.entities[0].id == "paper"
    assert evidence.entities[0].reason.startswith("cosine ")
    assert "contains no entity name" in evidence.notes[0]


async def test_given_high_level_keywords_do_not_turn_local_into_global(travels: Library) -> None:
    query = Query(text="Who was Marco Polo?", high_level_keywords=("capital",), min_similarity=0.99)
    async with travels.view() as view:
        evidence = await retrieve(query, view, travels.tools)
    assert [hit.id for hit in evidence.entities] == ["marco polo"]
    assert {hit.id for hit in evidence.relations} == {POLO_KHAN, POLO_VENICE}


async def test_no_more_than_top_k_entities_are_kept(travels: Library) -> None:
    async with travels.view() as view:
        evidence = await retrieve(Query(text="Marco Polo, Kublai Khan, Venice", top_k=2), view, travels.tools)
    assert [hit.id for hit in evidence.entities] == ["marco polo", "kublai khan"]


async def test_relations_of_a_hub_are_cut_and_counted(library: Library) -> None:
    spokes = [f"Port {n}" for n in range(13)]
    names = {"Venice": "Location"} | dict.fromkeys(spokes, "Location")
    hub = page("Trade", "Venice traded.", names=names, relations=[("Venice", spoke, "trade") for spoke in spokes])
    await library.publish(hub)
    async with library.view() as view:
        evidence = await retrieve(Query(text="Where is Venice?", top_k=1), view, library.tools)
    assert len(evidence.relations) == 10
    assert evidence.notes == ("not read: 3 more relations of these entities",)


async def test_with_the_preset_entities_are_found_by_vector_alone_and_bring_all_relations(library: Library) -> None:
    """LightRAG embeds the low-level keywords; an alias in the question leads nowhere by itself."""
    others = [f"Person{n}" for n in range(13)]
    relations = [("Byron", other, "") for other in others]
    pages = page("Hub", "Byron.", names={"Byron": "Person"} | dict.fromkeys(others, "Person"), relations=relations)
    await library.publish(
        pages, page("Low", "Ada Low, Byron.", names={"Ada Low": "Person", "Byron": "Person"}, aliases={"Ada": "Byron"})
    )
    query = Query(text="Who is Ada?", strategy="local", top_k=1)
    async with library.view() as view:
        default = await retrieve(query, view, library.tools)
        faithful = await retrieve(apply_preset(replace(query, preset="faithful")), view, library.tools)
        hub = Query(text="Who is Byron?", strategy="local", top_k=1, preset="faithful")
        every = await retrieve(apply_preset(hub), view, library.tools)
    assert [hit.id for hit in default.entities] == ["byron"] and len(default.relations) == 10
    assert [hit.id for hit in faithful.entities] == ["ada low"]
    assert [hit.id for hit in every.entities] == ["byron"] and len(every.relations) == 13


async def test_everything_is_embedded_in_one_call(travels: Library) -> None:
    async with travels.view() as view:
        await retrieve(Query(text="Who was Marco Polo?"), view, travels.tools)
    assert travels.embedder.calls == [("Who was Marco Polo?", "Marco Polo")]
