"""lexical: passages by BM25."""

from quipu.model.query import Query
from quipu.retrieve.lexical import retrieve
from tests.unit.retrieve.fakes import Library, titles


async def test_passages_that_share_rare_words_come_first(travels: Library) -> None:
    async with travels.view() as view:
        evidence = await retrieve(Query(text="what was made of mulberry bark"), view, travels.tools)
        assert (await titles(view, evidence.chunks))[0] == "Paper"
    assert evidence.chunks[0].reason.startswith("BM25 ")
    assert evidence.seeds[0].kind == "full text"
    assert travels.embedder.calls == []


async def test_no_more_than_chunk_top_k_are_kept(travels: Library) -> None:
    async with travels.view() as view:
        evidence = await retrieve(Query(text="Venice Kublai Khan", chunk_top_k=2), view, travels.tools)
    assert len(evidence.chunks) == 2
