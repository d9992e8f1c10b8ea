"""Replies and usage: what models answered is kept while a document needs it; what it cost is added up, never lost."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from quipu.model.chat import TokenCount
from quipu.model.delta import Delta, ExtractionReply
from quipu.model.usage import Stage, UsageRow
from quipu.testing.contract.steps import OpenStore, dump, publish, remove
from quipu.testing.facts import document, source

_FACTS = document("a", "One.")
_HASH = _FACTS.chunks[0].chunk.input_hash
_SAME = document("b", "One.")

_ROW = UsageRow(
    day="2026-03-04",
    stage=Stage.EXTRACT,
    model="openai/small",
    subject="a",
    n_calls=2,
    tokens=TokenCount(input=100, cached=40, output=30),
    cost=7_000_000_000_000,
    n_unpriced=1,
    n_interrupted=3,
    interrupted_tokens=TokenCount(input=9, cached=8, output=7),
    interrupted_cost=5,
)


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


class UsageContract:
    """What is promised of costs."""

    async def test_costs_are_added_up_by_day_stage_model_and_subject(self, open_store: OpenStore) -> None:
        others = [
            replace(_ROW, day="2026-03-05"),
            replace(_ROW, stage=Stage.ANSWER),
            replace(_ROW, model="x"),
            replace(_ROW, subject=""),
        ]
        async with open_store() as store:
            assert await store.usage() == []
            await store.record_call([_ROW, *others])
            await store.commit(Delta(usage=[_ROW, _ROW]))
        async with open_store() as store:
            await store.record_call([])
            key = ("day", "stage", "model", "subject")
            expected = sorted([_ROW + _ROW + _ROW, *others], key=lambda row: [str(getattr(row, name)) for name in key])
            assert await store.usage() == expected

    async def test_days_may_be_chosen_and_both_ends_count(self, open_store: OpenStore) -> None:
        days = [f"2026-03-0{n}" for n in range(1, 6)]
        async with open_store() as store:
            await store.record_call([replace(_ROW, day=day) for day in days])
            assert [row.day for row in await store.usage("2026-03-02", "2026-03-04")] == days[1:4]
            assert [row.day for row in await store.usage(since="2026-03-04")] == days[3:]
            assert [row.day for row in await store.usage(until="2026-03-02")] == days[:2]

    async def test_costs_are_no_part_of_the_state_and_a_failed_change_costs_nothing(
        self, open_store: OpenStore
    ) -> None:
        async with open_store() as store:
            await publish(store, document("a", "One."))
            before = await dump(store)
            await store.commit(Delta(usage=[_ROW]))
            assert await dump(store) == before
            await remove(store, "a")
            assert await store.usage() == [_ROW]

    async def test_purge_forgets_whom_calls_were_for_when_these_are_gone_and_keeps_the_sums(
        self, open_store: OpenStore
    ) -> None:
        today = datetime.now(UTC).date()
        old, new = (today - timedelta(days=200)).isoformat(), today.isoformat()
        async with open_store() as store:
            await store.commit(Delta(publish=[document("a", "One.")], enqueue=[source("q")]))
            for subject in ("a", "q", "gone", ""):
                await store.record_call([replace(_ROW, day=old, subject=subject)])
            for day in (old, new):
                for stage in (Stage.ANSWER, Stage.EMBED):
                    await store.record_call([replace(_ROW, day=day, stage=stage, subject="Who was it?")])
            await store.purge()
            shared = replace(_ROW, day=old, subject="")
            assert await store.usage() == [
                replace(shared, stage=Stage.ANSWER),
                replace(shared, stage=Stage.EMBED),
                shared + shared,
                replace(_ROW, day=old),
                replace(_ROW, day=old, subject="q"),
                replace(_ROW, day=new, stage=Stage.ANSWER, subject="Who was it?"),
                replace(_ROW, day=new, stage=Stage.EMBED, subject="Who was it?"),
            ]
            await store.purge()
            assert len(await store.usage()) == 7
