"""bypass: nothing is looked up."""

from quipu.model.query import Query
from quipu.retrieve.bypass import retrieve
from tests.unit.retrieve.fakes import Library


async def test_bypass_finds_nothing_and_ranks_nothing(travels: Library) -> None:
    async with travels.view() as view:
        evidence = await retrieve(Query(text="Who was Marco Polo?"), view, travels.tools)
    assert (evidence.chunks, evidence.entities, evidence.relations) == ((), (), ())
    assert not evidence.ranks_passages
    assert travels.embedder.calls == []
