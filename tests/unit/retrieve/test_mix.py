"""mix: hybrid and the nearest passages."""

import pytest

from quipu.errors import InvalidInput
from quipu.model.query import Query
from quipu.retrieve.hybrid import retrieve as retrieve_hybrid
from quipu.retrieve.mix import MixOptions, MixWeights, retrieve
from quipu.retrieve.naive import retrieve as retrieve_naive
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
    query = _weighted(MixWeights(vector=0.0))
    async with travels.view() as view:
        hybrid = await retrieve_hybrid(query, view, travels.tools)
        evidence = await retrieve(query, view, travels.tools)
    note = "rankings merged by rank / weight: entities 1, relations 1, vectors 0"
    assert evidence == hybrid.with_notes((note,))


async def test_the_vector_arm_alone_is_naive(travels: Library) -> None:
    query = _weighted(MixWeights(entity=0.0, relation=0.0))
    async with travels.view() as view:
        naive = await retrieve_naive(query, view, travels.tools)
        evidence = await retrieve(query, view, travels.tools)
    assert (evidence.chunks, evidence.entities, evidence.relations) == (naive.chunks, (), ())


async def test_equal_weights_are_the_arms_in_turn_whatever_they_are(travels: Library) -> None:
    async with travels.view() as view:
        plain = await retrieve(Query(text=QUESTION), view, travels.tools)
        weighed = await retrieve(_weighted(MixWeights(**dict.fromkeys(ARMS, 0.3))), view, travels.tools)
    assert plain == weighed


async def test_the_more_the_vectors_weigh_the_earlier_their_passages_come(travels: Library) -> None:
    query = Query(text="Who served Kublai Khan, and what was made of bark?", min_similarity=0.05)
    ranks: list[int] = []
    async with travels.view() as view:
        for weight in (0.2, 0.6, 1.0, 3.0):
            weighed = query.with_options(MixOptions(mix_weights=MixWeights(vector=weight)))
            found = await titles(view, (await retrieve(weighed, view, travels.tools)).chunks)
            ranks.append(found.index("Paper"))
    assert ranks == sorted(ranks, reverse=True)
    assert ranks[0] > ranks[-1]


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"entity": -1.0}, r"entity = -1\.0 is not allowed\. Use a number from 0\.0 to 1,000\.0"),
        ({"vector": float("inf")}, "vector = inf is not allowed"),
        (dict.fromkeys(ARMS, 0.0), "All weights of mix are 0"),
    ],
)
def test_weights_that_cannot_be_meant_are_refused(weights: dict[str, float], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        MixWeights(**weights)


def _weighted(weights: MixWeights) -> Query:
    return Query(text=QUESTION, options=(MixOptions(mix_weights=weights),))
