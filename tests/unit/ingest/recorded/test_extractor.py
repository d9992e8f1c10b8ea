"""Each chunk gets what its text holds; nothing recorded is lost."""

from threading import get_ident

from quipu.ingest.recorded.extractor import RecordedExtractor, identity_of
from quipu.model.extraction import ChunkInput, ExtractedEntity, ExtractedRelation, Extraction
from quipu.model.imported_graph import ImportedExtraction

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
    outcomes = [each async for each in RecordedExtractor({"d1": RECORDING}).extract(inputs)]
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
    outcomes = [each async for each in RecordedExtractor({"d1": recording}).extract(inputs)]
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
    assert len([each async for each in RecordedExtractor(Watched()).extract(inputs)]) == 1
    assert get_ident() not in threads
    assert threads
