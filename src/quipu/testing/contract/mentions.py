"""Mentions: what each chunk says, as it said it; and which chunks speak of what."""

import pytest

from quipu.model.graph import AliasMention, Claim, ClaimMention, EntityMention, RelationMention
from quipu.model.ids import claim_id
from quipu.model.query import Filter
from quipu.ports.store import OccurrenceKind
from quipu.testing.contract.steps import OpenStore, publish, remove
from quipu.testing.facts import alias, claim, document, entity, passage, relation

_FIRST = passage(
    "Venice fights Genoa. Venice wins.",
    entity("Venice", "Location", "Venice wins.", is_definition=True),
    entity("Genoa", "Location"),
    entity("Venice", "Organization", "Venice fights."),
    relation("Venice", "Genoa", "Venice fights Genoa.", keywords=("war", "sea"), weight=2.5),
    relation("Genoa", "Venice"),
)
_SECOND = passage("Genoa lost.", entity("Genoa"))


class MentionsContract:
    """What is promised of mentions."""

    async def test_mentions_are_read_back_in_the_order_and_direction_they_were_said(
        self, open_store: OpenStore
    ) -> None:
        facts = document("a", _FIRST, _SECOND, "Nothing said.")
        first, second, silent = (chunk_facts.chunk.id for chunk_facts in facts.chunks)
        async with open_store() as store:
            await publish(store, facts)
            async with store.view() as view:
                entities = await view.mentions(EntityMention, [second, "nowhere", first, silent])
                relations = await view.mentions(RelationMention, [first, second, "nowhere"])
        assert entities == {first: list(facts.chunks[0].entities), second: list(facts.chunks[1].entities)}
        assert relations == {first: list(facts.chunks[0].relations)}

    async def test_aliases_are_read_back_as_they_were_said_within_the_filter(self, open_store: OpenStore) -> None:
        aliases = (alias("World Health Organization", "WHO"), alias("World Health Organization", "Oms"))
        facts = document("a", passage("The WHO.", entity("World Health Organization"), *aliases), "Nothing said.")
        chunk, silent = (chunk_facts.chunk.id for chunk_facts in facts.chunks)
        async with open_store() as store:
            await publish(store, facts)
            async with store.view() as view:
                assert await view.mentions(AliasMention, [silent, chunk, "nowhere"]) == {chunk: list(aliases)}
            async with store.view(Filter(exclude=("a",))) as view:
                assert await view.mentions(AliasMention, [chunk]) == {}

    async def test_claims_are_read_back_as_they_were_said_until_their_chunk_goes(self, open_store: OpenStore) -> None:
        facts = document(
            "a",
            passage(
                "Genoa is said to have burnt Acre.",
                entity("Genoa"),
                entity("Acre"),
                claim("Genoa", "It burnt Acre.", "Acre", kind="arson", status="suspected", dates="1258"),
                claim("Acre", "It burnt."),
                claim("Genoa", "It lied."),
            ),
            passage("Genoa lost.", entity("Genoa")),
        )
        chunk, silent = (chunk_facts.chunk.id for chunk_facts in facts.chunks)
        async with open_store() as store:
            await publish(store, facts, document("b", "Nothing said."))
            async with store.view() as view:
                mentions = await view.mentions(ClaimMention, [silent, chunk, "nowhere"])
            assert mentions == {chunk: list(facts.chunks[0].claims)}
            await publish(store, document("a", "Genoa lost."))
            async with store.view() as view:
                assert await view.mentions(ClaimMention, [chunk]) == {}
                assert await view.claims(subjects=["genoa"], k=10) == []
                assert await view.claims([claim_id(chunk, 0)]) == []
            await remove(store, "a")
            assert await store.verify() == []

    @pytest.mark.parametrize("k", [0, 1, 3, 4, 100])
    async def test_the_first_claims_about_an_entity_come_by_chunk_in_the_order_they_were_said(
        self, open_store: OpenStore, k: int
    ) -> None:
        claims = claim("Genoa", "It lied.", "Acre"), claim("Genoa", "It burnt.")
        facts = [
            document(name, passage(f"Genoa {name}.", entity("Genoa"), entity("Acre"), *claims), "None.")
            for name in "ab"
        ]
        first, second = (document.chunks[0].chunk.id for document in facts)
        expected = [
            _seen(chunk_id, n, mention) for chunk_id in sorted((first, second)) for n, mention in enumerate(claims)
        ]
        async with open_store() as store:
            await publish(store, *facts)
            async with store.view() as view:
                by_entity = await view.claims(subjects=["nowhere", "genoa", "acre"], k=k)
            async with store.view(Filter(documents=("a",))) as view:
                allowed = await view.claims(subjects=["genoa"], k=k)
                everything = await view.claims(subjects=["genoa"])
        assert by_entity == expected[:k]
        assert everything == [row for row in expected if row.chunk_id == first]
        assert allowed == everything[:k]

    async def test_claims_are_read_by_id_in_the_order_asked_for_and_what_is_no_id_is_left_out(
        self, open_store: OpenStore
    ) -> None:
        claims = claim("Genoa", "It lied.", "Acre"), claim("Acre", "It burnt.")
        facts = [
            document(name, passage(f"Genoa {name}.", entity("Genoa"), entity("Acre"), *claims)) for name in ("a", "b")
        ]
        first, second = (document.chunks[0].chunk.id for document in facts)
        claim_ids = [claim_id(second, 1), claim_id(first, 0), claim_id(first, 2), "nonsense", f"{first}:x", "nowhere:0"]
        async with open_store() as store:
            await publish(store, *facts)
            async with store.view() as view:
                rows = await view.claims(claim_ids)
            async with store.view(Filter(exclude=("b",))) as view:
                allowed = await view.claims(claim_ids)
        assert rows == [_seen(second, 1, claims[1]), _seen(first, 0, claims[0])]
        assert allowed == rows[1:]

    async def test_under_a_filter_the_names_in_a_claim_are_those_the_allowed_chunks_give(
        self, open_store: OpenStore
    ) -> None:
        facts = document("a", passage("Acre!", entity("Acre!"), claim("Acre", "It burnt.", "Acre")))
        other = document("b", passage("Acre, Acre.", entity("Acre"), entity("Acre")))
        claim_ids = [claim_id(facts.chunks[0].chunk.id, 0)]
        async with open_store() as store:
            await publish(store, facts, other)
            names = []
            for allowed in (Filter(), Filter(documents=("a",))):
                async with store.view(allowed) as view:
                    names += [(row.subject_name, row.object_name) for row in await view.claims(claim_ids)]
        assert names == [("Acre", "Acre"), ("Acre!", "Acre!")]

    async def test_a_weight_is_kept_to_three_decimals(self, open_store: OpenStore) -> None:
        facts = document("a", passage("x", entity("Tyre"), entity("Jaffa"), relation("Tyre", "Jaffa", weight=1.23456)))
        chunk = facts.chunks[0].chunk.id
        async with open_store() as store:
            await publish(store, facts)
            async with store.view() as view:
                assert (await view.mentions(RelationMention, [chunk]))[chunk][0].weight == 1.235

    async def test_a_relation_names_the_chunks_that_state_it_in_order(self, open_store: OpenStore) -> None:
        stated = relation("Jaffa", "Tyre"), relation("Tyre", "Jaffa")
        passages = [passage(f"x{n}", entity("Tyre"), entity("Jaffa"), *stated) for n in range(6)]
        facts = document("a", *passages, "None.")
        expected = sorted(chunk_facts.chunk.id for chunk_facts in facts.chunks[:6])
        async with open_store() as store:
            await publish(store, facts)
            async with store.view() as view:
                chunks_by_relation = await view.occurrences(OccurrenceKind.RELATION, ["jaffa -- tyre", "nonsense"])
                first = await view.occurrences(OccurrenceKind.RELATION, ["jaffa -- tyre"], 2)
        assert chunks_by_relation == {"jaffa -- tyre": dict.fromkeys(expected, 2)}
        assert (list(chunks_by_relation["jaffa -- tyre"]), list(first["jaffa -- tyre"])) == (expected, expected[:2])

    async def test_an_entity_names_its_chunks_with_mentions_or_occurrences_whichever_are_more(
        self, open_store: OpenStore
    ) -> None:
        facts = document("a", _FIRST, passage("There is no name here.", entity("Genoa"), entity("Genoa")), "Venice!")
        first, nameless, unsaid = (chunk_facts.chunk.id for chunk_facts in facts.chunks)
        async with open_store() as store:
            await publish(store, facts)
            async with store.view() as view:
                counts_by_entity = await view.occurrences(OccurrenceKind.ENTITY, ["venice", "genoa", "nowhere"], 10)
        assert counts_by_entity == {"venice": {first: 2, unsaid: 1}, "genoa": {first: 1, nameless: 2}}

    async def test_occurrences_of_all_aliases_count_for_the_entity(self, open_store: OpenStore) -> None:
        name = "World Health Organization"
        facts = document(
            "a",
            passage(f"The {name} (WHO).", entity(name), alias(name, "WHO")),
            f"WHO? The WHO. The {name}. But who?",
        )
        first, second = (chunk_facts.chunk.id for chunk_facts in facts.chunks)
        async with open_store() as store:
            await publish(store, facts)
            async with store.view() as view:
                assert await view.occurrences(OccurrenceKind.ENTITY, [name.lower()], 10) == {
                    name.lower(): {first: 2, second: 3}
                }

    @pytest.mark.parametrize("k", [0, 1, 2, 5, 6, 30])
    async def test_of_the_chunks_of_an_entity_those_that_name_it_most_come_first_and_ties_go_by_id(
        self, open_store: OpenStore, k: int
    ) -> None:
        # One in two chunks names Acre: where most are tied, those with the first ids are found without all the others.
        passages = [f"{n}: {'Acre! ' * (3 if n % 9 == 0 else n % 2)}" for n in range(40)]
        facts = document("a", passage("There it lies.", entity("Acre")), *passages)
        async with open_store() as store:
            await publish(store, facts)
            async with store.view() as view:
                counts_by_entity = await view.occurrences(OccurrenceKind.ENTITY, ["acre"], k)
        counts = {chunk_facts.chunk.id: chunk_facts.chunk.text.count("Acre") for chunk_facts in facts.chunks}
        counts[facts.chunks[0].chunk.id] = 1
        expected = sorted((-n, i) for i, n in counts.items() if n)[:k]
        assert list(counts_by_entity.get("acre", {}).items()) == [(i, -n) for n, i in expected]

    @pytest.mark.parametrize("k", [0, 1, 3, 30])
    async def test_the_chunks_that_mention_an_entity_come_by_id_and_those_that_only_name_it_do_not(
        self, open_store: OpenStore, k: int
    ) -> None:
        passages = [passage(f"{n}: Acre.", entity("Acre"), entity("Acre")) for n in range(12)]
        named = [f"{n}: Acre! Acre! Acre!" for n in range(12)]
        facts, other = document("a", *passages, *named), document("b", passage("Acre!", entity("Acre")))
        own_chunks, other_chunks = (
            sorted(chunk_id.chunk.id for chunk_id in chunks) for chunks in (facts.chunks[:12], other.chunks)
        )
        async with open_store() as store:
            await publish(store, facts, other)
            async with store.view() as view:
                chunks_by_entity = await view.occurrences(OccurrenceKind.MENTION, ["acre", "nowhere"], k)
            async with store.view(Filter(documents=("b",))) as view:
                allowed = await view.occurrences(OccurrenceKind.MENTION, ["acre"], k)
                everything = await view.occurrences(OccurrenceKind.MENTION, ["acre"])
        counts = dict.fromkeys(own_chunks, 2) | dict.fromkeys(other_chunks, 1)
        assert list(chunks_by_entity.get("acre", {}).items()) == [
            (chunk, counts[chunk]) for chunk in sorted(counts)[:k]
        ]
        assert allowed == ({"acre": dict.fromkeys(other_chunks, 1)} if k else {})
        assert everything == {"acre": dict.fromkeys(other_chunks, 1)}

    async def test_an_entity_that_is_only_mentioned_names_its_chunk(self, open_store: OpenStore) -> None:
        facts = document("a", passage("It is a road.", entity("road")))
        async with open_store() as store:
            await publish(store, facts)
            async with store.view() as view:
                assert await view.occurrences(OccurrenceKind.ENTITY, ["road"], 10) == {
                    "road": {facts.chunks[0].chunk.id: 1}
                }


def _seen(chunk: str, ordinal: int, mention: ClaimMention) -> Claim:
    """Return a claim as a view shows it where names are spelt as `str.title` does."""
    return Claim(
        id=claim_id(chunk, ordinal),
        chunk_id=chunk,
        subject=mention.subject,
        object=mention.object,
        subject_name=mention.subject.title(),
        object_name=mention.object.title(),
        type=mention.type,
        status=mention.status,
        dates=mention.dates,
        description=mention.description,
    )
