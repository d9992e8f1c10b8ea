"""Values that databases treat differently: NUL, long keys and words, large numbers, and the order of texts."""

import json

import pytest

from quipu.errors import InvalidDelta
from quipu.model.delta import Delta, DocumentFacts
from quipu.model.query import Condition, Filter
from quipu.ports.derivation_view import NodeKind
from quipu.testing.contract.steps import OpenStore, dump, only_entity, only_relation, publish, remove
from quipu.testing.facts import document, entity, passage, relation, source

_LONG = 8_192
_ORDERED = ("-", "A", "Z", "a", "a b", "a-b", "aa", "ab", "z", "Ä", "é", "Ж", "ж", "一", "\ue000", "𝔸", "😀")


class ValuesContract:
    """What is promised of values at the limits of databases."""

    @pytest.mark.parametrize(
        "facts",
        [
            document("a", "before\0after"),
            document("a", "Text.", title="before\0after"),
            document("a", passage("Text.", headings=("before\0after",))),
            document("a", "Text.", metadata={"field": "before\0after"}),
        ],
        ids=["text", "title", "heading", "metadata"],
    )
    async def test_a_text_with_nul_is_refused_and_changes_nothing(
        self, open_store: OpenStore, facts: DocumentFacts
    ) -> None:
        async with open_store() as store:
            await publish(store, document("b", "One."))
            before = await dump(store)
            with pytest.raises(InvalidDelta, match="NUL"):
                await store.commit(Delta(publish=[facts]))
            assert await dump(store) == before

    async def test_ids_names_and_metadata_of_8_kb_are_kept_and_looked_up(self, open_store: OpenStore) -> None:
        first, second = (f"{'x' * (_LONG - 1)}{end}" for end in "12")
        surfaces = [f"Name {letter * _LONG}" for letter in "ab"]
        spec = passage("Long.", *(entity(surface, "Person") for surface in surfaces))
        async with open_store() as store:
            await store.commit(Delta(enqueue=[source(f"{first}queued")]))
            await publish(store, document(first, spec, metadata={"f": first}))
            await publish(store, document(second, "Other.", metadata={"f": second}))
            async with store.view() as view:
                assert [doc.id for doc in await view.documents([first])] == [first]
                assert len(await view.documents()) == 3
            async with store.view(Filter(where=(Condition(field="f", operator="=", value=second),))) as view:
                assert [doc.id for doc in await view.documents()] == [second]
            for surface in surfaces:
                assert (await only_entity(store, entity(surface).key)).name == surface
            assert await store.verify() == []
            await remove(store, first, second)
            assert await dump(store) == []

    async def test_words_of_8_kb_are_found_and_hide_no_others(self, open_store: OpenStore) -> None:
        word, other = "w" * _LONG, "v" * _LONG
        async with open_store() as store:
            await publish(store, document("a", f"Venice {word} stays.", title=other), document("b", "Venice falls."))
            async with store.view() as view:
                for text, n_hits in ((word, 1), (other, 1), ("stays", 1), ("Venice", 2)):
                    assert len(await view.search_text(NodeKind.CHUNK, text, 5)) == n_hits
            assert await store.verify() == []

    async def test_sums_may_exceed_32_bits(self, open_store: OpenStore) -> None:
        pairs = [
            passage(f"They met {n}.", entity("Acre"), entity("Venice"), relation("Acre", "Venice", weight=3e6))
            for n in range(3)
        ]
        async with open_store() as store:
            await publish(store, document("a", *pairs))
            assert (await only_relation(store, "acre -- venice")).weight == 9e6
            assert '"weight":9000000000' in "".join(await dump(store))
            assert await store.verify() == []

    async def test_texts_are_ordered_by_code_point(self, open_store: OpenStore) -> None:
        assert list(_ORDERED) == sorted(_ORDERED)
        async with open_store() as store:
            specs = [passage(f"{name} is here.", entity(f"{name}x")) for name in _ORDERED]
            facts = [document(name, spec) for name, spec in zip(_ORDERED, specs, strict=True)]
            await publish(store, *reversed(facts))
            async with store.view() as view:
                assert [doc.id for doc in await view.documents()] == list(_ORDERED)
                hits = await view.search_text(NodeKind.CHUNK, "here", 100)
            lines = [json.loads(line) for line in await dump(store)]
        assert [(-hit.score, hit.id) for hit in hits] == sorted((-hit.score, hit.id) for hit in hits)
        for kind, field in (("document", "id"), ("entity", "key")):
            values = [line[field] for line in lines if line["kind"] == kind]
            assert len(values) > 1
            assert values == sorted(values)
