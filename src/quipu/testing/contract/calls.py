"""Calls: completed replies of models, kept as long as their request says and not a commit longer."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from quipu.model.chat import ChatRequest, Message, ReplyLifetime, Role, TokenCount
from quipu.model.delta import Delta
from quipu.model.usage import Stage, UsageRow
from quipu.ports.store import CallReply, Store
from quipu.testing.contract.steps import DIMENSION, MODEL, OpenStore, dump, embed, publish, remove
from quipu.testing.facts import document, passage, source

_ONE, _TWO = document("a", "One."), document("b", "Two.")
_COST = UsageRow(day="2026-01-02", stage=Stage.EXTRACT, model="m", subject="a", n_calls=1, tokens=TokenCount(input=5))


def _request(*documents: str, lifetime: ReplyLifetime = ReplyLifetime.DOCUMENTS) -> ChatRequest:
    return ChatRequest(
        messages=(Message("user", "Say something."),),
        role=Role.EXTRACT,
        max_output_tokens=10,
        documents=documents,
        lifetime=lifetime,
    )


async def _save(store: Store, name: str, payload: str, request: ChatRequest, usage: Sequence[UsageRow]) -> None:
    await store.record_call(usage, CallReply(input_hash=name, payload=payload, request=request))


async def _keep(store: Store, name: str, *documents: str, lifetime: ReplyLifetime = ReplyLifetime.DOCUMENTS) -> None:
    await _save(store, name, f"reply to {name}", _request(*documents, lifetime=lifetime), [])


async def _kept(store: Store, *names: str) -> list[str]:
    """Return which of these are kept."""
    return list(await store.find_replies(names))


class CallsContract:
    """What is promised of the replies to single calls."""

    async def test_a_reply_is_found_again_with_all_its_signs(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, _ONE)
            assert await store.find_replies(["hash"]) == {}
            await _save(store, "hash", 'один "一" \ud800', _request("a"), [_COST])
            assert await store.find_replies(["hash"]) == {"hash": 'один "一" \ud800'}
        async with open_store() as store:
            assert await store.find_replies(["hash"]) == {"hash": 'один "一" \ud800'}
            assert await store.usage() == [_COST]

    async def test_keeping_finding_and_spending_leave_the_revision_as_it_is(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, _ONE)
            before = await dump(store)
            await _save(store, "hash", "reply", _request("a"), [_COST])
            await store.record_call([_COST])
            await store.find_replies(["hash"])
            async with store.view() as view:
                assert view.revision == 1
                assert (await view.counts()).replies == 1
            assert await dump(store) == before
            assert await store.verify() == []

    async def test_what_comes_at_once_is_all_kept(self, open_store: OpenStore) -> None:
        names = [f"hash {n}" for n in range(200)]
        async with open_store() as store, open_store() as other:
            await publish(store, _ONE)
            await asyncio.gather(
                *(_save(store, name, name, _request("a"), [_COST]) for name in names),
                *(store.find_replies([name]) for name in names),
                *(store.record_call([_COST]) for _ in range(50)),
                publish(store, _TWO),
            )
            replies = await asyncio.gather(*(other.find_replies([name]) for name in names))
            assert replies == [{name: name} for name in names]
            (row,) = await other.usage()
            assert (row.n_calls, row.tokens.input) == (250, 1_250)

    async def test_the_first_reply_to_a_request_stays(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, _ONE)
            await asyncio.gather(*(_save(store, "hash", f"{n}", _request("a"), []) for n in range(4)))
            await _save(store, "hash", "late", _request("a"), [])
            assert await store.find_replies(["hash"]) == {"hash": "0"}

    async def test_a_cancelled_caller_takes_nothing_back_from_the_others(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, _ONE)
            tasks = [asyncio.create_task(_keep(store, f"hash {n}", "a")) for n in range(6)]
            await asyncio.sleep(0)
            tasks[0].cancel()
            tasks[3].cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            assert len(await _kept(store, *(f"hash {n}" for n in range(6)))) >= 4

    async def test_what_was_begun_before_the_store_is_closed_is_kept(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, _ONE)
            tasks = [asyncio.create_task(_keep(store, f"hash {n}", "a")) for n in range(6)]
            await asyncio.sleep(0)
        await asyncio.gather(*tasks)
        async with open_store() as store:
            assert len(await _kept(store, *(f"hash {n}" for n in range(6)))) == 6

    async def test_a_reply_goes_with_the_last_of_its_documents(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, _ONE, _TWO)
            await _keep(store, "of a", "a")
            await _keep(store, "of both", "a", "b")
            await remove(store, "a")
            assert await _kept(store, "of a", "of both") == ["of both"]
            await remove(store, "b")
            assert await _kept(store, "of both") == []

    async def test_a_reply_made_of_all_goes_with_the_first(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, _ONE, _TWO)
            await _keep(store, "of both", "a", "b", lifetime=ReplyLifetime.ALL_DOCUMENTS)
            await _keep(store, "of b", "b", lifetime=ReplyLifetime.ALL_DOCUMENTS)
            await remove(store, "a")
            assert await _kept(store, "of both", "of b") == ["of b"]
            async with store.view() as view:
                assert (await view.counts()).replies == 1

    async def test_a_reply_made_of_all_goes_when_one_of_them_takes_something_back(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, _ONE, _TWO)
            await _keep(store, "of both", "a", "b", lifetime=ReplyLifetime.ALL_DOCUMENTS)
            await _keep(store, "of one", "a", "b")
            await publish(store, document("a", "One.", "And more."))
            assert await _kept(store, "of both", "of one") == ["of both", "of one"]
            await publish(store, document("a", "And more."))
            assert await _kept(store, "of both", "of one") == ["of one"]

    async def test_a_reply_made_from_others_goes_with_the_first_of_them(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, _ONE, _TWO)
            for name in ("a", "b"):
                await _keep(store, f"of {name}", name, lifetime=ReplyLifetime.ALL_DOCUMENTS)
            request = _request(lifetime=ReplyLifetime.ALL_DOCUMENTS)
            for name, sources in (
                ("of b alone", ("of b",)),
                ("of both", ("of a", "of b")),
                ("and so on", ("of b alone", "of both")),
                ("of what is not there", ("of a", "nowhere")),
            ):
                await _save(store, name, name, replace(request, source_replies=sources), [_COST])
            names = ("of a", "of b", "of b alone", "of both", "and so on", "of what is not there")
            assert await _kept(store, *names) == list(names[:-1])
            assert await store.purge() == 0
            await remove(store, "a")
            assert await _kept(store, *names) == ["of b", "of b alone"]
            await _save(store, "late", "late", replace(request, source_replies=("of a",)), [_COST])
            assert await _kept(store, "late") == []
            await remove(store, "b")
            async with store.view() as view:
                assert (await view.counts()).replies == 0
            assert (await store.usage())[0].n_calls == 5

    async def test_the_replies_that_a_removal_deletes_are_counted_before_it(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, _ONE, _TWO, document("c", "Three."))
            await _keep(store, "of a", "a")
            await _keep(store, "of a and b", "a", "b")
            await _keep(store, "of all", "b", "c", lifetime=ReplyLifetime.ALL_DOCUMENTS)
            await _keep(store, "now", lifetime=ReplyLifetime.REVISION)
            await _keep(store, "free", lifetime=ReplyLifetime.FREE)
            from_a = replace(_request("b"), source_replies=("of a",))
            await _save(store, "from a", "reply", from_a, [])
            for removed, n_replies in ((["a"], 3), (["a", "b"], 5), (["c"], 2), ([], 1)):
                async with store.view() as view:
                    assert (await view.counts("replies", of=removed)).replies == n_replies, removed
                    assert (await view.counts("chunks", "replies", of=removed)).chunks == 3
            for name, n_left in (("a", 3), ("b", 1)):
                async with store.view() as view:
                    expected = (await view.counts("replies")).replies - (
                        await view.counts("replies", of=[name])
                    ).replies
                await remove(store, name)
                async with store.view() as view:
                    assert (await view.counts("replies")).replies == expected == n_left

    async def test_a_reply_of_the_revision_goes_when_a_fact_changes(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await store.set_embedder(MODEL, DIMENSION)
            await publish(store, _ONE)
            for change in (Delta(publish=[_TWO]), Delta(remove=["b"])):
                await _keep(store, "now", "a", lifetime=ReplyLifetime.REVISION)
                await embed(store)
                await store.commit(Delta(enqueue=[source("c")]))
                await store.purge()
                assert await _kept(store, "now") == ["now"]
                await store.commit(change)
                assert await _kept(store, "now") == []

    async def test_a_reply_of_an_earlier_revision_is_not_kept_but_counted(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, _ONE, _TWO)
            request = replace(_request("a", lifetime=ReplyLifetime.REVISION), revision=await store.facts_revision())
            for change, is_kept in ((Delta(enqueue=[source("c")]), True), (Delta(remove=["b"]), False)):
                await store.commit(change)
                await _save(store, "now", "reply", request, [_COST])
                assert await _kept(store, "now") == ["now"] * is_kept
            await publish(store, _TWO)
            await _save(store, "now", "reply", request, [_COST])
            assert await _kept(store, "now") == []
            async with store.view() as view:
                assert await store.facts_revision() == view.revision
                await _save(store, "now", "reply", replace(request, revision=view.revision), [])
            assert await _kept(store, "now") == ["now"]
            assert (await store.usage())[0].n_calls == 3

    @pytest.mark.parametrize(
        "changes",
        [
            [Delta(publish=[document("a", "Another one.")])],
            [Delta(remove=["a"]), Delta(publish=[_ONE])],
            [Delta(publish=[document("a", "Another one.")]), Delta(publish=[_ONE])],
        ],
        ids=["updated", "removed and added", "updated twice"],
    )
    async def test_a_reply_made_of_all_is_not_kept_once_one_has_taken_something_back_meanwhile(
        self, open_store: OpenStore, changes: list[Delta]
    ) -> None:
        async with open_store() as store:
            await publish(store, _ONE, _TWO)
            async with store.view() as view:
                request = _request("a", "b", lifetime=ReplyLifetime.ALL_DOCUMENTS)
                request = replace(request, revision=view.revision)
            await publish(store, document("a", "One.", "And more."), document("c", "Three."))
            await _save(store, "in time", "reply", request, [])
            assert await _kept(store, "in time") == ["in time"]
            for change in changes:
                await store.commit(change)
            await _save(store, "late", "reply", request, [_COST])
            async with store.view() as view:
                await _save(store, "anew", "reply", replace(request, revision=view.revision), [])
            assert await _kept(store, "in time", "late", "anew") == ["anew"]
            assert (await store.usage())[0].n_calls == 1
            assert await store.verify() == []

    async def test_keeping_a_reply_again_makes_it_one_of_other_documents_too(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, _ONE, _TWO)
            await _keep(store, "hash", "a")
            await _keep(store, "hash", "b")
            await remove(store, "a")
            assert await _kept(store, "hash") == ["hash"]
            await remove(store, "b")
            assert await _kept(store, "hash") == []

    @pytest.mark.parametrize("lifetime", [ReplyLifetime.FREE, ReplyLifetime.DOCUMENTS, ReplyLifetime.ALL_DOCUMENTS])
    async def test_a_reply_of_no_document_stays_until_purge(
        self, open_store: OpenStore, lifetime: ReplyLifetime
    ) -> None:
        async with open_store() as store:
            await _keep(store, "free", lifetime=lifetime)
            await publish(store, _ONE)
            await remove(store, "a")
            assert await _kept(store, "free") == ["free"]
            assert await store.purge() == 1
            assert await _kept(store, "free") == []

    async def test_a_reply_that_comes_after_its_document_has_gone_is_not_kept_but_counted(
        self, open_store: OpenStore
    ) -> None:
        async with open_store() as store:
            await store.commit(Delta(publish=[_ONE, document("gone", "Two.")], enqueue=[source("q")]))
            await store.commit(Delta(remove=["gone"], enqueue_removal=["r"]))
            await _save(store, "late", "reply", _request("gone"), [_COST])
            await _keep(store, "one left", "gone", "a")
            await _keep(store, "one of all gone", "gone", "a", lifetime=ReplyLifetime.ALL_DOCUMENTS)
            await _keep(store, "to be removed", "r")
            await _keep(store, "queued", "q")
            names = ("late", "one left", "one of all gone", "to be removed", "queued")
            assert await _kept(store, *names) == ["one left", "queued"]
            assert await store.usage() == [_COST]
            await remove(store, "a", "q")
            assert await _kept(store, *names) == []

    async def test_purge_keeps_calls_while_their_document_stays_in_the_version_they_were_made_for(
        self, open_store: OpenStore
    ) -> None:
        async with open_store() as store:
            await store.commit(Delta(enqueue=[source("a")]))
            (job,) = await store.claim_jobs(1)
            await _keep(store, "first", "a")
            await store.purge()
            await publish(store, document("a", "One.", job=job.id))
            await publish(store, _TWO)
            await _keep(store, "joint", "a", "b", lifetime=ReplyLifetime.ALL_DOCUMENTS)
            assert await store.purge() == 0
            await store.commit(Delta(enqueue=[source("a")]))
            (job,) = await store.claim_jobs(1)
            await _keep(store, "second", "a")
            assert await store.purge() == 0
            await publish(store, document("a", "One.", "More.", job=job.id))
            assert await _kept(store, "first", "second", "joint") == ["first", "second", "joint"]
            assert await store.purge() == 1
            assert await _kept(store, "first", "second", "joint") == ["second", "joint"]
            assert await store.purge() == 0

    async def test_purge_keeps_the_calls_of_a_document_with_chunks_to_be_tried_again(
        self, open_store: OpenStore
    ) -> None:
        async with open_store() as store:
            await publish(store, _ONE)
            await _keep(store, "first", "a")
            await store.commit(Delta(enqueue=[source("a")]))
            (job,) = await store.claim_jobs(1)
            await _keep(store, "second", "a")
            await publish(store, document("a", passage("Two.", error="timed out"), job=job.id))
            await store.purge()
            assert await _kept(store, "first", "second") == ["first", "second"]
