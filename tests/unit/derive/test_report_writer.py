"""Tests of the report writer: requests, replies of a model, and extractive reports."""

import json
from dataclasses import replace

import pytest

from quipu.derive.generation import ModelCalls
from quipu.derive.report_inputs import ReportInputs, ReportNotes
from quipu.derive.report_writer import (
    EXTRACTIVE_REPORT,
    MAX_FINDINGS,
    MAX_OUTPUT_TOKENS,
    extract_report,
    rate_by_size,
    write_report,
)
from quipu.errors import OverBudget, Overloaded, QuipuError, Refused, TooLong
from quipu.model.chat import ChatRequest, Completion, FinishReason, ReplyLifetime, Role
from quipu.model.cluster import Cluster, ClusterReport, Finding, Hierarchy
from quipu.model.graph import Chunk
from quipu.prompts.report import SCHEMA
from tests.unit.derive.writer import Writer, completion, notes_of

_CHUNK = Chunk(
    id="c", document_id="d", title="", ordinal=0, text="Ada met Bo.", start=0, end=11, n_tokens=3, text_hash=""
)
MATERIAL = ReportInputs(
    cluster=Cluster(id="k", hierarchy=Hierarchy.COMMUNITIES, level=0, n_entities=2, inputs_hash="h"),
    notes=ReportNotes(reports=(), subjects=("Ada (Person)", "Bo (Person)"), connections=("Ada | Bo: They met.",)),
    names=("Ada", "Bo"),
    pairs=(("Ada", "Bo"),),
    chunks=(_CHUNK,),
    documents=("a", "d"),
    revision=7,
)
_WHOLE = {
    "title": "Ada and Bo",
    "summary": "They met.",
    "rating": 7.25,
    "findings": [{"summary": "It was late.", "explanation": "In 1271."}],
}


async def _write(*replies: Completion | QuipuError) -> tuple[ClusterReport, Writer]:
    said = iter(replies)
    writer = Writer(reply=lambda _: next(said))
    return await write_report(MATERIAL, ModelCalls(writer, 2).ask, ""), writer


def _says(**changes: object) -> Completion:
    return completion(json.dumps({**_WHOLE, **changes}, ensure_ascii=False))


async def test_a_report_says_what_the_model_says_and_rests_on_the_chunks() -> None:
    report, writer = await _write(_says())
    assert (report.title, report.summary, report.rating) == ("Ada and Bo", "They met.", 7.2)
    assert report.findings == (Finding(summary="It was late.", explanation="In 1271."),)
    assert (report.cluster, report.inputs_hash, report.chunks) == ("k", "h", ("c",))
    assert report.model == "tests/writer report/1"
    (request,) = writer.asked
    assert (request.role, request.schema, request.lifetime) == (Role.REPORT, SCHEMA, ReplyLifetime.ALL_DOCUMENTS)
    assert (request.documents, request.revision) == (("a", "d"), 7)
    assert notes_of(request) == ["Ada (Person)", "Bo (Person)", "Ada | Bo: They met."]


async def test_as_many_findings_are_read_as_the_prompt_asks_for() -> None:
    _, writer = await _write(completion('{"summary": "S"}'))
    words = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    assert f"at most {words[MAX_FINDINGS - 1]} for a large" in " ".join(writer.asked[0].messages[0].text.split())


@pytest.mark.parametrize(
    ("text", "findings"),
    [
        (
            'So:\n```json\n{"title": "T", "summary": "S", "findings": ["one", {"explanation": "two"}, 3, {}],}\n```',
            2,
        ),
        ("{'title': 'T', 'summary': 'S', 'rating': 'high', 'findings': null", 0),
        ('<think>{"a": 1}</think>{"summary": "S", "title": ["x"], "findings": {"a": 1}, "rating": NaN}', 0),
        (json.dumps({"summary": " S\n", "findings": [{"summary": f"{n}"} for n in range(99)]}), MAX_FINDINGS),
    ],
)
async def test_what_is_spoiled_is_repaired(text: str, findings: int) -> None:
    report, writer = await _write(completion(text))
    assert report.summary == "S"
    assert report.title in ("T", "Ada, Bo")
    assert len(report.findings) == findings
    assert report.rating == 1.6  # that of its size
    assert len(writer.asked) == 1


@pytest.mark.parametrize(
    ("rating", "kept"), [(-3, 0.0), (11, 10.0), ("8.5", 8.5), (True, 1.0), (None, 1.6), ("1e999", 10.0)]
)
async def test_a_rating_is_a_number_from_0_to_10(rating: object, kept: float) -> None:
    report, _ = await _write(_says(rating=rating))
    assert report.rating == kept


async def test_what_cannot_be_read_is_asked_for_once_more() -> None:
    report, writer = await _write(completion("I would rather not."), _says())
    assert report.summary == "They met."
    assert [request.attempt for request in writer.asked] == [0, 1]


@pytest.mark.parametrize("reply", ["No.", "", "[1, 2]", '{"title": "T"}', '{"summary": "  "}'])
async def test_an_invalid_reply_is_requested_once_more_and_then_refused(reply: str) -> None:
    writer = Writer(reply=lambda _: completion(reply))
    with pytest.raises(Refused, match="not a report"):
        await write_report(MATERIAL, ModelCalls(writer, 2).ask, "")
    assert len(writer.asked) == 2


@pytest.mark.parametrize("error", [Overloaded("Later."), OverBudget("Spent."), Refused("No."), TooLong("No.")])
async def test_an_error_of_the_model_is_raised(error: QuipuError) -> None:
    with pytest.raises(type(error)):
        await _write(error)


@pytest.mark.parametrize("text", ['{"title": "T", "summary": "Half of', "", "No."])
async def test_a_report_that_broke_off_may_come_whole_later(text: str) -> None:
    with pytest.raises(Overloaded):
        await _write(completion(text, FinishReason.INTERRUPTED))


async def test_a_report_whose_rest_is_withheld_is_refused_at_once() -> None:
    writer = Writer(reply=lambda _: completion('{"title": "T", "summary": "Half of', FinishReason.FILTERED))
    with pytest.raises(Refused, match="withheld"):
        await write_report(MATERIAL, ModelCalls(writer, 2).ask, "")
    assert len(writer.asked) == 1


async def test_a_reply_that_is_cut_short_gets_more_room_once() -> None:
    cut = completion('{"title": "T", "summary": "Half of', FinishReason.LENGTH)
    report, writer = await _write(cut, _says())
    assert report.summary == "They met."
    assert [request.max_output_tokens for request in writer.asked] == [
        MAX_OUTPUT_TOKENS,
        2 * MAX_OUTPUT_TOKENS,
    ]
    cut = completion('{"title": "T", "summary": "All of it.", "findings": [{"summary": "Half of', FinishReason.LENGTH)
    report, _ = await _write(cut, cut)
    assert (report.summary, report.findings) == ("All of it.", ())


async def test_the_language_is_passed_on_and_is_part_of_what_is_asked() -> None:
    asked: list[ChatRequest] = []
    for language in ("", "Русский"):
        writer = Writer(reply=lambda _: _says())
        await write_report(replace(MATERIAL), ModelCalls(writer, 1).ask, language)
        asked += writer.asked
    assert "Write in Русский" in asked[1].messages[0].text
    assert asked[0].hash("m") != asked[1].hash("m")


_NO_NOTES = ReportNotes(reports=(), subjects=(), connections=())


def _chunk(number: int, text: str) -> Chunk:
    return Chunk(
        id=f"c{number}",
        document_id="d",
        title="",
        ordinal=number,
        text=text,
        start=0,
        end=len(text),
        n_tokens=1,
        text_hash="",
    )


def _material(names: tuple[str, ...], pairs: tuple[tuple[str, str], ...], *texts: str, n: int = 3) -> ReportInputs:
    cluster = Cluster(id="k", hierarchy=Hierarchy.COMMUNITIES, level=0, n_entities=n, inputs_hash="h")
    chunks = tuple(_chunk(number, text) for number, text in enumerate(texts))
    return ReportInputs(cluster=cluster, notes=_NO_NOTES, names=names, pairs=pairs, chunks=chunks, documents=("d",))


def test_the_title_names_the_chief_entities_and_the_summary_quotes_the_most_telling_sentence_of_each_chunk() -> None:
    texts = (
        "It rained. Ada met Bo in Acre. Ada left.",
        "Bo slept. Cy woke. Cy hit Bo.",
        "Nobody came.",
        "Ada sang. She ate.",
    )
    report = extract_report(_material(("Ada", "Bo", "Cy", "Di"), (("Ada", "Bo"), ("Bo", "Cy")), *texts))
    assert report.title == "Ada, Bo, Cy"
    assert report.summary == "Ada met Bo in Acre. Cy hit Bo. Nobody came."
    assert report.findings == (Finding(summary="Ada sang."),)
    assert report.chunks == ("c0", "c1", "c2", "c3")
    assert (report.cluster, report.inputs_hash, report.model, report.rating) == ("k", "h", EXTRACTIVE_REPORT, 2.0)


@pytest.mark.parametrize(
    ("names", "text", "sentence"),
    [
        (("马可·波罗", "忽必烈"), "天气很好。马可·波罗见到了忽必烈。他走了。", "马可·波罗见到了忽必烈。"),
        (("Иван", "Марфа"), "Шёл дождь. Иван и Марфа ушли домой. Стало темно.", "Иван и Марфа ушли домой."),
    ],
)
def test_sentences_are_found_in_any_script(names: tuple[str, ...], text: str, sentence: str) -> None:
    report = extract_report(_material(names, ((names[0], names[1]),), text))
    assert (report.title, report.summary) == (", ".join(names), sentence)


@pytest.mark.parametrize(
    ("names", "text", "sentence"),
    [
        (("US", "IT"), "Customers must visit Austrian custom houses. The US left IT.", "The US left IT."),
        (("US", "IT"), "Let us see it. IT grew in the US.", "IT grew in the US."),
        (("Ann", "Ada"), "The announcer read Adagio to Joan. Ada's dog bit Ann.", "Ada's dog bit Ann."),
        (("paper", "St. Ives"), "Newspapers came to ives. They made paper at St Ives.", "They made paper at St Ives."),
        (("Ося", "Аня"), "Косяки у Вани. Ося и Аня.", "Ося и Аня."),
    ],
)
def test_a_name_within_other_words_names_nobody(names: tuple[str, str], text: str, sentence: str) -> None:
    assert extract_report(_material(names, (names,), text)).summary == sentence


def test_a_sentence_is_quoted_once_and_a_chunk_without_any_is_left_out() -> None:
    report = extract_report(_material(("Ada",), (), "Ada sang.", "Ada sang.", " "))
    assert (report.summary, report.findings) == ("Ada sang.", ())


def test_a_heading_is_quoted_only_where_there_is_nothing_else() -> None:
    assert extract_report(_material(("Ada",), (), "# Ada and Ada\n\nAda sang.")).summary == "Ada sang."
    assert extract_report(_material(("Ada",), (), "# Ada")).summary == "# Ada"


def test_there_is_a_title_even_where_there_is_nothing_to_say() -> None:
    report = extract_report(_material((), ()))
    assert (report.title, report.summary, report.chunks) == ("k", "", ())


def test_a_community_matters_by_its_size() -> None:
    assert [rate_by_size(n) for n in (1, 3, 10, 1_023, 10**6)] == [1.0, 2.0, 3.5, 10.0, 10.0]
