"""Usage: what models were asked and what it cost, added up and never lost."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from quipu.model.chat import TokenCount
from quipu.model.delta import Delta
from quipu.model.usage import Stage, UsageRow
from quipu.testing.contract.steps import OpenStore, dump, publish, remove
from quipu.testing.facts import document, source

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
