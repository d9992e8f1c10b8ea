"""global: relations, their ends, the passages that state them."""

from quipu.model.ids import relation_id
from quipu.model.query import Query
from quipu.retrieve.global_ import retrieve
from tests.unit.retrieve.fakes import Library, titles


async def test_relations_come_by_cosine_and_entities_as_their_ends(travels: Library) -> None:
    async with travels.view() as view:
        evidence = await retrieve(Query(text="ruled from his capital"), view, travels.tools)
        assert (await titles(view, evidence.chunks))[0] == "Kublai Khan"
    assert evidence.relations[0].id == relation_id("kublai khan", "dadu")
    assert [hit.id for hit in evidence.entities[:2]] == ["dadu", "kublai khan"]
    assert evidence.entities[0].reason == "an end of dadu -- kublai khan"
    assert evidence.seeds[0].text == "ruled from his capital"


async def test_given_high_level_keywords_are_searched_instead_of_the_question(travels: Library) -> None:
    query = Query(text="ruled from his capital", high_level_keywords=("born", "venice"), top_k=1)
    async with travels.view() as view:
        evidence = await retrieve(query, view, travels.tools)
    assert [hit.id for hit in evidence.relations] == [relation_id("marco polo", "venice")]
    assert evidence.seeds[0].text == "born, venice"


async def test_a_question_near_to_no_relation_finds_nothing(travels: Library) -> None:
    async with travels.view() as view:
        evidence = await retrieve(Query(text="mulberry bark"), view, travels.tools)
    assert (evidence.chunks, evidence.entities, evidence.relations) == ((), (), ())
