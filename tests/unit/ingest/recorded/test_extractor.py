"""Each chunk gets what its text holds; nothing recorded is lost."""

from quipu.ingest.recorded import RecordedExtractor
from quipu.model.extraction import ChunkInput, Extraction
from quipu.model.recording import RecordedEntity, RecordedRelation, Recording

TEXT = "Alice Kober counted signs. Michael Ventris read them."
RECORDING = Recording(
    document="d1",
    entities=(
        RecordedEntity(name="Alice Kober", type="Person", description="A classicist."),
        RecordedEntity(name="michael ventris", type="Person"),
        RecordedEntity(name="Sign groups"),
    ),
    relations=(
        RecordedRelation(source="Alice Kober", target="Sign groups", description="counted", weight=2.0),
        RecordedRelation(source="Linear A", target="Linear B", description="resemble"),
    ),
)


async def _extract(text: str, document: str = "d1", texts: dict[str, str] | None = None) -> Extraction:
    extractor = RecordedExtractor({"d1": RECORDING}, texts)
    outcomes = [each async for each in extractor.extract([ChunkInput(text=text, documents=(document,))])]
    assert len(outcomes) == 1
    assert outcomes[0].extraction is not None
    return outcomes[0].extraction


async def test_a_chunk_gets_the_names_it_holds_however_they_are_spelt() -> None:
    found = await _extract("Michael Ventris read them.")
    assert [(each.name, each.type, each.start, each.end) for each in found.entities] == [
        ("michael ventris", "Person", 0, 15)
    ]
    assert found.relations == ()


async def test_a_relation_goes_with_the_end_that_is_named() -> None:
    found = await _extract("Alice Kober counted signs.")
    assert [(each.source, each.target, each.weight) for each in found.relations] == [
        ("Alice Kober", "Sign groups", 2.0)
    ]


async def test_what_the_whole_document_never_names_goes_with_each_chunk() -> None:
    found = await _extract("Michael Ventris read them.", texts={"d1": TEXT})
    assert [each.name for each in found.entities] == ["michael ventris", "Sign groups"]
    assert [each.description for each in found.relations] == ["resemble"]


async def test_another_document_says_nothing() -> None:
    assert await _extract(TEXT, document="d2") == Extraction()
