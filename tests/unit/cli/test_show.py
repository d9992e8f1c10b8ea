"""Tests of `quipu show`: claims of a chunk and about an entity, and reports."""

import re
from dataclasses import replace

import pytest

from quipu.model.cluster import Hierarchy
from quipu.model.evidence import DroppedHits, SupportingHit
from tests.unit.cli.conftest import FOUND_REPORT, Cli, FakeEngine

_CLAIM = {
    "subject": "alice kober",
    "object": "brooklyn college",
    "type": "praise",
    "status": "suspected",
    "dates": "1946",
    "description": "It is said that she praised it.\x1b[31m [bold]",
}
_SEEN = _CLAIM | {
    "id": "c0ffee:0",
    "chunk_id": "c0ffee",
    "subject_name": "Alice Kober",
    "object_name": "Brooklyn College",
}


def test_a_chunk_is_shown_with_its_claims(cli: Cli) -> None:
    out = cli("show", "chunk", "c0ffee").out
    assert re.search(r"Claims *\n *subject +object +type +status +dates +description", out)
    assert re.search(r"alice kober +brooklyn college +praise +suspected +1946 +It is said", out)
    assert "\x1b" not in out
    assert cli("show", "chunk", "c0ffee", "--json").json["claims"] == [_CLAIM]


def test_an_entity_is_shown_with_the_claims_about_it_and_where_they_are(cli: Cli) -> None:
    out = cli("show", "entity", "Alice Kober").out
    assert re.search(r"c0ffee +brooklyn college +praise +suspected +1946 +It is said", out)
    assert cli("show", "entity", "Alice Kober", "--json").json["claims"] == [_SEEN]


@pytest.mark.parametrize("what", [("entity", "Alice Kober"), ("relation", "Alice Kober", "Brooklyn College")])
def test_what_documents_say_differently_is_shown_with_since_and_until_when_it_holds(
    cli: Cli, what: tuple[str, ...]
) -> None:
    out = cli("show", *what).out
    newer, older = (re.search(pattern, out) for pattern in (r"1946-01-01 +1950 +1946\.md", r"1940-01-01 +1940\.md"))
    assert newer and older and newer.start() < older.start()
    assert "\x1b" not in out
    shown = cli("show", *what, "--json").json
    (group,) = shown["differing"] if what[0] == "entity" else (shown["statements"],)
    assert [(statement["document_id"], statement["differs_in"]) for statement in group] == [
        ("1946.md", ["number"]),
        ("1940.md", ["number"]),
    ]


def test_a_report_is_shown_with_its_place_text_entities_passages_and_what_is_around_it(
    cli: Cli, engine: FakeEngine
) -> None:
    out = cli("show", "report", "bee").out
    assert engine.calls == [("report", "bee")]
    assert out.startswith(
        "Kober and Linear B\N{REPLACEMENT CHARACTER}[31m\ncommunity beefed, level 1 (0 is the coarsest),"
    )
    assert "coarsest), 1 entity, rated 3.5 of 10, written by" in out
    assert "written by openai/small\n\nShe worked [bold] on it.\n\n• Her cards.\nShe kept 180,000 of them.\n\n" in out
    assert re.search(r"Key entities *\n.*\n.*\nAlice Kober +Person +1", out)
    assert re.search(r"kober\.md +c0ffee +Alice Kober taught", out)
    assert re.search(r"Part of *\n.*\n.*\nabba +Scripts", out)
    assert re.search(r"Divided into *\n.*\n.*\nbeef01 +\(no report yet\)", out)
    assert re.search(r"beef02 +Knossos +Both tell of tablets\.", out)
    assert "\x1b" not in out
    assert "quipu refresh" not in out
    shown = cli("show", "report", "bee", "--json").json
    assert (shown["cluster"]["id"], shown["report"]["title"]) == ("beefed", "Kober and Linear B\x1b[31m")


def test_a_group_nothing_is_written_of_says_what_writes_it(cli: Cli, engine: FakeEngine) -> None:
    engine.found_report = replace(engine.found_report, report=None, is_current=False, chunks=())
    out = cli("--index", "kb", "show", "report", "beefed").out
    assert out.startswith("beefed\n")
    assert "There is no current report: `quipu --index kb refresh reports` writes a new one." in out
    aggregate = replace(engine.found_report.cluster, hierarchy=Hierarchy.AGGREGATES)
    engine.found_report = replace(FOUND_REPORT, cluster=aggregate, is_current=False)
    out = cli("show", "report", "beefed").out
    assert "aggregate beefed, layer 1 (1 lies above the entities)" in out
    assert "This report describes earlier contents: `quipu refresh hierarchy` writes a new one." in out


@pytest.mark.parametrize("kind", ["document", "chunk", "entity", "relation", "report"])
def test_what_can_be_shown_has_an_example(cli: Cli, kind: str) -> None:
    assert f"  quipu show {kind} " in cli("show", kind, "--help").out.split("Examples:")[1]


def test_an_explanation_names_reports_by_the_id_that_shows_them(cli: Cli, engine: FakeEngine) -> None:
    ground = SupportingHit(
        kind="report", id="beefed", name="Kober", rank=1, score=0.5, reason="", connection="rests on 1 passage"
    )
    engine.explanation = replace(engine.explanation, ranks_passages=False, chunks=(), other_evidence=(ground,))
    assert "#1 Kober [beefed], rests on 1 passage" in cli("explain", "Who?").out


def test_an_explanation_says_that_the_budgets_leave_a_passage_out(cli: Cli, engine: FakeEngine) -> None:
    assert "token budgets have no room" not in cli("explain", "Who?").out
    hits = DroppedHits(section="chunks", budget=10, ids=(engine.explanation.chunks[0].id,))
    engine.explanation = replace(engine.explanation, dropped=(hits,))
    assert "token budgets have no room" in cli("explain", "Who?").out
