"""Tests of the imported extractor: each chunk gets what its text names, and nothing recorded is lost."""

import re
import sys
from random import Random
from threading import get_ident

import pytest

from quipu.ingest.graph_import.extractor import ImportedExtractor, NameIndex, identity_of
from quipu.model.extraction import ChunkInput, ExtractedEntity, ExtractedRelation, Extraction
from quipu.model.imported_graph import ImportedExtraction
from quipu.text.unicode import UNSPACED

RECORDING = ImportedExtraction(
    document="d1",
    entities=(
        ExtractedEntity(name="Alice Kober", type="Person", description="A classicist."),
        ExtractedEntity(name="michael ventris", type="Person"),
        ExtractedEntity(name="Sign groups", type="Other"),
    ),
    relations=(
        ExtractedRelation(source="Alice Kober", target="Sign groups", description="counted", weight=2.0),
        ExtractedRelation(source="Linear A", target="Linear B", description="resemble"),
    ),
)


async def _extract(*texts: str, document: str = "d1") -> list[Extraction]:
    inputs = [ChunkInput(text=text, documents=(document,)) for text in texts]
    outcomes = [each async for each in ImportedExtractor({"d1": RECORDING}).extract(inputs)]
    assert [outcome.index for outcome in outcomes] == list(range(len(texts)))
    return [outcome.extraction for outcome in outcomes if outcome.extraction is not None]


async def test_a_chunk_gets_the_names_it_holds_however_they_are_spelt() -> None:
    first, second = await _extract("Nothing.", "Michael Ventris read sign groups.")
    assert [(each.name, each.type, each.start, each.end) for each in second.entities] == [
        ("michael ventris", "Person", 0, 15),
        ("Sign groups", "Other", 21, 32),
    ]
    assert [each.name for each in first.entities] == ["Alice Kober"]  # named nowhere: with the first


async def test_a_relation_is_stated_once_where_both_ends_are_named_else_where_one_is() -> None:
    named = ("Alice Kober was born.", "Alice Kober counted sign groups.", "Alice Kober, sign groups. Linear B.")
    found = await _extract(*named)
    assert [[each.description for each in extraction.relations] for extraction in found] == [
        [],
        ["counted"],
        ["resemble"],
    ]
    assert found[1].relations[0].weight == 2.0


async def test_what_no_chunk_names_goes_with_the_first() -> None:
    first, second = await _extract("One.", "Two.")
    assert [each.name for each in first.entities] == ["Alice Kober", "michael ventris", "Sign groups"]
    assert [each.description for each in first.relations] == ["counted", "resemble"]
    assert second == Extraction()


async def test_a_name_within_another_word_is_not_named() -> None:
    recording = ImportedExtraction(
        document="d1", entities=(ExtractedEntity(name="AID", type="Other"), ExtractedEntity(name="维基", type="Other"))
    )
    inputs = [ChunkInput(text=text, documents=("d1",)) for text in ("He said so.", "Food aid came.", "在维基百科上。")]
    outcomes = [each async for each in ImportedExtractor({"d1": recording}).extract(inputs)]
    names = [[each.name for each in outcome.extraction.entities] for outcome in outcomes if outcome.extraction]
    assert names == [[], ["AID"], ["维基"]]


async def test_another_document_says_nothing() -> None:
    assert await _extract("Alice Kober counted signs.", document="d2") == [Extraction()]


def test_the_identity_follows_what_is_recorded() -> None:
    assert identity_of(RECORDING) == identity_of(RECORDING)
    assert identity_of(RECORDING) != identity_of(ImportedExtraction(document="d1")) != identity_of(None)


async def test_the_loop_is_free_while_recordings_are_divided() -> None:
    threads = []

    class Watched(dict[str, ImportedExtraction]):
        def get(self, *key: object) -> ImportedExtraction:
            threads.append(get_ident())
            return RECORDING

    inputs = [ChunkInput(text="Alice Kober.", documents=("d1",))]
    assert len([each async for each in ImportedExtractor(Watched()).extract(inputs)]) == 1
    assert get_ident() not in threads
    assert threads


WORDS = ("Alice", "Kober", "AID", "said", "Linear-B", "C++", "l'aire", "İzmir", "维基", "百科", "naïve", "हिन्दी", "...")


def first_of(places: list[set[int]]) -> int:
    """Return the first place of all of them, else of one, else 0."""
    return min(set.intersection(*places) or set.union(*places), default=0)


def name_pattern(name: str) -> re.Pattern[str]:
    """Return a pattern that finds a name; word boundaries count except in unspaced scripts."""
    folded = name.casefold()
    unspaced = re.compile(f"[{UNSPACED}]")
    before = "" if unspaced.match(folded[:1]) else r"(?<!\w)"
    after = "" if unspaced.match(folded[-1:]) else r"(?!\w)"
    return re.compile(f"{before}{re.escape(folded)}{after}")


def test_names_and_quotes_stand_where_reading_every_text_finds_them() -> None:
    random = Random(7)

    def said(n: int) -> str:
        return "".join(random.choice(WORDS) + random.choice((" ", "  ", "", ", ", "\n")) for _ in range(n))

    for _ in range(150):
        texts = [
            said(random.randint(0, 9)) for _ in range(random.choice((1, 2, 5, 40)))
        ]  # many texts are indexed by words
        names = [said(random.randint(1, 3)).strip() for _ in range(8)]
        places = NameIndex(texts)
        standing = {
            name: {n for n, text in enumerate(texts) if name_pattern(name).search(text.casefold())} for name in names
        }
        assert {name: set(places.texts_with(name)) for name in names} == standing
        ends = random.sample(names, 2)
        assert places.first_with_names(ends) == first_of([standing[end] for end in ends])
        quote = random.choice([random.choice(texts)[2:40], said(4)])
        folded = " ".join(quote.casefold().split())
        quoting = [n for n, text in enumerate(texts) if folded and folded in " ".join(text.casefold().split())]
        assert places.first_with_quote(quote) == (quoting[0] if quoting else None)


@pytest.mark.parametrize(("ends", "place"), [(("Ann", ""), 1), (("", ""), 0), (("Ann", "Bo"), 2), (("Cy", "Bo"), 2)])
def test_an_end_that_is_not_there_counts_for_nothing(ends: tuple[str, str], place: int) -> None:
    assert NameIndex(["One.", "Ann.", "Bo, Ann."]).first_with_names(ends) == place


@pytest.mark.parametrize(("name", "text"), [("维基 Kober", "在维基 Kober 里"), ("Kober 维基", "在 Kober 维基百科")])
def test_a_name_without_spaces_may_stand_within_what_looks_like_a_word(name: str, text: str) -> None:
    assert NameIndex([text, "Kober"]).texts_with(name) == (0,)


def n_calls(n: int) -> int:
    """Return how many calls it takes to place a relation and a claim of each of n chunks, with names of their own."""
    names = [(f"Name {n} {i}", f"Other{n}-{i}") for i in range(n)]
    places = NameIndex([f"{one} met {other} in town." for one, other in names])
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(count)
    try:
        for one, other in names:
            places.first_with_names((one, other))
            places.first_with_quote(f"{one}  met {other} in")
    finally:
        sys.setprofile(None)
    return calls


def test_the_work_grows_with_what_is_recorded_and_not_with_its_square() -> None:
    assert n_calls(400) < 5 * n_calls(100)
