"""mix: hybrid and the nearest passages."""

import pytest

from quipu.errors import InvalidInput
from quipu.model.query import MixWeights, Query
from quipu.retrieve.hybrid import retrieve as retrieve_hybrid
from quipu.retrieve.mix import retrieve
from quipu.retrieve.naive import retrieve as retrieve_naive
from quipu.retrieve.question import check_query
from tests.unit.retrieve.fakes import Library, titles

ARMS = ("entity", "relation", "vector")
QUESTION = "Did Kublai Khan know that paper was made of mulberry bark?"


async def test_passages_by_vector_and_by_graph_are_taken_in_turn(travels: Library) -> None:
    query = Query(text="Did Kublai Khan know that paper was made of mulberry bark?")
    async with travels.view() as view:
        naive = await retrieve_naive(query, view, travels.tools)
        hybrid = await retrieve_hybrid(query, view, travels.tools)
        evidence = await retrieve(query, view, travels.tools)
    assert evidence.chunks[:2] == (naive.chunks[0], hybrid.chunks[0])
    assert (evidence.entities, evidence.relations) == (hybrid.entities, hybrid.relations)
    assert evidence.seeds == hybrid.seeds + naive.seeds


async def test_vector_passages_alone_are_evidence(travels: Library) -> None:
    async with travels.view() as view:
        evidence = await retrieve(Query(text="islands", min_similarity=0.3), view, travels.tools)
        assert await titles(view, evidence.chunks) == ["Venice"]


async def test_no_more_than_chunk_top_k_are_kept(travels: Library) -> None:
    async with travels.view() as view:
        evidence = await retrieve(Query(text="Marco Polo of Venice", chunk_top_k=2), view, travels.tools)
    assert len(evidence.chunks) == 2


async def test_an_empty_index_gives_no_evidence_and_no_error(library: Library) -> None:
    async with library.view() as view:
        evidence = await retrieve(Query(text="Marco Polo"), view, library.tools)
    assert (evidence.chunks, evidence.entities, evidence.relations) == ((), (), ())


async def test_without_the_vector_arm_it_is_hybrid(travels: Library) -> None:
    query = Query(text=QUESTION, mix_weights=MixWeights(vector=0.0))
    async with travels.view() as view:
        hybrid = await retrieve_hybrid(query, view, travels.tools)
        evidence = await retrieve(query, view, travels.tools)
    note = "rankings merged by rank / weight: entities 1, relations 1, vectors 0"
    assert evidence == hybrid.with_notes((note,))


async def test_the_vector_arm_alone_is_naive(travels: Library) -> None:
    query = Query(text=QUESTION, mix_weights=MixWeights(entity=0.0, relation=0.0))
    async with travels.view() as view:
        naive = await retrieve_naive(query, view, travels.tools)
        evidence = await retrieve(query, view, travels.tools)
    assert (evidence.chunks, evidence.entities, evidence.relations) == (naive.chunks, (), ())


async def test_equal_weights_are_the_arms_in_turn_whatever_they_are(travels: Library) -> None:
    async with travels.view() as view:
        plain = await retrieve(Query(text=QUESTION), view, travels.tools)
        weighed = await retrieve(
            Query(text=QUESTION, mix_weights=MixWeights(**dict.fromkeys(ARMS, 0.3))), view, travels.tools
        )
    assert plain == weighed


async def test_the_more_the_vectors_weigh_the_earlier_their_passages_come(travels: Library) -> None:
    query = Query(text="Who served Kublai Khan, and what was made of bark?", min_similarity=0.05)
    ranks: list[int] = []
    async with travels.view() as view:
        for weight in (0.2, 0.6, 1.0, 3.0):
            weighed = Query(text=query.text, min_similarity=0.05, mix_weights=MixWeights(vector=weight))
            found = await titles(view, (await retrieve(weighed, view, travels.tools)).chunks)
            ranks.append(found.index("Paper"))
    assert ranks == sorted(ranks, reverse=True)
    assert ranks[0] > ranks[-1]


@pytest.mark.parametrize("weights", [MixWeights(entity=-1.0), MixWeights(**dict.fromkeys(ARMS, 0.0))])
def test_weights_that_cannot_be_meant_are_refused(weights: MixWeights) -> None:
    with pytest.raises(InvalidInput, match="The arms of mix cannot weigh"):
        check_query(Query(text="Who?", mix_weights=weights))
