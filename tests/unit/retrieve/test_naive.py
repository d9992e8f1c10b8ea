"""naive: passages by vector."""

from quipu.model.query import Filter, Query
from quipu.retrieve.naive import retrieve
from tests.unit.retrieve.fakes import Library, titles


async def test_the_nearest_passages_come_first_with_their_cosine(travels: Library) -> None:
    async with travels.view() as view:
        evidence = await retrieve(Query(text="venice islands"), view, travels.tools)
        assert await titles(view, evidence.chunks) == ["Venice", "Marco Polo"]
    assert evidence.chunks[0].score > evidence.chunks[1].score
    assert evidence.chunks[0].reason == f"cosine {evidence.chunks[0].score:.3f} to the question"
    assert [scored.id for scored in evidence.seeds[0].matches] == [hit.id for hit in evidence.chunks]


async def test_passages_below_the_similarity_are_left_out(travels: Library) -> None:
    async with travels.view() as view:
        evidence = await retrieve(Query(text="venice islands", min_similarity=0.5), view, travels.tools)
        assert await titles(view, evidence.chunks) == ["Venice"]


async def test_no_more_than_chunk_top_k_are_kept(travels: Library) -> None:
    async with travels.view() as view:
        evidence = await retrieve(Query(text="venice islands", chunk_top_k=1), view, travels.tools)
    assert len(evidence.chunks) == 1


async def test_a_filter_holds_before_the_search(travels: Library) -> None:
    async with travels.view(Filter(exclude=("Venice",))) as view:
        evidence = await retrieve(Query(text="venice islands", chunk_top_k=1), view, travels.tools)
        assert await titles(view, evidence.chunks) == ["Marco Polo"]


async def test_an_empty_index_gives_no_passage(library: Library) -> None:
    async with library.view() as view:
        assert (await retrieve(Query(text="venice"), view, library.tools)).chunks == ()
