"""hybrid: local and global in turn."""

from quipu.model.query import Query
from quipu.retrieve.global_ import retrieve as retrieve_global
from quipu.retrieve.hybrid import retrieve
from quipu.retrieve.local import retrieve as retrieve_local
from tests.unit.retrieve.fakes import Library

QUERY = Query(text="Who in Venice knew who ruled from his capital?")


async def test_entities_are_taken_from_local_and_global_in_turn(travels: Library) -> None:
    async with travels.view() as view:
        local = await retrieve_local(QUERY, view, travels.tools)
        global_ = await retrieve_global(QUERY, view, travels.tools)
        evidence = await retrieve(QUERY, view, travels.tools)
    assert [hit.id for hit in evidence.entities[:2]] == ["venice", "dadu"]
    assert evidence.entities[0] == local.entities[0]
    assert evidence.entities[1] == global_.entities[0]
    assert {h.id for h in evidence.entities} == {h.id for h in (*local.entities, *global_.entities)}
    assert {h.id for h in evidence.relations} == {h.id for h in (*local.relations, *global_.relations)}
    assert evidence.seeds == local.seeds + global_.seeds


async def test_nothing_is_found_twice(travels: Library) -> None:
    async with travels.view() as view:
        evidence = await retrieve(QUERY, view, travels.tools)
    for hits in (evidence.chunks, evidence.entities, evidence.relations):
        assert len({hit.id for hit in hits}) == len(hits)


async def test_everything_is_embedded_in_one_call(travels: Library) -> None:
    async with travels.view() as view:
        await retrieve(QUERY, view, travels.tools)
    assert travels.embedder.calls == [(QUERY.text, "Venice")]
