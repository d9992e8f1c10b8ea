"""History: what was replaced and removed is kept apart, with its times, and a copy shows what held at a date."""

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import UTC, datetime
from random import Random

import pytest

from quipu.errors import InvalidDelta, InvalidInput
from quipu.model.delta import Delta, DocumentFacts
from quipu.model.edit import Edit, EditKind
from quipu.model.query import Filter
from quipu.ports.history import HistoryStore, Rewind
from quipu.ports.store import Store
from quipu.testing.contract import run_as_coroutines
from quipu.testing.contract.laws import version
from quipu.testing.contract.steps import OpenStore, dump, only_entity
from quipu.testing.facts import document, entity, passage

HistoryOf = Callable[[Store], HistoryStore]
OpenCopy = Callable[[Store], AbstractAsyncContextManager[Store]]
_FIRST, _SECOND, _LAST = "2020-01-01", "2020-02-01", "2020-03-01"


def at(day: str) -> datetime:
    """Return noon of a day."""
    return datetime.fromisoformat(f"{day}T12:00").replace(tzinfo=UTC)


def _policy(head: str, **metadata: str) -> DocumentFacts:
    leads = passage(f"{head} leads Acme.", entity(head, "Person", f"{head} leads Acme."), entity("Acme"))
    return document("policy.md", leads, title="Policy", metadata=metadata)


def _without_history(lines: list[str]) -> list[str]:
    return [line for line in lines if json.loads(line)["kind"] != "earlier_version"]


@run_as_coroutines
class HistoryContract:
    """What is promised of history; `open_keeping` opens stores that keep it, `open_store` others."""

    async def test_a_store_that_keeps_no_history_keeps_nothing(
        self, open_store: OpenStore, history_of: HistoryOf
    ) -> None:
        async with open_store() as store:
            await store.commit(Delta(publish=[_policy("Ada")]))
            await store.commit(Delta(publish=[_policy("Bob")]))
            await store.commit(Delta(remove=["policy.md"]))
            assert not history_of(store).is_kept
            assert await history_of(store).versions() == []
            assert await dump(store) == []

    async def test_what_is_replaced_and_removed_is_listed_with_its_times(
        self, open_keeping: OpenStore, history_of: HistoryOf
    ) -> None:
        async with open_keeping() as store:
            await store.commit(Delta(publish=[_policy("Ada", date="2019")], at=at(_FIRST)))
            await store.commit(Delta(publish=[_policy("Bob", valid_until="2021")], at=at(_SECOND)))
            await store.commit(Delta(remove=["policy.md"], at=at(_LAST)))
            replaced, removed = await history_of(store).versions()
            assert (replaced.since[:10], replaced.ended_at[:10], replaced.is_removed) == (_FIRST, _SECOND, False)
            assert (removed.since[:10], removed.ended_at[:10], removed.is_removed) == (_SECOND, _LAST, True)
            assert (replaced.holds_from, removed.holds_until) == ("2019", "2021")
            assert (replaced.title, replaced.n_chunks) == ("Policy", 1)
            assert await history_of(store).versions(["other.md"]) == []
            assert await store.verify() == []

    async def test_a_document_that_is_read_again_and_says_the_same_has_no_new_version(
        self, open_keeping: OpenStore, history_of: HistoryOf
    ) -> None:
        async with open_keeping() as store:
            await store.commit(Delta(publish=[_policy("Ada")], at=at(_FIRST)))
            await store.commit(Delta(publish=[_policy("Ada")], at=at(_LAST)))
            async with store.view() as view:
                (live,) = await view.documents()
            assert live.holds_from[:10] == _FIRST
            assert await history_of(store).versions() == []

    @pytest.mark.parametrize("seed", range(4))
    async def test_history_adds_to_the_dump_and_changes_nothing_else(
        self, open_store: OpenStore, open_keeping: OpenStore, seed: int
    ) -> None:
        random = Random(seed)
        names = [random.choice("abc") for _ in range(8)]
        steps = [Delta(publish=[version(name, number)]) for number, name in enumerate(names)]
        async with open_store("plain") as plain, open_keeping("with history") as keeping:
            for step in (*steps, Delta(remove=[names[0]])):
                await plain.commit(step)
                await keeping.commit(step)
            assert await dump(plain) == _without_history(await dump(keeping))
            assert await dump(plain) != await dump(keeping)
            assert await keeping.verify() == []

    async def test_dropped_versions_are_gone_and_those_that_ended_later_stay(
        self, open_keeping: OpenStore, history_of: HistoryOf
    ) -> None:
        async with open_keeping() as store:
            for day, head in ((_FIRST, "Ada"), (_SECOND, "Bob"), (_LAST, "Eve")):
                await store.commit(Delta(publish=[_policy(head)], at=at(day)))
            history = history_of(store)
            assert [version.ended_at[:10] for version in await history.versions(before=_LAST)] == [_SECOND]
            assert await history.drop(before=_LAST) == 1
            assert [version.ended_at[:10] for version in await history.versions()] == [_LAST]
            assert await history.drop() == 1
            assert _without_history(lines := await dump(store)) == lines

    async def test_versions_come_page_by_page(self, open_keeping: OpenStore, history_of: HistoryOf) -> None:
        async with open_keeping() as store:
            for day in (_FIRST, _SECOND, _LAST):
                await store.commit(Delta(publish=[_policy(day), document("other.md", day)], at=at(day)))
            history = history_of(store)
            whole = await history.versions()
            assert [version.document_id for version in whole] == ["other.md"] * 2 + ["policy.md"] * 2
            pages = [await history.versions(k=3)]
            pages.append(await history.versions(k=3, after=pages[0][-1].cursor))
            assert [version for page in pages for version in page] == whole
            assert await history.versions(k=3, after=whole[-1].cursor) == []
            assert await history.versions(["policy.md"], k=1) == whole[2:3]
            for wrong in ("x", "null", '["policy.md"]', "[1, 2, 3]"):
                with pytest.raises(InvalidInput, match="not a cursor"):
                    await history.versions(after=wrong)

    async def test_a_commit_that_fails_keeps_no_version(self, open_keeping: OpenStore, history_of: HistoryOf) -> None:
        async with open_keeping() as store:
            await store.commit(Delta(publish=[_policy("Ada")]))
            broken = replace(document("other.md", "Nothing."), chunks=_policy("Eve").chunks)
            with pytest.raises(InvalidDelta, match=r"other\.md"):
                await store.commit(Delta(publish=[_policy("Bob"), broken]))
            assert await history_of(store).versions() == []

    @pytest.mark.parametrize(
        ("as_of", "head"),
        [("2019-12-31", ""), (_FIRST, "ada"), ("2020-01", "ada"), (_SECOND, "bob"), ("2020", "")],
    )
    async def test_a_copy_shows_what_held_at_a_date(
        self, open_keeping: OpenStore, history_of: HistoryOf, open_copy: OpenCopy, as_of: str, head: str
    ) -> None:
        async with open_keeping() as store:
            await store.commit(Delta(publish=[_policy("Ada")], at=at(_FIRST)))
            await store.commit(Delta(publish=[_policy("Bob")], at=at(_SECOND)))
            await store.commit(Delta(remove=["policy.md"], at=at(_LAST)))
            async with open_copy(store) as copy:
                await history_of(copy).rewind(await history_of(copy).rewind_to(as_of))
                assert await copy.verify() == []
                assert await history_of(copy).versions() == []
                async with copy.view(Filter(as_of=as_of)) as view:
                    heads = [person.key for person in await view.entities(["ada", "bob"])]
            assert heads == ([head] if head else [])
            assert await dump(store) != []  # the history itself stays

    async def test_where_the_live_documents_held_nothing_needs_to_be_taken_back(
        self, open_keeping: OpenStore, history_of: HistoryOf
    ) -> None:
        async with open_keeping() as store:
            await store.commit(Delta(publish=[_policy("Ada")], at=at(_FIRST)))
            await store.commit(Delta(publish=[_policy("Bob")], at=at(_SECOND)))
            assert await history_of(store).rewind_to(_LAST) == Rewind()
            assert await history_of(store).rewind_to("2019") == Rewind()  # the filter leaves all out
            assert len((await history_of(store).rewind_to(_FIRST)).restore) == 1

    async def test_edits_hold_for_earlier_versions_too(
        self, open_keeping: OpenStore, history_of: HistoryOf, open_copy: OpenCopy
    ) -> None:
        retype = Edit(kind=EditKind.RETYPE, entities=("ada",), type="Director")
        async with open_keeping() as store:
            await store.commit(Delta(publish=[_policy("Ada")], at=at(_FIRST)))
            await store.commit(Delta(publish=[_policy("Bob")], at=at(_SECOND)))
            await store.commit(Delta(edits=[retype], at=at(_LAST)))
            async with open_copy(store) as copy:
                await history_of(copy).rewind(await history_of(copy).rewind_to(_FIRST))
                assert (await only_entity(copy, "ada")).type == "Director"
