"""mix: hybrid and the nearest passages."""

from quipu.model.query import Query
from quipu.retrieve.hybrid import retrieve as retrieve_hybrid
from quipu.retrieve.mix import retrieve
from quipu.retrieve.naive import retrieve as retrieve_naive
from tests.unit.retrieve.fakes import Library, titles


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
