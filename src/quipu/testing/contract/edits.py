"""Edits: they hold for documents of today and of tomorrow, and undone ones leave no trace in the state."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import permutations

import pytest

from quipu.errors import InvalidDelta
from quipu.model.delta import Delta, DocumentFacts
from quipu.model.edit import Edit, EditKind
from quipu.model.query import Filter
from quipu.ports.history import EditStore
from quipu.ports.store import Store
from quipu.testing.contract import run_as_coroutines
from quipu.testing.contract.steps import OpenStore, dump, only_entity, only_relation, publish, remove
from quipu.testing.facts import alias, claim, document, entity, passage, relation

EditsOf = Callable[[Store], EditStore]

_IBM = document(
    "ibm.md",
    passage(
        "IBM hired Grace Hopper.",
        entity("IBM", "Organization", "A maker of computers."),
        entity("Grace Hopper", "Person"),
        relation("IBM", "Grace Hopper", "It hired her.", keywords=("hire",)),
        claim("IBM", "It did.", "Grace Hopper"),
    ),
    passage("IBM is old.", entity("IBM", "Organization", "It is old.")),
)
_LONG = document(
    "long.md",
    passage(
        "International Business Machines bought Lotus. IBM is Big Blue.",
        entity("International Business Machines", "Organization", "A company."),
        entity("IBM", "Content"),
        entity("Lotus", "Organization"),
        relation("International Business Machines", "Lotus", "It bought it."),
        relation("International Business Machines", "IBM", "They are one."),
        alias("IBM", "Big Blue"),
    ),
)
_DOCUMENTS = (_IBM, _LONG)
_FULL = "international business machines"
_MERGE = Edit(kind=EditKind.MERGE, entities=("IBM", _FULL), key=_FULL, name="International Business Machines")
_RENAME = Edit(kind=EditKind.RENAME, entities=("lotus",), key="lotus software", name="Lotus Software")
_RETYPE = Edit(kind=EditKind.RETYPE, entities=(_FULL,), type="Company", author="ada", reason="finer")
_REDESCRIBE = Edit(kind=EditKind.REDESCRIBE, entities=("IBM",), description="A company of New York.")
_SPLIT = Edit(kind=EditKind.SPLIT, entities=("IBM",), key="ibm (journal)", name="IBM (journal)", documents=("long.md",))
_HIDE = Edit(kind=EditKind.HIDE, entities=("grace hopper",))
_OF_RELATION = (
    Edit(kind=EditKind.REDESCRIBE, entities=(_FULL, "lotus"), description="It bought Lotus in 1995."),
    Edit(kind=EditKind.RETYPE, entities=("lotus", _FULL), keywords=("purchase",)),
    Edit(kind=EditKind.HIDE, entities=("grace hopper", "IBM")),
)
_ALL = (_SPLIT, _REDESCRIBE, *_OF_RELATION, _MERGE, _RETYPE, _RENAME, _HIDE)


async def _edit(store: Store, *edits: Edit) -> Sequence[int]:
    return (await store.commit(Delta(edits=edits))).edits


async def _keys(store: Store) -> set[str]:
    async with store.view() as view:
        keys = [_FULL, "IBM", "lotus", "lotus software", "grace hopper", "ibm (journal)"]
        return {entity.key for entity in await view.entities(keys)}


@run_as_coroutines
class EditsContract:
    """Every promise of `ports/history.py` as a test; needs pytest and pytest-asyncio.

    A subclass named `Test…` brings `open_store`, as the store contract does, and `edits_of`: a callable that returns
    the edits of an open store.
    """

    async def test_merged_entities_are_one_that_has_the_names_of_all(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, *_DOCUMENTS)
            await _edit(store, _MERGE)
            merged = await only_entity(store, _FULL)
            assert merged.name == "International Business Machines"
            assert merged.type == "Organization"
            assert merged.n_mentions == 4
            assert merged.degree == 2  # the relation between the two is gone
            assert set(merged.aliases) == {"IBM", "Big Blue"}
            assert set(merged.description.split("\n")) == {"A maker of computers.", "It is old.", "A company."}
            async with store.view() as view:
                assert await view.entities(["IBM"]) == []
                assert await view.keys_by_name(["IBM", "big blue"]) == {"IBM": (_FULL,), "big blue": (_FULL,)}
                (about,) = await view.claims(subjects=[_FULL])
            assert (about.subject, about.object) == (_FULL, "grace hopper")
            assert await store.verify() == []

    async def test_a_renamed_entity_is_found_by_both_names(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, *_DOCUMENTS)
            await _edit(store, _RENAME)
            assert (await only_entity(store, "lotus software")).name == "Lotus Software"
            async with store.view() as view:
                assert await view.keys_by_name(["lotus"]) == {"lotus": ("lotus software",)}
                assert [r.id for r in await view.relations(entities=["lotus software"])] == [
                    f"{_FULL} -- lotus software"
                ]
            await publish(store, document("later.md", passage("lotus software grew.", entity("lotus SOFTWARE"))))
            assert (await only_entity(store, "lotus software")).name == "Lotus Software"
            assert await store.verify() == []

    async def test_a_new_spelling_of_the_same_key_is_shown(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, *_DOCUMENTS)
            await _edit(store, Edit(kind=EditKind.RENAME, entities=("lotus",), key="lotus", name="LoTus"))
            assert (await only_entity(store, "lotus")).name == "LoTus"
            assert await store.verify() == []

    async def test_type_and_description_are_those_of_the_edit(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, *_DOCUMENTS)
            await _edit(store, _REDESCRIBE, Edit(kind=EditKind.RETYPE, entities=("IBM",), type="Company"))
            edited = await only_entity(store, "IBM")
            assert (edited.type, edited.description) == ("Company", "A company of New York.")
            async with store.view(Filter(documents=("ibm.md",))) as view:
                (allowed,) = await view.entities(["IBM"])
            assert (allowed.type, allowed.description) == (edited.type, edited.description)
            assert await store.verify() == []

    async def test_a_relation_can_be_described_again_and_hidden(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, *_DOCUMENTS)
            await _edit(store, *_OF_RELATION)
            edited = await only_relation(store, f"{_FULL} -- lotus")
            assert (edited.description, edited.keywords) == ("It bought Lotus in 1995.", ("purchase",))
            async with store.view() as view:
                assert await view.relations(entities=["grace hopper"]) == []
            assert (await only_entity(store, "grace hopper")).n_mentions == 1
            assert await store.verify() == []

    async def test_a_hidden_entity_is_nowhere(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, *_DOCUMENTS)
            await _edit(store, _HIDE)
            async with store.view() as view:
                assert await view.entities(["grace hopper"]) == []
                assert await view.relations(entities=["IBM"]) == [*await view.relations([f"IBM -- {_FULL}"])]
                (about,) = await view.claims(subjects=["IBM"])
            assert about.object == ""
            assert await store.verify() == []

    async def test_a_name_can_stand_for_another_entity_in_some_documents(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, *_DOCUMENTS)
            await _edit(store, _SPLIT)
            assert (await only_entity(store, "ibm (journal)")).n_mentions == 1
            other = await only_entity(store, "IBM")
            assert other.n_mentions == 2
            assert other.aliases == ()
            assert await store.verify() == []

    async def test_a_split_follows_a_document_that_has_moved(self, open_store: OpenStore) -> None:
        (name,) = _SPLIT.documents
        async with open_store("moved") as store:
            await publish(store, *_DOCUMENTS)
            await _edit(store, _SPLIT)
            others = [facts for facts in _DOCUMENTS if facts.id != name]
            await store.commit(Delta(moved=[(name, others[0].id), ("unknown", "x")]))
            assert await store.verify() == []
            state = await dump(store)
        async with open_store("fresh") as store:
            await publish(store, *_DOCUMENTS)
            await _edit(store, replace(_SPLIT, documents=(others[0].id,)))
            assert await dump(store) == state

    async def test_edits_hold_whatever_the_order_of_edits_and_documents(self, open_store: OpenStore) -> None:
        dumps = set()
        steps: tuple[DocumentFacts | tuple[Edit, ...], ...] = (_IBM, _LONG, _ALL)
        for number, order in enumerate(permutations(steps)):
            async with open_store(f"order{number}") as store:
                for step in order:
                    if isinstance(step, DocumentFacts):
                        await publish(store, step)
                    else:
                        await _edit(store, *step)
                assert await store.verify() == []
                dumps.add("\n".join(await dump(store)))
        assert len(dumps) == 1

    @pytest.mark.parametrize("undone", range(len(_ALL)), ids=lambda n: f"{_ALL[n].kind}-{n}")
    async def test_an_undone_edit_leaves_the_state_as_if_it_had_never_been_made(
        self, open_store: OpenStore, undone: int
    ) -> None:
        async with open_store() as store, open_store("never") as never:
            await publish(store, *_DOCUMENTS)
            await publish(never, *_DOCUMENTS)
            ids = await _edit(store, *_ALL)
            await _edit(never, *_ALL[:undone], *_ALL[undone + 1 :])
            assert await dump(store) != await dump(never)
            result = await store.commit(Delta(undo=[ids[undone], 99]))
            assert result.undone == (ids[undone],)
            assert (await store.commit(Delta(undo=[ids[undone]]))).undone == ()
            assert await dump(store) == await dump(never)
            assert await store.verify() == []
            await store.commit(Delta(undo=ids))
            await remove(store, "ibm.md", "long.md")
            assert await dump(store) == []

    async def test_an_edit_survives_an_update_and_a_removal_of_its_documents(
        self, open_store: OpenStore, edits_of: EditsOf
    ) -> None:
        async with open_store() as store:
            await publish(store, *_DOCUMENTS)
            await _edit(store, _REDESCRIBE)
            await publish(store, document("ibm.md", passage("IBM is new.", entity("IBM", description="It is new."))))
            assert (await only_entity(store, "IBM")).description == "A company of New York."
            await remove(store, "ibm.md", "long.md")
            (listed,) = await edits_of(store).edits()
            assert (listed.n_chunks, listed.has_effect) == (0, False)
            assert await store.verify() == []
            await publish(store, _IBM)
            assert (await only_entity(store, "IBM")).description == "A company of New York."
            (listed,) = await edits_of(store).edits()
            assert (listed.n_chunks, listed.has_effect) == (2, True)

    async def test_a_later_edit_that_lacked_its_target_holds_once_the_earlier_one_is_undone(
        self, open_store: OpenStore, edits_of: EditsOf
    ) -> None:
        async with open_store() as store:
            await publish(store, *_DOCUMENTS)
            (hidden, _) = await _edit(store, Edit(kind=EditKind.HIDE, entities=("IBM",)), _REDESCRIBE)
            later, _ = await edits_of(store).edits()
            assert not later.has_effect
            await store.commit(Delta(undo=[hidden]))
            assert (await only_entity(store, "IBM")).description == "A company of New York."
            later, earlier = await edits_of(store).edits()
            assert later.has_effect
            assert earlier.undone_at
            assert not earlier.has_effect

    async def test_edits_are_listed_newest_first(self, open_store: OpenStore, edits_of: EditsOf) -> None:
        async with open_store() as store, open_store() as other:
            await publish(store, *_DOCUMENTS)
            ids = await _edit(store, _RENAME, _RETYPE, _HIDE)
            await store.commit(Delta(undo=[ids[0]]))
            edits = edits_of(other).edits
            assert [recorded.id for recorded in await edits()] == list(reversed(ids))
            assert [recorded.edit for recorded in await edits()] == [_HIDE, _RETYPE, _RENAME]
            assert [recorded.id for recorded in await edits(k=1)] == [ids[2]]
            assert [recorded.id for recorded in await edits(before=ids[2], k=1)] == [ids[1]]
            assert [recorded.id for recorded in await edits(with_undone=False)] == [ids[2], ids[1]]
            assert [recorded.id for recorded in await edits(entity="lotus software")] == [ids[0]]
            assert [recorded.id for recorded in await edits((ids[1], 99))] == [ids[1]]

    async def test_the_edits_of_an_entity_include_those_of_what_became_part_of_it(
        self, open_store: OpenStore, edits_of: EditsOf
    ) -> None:
        async with open_store() as store:
            await publish(store, *_DOCUMENTS)
            described, merged, _ = await _edit(store, _REDESCRIBE, _MERGE, _HIDE)
            edits = edits_of(store).edits
            assert [recorded.id for recorded in await edits(entity=_FULL)] == [merged, described]
            await store.commit(Delta(undo=[merged]))
            assert [recorded.id for recorded in await edits(entity=_FULL)] == [merged]

    async def test_how_many_chunks_of_documents_an_edit_changes_is_counted(
        self, open_store: OpenStore, edits_of: EditsOf
    ) -> None:
        async with open_store() as store:
            await publish(store, *_DOCUMENTS)
            described, hidden, undone = await _edit(store, _REDESCRIBE, _HIDE, _RENAME)
            await store.commit(Delta(undo=[undone]))
            count = edits_of(store).n_chunks_in
            assert await count(["ibm.md"]) == {described: 2, hidden: 1}
            assert await count(["long.md", "ibm.md", "nowhere"]) == {described: 3, hidden: 1}
            assert await count([]) == {}

    async def test_entities_that_are_distinct_stay_as_they_are(self, open_store: OpenStore, edits_of: EditsOf) -> None:
        async with open_store() as store:
            await publish(store, *_DOCUMENTS)
            keys = await _keys(store)
            await _edit(store, Edit(kind=EditKind.DISTINCT, entities=("IBM", "lotus")))
            assert await _keys(store) == keys
            (listed,) = await edits_of(store).edits()
            assert listed.has_effect

    async def test_a_commit_that_fails_makes_no_edit(self, open_store: OpenStore, edits_of: EditsOf) -> None:
        async with open_store() as store:
            await publish(store, *_DOCUMENTS)
            before = await dump(store)
            with pytest.raises(InvalidDelta):
                await store.commit(Delta(edits=[_MERGE], publish=[_IBM, _IBM]))
            assert await dump(store) == before
            assert await edits_of(store).edits() == []
