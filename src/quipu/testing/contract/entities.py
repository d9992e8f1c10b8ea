"""Entities: the fold of their mentions, whatever order these came in; their names and aliases."""

from quipu.model.graph import MAX_DESCRIPTIONS
from quipu.model.query import Filter
from quipu.ports.derivation_view import NodeKind
from quipu.testing.contract.steps import OpenStore, only_entity, publish, remove
from quipu.testing.facts import alias, document, entity, passage, relation

_WHO = "World Health Organization"


class EntitiesContract:
    """What is promised of entities."""

    async def test_entities_come_in_the_order_asked_for_and_unknown_keys_are_left_out(
        self, open_store: OpenStore
    ) -> None:
        async with open_store() as store:
            await publish(store, document("a", passage("Venice and Acre.", entity("Venice"), entity("Acre"))))
            async with store.view() as view:
                assert [node.key for node in await view.entities(["venice", "nowhere", "acre"])] == ["venice", "acre"]
                assert await view.entities([]) == []

    async def test_the_most_frequent_spelling_is_the_name_and_ties_go_by_text(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, document("a", passage("x", entity("the Silk Road"), entity("Silk Road"))))
            assert (await only_entity(store, "silk road")).name == "Silk Road"
            await publish(store, document("b", passage("y", entity("the Silk Road"))))
            assert (await only_entity(store, "silk road")).name == "the Silk Road"
            await remove(store, "b")
            assert (await only_entity(store, "silk road")).name == "Silk Road"

    async def test_the_type_is_voted_and_one_that_says_something_wins(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, document("a", passage("x", entity("Acre", "Unknown"), entity("Acre", "Unknown"))))
            assert (await only_entity(store, "acre")).type == "Unknown"
            await publish(store, document("b", passage("y", entity("Acre", "Other"))))
            assert (await only_entity(store, "acre")).type == "Other"
            await publish(store, document("c", passage("z", entity("Acre", "Location"), entity("Acre", "Event"))))
            assert (await only_entity(store, "acre")).type == "Event"
            await publish(store, document("d", passage("w", entity("Acre", "Location"))))
            assert (await only_entity(store, "acre")).type == "Location"
            await remove(store, "c", "d")
            assert (await only_entity(store, "acre")).type == "Other"

    async def test_descriptions_are_distinct_definitions_first_and_not_by_arrival(self, open_store: OpenStore) -> None:
        passages = [
            passage(f"text {n}", entity("Acre", description=f"Acre is {n}.", is_definition=n == 7)) for n in range(12)
        ]
        async with open_store("forth") as forth, open_store("back") as back:
            for n, acre_passage in enumerate(passages):
                await publish(forth, document(f"d{n}", acre_passage))
            for n, acre_passage in reversed(list(enumerate(passages))):
                await publish(back, document(f"d{n}", acre_passage), document(f"again{n}", acre_passage))
            first, second = await only_entity(forth, "acre"), await only_entity(back, "acre")
        lines = first.description.split("\n")
        assert lines[0] == "Acre is 7."
        assert len(lines) == len(set(lines)) == MAX_DESCRIPTIONS
        assert first.description == second.description

    async def test_a_description_given_as_definition_and_not_is_shown_once(self, open_store: OpenStore) -> None:
        words = "Acre is a port."
        text_passage = passage(
            "Acre is a port.",
            entity("Acre", description=words, is_definition=True),
            entity("Acre", description=words),
            entity("Acre", description=""),
        )
        async with open_store() as store:
            await publish(store, document("a", text_passage))
            assert (await only_entity(store, "acre")).description == words
            assert await store.verify() == []

    async def test_an_entity_counts_its_mentions_chunks_and_relations(self, open_store: OpenStore) -> None:
        first = passage(
            "x",
            entity("Acre"),
            entity("Acre"),
            entity("Venice"),
            relation("Acre", "Venice"),
            relation("Venice", "Acre"),
        )
        second = passage("y", entity("Acre"), entity("Genoa"), relation("Genoa", "Acre"))
        async with open_store() as store:
            await publish(store, document("a", first, second))
            acre = await only_entity(store, "acre")
            assert (acre.n_mentions, acre.n_chunks, acre.degree) == (3, 2, 2)
            await publish(store, document("a", second))
            acre = await only_entity(store, "acre")
            assert (acre.n_mentions, acre.n_chunks, acre.degree) == (1, 1, 1)
            async with store.view() as view:
                assert await view.entities(["venice"]) == []

    async def test_entities_have_their_degree_and_the_most_related_can_be_chosen(self, open_store: OpenStore) -> None:
        text_passage = passage("x", entity("Acre"), entity("Venice"), entity("Genoa"), relation("Acre", "Venice"))
        async with open_store() as store:
            await publish(store, document("a", text_passage))
            async with store.view() as view:
                assert [node.degree for node in await view.entities(["acre", "genoa", "nowhere"])] == [1, 0]
                most_related = await view.entities(["genoa", "venice", "nowhere", "acre", "acre"], 2)
                assert [hit.key for hit in most_related] == ["acre", "venice"]
                assert await view.entities(["acre"], 0) == []

    async def test_aliases_are_shown_and_go_with_the_chunk_that_states_them(self, open_store: OpenStore) -> None:
        stated = passage(f"{_WHO} (WHO)", entity(_WHO), alias(_WHO, "WHO"), alias(_WHO, "the Organization"))
        async with open_store() as store:
            await publish(store, document("a", stated, stated), document("b", passage("x", entity(_WHO))))
            assert (await only_entity(store, _WHO.lower())).aliases == ("WHO", "the Organization")
            await remove(store, "a")
            assert (await only_entity(store, _WHO.lower())).aliases == ()

    async def test_a_name_stands_for_the_entity_of_that_key_and_those_it_is_an_alias_of(
        self, open_store: OpenStore
    ) -> None:
        whisky = "World Heritage Office"
        async with open_store() as store:
            await publish(
                store,
                document("a", passage("x", entity(_WHO), alias(_WHO, "WHO")), passage("y", entity("WHO"))),
                document("b", passage("z", entity(whisky), alias(whisky, "WHO"), alias(whisky, "WHO"))),
            )
            async with store.view() as view:
                hits = await view.keys_by_name(["WHO", "who", "nowhere", whisky.lower()])
            # Its own key first, then by how often the alias is stated.
            assert hits == {"WHO": ("WHO", whisky.lower(), _WHO.lower()), whisky.lower(): (whisky.lower(),)}
            await remove(store, "a", "b")
            async with store.view() as view:
                assert await view.keys_by_name(["WHO"]) == {}

    async def test_a_name_that_no_entity_has_may_stand_for_one_in_another_spelling(self, open_store: OpenStore) -> None:
        entities = (entity("Café"), entity("Лев Толстой"), entity("王小明"))
        names = ["cafe", "lev tolstoi", "wang xiaoming", "café", "lev"]
        async with open_store() as store:
            await publish(store, document("a", passage("x", *entities, alias("王小明", "Ming Erdős"))))
            async with store.view() as view:
                assert await view.keys_by_name(names) == {"café": ("café",)}
                hits = await view.keys_by_name([*names, "ming erdos"], any_spelling=True)
            assert hits == {
                "cafe": ("café",),
                "lev tolstoi": ("лев толстой",),
                "wang xiaoming": ("王小明",),
                "café": ("café",),
                "ming erdos": ("王小明",),
            }
            async with store.view(Filter(documents=("b",))) as view:
                assert await view.keys_by_name(names, any_spelling=True) == {}
            await remove(store, "a")
            async with store.view() as view:
                assert await view.keys_by_name(names, any_spelling=True) == {}

    async def test_people_find_entities_by_how_names_begin_and_what_they_contain(self, open_store: OpenStore) -> None:
        names = ["Marco Polo", "Polo", "Polo", "Polo Bridge", "Maffeo Polo", "Acre"]
        async with open_store() as store:
            await publish(store, document("a", passage("x", *(entity(name) for name in names))))
            async with store.view() as view:
                hits = await view.search_text(NodeKind.ENTITY, "polo", 10)
                assert [hit.id for hit in hits] == ["polo", "polo bridge", "maffeo polo", "marco polo"]
                assert hits[0].score > hits[1].score
                assert [hit.id for hit in await view.search_text(NodeKind.ENTITY, "Polo", 2)] == [
                    "polo",
                    "polo bridge",
                ]
                assert await view.search_text(NodeKind.ENTITY, "Zanzibar", 5) == []

    async def test_people_find_acronyms_however_they_type_them(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, document("a", passage("x", entity("NASA"), entity("Nasal spray"))))
            async with store.view() as view:
                assert sorted(hit.id for hit in await view.search_text(NodeKind.ENTITY, "nasa", 5)) == [
                    "NASA",
                    "nasal spray",
                ]
                assert "NASA" in [hit.id for hit in await view.search_text(NodeKind.ENTITY, "NAS", 5)]
                assert "NASA" in [hit.id for hit in await view.search_text(NodeKind.ENTITY, "NASA", 5)]

    async def test_search_treats_signs_as_signs(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, document("a", passage("x", entity("Acre"), entity("C++"), entity("Jaffa"))))
            async with store.view() as view:
                for text in ("%", "_", "a%e", "'", '"', "\\"):
                    assert await view.search_text(NodeKind.ENTITY, text, 5) == []
                assert [hit.id for hit in await view.search_text(NodeKind.ENTITY, "c++", 5)] == ["c++"]
