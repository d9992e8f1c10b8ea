"""Replies: kept while a document needs them, never longer than it is allowed."""

from quipu.model.delta import Delta, ExtractionReply
from quipu.testing.contract.steps import OpenStore, publish, remove
from quipu.testing.facts import document, source

_FACTS = document("a", "One.")
_HASH = _FACTS.chunks[0].chunk.input_hash
_SAME = document("b", "One.")


def _reply(document_id: str, input_hash: str = _HASH, payload: str = '{"said": "один 一"}') -> ExtractionReply:
    return ExtractionReply(input_hash=input_hash, document_id=document_id, payload=payload)


class RepliesContract:
    """What is promised of replies."""

    async def test_replies_are_kept_and_unknown_hashes_are_left_out(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await store.commit(Delta(enqueue=[source("a")], replies=[_reply("a"), _reply("a", "other", "")]))
            assert await store.find_replies(["nowhere", _HASH]) == {_HASH: '{"said": "один 一"}'}
            assert await store.find_replies(["other"]) == {"other": ""}
            assert await store.find_replies([]) == {}
        async with open_store() as store:
            assert len(await store.find_replies([_HASH, "other"])) == 2

    async def test_the_first_reply_to_an_input_stays(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            both = [_reply("a", payload="first"), _reply("b", payload="second")]
            await store.commit(Delta(enqueue=[source("a"), source("b")], replies=both))
            await store.commit(Delta(replies=[_reply("a", payload="third")]))
            assert await store.find_replies([_HASH]) == {_HASH: "first"}

    async def test_removing_a_document_drops_its_replies_at_once(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await store.commit(Delta(replies=[_reply("a")], publish=[_FACTS]))
            await remove(store, "a")
            assert await store.find_replies([_HASH]) == {}
            async with store.view() as view:
                assert (await view.counts()).replies == 0

    async def test_a_shared_reply_stays_until_the_last_document_goes(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await store.commit(Delta(replies=[_reply("a")], publish=[_FACTS]))
            await publish(store, _SAME)
            await remove(store, "a")
            assert len(await store.find_replies([_HASH])) == 1
            await remove(store, "b")
            assert await store.find_replies([_HASH]) == {}

    async def test_replies_to_work_that_was_never_published_go_with_their_document_too(
        self, open_store: OpenStore
    ) -> None:
        async with open_store() as store:
            await store.commit(Delta(enqueue=[source("a")], replies=[_reply("a")]))
            await store.commit(Delta(remove=["a"]))
            assert await store.find_replies([_HASH]) == {}

    async def test_a_reply_that_comes_after_its_document_has_gone_is_not_kept(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await store.commit(Delta(publish=[_FACTS], enqueue=[source("b")]))
            await store.commit(Delta(remove=["a"]))
            await store.commit(Delta(enqueue_removal=["b"]))
            await store.commit(Delta(replies=[_reply("a"), _reply("b", "other"), _reply("nowhere", "third")]))
            assert await store.find_replies([_HASH, "other", "third"]) == {}
            await store.commit(Delta(publish=[_FACTS], replies=[_reply("a"), _reply("b")]))
            await remove(store, "a")
            assert await store.find_replies([_HASH]) == {}

    async def test_a_reply_without_a_document_is_kept_until_purge_or_until_its_last_document_goes(
        self, open_store: OpenStore
    ) -> None:
        async with open_store() as store:
            await store.commit(Delta(replies=[_reply(""), _reply("", "other")]))
            assert len(await store.find_replies([_HASH, "other"])) == 2
            await publish(store, _FACTS)
            assert await store.purge() == 1
            assert list(await store.find_replies([_HASH, "other"])) == [_HASH]
            await remove(store, "a")
            assert await store.find_replies([_HASH]) == {}

    async def test_replies_to_cancelled_work_are_kept_until_purge(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, _SAME)
            new = Delta(enqueue=[source("a"), source("b")], replies=[_reply("a", "new"), _reply("b", "newer")])
            await store.commit(new)
            await store.commit(Delta(cancel=["a", "b"]))
            assert await store.verify() == []
            assert len(await store.find_replies(["new", "newer"])) == 2
            await remove(store, "b")
            assert list(await store.find_replies(["new", "newer"])) == ["new"]
            assert await store.purge() == 1
            assert await store.find_replies(["new"]) == {}

    async def test_an_update_keeps_old_replies_until_purge(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await store.commit(Delta(replies=[_reply("a")], publish=[_FACTS]))
            new = document("a", "Two.")
            await store.commit(Delta(replies=[_reply("a", new.chunks[0].chunk.input_hash)], publish=[new]))
            assert len(await store.find_replies([_HASH])) == 1
            assert await store.purge() == 1
            assert await store.find_replies([_HASH]) == {}
            assert len(await store.find_replies([new.chunks[0].chunk.input_hash])) == 1
            assert await store.purge() == 0

    async def test_purge_counts_only_what_it_drops(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, _FACTS)
            await publish(store, document("a", "Two."))
            assert await store.purge() == 0

    async def test_purge_keeps_what_unfinished_work_may_need(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await store.commit(Delta(enqueue=[source("a")], replies=[_reply("a")]))
            await store.purge()
            assert len(await store.find_replies([_HASH])) == 1
            await store.commit(Delta(cancel=["a"]))
            assert await store.purge() == 1
            assert await store.find_replies([_HASH]) == {}

    async def test_purge_changes_no_answer(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await store.commit(Delta(replies=[_reply("a")], publish=[_FACTS, _SAME]))
            async with store.view() as view:
                before = [line async for line in view.dump()]
                await store.purge()
                assert [line async for line in view.dump()] == before
            assert len(await store.find_replies([_HASH])) == 1
            assert await store.verify() == []
