"""Links: where known names occur in texts, whichever came first, the name or the text."""

import json

import pytest

from quipu.model.delta import DocumentFacts
from quipu.ports.store import Store
from quipu.testing.contract.steps import OpenStore, dump, publish, remove
from quipu.testing.facts import alias, document, entity, passage

# name, text, how often the text names it
_OCCURRENCES = (
    ("Venice", "Venice, Venice! VENICE is not counted, Venetian is not, venice is not; Venice’s is.", 3),
    ("Marco Polo", "Marco Polo. MARCO POLO, marco polo, Marco\nPolo, Marco-Polo; but Marco, Polo and Marco Polos.", 5),
    ("WHO", "WHO said so? Who? who? The WHO.", 2),
    ("Who", "WHO said so? Who? who? The WHO.", 1),
    ("U.S.", "The US and the us and Us.", 1),
    ("St. Mark", "St. Mark and St Mark and St  Mark", 3),
    ("O'Brien", "O'Brien and O’Brien and Obrien and O Brien", 3),
    ("C++", "C++ is not C and not C#.", 1),
    ("C#", "C++ is not C and not C#.", 1),
    ("1984", "In 1984 or 19845 or 84.", 1),
    ("长城", "长城在北方。万里长城很长，城长。", 2),
    ("马可·波罗", "马可·波罗写道，马可波罗说。", 2),
    ("ジョン・スミス", "ジョン・スミスはジョンスミスです。", 2),
    ("俄国", "俄国人和俄 国", 2),
    ("A股", "A股市场。B股。", 1),
    ("卡拉OK", "他去卡拉OK唱歌。", 1),
    ("Новгород", "Новгород и НОВГОРОД, новгород и Новгорода.", 2),
    ("İstanbul", "Welcome to İstanbul.", 1),
    ("Μαΐου", "Η Πρωτομαγιά είναι του Μαΐου.", 1),
    ("राम", "राम और रीम।", 1),
    ("กรุงเทพ", "กรุงเทพสวย", 1),
    ("서울", "서울은 크다.", 1),
    ("Ἀθῆναι", "Ἀθῆναι και ἀθῆναι.", 1),
)


def _naming(name: str) -> DocumentFacts:
    return document("naming", passage("Nothing to see.", entity(name)))


async def _links(store: Store) -> dict[tuple[str, str], int]:
    """Return the links of an index as the dump shows them."""
    lines = [json.loads(line) for line in await dump(store)]
    return {(line["name"], line["chunk"]): line["n"] for line in lines if line["kind"] == "link"}


class LinkingContract:
    """What is promised of links."""

    @pytest.mark.parametrize(("name", "text", "n"), _OCCURRENCES, ids=[case[0] for case in _OCCURRENCES])
    async def test_a_name_is_linked_whichever_came_first(
        self, open_store: OpenStore, name: str, text: str, n: int
    ) -> None:
        key = entity(name).key
        facts = document("text", text)
        expected = {(key, facts.chunks[0].chunk.id): n}
        async with open_store("name first") as store:
            await publish(store, _naming(name))
            await publish(store, facts)
            assert await _links(store) == expected
            assert await store.verify() == []
        async with open_store("text first") as store:
            await publish(store, facts)
            await publish(store, _naming(name))
            assert await _links(store) == expected
            assert await store.verify() == []
        async with open_store("at once") as store:
            await publish(store, facts, _naming(name))
            assert await _links(store) == expected

    @pytest.mark.parametrize("name", ["&&", "++", "7", "42", "x", "长"])
    async def test_a_name_without_words_or_too_short_is_kept_but_not_linked(
        self, open_store: OpenStore, name: str
    ) -> None:
        mention = entity(name)
        async with open_store() as store:
            await publish(store, document("text", f"{name} X 7 42 长 长城 {name}"))
            await publish(store, document("naming", passage("Nothing.", mention)))
            await publish(store, document("later", f"{name} X 7 42 长 长城 {name}"))
            assert await _links(store) == {}
            async with store.view() as view:
                assert [node.key for node in await view.entities([mention.key])] == [mention.key]
            assert await store.verify() == []

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("长城", "长  城"),
            ("长城", "长 - 城"),
            ("长城", "长\n城"),
            ("股A", "牛股A"),
            ("A股", "A股市"),
            ("A股B", "牛A股B市"),
            ("股+票", "股票 股 票"),
            ("⑴ Rule", "⑴ Rule (1) Rule 1 Rule"),
            ("Marco Polo", "Marco \t Polo"),
            ("Ⅳ Legion", "Ⅳ Legion IV Legion"),
        ],
    )
    async def test_odd_spacing_and_signs_give_the_same_links_in_both_orders(
        self, open_store: OpenStore, name: str, text: str
    ) -> None:
        async with open_store("name first") as store:
            await publish(store, _naming(name))
            await publish(store, document("text", text))
            forth = await _links(store)
        async with open_store("text first") as store:
            await publish(store, document("text", text))
            await publish(store, _naming(name))
            assert await _links(store) == forth
            assert await store.verify() == []

    async def test_a_stated_alias_is_linked_like_a_name(self, open_store: OpenStore) -> None:
        name = "World Health Organization"
        text = document("text", f"The WHO, and the {name}; who else?")
        chunk = text.chunks[0].chunk.id
        stated = document("stated", passage("Nothing.", entity(name), alias(name, "WHO")))
        async with open_store() as store:
            await publish(store, text)
            await publish(store, stated)
            assert await _links(store) == {("WHO", chunk): 1, (name.lower(), chunk): 1}
            await publish(store, document("stated", passage("Nothing more.", entity(name))))
            assert await _links(store) == {(name.lower(), chunk): 1}

    async def test_a_name_stays_linked_while_any_entity_or_alias_uses_it(self, open_store: OpenStore) -> None:
        text = document("text", "The WHO.")
        link = {("WHO", text.chunks[0].chunk.id): 1}
        async with open_store() as store:
            await publish(
                store,
                text,
                document("a", passage("One.", entity("WHO"))),
                document("b", passage("Two.", entity("World Health"), alias("World Health", "WHO"))),
                document("c", passage("Three.", entity("World Hospital"), alias("World Hospital", "WHO"))),
            )
            for document_id in ("b", "a"):
                await remove(store, document_id)
                assert await _links(store) == link
            await remove(store, "c")
            assert await _links(store) == {}
            assert await store.verify() == []

    async def test_links_go_with_their_chunk_and_with_their_name(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, _naming("Venice"), document("a", "Venice."), document("b", "Venice, Venice."))
            await remove(store, "a")
            assert sorted((await _links(store)).values()) == [2]
            await remove(store, "naming")
            assert await _links(store) == {}
            await publish(store, _naming("Venice"))
            assert sorted((await _links(store)).values()) == [2]

    async def test_a_name_that_goes_and_comes_in_one_commit_stays_linked(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            await publish(store, _naming("Venice"), document("a", "Venice."))
            before = await _links(store)
            await publish(store, document("naming", passage("Still nothing.", entity("Venice"))))
            assert await _links(store) == before
            assert len(before) == 1

    async def test_overlapping_names_are_each_counted(self, open_store: OpenStore) -> None:
        names = ("New York", "New York City", "York", "York City")
        text = document("text", "New York City and New York.")
        async with open_store() as store:
            await publish(store, text)
            await publish(store, document("naming", passage("Nothing.", *(entity(name) for name in names))))
            counts = {key: n for (key, _), n in (await _links(store)).items()}
        assert counts == {"new york": 2, "new york city": 1, "york": 2, "york city": 1}

    async def test_a_name_is_linked_in_many_chunks_at_once(self, open_store: OpenStore) -> None:
        texts = document("text", *(f"Venice {number}." for number in range(450)))
        async with open_store() as store:
            await publish(store, texts)
            await publish(store, _naming("Venice"))
            assert len(await _links(store)) == 450
            assert await store.verify() == []
