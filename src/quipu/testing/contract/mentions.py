"""Mentions: what each chunk says, as it said it; and which chunks speak of what."""

from quipu.testing.contract.steps import OpenStore, publish
from quipu.testing.facts import alias, document, entity, passage, relation

_FIRST = passage(
    "Venice fights Genoa. Venice wins.",
    entity("Venice", "Location", "Venice wins.", is_definition=True),
    entity("Genoa", "Location"),
    entity("Venice", "Organization", "Venice fights."),
    relation("Venice", "Genoa", "Venice fights Genoa.", keywords=("war", "sea"), weight=2.5),
    relation("Genoa", "Venice"),
)
_SECOND = passage("Genoa lost.", entity("Genoa"))


class Mentions:
    """What is promised of mentions."""

    async def test_mentions_are_read_back_in_the_order_and_direction_they_were_said(
        self, open_store: OpenStore
    ) -> None:
        facts = document("a", _FIRST, _SECOND, "Nothing said.")
        first, second, silent = (each.chunk.id for each in facts.chunks)
        async with open_store() as store:
            await publish(store, facts)
            async with store.view() as view:
                entities = await view.entity_mentions([second, "nowhere", first, silent])
                relations = await view.relation_mentions([first, second, "nowhere"])
        assert entities == {first: list(facts.chunks[0].entities), second: list(facts.chunks[1].entities)}
        assert relations == {first: list(facts.chunks[0].relations)}

    async def test_a_weight_is_kept_to_three_decimals(self, open_store: OpenStore) -> None:
        facts = document("a", passage("x", entity("Tyre"), entity("Jaffa"), relation("Tyre", "Jaffa", weight=1.23456)))
        chunk = facts.chunks[0].chunk.id
        async with open_store() as store:
            await publish(store, facts)
            async with store.view() as view:
                assert (await view.relation_mentions([chunk]))[chunk][0].weight == 1.235

    async def test_a_relation_names_the_chunks_that_state_it_in_order(self, open_store: OpenStore) -> None:
        said = [passage(f"x{n}", entity("Tyre"), entity("Jaffa"), relation("Jaffa", "Tyre")) for n in range(6)]
        facts = document("a", *said, "None.")
        expected = tuple(sorted(each.chunk.id for each in facts.chunks[:6]))
        async with open_store() as store:
            await publish(store, facts)
            async with store.view() as view:
                assert await view.chunks_of_relations(["jaffa -- tyre", "nonsense"]) == {"jaffa -- tyre": expected}

    async def test_an_entity_names_its_chunks_with_mentions_or_occurrences_whichever_are_more(
        self, open_store: OpenStore
    ) -> None:
        facts = document("a", _FIRST, passage("There is no name here.", entity("Genoa"), entity("Genoa")), "Venice!")
        first, nameless, unsaid = (each.chunk.id for each in facts.chunks)
        async with open_store() as store:
            await publish(store, facts)
            async with store.view() as view:
                found = await view.chunks_of_entities(["venice", "genoa", "nowhere"])
        assert found == {"venice": {first: 2, unsaid: 1}, "genoa": {first: 1, nameless: 2}}

    async def test_occurrences_of_all_aliases_count_for_the_entity(self, open_store: OpenStore) -> None:
        name = "World Health Organization"
        facts = document(
            "a",
            passage(f"The {name} (WHO).", entity(name), alias(name, "WHO")),
            f"WHO? The WHO. The {name}. But who?",
        )
        first, second = (each.chunk.id for each in facts.chunks)
        async with open_store() as store:
            await publish(store, facts)
            async with store.view() as view:
                assert await view.chunks_of_entities([name.lower()]) == {name.lower(): {first: 2, second: 3}}

    async def test_an_entity_that_is_only_mentioned_names_its_chunk(self, open_store: OpenStore) -> None:
        facts = document("a", passage("It is a road.", entity("road")))
        async with open_store() as store:
            await publish(store, facts)
            async with store.view() as view:
                assert await view.chunks_of_entities(["road"]) == {"road": {facts.chunks[0].chunk.id: 1}}
