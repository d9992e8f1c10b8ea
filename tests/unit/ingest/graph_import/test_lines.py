"""Claims of recorded graphs: under either names of fields, placed where they were read, and lost nowhere in silence."""

import json
from pathlib import Path

import pytest

from quipu.errors import InvalidInput
from quipu.ingest.graph_import import ImportedExtractor, read_graph, read_recordings
from quipu.model.extraction import ChunkInput, ExtractedClaim, ExtractedEntity, Extraction
from quipu.model.imported_graph import ImportedClaim, ImportedExtraction

TEXT = {"id": "p1", "text": "In 1258 Genoa burned Acre. Venice mourned."}
CLAIM = {
    "subject": "Genoa",
    "object": "Acre",
    "type": "arson",
    "status": "suspected",
    "dates": "1258",
    "description": "Genoa burned it.",
}
COVARIATE = {
    "id": "c1",
    "human_readable_id": 0,
    "covariate_type": "claim",
    "type": "WAR CRIMES",
    "description": "Genoa burned it.",
    "subject_id": "Genoa",
    "object_id": "NONE",
    "status": "TRUE",
    "start_date": None,
    "end_date": None,
    "source_text": "Genoa burned Acre",
    "text_unit_id": "p1",
}
FOUND = ExtractedClaim(
    subject="Genoa", object="Acre", type="arson", status="suspected", dates="1258", description="Genoa burned it."
)


def write(folder: Path, *lines: object) -> Path:
    """Write lines into a file."""
    file = folder / "all.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def claims_of(folder: Path, *claims: object) -> tuple[ImportedClaim, ...]:
    """Return what is read of the claims of a passage."""
    return read_graph([write(folder, {**TEXT, "claims": claims})]).extractions["p1"].claims


def test_a_claim_is_read_with_all_that_is_said_of_it(tmp_path: Path) -> None:
    assert claims_of(tmp_path, CLAIM, {"subject": "Venice", "description": "It mourned."}) == (
        ImportedClaim(claim=FOUND),
        ImportedClaim(claim=ExtractedClaim(subject="Venice", description="It mourned.")),
    )


@pytest.mark.parametrize(
    ("start", "end", "dates"),
    [
        ("1258-01-01T00:00:00", "1258-12-31T00:00:00", "1258-01-01 to 1258-12-31"),
        ("1258-01-01T00:00:00", "1258-01-01T00:00:00", "1258-01-01"),
        ("NONE", "1258-12-31", "1258-12-31"),
        (None, "none", ""),
    ],
)
def test_a_covariate_of_microsoft_graphrag_is_a_claim(tmp_path: Path, start: str | None, end: str, dates: str) -> None:
    row = {**COVARIATE, "start_date": start, "end_date": end}
    claim = ExtractedClaim(
        subject="Genoa", type="war crimes", status="true", dates=dates, description="Genoa burned it."
    )
    assert claims_of(tmp_path, row) == (ImportedClaim(claim=claim, quote="Genoa burned Acre"),)


def test_a_covariate_that_stands_alone_is_a_claim_of_its_passage(tmp_path: Path) -> None:
    other = {**COVARIATE, "id": "c2", "subject_id": "Venice", "source_text": None}
    listed = claims_of(tmp_path, COVARIATE, other)
    alone = write(tmp_path, TEXT, COVARIATE, other)
    graph = read_graph([alone])
    assert graph.extractions == read_recordings(alone)
    assert [each.claim.subject for each in graph.extractions["p1"].claims] == ["Genoa", "Venice"]
    assert graph.extractions["p1"].claims == listed
    for broken, message in (
        ({**COVARIATE, "status": "maybe"}, "line 2: `status` should be '', 'true', 'false' or 'suspected'"),
        ({**COVARIATE, "text_unit_id": None}, "line 2: `text_unit_id` should be a text that is not empty"),
        ({**COVARIATE, "text_unit_id": "p2"}, "line 2: there are records of 'p2', but not its text"),
    ):
        with pytest.raises(InvalidInput, match=message):
            read_graph([write(tmp_path, TEXT, broken)])


def test_lines_of_claims_add_up_and_the_same_claim_is_one(tmp_path: Path) -> None:
    venice = {"subject": "Venice", "description": "It mourned."}
    one, other = {"id": "p1", "claims": [CLAIM, venice, CLAIM]}, {"id": "p1", "claims": [CLAIM]}
    for lines in ((other, {"id": "p1", "claims": [venice]}), (one,), (one, other)):
        file = write(tmp_path, TEXT, *lines)
        assert read_graph([file]).extractions == read_recordings(file)
        assert [each.claim.subject for each in read_graph([file]).extractions["p1"].claims] == ["Genoa", "Venice"]


def test_claims_may_stand_in_a_line_of_their_own(tmp_path: Path) -> None:
    record, claims = {"id": "p1", "entities": ["Genoa"]}, {"id": "p1", "claims": [CLAIM]}
    whole = ImportedExtraction(
        document="p1", entities=(ExtractedEntity(name="Genoa", type="Other"),), claims=(ImportedClaim(claim=FOUND),)
    )
    for lines in ((claims, record), (record, claims), ({**record, **claims},)):
        file = write(tmp_path, TEXT, *lines)
        assert read_graph([file]).extractions == read_recordings(file) == {"p1": whole}
    assert read_graph([write(tmp_path, TEXT, claims)]).extractions["p1"].claims == whole.claims
    for read in (read_recordings, lambda file: read_graph([file])):
        with pytest.raises(InvalidInput, match="line 3: 'p1' is recorded a second time"):
            read(write(tmp_path, TEXT, record, {**record, **claims}))
    with pytest.raises(InvalidInput, match="line 1: there are records of 'p1', but not its text"):
        read_graph([write(tmp_path, claims)])


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        ({"description": "Nobody did."}, "`subject` of item 1 of `claims` is missing"),
        ({**CLAIM, "subject": 7}, "`subject` of item 1 of `claims` should be a valid string"),
        ({**CLAIM, "status": "maybe"}, "`status` of item 1 of `claims` should be '', 'true', 'false' or 'suspected'"),
        ({**CLAIM, "status": 1}, "`status` of item 1 of `claims` should be '', 'true', 'false' or 'suspected'"),
        ({**CLAIM, "dates": True}, "`dates` of item 1 of `claims` should be a valid string"),
        ({**CLAIM, "dates": 1946.5}, "`dates` of item 1 of `claims` should be a valid string"),
        ({**CLAIM, "dates": float("nan")}, "`dates` of item 1 of `claims` should be a valid string"),
        ({**CLAIM, "object": 7}, "`object` of item 1 of `claims` should be a valid string"),
        ("Genoa", "item 1 of `claims` should be a valid dictionary"),
    ],
)
def test_what_cannot_be_meant_is_named(tmp_path: Path, claim: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=f"line 1: {message}"):
        claims_of(tmp_path, claim)


@pytest.mark.parametrize(("status", "read"), [(True, "true"), (False, "false"), (" TRUE ", "true"), ("NONE", "")])
def test_a_status_may_be_a_boolean(tmp_path: Path, status: object, read: str) -> None:
    assert [each.claim.status for each in claims_of(tmp_path, {**CLAIM, "status": status})] == [read]


@pytest.mark.parametrize(
    ("dates", "read"),
    [
        ({"dates": 1946}, "1946"),
        ({"dates": 1946.0}, "1946"),
        ({"dates": "", "start_date": 1946, "end_date": 1947}, "1946 to 1947"),
    ],
)
def test_a_year_may_be_a_number(tmp_path: Path, dates: dict[str, object], read: str) -> None:
    assert [each.claim.dates for each in claims_of(tmp_path, {**CLAIM, **dates})] == [read]


def test_a_claim_that_says_nothing_is_left_out_and_told(tmp_path: Path) -> None:
    broken = {"subject_id": "and then he said", "object_id": None, "type": None, "description": None, "status": None}
    file = write(tmp_path, {**TEXT, "claims": [broken, CLAIM]})
    graph = read_graph([file])
    assert graph.extractions["p1"].claims == (ImportedClaim(claim=FOUND),)
    assert graph.omissions == (f'{file}, line 1: a claim about "and then he said" has no description and no type',)


@pytest.mark.parametrize("subject", ["NONE", "null", "-", None, " ", "..."])
def test_a_claim_that_names_nobody_is_left_out_and_told(tmp_path: Path, subject: str | None) -> None:
    row = {"id": "c1", "text_unit_id": "p1", "subject_id": subject, "type": "WAR CRIMES"}
    file = write(tmp_path, {**TEXT, "claims": [{**CLAIM, "subject": subject}, CLAIM]}, row)
    graph = read_graph([file])
    assert graph.extractions["p1"].claims == (ImportedClaim(claim=FOUND),)
    assert graph.omissions == (
        f'{file}, line 1: the claim "Genoa burned it." has no subject',
        f'{file}, line 2: the claim "WAR CRIMES" has no subject',
    )


def test_names_all_in_capitals_become_what_the_text_writes(tmp_path: Path) -> None:
    claim = {**CLAIM, "subject": "GENOA", "object": "TYRE"}
    (recorded,) = read_graph([write(tmp_path, {**TEXT, "entities": ["ACRE"], "claims": [claim]})]).extractions.values()
    assert [(each.claim.subject, each.claim.object) for each in recorded.claims] == [("Genoa", "Tyre")]


async def extract(claims: tuple[ImportedClaim, ...], *texts: str) -> list[Extraction]:
    """Return what the chunks of a document get of its claims."""
    extractor = ImportedExtractor({"p1": ImportedExtraction(document="p1", claims=claims)})
    inputs = [ChunkInput(text=text, documents=("p1",)) for text in texts]
    return [each.extraction async for each in extractor.extract(inputs) if each.extraction is not None]


async def test_a_claim_goes_once_where_it_was_read_else_where_its_names_stand(tmp_path: Path) -> None:
    texts = ("Genoa and Acre.", "In 1258 GENOA  burned\nit.", "Venice.")
    claims = (
        ImportedClaim(claim=FOUND, quote="genoa burned it"),
        ImportedClaim(claim=FOUND, quote="words that stand nowhere"),
        ImportedClaim(claim=ExtractedClaim(subject="Venice", description="It mourned.")),
        ImportedClaim(claim=ExtractedClaim(subject="Tyre", description="It fell.")),
    )
    found = await extract(claims, *texts)
    assert [[each.subject for each in extraction.claims] for extraction in found] == [
        ["Genoa", "Tyre"],
        ["Genoa"],
        ["Venice"],
    ]
