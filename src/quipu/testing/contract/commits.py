"""Commits and views: all or nothing, one revision each, snapshots that stay as they are."""

import asyncio
from dataclasses import replace

import pytest

from quipu.errors import InvalidDelta
from quipu.model.delta import ChunkFacts, Delta, DocumentFacts, ExtractionReply
from quipu.model.graph import EntityMention
from quipu.model.query import Filter
from quipu.ports.derivation_view import NodeKind
from quipu.ports.store import OccurrenceKind
from quipu.testing.contract.steps import DIMENSION, MODEL, OpenStore, dump, embed, publish, remove, vector
from quipu.testing.facts import alias, claim, document, entity, passage, relation, source

_GOOD = document("good", passage("Venice trades with Acre.", entity("Venice"), entity("Acre")))
_TWICE = document("twice", "The same words.")


def _saying(*chunks: ChunkFacts) -> DocumentFacts:
    return replace(document("bad"), chunks=chunks)


_BAD_DELTAS = {
    "a relation's end is not mentioned": Delta(
        publish=[_GOOD, document("bad", passage("Venice.", entity("Venice"), relation("Venice", "Genoa")))]
    ),
    "an entity is related to itself": Delta(
        publish=[_GOOD, document("bad", passage("Venice.", entity("Venice"), relation("Venice", "Venice")))]
    ),
    "an alias of what is not mentioned": Delta(
        publish=[_GOOD, document("bad", passage("Genoa.", entity("Genoa"), alias("Venice", "La Serenissima")))]
    ),
    "a claim about what is not mentioned": Delta(
        publish=[_GOOD, document("bad", passage("Genoa.", entity("Genoa"), claim("Venice", "It lied.")))]
    ),
    "a claim whose object is not mentioned": Delta(
        publish=[_GOOD, document("bad", passage("Genoa.", entity("Genoa"), claim("Genoa", "It lied.", "Venice")))]
    ),
    "an entity without a key": Delta(
        publish=[_GOOD, document("bad", passage("…", EntityMention(key="", surface="…", type="Other")))]
    ),
    "the same document twice": Delta(publish=[_GOOD, document("bad", "One."), document("bad", "Two.")]),
    "the same chunk twice": Delta(publish=[_GOOD, _saying(_TWICE.chunks[0], _TWICE.chunks[0])]),
    "a chunk of another document": Delta(publish=[_GOOD, document("other", "Mine."), _saying(*_GOOD.chunks)]),
    "a document published and removed": Delta(publish=[_GOOD, document("bad", "One.")], remove=["bad"]),
}


class CommitsContract:
    """What `commit` and `view` promise."""

    async def test_a_new_index_is_empty_and_sound(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            async with store.view() as view:
                counts = await view.counts()
                assert (view.revision, await view.documents()) == (0, [])
            assert (counts.documents, counts.chunks, counts.entities, counts.links, dict(counts.jobs)) == (
                0,
                0,
                0,
                0,
                {},
            )
            assert await dump(store) == []
            assert await store.verify() == []

    async def test_every_commit_raises_the_revision_by_one(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            assert (await publish(store, document("a", "One."))).revision == 1
            assert (await store.commit(Delta())).revision == 2
            assert (await remove(store, "a")).revision == 3
            async with store.view() as view:
                assert view.revision == 3

    @pytest.mark.parametrize("fault", sorted(_BAD_DELTAS))
    async def test_an_invalid_change_leaves_nothing_behind(self, open_store: OpenStore, fault: str) -> None:
        bad = replace(
            _BAD_DELTAS[fault],
            enqueue=[source("waiting")],
            replies=[ExtractionReply(input_hash="hash", document_id="good", payload="reply")],
        )
        async with open_store() as store:
            await publish(store, document("before", passage("Genoa stays.", entity("Genoa"))))
            before = await dump(store)
            with pytest.raises(InvalidDelta):
                await store.commit(bad)
            async with store.view() as view:
                assert view.revision == 1
                assert (await view.counts()).documents == 1
            assert await dump(store) == before
            assert await store.claim_jobs(10) == []
            assert await store.find_replies(["hash"]) == {}
            assert await store.verify() == []

    async def test_a_vector_of_the_wrong_length_leaves_nothing_behind(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await store.set_embedder(MODEL, DIMENSION)
            await publish(store, document("a", "One."))
            (text_hash,) = await store.texts_without_vector(MODEL, 10)
            with pytest.raises(InvalidDelta):
                await store.commit(
                    Delta(publish=[_GOOD], vectors=[vector(text_hash, dimension=DIMENSION + 1)]),
                )
            async with store.view() as view:
                assert [doc.id for doc in await view.documents()] == ["a"]
                assert (await view.counts()).vectors == 0

    async def test_an_invalid_change_is_not_in_the_way_of_the_next(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            with pytest.raises(InvalidDelta):
                await store.commit(_BAD_DELTAS["the same document twice"])
            assert (await publish(store, _GOOD)).revision == 1

    async def test_a_view_stays_as_it_was_while_commits_go_on(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, _GOOD, document("old", passage("Acre falls.", entity("Acre", "Event"))))
            await store.set_embedder(MODEL, DIMENSION)
            await embed(store)
            async with store.view() as view:
                before = [line async for line in view.dump()]
                await publish(store, document("new", passage("Venice is old.", entity("Venice", "Location"))))
                await remove(store, "old")
                await embed(store)
                assert [line async for line in view.dump()] == before
                assert [doc.id for doc in await view.documents()] == ["good", "old"]
                assert len(await view.search_text(NodeKind.CHUNK, "falls", 10)) == 1
                (acre,) = await view.entities(["acre"])
                assert acre.n_mentions == 2
            async with store.view() as view:
                assert [doc.id for doc in await view.documents()] == ["good", "new"]
                assert await view.search_text(NodeKind.CHUNK, "falls", 10) == []

    async def test_views_with_different_filters_do_not_disturb_one_another(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, document("a", "One."), document("b", "Two."))
            async with (
                store.view(Filter(documents=("a",))) as first,
                store.view(Filter(documents=("b",))) as second,
                store.view() as third,
            ):
                await publish(store, document("c", "Three."))
                ids_by_view = [[doc.id for doc in await view.documents()] for view in (first, second, third)]
            assert ids_by_view == [["a"], ["b"], ["a", "b"]]

    async def test_a_filter_of_a_closed_view_does_not_linger(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, document("a", "One."), document("b", "Two."))
            for document_id in ("a", "b", "a"):
                async with store.view(Filter(documents=(document_id,))) as view:
                    assert [doc.id for doc in await view.documents()] == [document_id]
            async with store.view() as view:
                assert len(await view.documents()) == 2

    async def test_reads_of_one_view_may_run_at_once(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, _GOOD)
            async with store.view() as view:
                results = await asyncio.gather(*(view.entities(["venice"]) for _ in range(8)), view.entities(["acre"]))
            assert [len(rows) for rows in results] == [1] * 9

    async def test_two_instances_lose_no_commit(self, open_store: OpenStore) -> None:
        async with open_store() as first, open_store() as second:
            names = [f"{number:02}" for number in range(12)]
            await asyncio.gather(
                *(
                    publish(store, document(name, passage(f"Venice {name}.", entity("Venice"))))
                    for name, store in zip(names, (first, second) * 6, strict=True)
                )
            )
            async with first.view() as view:
                assert view.revision == 12
                assert [doc.id for doc in await view.documents()] == names
                (venice,) = await view.entities(["venice"])
            assert (venice.n_mentions, venice.n_chunks) == (12, 12)
            assert await second.verify() == []

    async def test_what_was_committed_is_there_when_opened_again(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, _GOOD)
            before = await dump(store)
        async with open_store() as store:
            assert await dump(store) == before
            assert (await publish(store, document("a", "One."))).revision == 2

    async def test_another_storage_is_another_index(self, open_store: OpenStore) -> None:
        async with open_store("first") as first, open_store("second") as second:
            await publish(first, _GOOD)
            assert await dump(second) == []

    async def test_a_cancelled_commit_is_whole_or_nothing(self, open_store: OpenStore) -> None:
        big = document("big", *(passage(f"Venice {n}.", entity("Venice"), entity(f"Doge {n}")) for n in range(50)))
        async with open_store("whole") as store:
            await publish(store, big, _GOOD)
            whole = await dump(store)
        async with open_store("nothing") as store:
            await publish(store, _GOOD)
            nothing = await dump(store)
        async with open_store() as store:
            task = asyncio.create_task(publish(store, big))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await publish(store, _GOOD)
            assert await dump(store) in (whole, nothing)
            assert await store.verify() == []

    async def test_long_lists_are_answered_whole(self, open_store: OpenStore) -> None:
        n = 2_500
        facts = document(
            "long", *(passage(f"w{i}", entity(f"e{i}"), entity("hub"), relation("hub", f"e{i}")) for i in range(n))
        )
        async with open_store() as store:
            await publish(store, facts)
            chunk_ids = [chunk_facts.chunk.id for chunk_facts in facts.chunks]
            keys = [f"e{i}" for i in range(n)]
            ids = [f"e{i} -- hub" for i in range(n)]
            async with store.view() as view:
                assert [chunk.id for chunk in await view.chunks(chunk_ids)] == chunk_ids
                assert [node.key for node in await view.entities(keys)] == keys
                assert [edge.id for edge in await view.relations(ids)] == ids
                assert [node.degree for node in await view.entities(["hub"])] == [n]
                assert len(await view.occurrences(OccurrenceKind.ENTITY, keys, 10)) == n
