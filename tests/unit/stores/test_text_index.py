"""Tests of linking on texts and names of any kind: full text never hides a chunk from a new name."""

import asyncio
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quipu.ports.derivation_view import NodeKind
from quipu.stores.relational.store import RelationalStore
from quipu.stores.sqlite.backend import SqliteBackend
from quipu.testing.contract.steps import dump, publish, remove
from quipu.testing.facts import document, entity, passage
from quipu.text.names import NamesByAnchor, group_by_anchor
from quipu.text.words import Analyzer
from tests.unit.stores.opening import open_index

_PIECES = (
    *(" ", "  ", "\n", "-", "·", "・", "&", " & ", ".", "'", "’s", ", ", "/", "+", "#", "_", '"', "*", "(", "\u200d"),
    *("A", "a", "WHO", "who", "Who", "9", "1984", "C++", "C#", "O'Brien", "İ", "ß", "é", "e\u0301", "⑴", "½"),
    *("长", "城", "股", "ン", "ー", "서", "ก", "รุ", "राम", "री", "Ж", "ΐ", "Ἀθ", "ﷺ", "Ⅳ", "𞤀𞤣", "Ა", "ა", "ꭰ", "🙂"),
)
_ANY = st.one_of(st.sampled_from(_PIECES), st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
_TEXTS = st.lists(_ANY, min_size=1, max_size=12).map("".join)
_NAMES = st.lists(_ANY, min_size=1, max_size=4).map("".join)


@pytest.fixture(scope="module")
def empty_index() -> Iterator[Path]:
    """Return an index that every example leaves empty."""
    with TemporaryDirectory() as folder:
        yield Path(folder) / "index.sqlite"


@settings(deadline=None, max_examples=40, derandomize=True)
@given(text=_TEXTS, name=_NAMES, is_within=st.booleans())
def test_a_name_before_its_text_and_after_it_gives_the_same_links(
    empty_index: Path, text: str, name: str, is_within: bool
) -> None:
    facts = document("text", f"{text}{name}{text}" if is_within else text)
    naming = document("naming", passage("x", entity(name)))
    if not naming.chunks[0].entities[0].key:
        return

    async def both_orders() -> None:
        async with open_index(empty_index) as store:
            states = []
            for first, second in ((facts, naming), (naming, facts)):
                await publish(store, first)
                await publish(store, second)
                states.append(await dump(store))
                assert await store.verify() == []
                await remove(store, "text", "naming")
            assert states[0] == states[1]
            assert await store.verify() == []

    asyncio.run(both_orders())


_SAME_WORDS = st.lists(st.sampled_from(["New", "York", "City", "Cities", "Ö", "长", "C#"]), min_size=1, max_size=6)


@settings(deadline=None, max_examples=60, derandomize=True)
@given(names=st.lists(_SAME_WORDS, min_size=1, max_size=8), text=_SAME_WORDS)
def test_names_that_begin_with_the_same_words_are_all_linked(
    empty_index: Path, names: list[list[str]], text: list[str]
) -> None:
    entities = [entity(name) for name in sorted({" ".join(name) for name in names})]

    async def link() -> None:
        async with open_index(empty_index) as store:
            await publish(store, document("naming", passage("x", *entities)))
            await publish(store, document("text", " ".join(text)))
            assert await store.verify() == []
            await remove(store, "text", "naming")

    asyncio.run(link())


async def test_of_a_thousand_names_that_begin_alike_only_those_in_the_text_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names_read: list[str] = []

    def recorded(keys: Iterable[str]) -> NamesByAnchor:
        keys = list(keys)
        names_read.extend(keys)
        return group_by_anchor(keys)

    async with open_index(tmp_path / "index.sqlite") as store:
        parts = [f"World Trade Part {number}" for number in range(1_000)]
        await publish(store, document("naming", passage("x", *map(entity, parts))))
        monkeypatch.setattr("quipu.stores.relational.text_index.group_by_anchor", recorded)
        await publish(store, document("text", "World Trade Part 7 and World Trade Part 999 are here. World Trade is."))
    assert sorted(names_read) == ["world trade part 7", "world trade part 999"]


async def test_a_segmenter_adds_words_to_full_text_and_changes_no_link(tmp_path: Path) -> None:
    words = Analyzer(segment=lambda run: ["万里长城"] if "万里长城" in run else [], segmenter="tests/1")
    texts = document("text", "万里长城很长。", "长城。")
    found = []
    for name, analyzer in (("plain", Analyzer()), ("segmented", words)):
        backend = SqliteBackend(tmp_path / f"{name}.sqlite", busy_timeout_s=5.0)
        store = RelationalStore(backend, lease_s=60.0, analyzer=analyzer)
        await store.prepare()
        await publish(store, texts, document("naming", passage("x", entity("万里长城"), entity("长城"))))
        lines = [json.loads(line) for line in await dump(store)]
        found.append([line for line in lines if line["kind"] == "link"])
        async with store.view() as view:
            hits = await view.search_text(NodeKind.CHUNK, "万里长城", 5)
            assert hits[0].id == texts.chunks[0].chunk.id
        assert await store.verify() == []
        await store.close()
    assert found[0] == found[1]
    assert len(found[0]) == 3
