"""Relations: unordered pairs of entities, folded from mentions in either direction."""

from quipu.model.graph import MAX_RELATION_KEYWORDS, RelationMention
from quipu.testing.contract.steps import OpenStore, only_relation, publish, remove
from quipu.testing.facts import PassageSpec, document, entity, passage, relation

_ID = "acre -- venice"


def _between(text: str, *mentions: RelationMention) -> PassageSpec:
    return passage(text, entity("Acre"), entity("Venice"), *mentions)


class RelationsContract:
    """What is promised of relations."""

    async def test_relations_come_in_the_order_asked_for_and_unknown_ids_are_left_out(
        self, open_store: OpenStore
    ) -> None:
        text_passage = passage(
            "x",
            entity("Acre"),
            entity("Venice"),
            entity("Genoa"),
            relation("Venice", "Acre"),
            relation("Genoa", "Acre"),
        )
        ids = [_ID, "venice -- acre", "acre", "acre -- nowhere", "a -- b -- c", "", "acre -- genoa"]
        async with open_store() as store:
            await publish(store, document("a", text_passage))
            async with store.view() as view:
                assert [edge.id for edge in await view.relations(ids)] == [_ID, "acre -- genoa"]

    async def test_both_directions_are_one_relation(self, open_store: OpenStore) -> None:
        text_passage = _between("x", relation("Venice", "Acre"), relation("Acre", "Venice"))
        async with open_store() as store:
            await publish(store, document("a", text_passage, _between("y", relation("Venice", "Acre"))))
            relation_row = await only_relation(store, _ID)
        assert (relation_row.source, relation_row.target) == ("acre", "venice")
        assert (relation_row.source_name, relation_row.target_name) == ("Acre", "Venice")
        assert (relation_row.n_mentions, relation_row.n_chunks) == (3, 2)

    async def test_a_relation_shows_the_names_its_ends_have_now(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, document("a", _between("x", relation("Acre", "Venice"))))
            await publish(store, document("b", passage("y", entity("Acre!"), entity("Acre!"))))
            assert (await only_relation(store, _ID)).source_name == "Acre!"

    async def test_weights_are_exact_to_three_decimals_in_any_order(self, open_store: OpenStore) -> None:
        weights = (0.1, 0.2, 0.3, 1e6, 0.001, 7.7, 2.0004, 0.1)
        documents = [
            document(f"d{n}", _between(f"x{n}", relation("Acre", "Venice", weight=weight)))
            for n, weight in enumerate(weights)
        ]
        async with open_store("forth") as forth, open_store("back") as back:
            for facts in documents:
                await publish(forth, facts)
            for facts in reversed(documents):
                await publish(back, facts)
            assert (await only_relation(forth, _ID)).weight == (await only_relation(back, _ID)).weight == 1000010.401
            await remove(forth, "d3")
            assert (await only_relation(forth, _ID)).weight == 10.401

    async def test_the_most_frequent_keywords_are_kept_and_ties_go_by_text(self, open_store: OpenStore) -> None:
        many = tuple(f"k{n:02}" for n in range(MAX_RELATION_KEYWORDS + 3))
        mentions = [relation("Acre", "Venice", keywords=many), relation("Acre", "Venice", keywords=("trade", "k09"))]
        async with open_store() as store:
            await publish(store, document("a", _between("x", *mentions)))
            assert (await only_relation(store, _ID)).keywords == ("k09", *many[: MAX_RELATION_KEYWORDS - 1])
            await publish(store, document("b", _between("y", relation("Acre", "Venice", keywords=("trade",)))))
            assert (await only_relation(store, _ID)).keywords == ("k09", "trade", *many[: MAX_RELATION_KEYWORDS - 2])
            await remove(store, "a")
            assert (await only_relation(store, _ID)).keywords == ("trade",)

    async def test_descriptions_of_both_directions_are_folded_together(self, open_store: OpenStore) -> None:
        mentions = [
            relation("Acre", "Venice", "They trade."),
            relation("Venice", "Acre", "They fight."),
            relation("Venice", "Acre", "They trade."),
            relation("Venice", "Acre"),
        ]
        async with open_store("forth") as forth, open_store("back") as back:
            await publish(forth, document("a", _between("x", *mentions)))
            for n, mention in enumerate(reversed(mentions)):
                await publish(back, document(f"d{n}", _between(f"x{n}", mention)))
            description = (await only_relation(forth, _ID)).description
            assert (await only_relation(back, _ID)).description == description
        assert sorted(description.split("\n")) == ["They fight.", "They trade."]

    async def test_incident_relations_come_once_each_in_order_of_id(self, open_store: OpenStore) -> None:
        pairs = [("Venice", "Acre"), ("Genoa", "Acre"), ("Genoa", "Venice"), ("Jaffa", "Tyre")]
        names = sorted({name for pair in pairs for name in pair})
        text_passage = passage("x", *(entity(name) for name in names), *(relation(*pair) for pair in pairs))
        async with open_store() as store:
            await publish(store, document("a", text_passage))
            async with store.view() as view:
                assert [edge.id for edge in await view.relations(entities=["venice", "acre", "nowhere"])] == [
                    _ID.replace("venice", "genoa"),
                    _ID,
                    "genoa -- venice",
                ]
                assert [edge.id for edge in await view.relations(entities=["tyre"])] == ["jaffa -- tyre"]
                incident = await view.relations(entities=["venice", "acre"])
                by_weight = sorted(incident, key=lambda edge: (-edge.weight, edge.id))
                for k in range(len(incident) + 2):
                    assert await view.relations(entities=["venice", "acre"], k=k) == by_weight[:k]
                assert await view.relations(entities=[]) == []

    async def test_the_strongest_relations_are_those_of_the_best_connected_ends_then_the_heaviest(
        self, open_store: OpenStore
    ) -> None:
        pairs = {("Acre", "Venice"): 1.0, ("Genoa", "Venice"): 2.5, ("Tyre", "Venice"): 2.5, ("Genoa", "Jaffa"): 9.0}
        names = sorted({name for pair in pairs for name in pair})
        stated = (relation(*pair, weight=weight) for pair, weight in pairs.items())
        async with open_store() as store:
            await publish(store, document("a", passage("x", *(entity(f"{name}!") for name in names), *stated)))
            async with store.view() as view:
                strongest, n = await view.strongest_relations(["venice", "genoa", "nowhere"], 10)
                first = [await view.strongest_relations(["venice", "genoa"], k) for k in range(4)]
                assert await view.strongest_relations(["nowhere"], 10) == ([], 0)
                assert await view.strongest_relations([], 10) == ([], 0)
        assert [(edge.id, edge.degree_sum, edge.weight) for edge in strongest] == [
            ("genoa -- venice", 5, 2.5),
            ("tyre -- venice", 4, 2.5),
            ("acre -- venice", 4, 1.0),
            ("genoa -- jaffa", 3, 9.0),
        ]
        assert (strongest[0].source, strongest[0].target) == ("genoa", "venice")
        assert (strongest[0].source_name, strongest[0].target_name) == ("Genoa!", "Venice!")
        assert n == 4
        assert first == [(strongest[:k], 4) for k in range(4)]

    async def test_equally_strong_relations_are_ordered_by_id(self, open_store: OpenStore) -> None:
        passages = [passage(f"x{i}", entity("hub"), entity(f"e{i}"), relation(f"e{i}", "hub")) for i in range(12)]
        async with open_store() as store:
            await publish(store, document("a", *passages[::-1]))
            async with store.view() as view:
                strongest, n = await view.strongest_relations(["hub"], 5)
        assert [edge.id for edge in strongest] == sorted(f"e{i} -- hub" for i in range(12))[:5]
        assert n == 12

    async def test_a_relation_goes_with_the_last_chunk_that_states_it(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(
                store,
                document("a", _between("x", relation("Acre", "Venice"))),
                document("b", _between("y", relation("Venice", "Acre"))),
                document("c", _between("z")),
            )
            await remove(store, "a")
            assert (await only_relation(store, _ID)).n_mentions == 1
            await remove(store, "b")
            async with store.view() as view:
                assert await view.relations([_ID]) == []
                assert await view.relations(entities=["acre"]) == []
                assert [node.degree for node in await view.entities(["acre"])] == [0]

    async def test_names_of_any_script_make_relations(self, open_store: OpenStore) -> None:
        text_passage = passage(
            "马可·波罗到过长城。", entity("马可·波罗"), entity("长城"), relation("长城", "马可·波罗")
        )
        async with open_store() as store:
            await publish(store, document("a", text_passage))
            relation_row = await only_relation(store, "长城 -- 马可波罗")
        assert (relation_row.source_name, relation_row.target_name) == ("长城", "马可·波罗")
