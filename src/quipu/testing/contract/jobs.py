"""Jobs: queued work under leases; newer work replaces older, and what was done for the older is dropped."""

from dataclasses import replace
from typing import Any

import pytest

from quipu.model.chunking import Chunking
from quipu.model.delta import Delta, ExtractionReply, Job, JobFailure
from quipu.model.document import DocumentStatus
from quipu.ports.store import Store
from quipu.testing.contract.steps import OpenStore, dump, publish
from quipu.testing.facts import document, entity, passage, source

_EXPIRED = -1.0


async def _enqueue(store: Store, *ids: str, version: int = 0) -> None:
    texts = {
        document_id: f"Text of {document_id}." if not version else f"Text {version} of {document_id}."
        for document_id in ids
    }
    await store.commit(Delta(enqueue=[source(document_id, text) for document_id, text in texts.items()]))


async def _claim(store: Store, limit: int = 10) -> list[str]:
    return [job.document_id for job in await store.claim_jobs(limit)]


async def _claim_one(store: Store) -> Job:
    (job,) = await store.claim_jobs(10)
    return job


async def _status(store: Store, document_id: str) -> DocumentStatus | None:
    async with store.view() as view:
        documents = await view.documents([document_id])
    return documents[0].status if documents else None


class JobsContract:
    """What is promised of work."""

    async def test_jobs_are_claimed_oldest_first_up_to_the_limit(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await _enqueue(store, "c", "a")
            await _enqueue(store, "b")
            assert await _claim(store, 2) == ["c", "a"]
            assert await _claim(store, 2) == ["b"]
            assert await _claim(store, 2) == []
            assert await _claim(store, 0) == []

    async def test_a_claim_holds_few_large_documents(self, open_store: OpenStore) -> None:
        large = [replace(source(name, ""), content=bytes(12_000_000)) for name in "abc"]
        async with open_store() as store:
            await store.commit(Delta(enqueue=large))
            claims = [await _claim(store) for _ in range(3)]
            assert [name for names in claims for name in names] == ["a", "b", "c"]
            assert max(map(len, claims)) < 3

    async def test_a_job_brings_the_document_as_it_was_handed_in(self, open_store: OpenStore) -> None:
        handed_in = replace(
            source("a", title="Title 题", metadata={"year": 1271, "tags": ("x", "y"), "no": None, "is_old": False}),
            content=b"\x00\xff bytes",
            source="/files/a.html",
            media_type="text/html",
        )
        async with open_store() as store:
            await store.commit(Delta(enqueue=[handed_in]))
            job = await _claim_one(store)
            assert (job.document_id, job.status, job.source) == ("a", DocumentStatus.PARSING, handed_in)
            assert await _status(store, "a") is DocumentStatus.PARSING

    async def test_a_job_keeps_how_its_document_is_to_be_cut(self, open_store: OpenStore) -> None:
        chunking = Chunking(method="separator", separator="\n-§-\n", max_tokens=300)
        handed_in = [replace(source("a", "A"), chunking=chunking), source("b", "B")]
        async with open_store(lease_s=_EXPIRED) as store:
            await store.commit(Delta(enqueue=handed_in))
            await _claim(store)
            await store.commit(Delta(enqueue=[replace(source("c", "C"), chunking=Chunking())]))
        async with open_store() as store:
            jobs = await store.claim_jobs(10)
            assert [job.source and job.source.chunking for job in jobs] == [chunking, None, Chunking()]
            await store.commit(Delta(fail=[JobFailure(job=jobs[0].id, error="no")]))
            await store.commit(Delta(retry=None))
            assert (await _claim_one(store)).source == handed_in[0]

    async def test_an_empty_document_is_work_and_not_a_removal(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await store.commit(Delta(enqueue=[source("a", "")]))
            job = await _claim_one(store)
            assert job.source == source("a", "")

    async def test_a_removal_is_a_job_without_a_source(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, document("a", "One."))
            await store.commit(Delta(enqueue_removal=["a", "a"]))
            assert await _status(store, "a") is DocumentStatus.REMOVING
            job = await _claim_one(store)
            assert (job.document_id, job.status, job.source) == ("a", DocumentStatus.REMOVING, None)
            await store.commit(Delta(remove=["a"]))
            assert await _status(store, "a") is None
            assert await _claim(store) == []

    async def test_nobody_claims_what_another_holds(self, open_store: OpenStore) -> None:
        async with open_store() as first, open_store() as second:
            await _enqueue(first, "a", "b", "c")
            assert await _claim(first, 2) == ["a", "b"]
            assert await _claim(second) == ["c"]
            assert await _claim(first) == []

    async def test_an_expired_lease_frees_the_job(self, open_store: OpenStore) -> None:
        async with open_store(lease_s=_EXPIRED) as slow, open_store() as store:
            await _enqueue(store, "a")
            assert await _claim(slow) == ["a"]
            assert await _claim(store) == ["a"]
            assert await _claim(slow) == []

    async def test_only_the_holder_renews_a_lease_or_records_a_stage(self, open_store: OpenStore) -> None:
        async with open_store(lease_s=_EXPIRED) as slow, open_store() as store:
            await _enqueue(store, "a")
            job = await _claim_one(slow)
            await store.renew_leases()
            await store.update_jobs(DocumentStatus.EXTRACTING, [job.id])
            assert await _status(store, "a") is DocumentStatus.PARSING
            assert await _claim(store) == ["a"]
            await slow.update_jobs(DocumentStatus.EXTRACTING, [job.id])
            await slow.renew_leases()
            assert await _status(store, "a") is DocumentStatus.PARSING
            assert await _claim(slow) == []

    async def test_a_renewal_says_when_the_next_one_is_due(self, open_store: OpenStore) -> None:
        async with open_store(lease_s=60.0) as store:
            assert 0 < await store.renew_leases() < 30

    async def test_who_records_a_stage_is_told_which_jobs_are_still_theirs(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await _enqueue(store, "a", "b", "c")
            jobs = {job.document_id: job.id for job in await store.claim_jobs(10)}
            await store.commit(Delta(cancel=["a"]))
            await _enqueue(store, "b", version=1)
            assert await store.update_jobs(DocumentStatus.EXTRACTING, list(jobs.values())) == {jobs["c"]}

    async def test_who_keeps_a_reply_is_told_where_its_job_has_been_replaced(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await _enqueue(store, "a", "b")
            jobs = {job.document_id: job.id for job in await store.claim_jobs(10)}
            await store.commit(Delta(cancel=["a"]))
            replies = [
                ExtractionReply(input_hash=document_id, document_id=document_id, payload="{}", job=jobs[document_id])
                for document_id in jobs
            ]
            assert (await store.commit(Delta(replies=replies))).superseded == ("a",)

    async def test_released_work_can_be_claimed_by_anyone(self, open_store: OpenStore) -> None:
        async with open_store() as first, open_store() as second:
            await publish(first, document("gone", "One."))
            await _enqueue(first, "a", "b")
            await first.commit(Delta(enqueue_removal=["gone"]))
            jobs = await first.claim_jobs(10)
            await first.update_jobs(DocumentStatus.EXTRACTING, [jobs[0].id])
            await second.update_jobs(DocumentStatus.QUEUED)
            assert await _claim(second) == []
            await first.update_jobs(DocumentStatus.QUEUED)
            assert [await _status(first, name) for name in ("a", "b", "gone")] == [
                DocumentStatus.QUEUED,
                DocumentStatus.QUEUED,
                DocumentStatus.REMOVING,
            ]
            assert await second.claim_jobs(10) == jobs

    async def test_queued_work_outlives_the_store(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await _enqueue(store, "a")
        async with open_store() as store:
            assert await _claim(store) == ["a"]

    async def test_publishing_finishes_the_job(self, open_store: OpenStore) -> None:
        async with open_store(lease_s=_EXPIRED) as store:
            await _enqueue(store, "a")
            job = await _claim_one(store)
            committed = await publish(store, document("a", "One.", job=job.id))
            assert committed.superseded == ()
            assert await _status(store, "a") is DocumentStatus.READY
            assert await _claim(store) == []
            async with store.view() as view:
                counts = await view.counts()
                assert (dict(counts.jobs), counts.n_waiting) == ({}, 0)

    async def test_newer_work_replaces_older_whose_result_is_dropped(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, document("a", passage("Old.", entity("Venice"))))
            await _enqueue(store, "a")
            old = await _claim_one(store)
            await _enqueue(store, "a", version=1)
            before = await dump(store)
            late = document("a", passage("Late.", entity("Acre")), job=old.id)
            committed = await publish(store, late, document("b", "Other."))
            assert committed.superseded == ("a",)
            async with store.view() as view:
                assert [chunk.text for chunk in await view.chunks(document_id="a")] == ["Old."]
                assert [doc.id for doc in await view.documents()] == ["a", "b"]
            await store.commit(Delta(remove=["b"]))
            assert await dump(store) == before
            new = await _claim_one(store)
            assert new.id != old.id
            assert (await publish(store, replace(late, job=new.id))).superseded == ()
            async with store.view() as view:
                assert [chunk.text for chunk in await view.chunks(document_id="a")] == ["Late."]

    @pytest.mark.parametrize("is_claimed", [False, True])
    async def test_the_same_handed_in_again_leaves_the_work_on_it_as_it_is(
        self, open_store: OpenStore, is_claimed: bool
    ) -> None:
        same = [replace(source("a", "A"), chunking=Chunking()), source("b", "B", metadata={"tags": ("x", "y")})]
        async with open_store() as first, open_store() as second:
            await first.commit(Delta(enqueue=same))
            jobs = await first.claim_jobs(10) if is_claimed else []
            await second.commit(Delta(enqueue=same))
            assert await _claim(second) == ([] if is_claimed else ["a", "b"])
            assert await first.update_jobs(DocumentStatus.EXTRACTING, [job.id for job in jobs]) == {
                job.id for job in jobs
            }
            written = [document(job.document_id, "One.", job=job.id) for job in jobs]
            assert (await publish(first, *written)).superseded == ()

    @pytest.mark.parametrize(
        "other",
        [
            {"content": b"A."},
            {"title": "A"},
            {"source": "/a"},
            {"media_type": "text/html"},
            {"metadata": {"year": 1271}},
            {"chunking": Chunking(max_tokens=300)},
        ],
    )
    async def test_whatever_differs_is_newer_work(self, open_store: OpenStore, other: dict[str, Any]) -> None:
        async with open_store() as store:
            await store.commit(Delta(enqueue=[source("a", "A")]))
            old = await _claim_one(store)
            await store.commit(Delta(enqueue=[replace(source("a", "A"), **other)]))
            assert await store.update_jobs(DocumentStatus.EXTRACTING, [old.id]) == set()
            assert (await _claim_one(store)).source == replace(source("a", "A"), **other)

    @pytest.mark.parametrize("is_partial", [False, True])
    async def test_what_has_failed_is_work_again_when_it_is_handed_in_again(
        self, open_store: OpenStore, is_partial: bool
    ) -> None:
        async with open_store() as store:
            await _enqueue(store, "a")
            job = await _claim_one(store)
            if is_partial:
                await publish(store, document("a", passage("Two.", error="timed out"), job=job.id))
            else:
                await store.commit(Delta(fail=[JobFailure(job=job.id, error="No.")]))
            await _enqueue(store, "a")
            assert await _claim(store) == ["a"]

    async def test_work_queued_again_waits_behind_the_rest(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await _enqueue(store, "a", "b")
            await store.commit(Delta(enqueue=[source("a", "Newer.")]))
            first, second = await store.claim_jobs(10)
            assert (first.document_id, second.source) == ("b", source("a", "Newer."))

    async def test_the_last_of_several_versions_in_one_commit_counts(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await store.commit(Delta(enqueue=[source("a", "First."), source("a", "Second.")]))
            assert (await _claim_one(store)).source == source("a", "Second.")
            await store.commit(Delta(enqueue=[source("a", "Third.")], enqueue_removal=["a"]))
            assert (await _claim_one(store)).source is None

    async def test_a_removal_replaces_work_and_work_replaces_a_removal(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await _enqueue(store, "a", "b")
            jobs = {job.document_id: job for job in await store.claim_jobs(10)}
            await store.commit(Delta(enqueue_removal=["a"]))
            assert (await publish(store, document("a", "Late.", job=jobs["a"].id))).superseded == ("a",)
            await _enqueue(store, "a")
            await store.commit(Delta(remove=["a"]))
            assert await _status(store, "a") is DocumentStatus.QUEUED
            assert await _claim(store) == ["a"]

    async def test_failed_work_waits_until_it_is_tried_again(self, open_store: OpenStore) -> None:
        async with open_store(lease_s=_EXPIRED) as store:
            await _enqueue(store, "a", "b", "c")
            jobs = await store.claim_jobs(10)
            await store.commit(Delta(fail=[JobFailure(job=job.id, error=f"No {job.document_id}.") for job in jobs[:2]]))
            async with store.view() as view:
                failed = await view.documents(["a"])
                assert (await view.counts("jobs")).n_waiting == 1
            assert (failed[0].status, failed[0].error) == (DocumentStatus.FAILED, "No a.")
            assert await _claim(store) == ["c"]
            assert (await store.commit(Delta(retry=["b", "nowhere"]))).n_retried == 1
            assert await _status(store, "b") is DocumentStatus.QUEUED
            assert (await store.commit(Delta(retry=None))).n_retried == 1
            assert (await store.commit(Delta(retry=None))).n_retried == 0
            assert await _claim(store) == ["a", "b", "c"]

    async def test_a_document_that_can_never_be_read_is_listed_without_its_bytes(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await _enqueue(store, "a", "b")
            jobs = await store.claim_jobs(10)
            await store.commit(
                Delta(fail=[JobFailure(job=job.id, error="No.", is_final=job.document_id == "a") for job in jobs])
            )
            assert (await store.commit(Delta(retry=None))).n_retried == 1
            assert await _status(store, "a") is DocumentStatus.FAILED
            assert await _claim(store) == ["b"]
            await _enqueue(store, "a", version=1)
            assert (await _claim_one(store)).source == source("a", "Text 1 of a.")

    async def test_an_empty_document_is_tried_again_unless_it_can_never_be_read(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await store.commit(Delta(enqueue=[source("a", ""), source("b", "")]))
            jobs = await store.claim_jobs(10)
            await store.commit(
                Delta(fail=[JobFailure(job=job.id, error="No.", is_final=job.document_id == "a") for job in jobs])
            )
            assert (await store.commit(Delta(retry=None))).n_retried == 1
            assert await _claim(store) == ["b"]

    async def test_a_failed_removal_is_tried_again_as_a_removal(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, document("a", "One."))
            await store.commit(Delta(enqueue_removal=["a"]))
            job = await _claim_one(store)
            await store.commit(Delta(fail=[JobFailure(job=job.id, error="Disk full.")]))
            assert (await store.commit(Delta(retry=None))).n_retried == 1
            assert await _status(store, "a") is DocumentStatus.REMOVING
            assert (await _claim_one(store)).source is None

    async def test_the_failure_of_replaced_work_changes_nothing(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await _enqueue(store, "a")
            old = await _claim_one(store)
            await _enqueue(store, "a", version=1)
            await store.commit(Delta(fail=[JobFailure(job=old.id, error="Too late.")]))
            assert await _status(store, "a") is DocumentStatus.QUEUED
            assert await _claim(store) == ["a"]

    async def test_a_partly_read_document_can_be_tried_again(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await _enqueue(store, "a")
            job = await _claim_one(store)
            partly = document("a", "One.", passage("Two.", error="timed out"), job=job.id)
            assert (await publish(store, partly)).superseded == ()
            assert await _status(store, "a") is DocumentStatus.PARTIAL
            assert await _claim(store) == []
            assert (await store.commit(Delta(retry=None))).n_retried == 1
            again = await _claim_one(store)
            assert again.source == source("a", "Text of a.")
            await publish(store, document("a", "One.", passage("Two.", entity("Two")), job=again.id))
            assert await _status(store, "a") is DocumentStatus.READY
            assert (await store.commit(Delta(retry=None))).n_retried == 0

    @pytest.mark.parametrize("stage", ["waiting", "running", "failed"])
    async def test_cancelled_work_is_dropped_and_the_live_version_stays(
        self, open_store: OpenStore, stage: str
    ) -> None:
        async with open_store() as store:
            await publish(store, document("a", "Live."))
            await _enqueue(store, "a", "b")
            jobs = await store.claim_jobs(1) if stage != "waiting" else []
            if stage == "failed":
                await store.commit(Delta(fail=[JobFailure(job=jobs[0].id, error="No.")]))
            assert (await store.commit(Delta(cancel=["nowhere", "a"]))).cancelled == ("a",)
            assert await _status(store, "a") is DocumentStatus.READY
            assert await _claim(store) == ["b"]
            for job in jobs:
                assert (await publish(store, document("a", "Late.", job=job.id))).superseded == ("a",)
            async with store.view() as view:
                assert [chunk.text for chunk in await view.chunks(document_id="a")] == ["Live."]

    async def test_a_partly_read_document_has_nothing_to_cancel(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await _enqueue(store, "a")
            job = await _claim_one(store)
            await publish(store, document("a", passage("Two.", error="timed out"), job=job.id))
            assert (await store.commit(Delta(cancel=["a"]))).cancelled == ()
            assert (await store.commit(Delta(retry=["a"]))).n_retried == 1
