"""Summaries: shown only while they are of exactly what is described, and gone the moment they are not."""

from dataclasses import replace

import pytest

from quipu.errors import InvalidDelta
from quipu.model.delta import Delta, DocumentFacts
from quipu.model.graph import MAX_DESCRIPTION_CHARS, MAX_DESCRIPTIONS
from quipu.model.query import Filter
from quipu.model.summary import Summary, SummaryTarget, SummaryTargetKind
from quipu.ports.store import Store
from quipu.testing.contract.steps import (
    DIMENSION,
    MODEL,
    OpenStore,
    dump,
    embed,
    only_entity,
    only_relation,
    publish,
    remove,
    summarise,
    summary_of,
    summary_targets,
)
from quipu.testing.facts import document, entity, passage, relation

_ACRE = SummaryTarget(SummaryTargetKind.ENTITY, "acre")
_BOTH = SummaryTarget(SummaryTargetKind.RELATION, "acre -- venice")
_MANY = tuple(range(MAX_DESCRIPTIONS + 1))


def _saying(document_id: str, *numbers: int, title: str = "") -> DocumentFacts:
    """Return a document that describes Acre, and Acre with Venice, once for each number."""
    return document(
        document_id,
        *(
            passage(
                f"Acre {n}.",
                entity("Acre", description=f"Acre is {n}."),
                entity("Venice"),
                relation("Venice", "Acre", f"They met at {n}."),
            )
            for n in numbers
        ),
        title=title,
    )


async def _shown(store: Store) -> tuple[str, str]:
    """Return what is shown of Acre, and of Acre with Venice."""
    acre, both = await only_entity(store, _ACRE.id), await only_relation(store, _BOTH.id)
    return acre.description, both.description


async def _summaries(store: Store) -> list[str]:
    return [line for line in await dump(store) if '"kind":"summary"' in line]


class SummariesContract:
    """What is promised of summaries."""

    async def test_what_has_more_descriptions_than_are_shown_waits_for_a_summary(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, _saying("a", *_MANY[:-1]))
            assert await summary_targets(store) == []
            await publish(store, _saying("b", *_MANY[-1:]))
            assert await summary_targets(store) == [_ACRE, _BOTH]
            async with store.view() as view:
                counts = await view.counts()
                assert (counts.n_unsummarised, counts.stale_vectors, counts.n_waiting) == (2, 0, 0)
            await remove(store, "b")
            assert await summary_targets(store) == []

    async def test_what_has_longer_descriptions_than_are_shown_waits_too(self, open_store: OpenStore) -> None:
        long = [f"{letter} " * (MAX_DESCRIPTION_CHARS // 3) for letter in "xyz"]
        passages = [passage(text, entity("Acre", description=text)) for text in long]
        async with open_store() as store:
            await publish(store, document("a", passages[0]))
            assert await summary_targets(store) == []
            await publish(store, document("b", *passages[1:]))
            assert await summary_targets(store) == [_ACRE]

    async def test_a_task_holds_every_description_once_in_the_order_shown(self, open_store: OpenStore) -> None:
        again = document("z", *(passage(f"x {n}", entity("Acre", description=f"Acre is {n}.")) for n in _MANY))
        defined = document("d", passage("y", entity("Acre", description="Acre is a port.", is_definition=True)))
        async with open_store() as store:
            await publish(store, _saying("a", *_MANY[2:]), again, defined)
            others = (
                SummaryTarget(SummaryTargetKind.ENTITY, "venice"),
                SummaryTarget(SummaryTargetKind.ENTITY, "nowhere"),
            )
            (acre,) = await store.summary_tasks([_ACRE, *others])
            descriptions, _ = await _shown(store)
        texts = [description.text for description in acre.descriptions]
        assert (acre.target, acre.names, texts[0]) == (_ACRE, ("acre",), "Acre is a port.")
        assert sorted(texts) == sorted(["Acre is a port.", *(f"Acre is {n}." for n in _MANY)])
        assert texts[:MAX_DESCRIPTIONS] == descriptions.split("\n")
        first = {description.text: description.document for description in acre.descriptions}
        assert (first["Acre is 0."], first["Acre is 2."], first["Acre is a port."]) == ("z", "a", "d")

    async def test_a_summary_is_shown_in_place_of_the_join_and_found_by_its_own_words(
        self, open_store: OpenStore
    ) -> None:
        async with open_store() as store:
            await store.set_embedder(MODEL, DIMENSION)
            await publish(store, _saying("a", *_MANY))
            await embed(store)
            written = await summarise(store)
            assert [summary.target for summary in written] == [_ACRE, _BOTH]
            assert await _shown(store) == (written[0].text, written[1].text)
            assert await summary_targets(store) == []
            assert await store.summary_tasks([_ACRE]) == []
            assert len(await _summaries(store)) == 2
            assert await embed(store) == [f"\nacre\nvenice\n{written[1].text}", f"Acre\n{written[0].text}"]
            assert await store.verify() == []
        async with open_store() as store:
            assert await _shown(store) == (written[0].text, written[1].text)

    @pytest.mark.parametrize("change", ["another", "one removed", "one changed"])
    async def test_other_descriptions_put_the_join_back_in_the_same_commit(
        self, open_store: OpenStore, change: str
    ) -> None:
        deltas = {
            "another": Delta(publish=[_saying("c", 99)]),
            "one removed": Delta(remove=["b"]),
            "one changed": Delta(publish=[_saying("b", 99)]),
        }
        before = [_saying("a", *_MANY), _saying("b", 50)]
        async with open_store("summarised") as store, open_store("never") as never:
            for either in (store, never):
                await either.set_embedder(MODEL, DIMENSION)
                await publish(either, *before)
            written = await summarise(store)
            await embed(store)
            for either in (store, never):
                await either.commit(deltas[change])
            assert await store.verify() == []
            for either in (store, never):
                await embed(either)
            assert await dump(store) == await dump(never)
            state = "\n".join(await dump(store))
            assert not [summary for summary in written if summary.text in state]
            assert await summary_targets(store) == [_ACRE, _BOTH]

    async def test_a_summary_stays_while_the_descriptions_are_the_same(self, open_store: OpenStore) -> None:
        unsaid = passage("A", entity("Genoa"), entity("Acre"), relation("Genoa", "Acre"))
        async with open_store() as store:
            await store.set_embedder(MODEL, DIMENSION)
            await publish(store, _saying("a", *_MANY))
            await summarise(store)
            summaries = await _summaries(store)
            for change in (
                Delta(publish=[_saying("b", *_MANY[:3])]),
                Delta(publish=[_saying("a", *_MANY, title="Another")]),
                Delta(publish=[_saying("a", *reversed(_MANY))]),
                Delta(publish=[document("c", passage("Acre.", entity("Acre", "Location"), entity("Genoa")))]),
                Delta(publish=[document("d", unsaid)]),
                Delta(remove=["b", "c", "d"]),
            ):
                await store.commit(change)
                assert await _summaries(store) == summaries
                assert await store.verify() == []

    async def test_another_spelling_keeps_the_summary_under_the_new_name(self, open_store: OpenStore) -> None:
        spelled = document("b", *(passage(f"x{n}", replace(entity("Acre"), surface="acre")) for n in range(20)))
        async with open_store() as store:
            await store.set_embedder(MODEL, DIMENSION)
            await publish(store, _saying("a", *_MANY))
            acre, _ = await summarise(store)
            await embed(store)
            await publish(store, spelled)
            node = await only_entity(store, "acre")
            assert (node.name, node.description) == ("acre", acre.text)
            assert f"acre\n{acre.text}" in await embed(store)
            assert await store.verify() == []

    async def test_a_summary_of_what_has_changed_meanwhile_is_dropped_and_said(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, _saying("a", *_MANY))
            tasks = await store.summary_tasks([_ACRE, _BOTH])
            await publish(store, document("b", passage("Acre.", entity("Acre", description="Acre is new."))))
            descriptions = await _shown(store)
            committed = await store.commit(Delta(summaries=[summary_of(task) for task in tasks]))
            assert committed.n_outdated == 1
            assert await _shown(store) == (descriptions[0], summary_of(tasks[1]).text)
            assert await summary_targets(store) == [_ACRE]
            assert await store.verify() == []

    async def test_summaries_nobody_wants_are_dropped(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, _saying("a", 1))
            before = await dump(store)
            owners = (
                _ACRE,
                _BOTH,
                SummaryTarget(SummaryTargetKind.ENTITY, "nowhere"),
                SummaryTarget(SummaryTargetKind.RELATION, "odd"),
            )
            unwanted = [Summary(target=owner, inputs_hash="x", text="Text.", model="m") for owner in owners]
            assert (await store.commit(Delta(summaries=unwanted))).n_outdated == 4
            assert await store.summary_tasks(owners) == []
            assert await dump(store) == before

    async def test_a_task_has_its_revision_and_a_summary_without_words_is_refused(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, _saying("a", *_MANY))
            (task,) = await store.summary_tasks([_ACRE])
            async with store.view() as view:
                assert task.revision == view.revision
            with pytest.raises(InvalidDelta):
                await store.commit(Delta(summaries=[replace(summary_of(task), text=" \n")]))
            assert await summary_targets(store) == [_ACRE, _BOTH]

    async def test_a_second_summary_of_the_same_takes_the_place_of_the_first(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, _saying("a", *_MANY))
            first, _ = await summarise(store)
            await store.commit(Delta(summaries=[replace(first, text="Said otherwise.", model="other")]))
            assert (await only_entity(store, "acre")).description == "Said otherwise."
            assert await store.verify() == []

    async def test_what_is_left_of_many_descriptions_is_joined_again(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, _saying("a", *_MANY), _saying("b", 50))
            await summarise(store)
            await remove(store, "a")
            assert await _shown(store) == ("Acre is 50.", "They met at 50.")
            assert await summary_targets(store) == []
            assert await _summaries(store) == []
            await remove(store, "b")
            assert await dump(store) == []
            assert await store.verify() == []

    async def test_building_full_text_anew_keeps_summaries(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, _saying("a", *_MANY))
            await summarise(store)
            before = await dump(store)
            await store.commit(Delta(rebuild_text=True))
            assert await dump(store) == before
            assert await store.verify() == []

    async def test_a_filter_shows_a_summary_only_where_all_it_was_made_of_is_allowed(
        self, open_store: OpenStore
    ) -> None:
        async with open_store("alone") as store:
            await publish(store, _saying("b", *_MANY[1:]))
            alone = await _shown(store)
        async with open_store() as store:
            await publish(store, _saying("a", *_MANY), _saying("b", *_MANY[1:]))
            written = await summarise(store)
            for allowed, expected in (
                (("a",), tuple(summary.text for summary in written)),
                (("a", "b"), tuple(summary.text for summary in written)),
                (("b",), alone),
            ):
                async with store.view(Filter(documents=allowed)) as view:
                    (acre,), (both,) = await view.entities([_ACRE.id]), await view.relations([_BOTH.id])
                    assert (acre.description, both.description) == expected

    async def test_any_order_asks_for_the_same_summaries(self, open_store: OpenStore) -> None:
        documents = [_saying(f"d{n}", n, n + 1) for n in range(12)]
        async with open_store("forth") as forth, open_store("back") as back:
            await publish(forth, *documents)
            for facts in reversed(documents):
                await publish(back, facts)
            for store in (forth, back):
                await publish(store, _saying("gone", 70))
                await remove(store, "gone")
            tasks = [await store.summary_tasks(await summary_targets(store)) for store in (forth, back)]
            assert tasks[0] == tasks[1]
            assert len({task.inputs_hash for task in tasks[0]}) == 2
