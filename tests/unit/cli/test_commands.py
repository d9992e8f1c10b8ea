"""Each command: what it asks of the engine and what it prints."""

import io
import json
import re
import sys
from pathlib import Path

import pytest

from quipu.cli.asking import parse_condition
from quipu.cli.commands.add import parse_metadata
from quipu.errors import Unavailable
from quipu.model.chunking import Chunking
from quipu.model.derivation import RepairResult
from quipu.model.document import Document, DocumentListing, DocumentOrder, DocumentStatus, SourceDocument
from quipu.model.query import Condition, Filter, Turn
from quipu.model.results import UNREAD, AddResult, SearchResult
from quipu.retrieve.community_global import CommunityGlobalOptions
from quipu.retrieve.drift import DriftOptions
from tests.unit.cli.conftest import DOCUMENTS, Cli, FakeEngine

SCAN_METADATA = {"unread_pages": "2-3", "unread_reason": "They are not legible. Scan again.", "unsure_pages": "5"}

# ---- add


def test_add_hands_over_paths_with_typed_metadata(cli: Cli, engine: FakeEngine, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("A")
    ran = cli("add", "a.md", "--meta", "year=1907", "--meta", "draft=false", "--meta", "date=1907-05-01")
    assert ran.code == 0
    (call,) = engine.calls
    assert call == ("add", (Path("a.md"),), None, {"year": 1907, "draft": False, "date": "1907-05-01"})


def test_one_file_takes_the_id_and_title_given_for_it(cli: Cli, engine: FakeEngine, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("A")
    assert cli("add", "a.md", "--id", "first", "--title", "The first").code == 0
    (source,) = engine.calls[0][1]
    assert (source.id, source.title, source.content, source.media_type) == ("first", "The first", b"A", "text/markdown")


def test_add_says_what_was_read_by_what_and_what_was_reused(cli: Cli, engine: FakeEngine) -> None:
    out = cli("add", "--text", "Hello").out
    assert "2 documents added, 0 updated, 0 unchanged." in out
    assert "4 chunks in 2.0 s (2/s): 3 read, 1 cached" in out
    assert "Read by: local rules." in out


def test_add_lists_failures_with_reasons_and_ends_with_1(cli: Cli, engine: FakeEngine) -> None:
    bad = Document(id="b.bin", title="", status=DocumentStatus.FAILED, error="It is not text. Leave it out.")
    engine.added = AddResult(n_added=1, failed=(bad,), skipped=((UNREAD, "", 1), (UNREAD, ".png", 3)))
    ran = cli("add", "--text", "Hello", "--quiet")
    assert ran.code == 1
    assert "Failed: b.bin: It is not text. Leave it out." in ran.out
    assert "Skipped 4 files: 4 in a format that is not read (without suffix 1, .png 3)." in ran.out
    assert "Fix these documents and add them again" in ran.out


def test_quiet_add_says_what_was_skipped_and_nothing_else(cli: Cli, engine: FakeEngine) -> None:
    engine.added = AddResult(n_added=1, skipped=(("empty", "", 2), (UNREAD, ".png", 3)))
    ran = cli("add", "--text", "Hello", "-q")
    assert ran.code == 0
    assert ran.out == "Skipped 5 files: 2 empty, 3 in a format that is not read (.png 3).\n"


def test_add_says_which_encodings_it_assumed_and_where_it_is_unsure(cli: Cli, engine: FakeEngine) -> None:
    engine.added = AddResult(assumed_encodings=(("a.txt", "koi8-r"), ("b.txt", "koi8-r (unsure)"), ("c.txt", "big5")))
    out = cli("add", "--text", "Hello").out
    assert "Not UTF-8; encoding assumed: big5 1, koi8-r 2." in out
    assert "Unsure of the encoding of b.txt (koi8-r); `quipu add FILE --meta encoding=NAME` names another." in out


def test_add_names_the_scanned_pages_that_were_not_read(cli: Cli, engine: FakeEngine) -> None:
    scans = [Document(id=f"{n}.pdf", title="", status=DocumentStatus.READY, metadata=SCAN_METADATA) for n in range(7)]
    engine.added = AddResult(warnings=tuple((scan.id, scan.warning) for scan in scans))
    out = " ".join(cli("add", "--text", "Hello").out.split())
    assert "4.pdf: Scanned pages that are not in the text: 2-3. They are not legible. Scan again." in out
    assert "Scanned pages that may be misread: 5." in out
    assert "Scanned pages of 2 more documents are missing or unsure: `quipu docs`." in out
    assert "5.pdf" not in out


def test_documents_that_failed_for_one_reason_are_listed_together(cli: Cli, engine: FakeEngine) -> None:
    failed = [
        Document(id=f"{n}.pdf", title="", status=DocumentStatus.FAILED, error=f"{n}.pdf is encrypted. Decrypt it.")
        for n in range(7)
    ]
    engine.added = AddResult(failed=tuple(failed))
    out = " ".join(cli("add", "--text", "Hello").out.split())
    assert "Failed, 7 documents (0.pdf, 1.pdf, 2.pdf, 3.pdf, 4.pdf and 2 more): … is encrypted. Decrypt it." in out


def test_a_resume_says_how_many_vectors_it_computed(cli: Cli, engine: FakeEngine) -> None:
    engine.added = AddResult(n_embedded=3)
    assert "3 texts embedded." in cli("resume").out


def test_an_option_without_its_argument_points_to_the_help_page(cli: Cli) -> None:
    ran = cli("ask", "Who?", "--doc")
    assert (ran.code, "`quipu ask --help` shows how it is used." in ran.err) == (2, True)


def test_quiet_add_prints_nothing(cli: Cli) -> None:
    assert cli("add", "--text", "Hello", "-q").out == ""


def test_add_reads_standard_input(cli: Cli, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\ufeffПривет".encode())))
    assert cli("add", "-", "--id", "greeting", "--title", "A greeting").code == 0
    (call,) = engine.calls
    greeting = SourceDocument(
        id="greeting", content="Привет".encode(), title="A greeting", media_type="text/markdown", metadata={}
    )
    assert call == ("add", (greeting,), None, {})


@pytest.mark.parametrize(
    ("words", "chunking"),
    [
        ("", None),
        ("--chunker fixed --chunk-tokens 512 --chunk-overlap 64", Chunking(method="fixed", max_tokens=512, overlap=64)),
        (r"--chunker separator --chunk-separator \n-\\n\t", Chunking(method="separator", separator="\n-\\n\t")),
        ("--chunker semantic --chunk-percentile 90", Chunking(method="semantic", percentile=90)),
        ("--chunk-overlap 7", Chunking(method="fixed", max_tokens=100, overlap=7)),
        ("--chunker structure", Chunking()),
    ],
)
def test_add_says_how_to_cut_over_the_settings(
    cli: Cli, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch, words: str, chunking: Chunking | None
) -> None:
    monkeypatch.setenv("QUIPU_CHUNKER", "fixed")
    monkeypatch.setenv("QUIPU_CHUNK_TOKENS", "100")
    assert cli("add", "--text", "Hello", *words.split()).code == 0
    assert engine.chunkings == [chunking]


def test_a_way_to_cut_that_cannot_be_meant_is_refused(cli: Cli, engine: FakeEngine) -> None:
    ran = cli("add", "--text", "Hello", "--chunker", "fixed", "--chunk-tokens", "64", "--chunk-overlap", "64")
    assert ran.code == 2
    assert "An overlap of 64 tokens is too large for chunks of 64 tokens." in ran.err
    assert not engine.calls


def test_standard_input_that_is_not_utf8_is_refused_with_a_remedy(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("Привет".encode("cp1251"))))
    ran = cli("add", "-")
    assert ran.code == 1
    assert "not UTF-8 text (byte 0)" in ran.err and "iconv" in ran.err


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ((), "Name what to add"),
        (("none.md",), "There is no file or folder 'none.md'"),
        (("-", "a.md"), "cannot be combined with other paths"),
        (("--text", " "), "The text is empty"),
        (("a.md", "--root", "none"), "'none' does not exist"),
        (("a.md", "--text", "x"), "Name what to add"),
        ((".", "--id", "x"), "are for one document"),
        (("--text", "x", "--meta", "novalue"), "not key=value"),
    ],
)
def test_add_refuses_what_cannot_be_meant(
    cli: Cli, engine: FakeEngine, tmp_path: Path, words: tuple[str, ...], complaint: str
) -> None:
    (tmp_path / "a.md").write_text("A")
    ran = cli("add", *words)
    assert ran.code == 2
    assert complaint in ran.err
    assert not engine.calls


# ---- ask


def test_an_answer_shows_numbered_citations_with_place(cli: Cli) -> None:
    out = cli("ask", "Where did Alice Kober teach?").out
    assert "Alice Kober taught classics at Brooklyn College. [1]" in out
    assert "[1] Alice Kober — kober.md, chars 0-48 in Life" in out
    assert "weave · extractive · 2 ms" in out


def test_several_strategies_are_asked_in_order_and_shown_together(cli: Cli, engine: FakeEngine) -> None:
    out = cli("ask", "Who?", "-s", "naive", "-s", "local", "-s", "naive").out
    assert [query.strategy for query in engine.queries] == ["naive", "local"]
    assert "naive · extractive" in out and "local · extractive" in out


def test_an_unknown_strategy_is_refused_before_any_is_asked(cli: Cli, engine: FakeEngine) -> None:
    ran = cli("ask", "Who?", "-s", "naive", "-s", "mixx")
    assert ran.code == 2
    assert "There is no strategy 'mixx'." in ran.err
    assert not engine.queries


def test_every_option_reaches_the_query(cli: Cli, engine: FakeEngine, tmp_path: Path) -> None:
    (tmp_path / "turns.json").write_text('[{"role": "user", "content": "Hi"}, {"role": "assistant", "text": "Hello"}]')
    options = "--top-k 3 --chunk-top-k 4 --min-similarity 0.5 --related-chunks 6 --entity-tokens 7 --relation-tokens 8"
    more = "--total-tokens 900 --keyword Kober --theme teaching --doc a* --exclude ab* --after 1900 --before 1950"
    where = ("--where", "region=Asia", "--where", "year >= 1500")
    told = ("--response-type", "One line", "--user-prompt", "Be brief", "--history", "turns.json")
    on_reports = "--community-level 1 --dynamic-selection --drift-follow-ups 5 --report-tokens 9"
    assert cli("ask", "Who?", *options.split(), *more.split(), *on_reports.split(), *where, *told).code == 0
    (query,) = engine.queries
    assert (query.top_k, query.chunk_top_k, query.min_similarity, query.related_chunks) == (3, 4, 0.5, 6)
    assert (query.budget.entities, query.budget.relations, query.budget.total) == (7, 8, 900)
    assert query.community_level == 1
    assert query.options_of(CommunityGlobalOptions).dynamic_selection
    assert query.options_of(DriftOptions).drift_follow_ups == 5
    assert query.budget.reports == 9
    assert (query.low_level_keywords, query.high_level_keywords) == (("Kober",), ("teaching",))
    assert (query.filter.documents, query.filter.exclude) == (("a*",), ("ab*",))
    assert (query.filter.after, query.filter.before) == ("1900", "1950")
    assert query.filter.where == (
        Condition(field="region", operator="=", value="Asia"),
        Condition(field="year", operator=">=", value="1500"),
    )
    assert (query.response_type, query.user_prompt) == ("One line", "Be brief")
    assert query.history == (Turn(role="user", text="Hi"), Turn(role="assistant", text="Hello"))


def test_an_option_out_of_range_names_the_range(cli: Cli, engine: FakeEngine) -> None:
    ran = cli("ask", "Who?", "--top-k", "0")
    assert ran.code == 2
    assert ran.err == "Error: top_k = '0' (argument) is not allowed.\nUse a whole number from 1 to 1,000.\n"


def test_the_context_and_the_prompt_are_printed_as_they_are(cli: Cli) -> None:
    assert cli("ask", "Who?", "--context").out == "CONTEXT\n"
    assert cli("ask", "Who?", "--prompt").out == "PROMPT\n"


def test_json_answers_hold_context_and_prompt_only_where_asked_for(cli: Cli) -> None:
    assert cli("ask", "Who?", "--json").json["answers"][0]["context"] == ""
    assert cli("ask", "Who?", "--json", "--context").json["answers"][0]["context"] == "CONTEXT"


def test_json_answers_carry_citations_and_trace_for_each_strategy(cli: Cli) -> None:
    asked = cli("ask", "Who?", "--json", "-s", "naive", "-s", "mix").json
    assert [answer["trace"]["strategy"] for answer in asked["answers"]] == ["naive", "mix"]
    assert asked["answers"][0]["citations"][0]["document_id"] == "kober.md"
    assert [hit["id"] for hit in asked["answers"][0]["trace"]["evidence"]["claims"]] == ["c0ffee:0"]


def test_the_trace_shows_seeds_scores_reasons_and_what_was_dropped(cli: Cli) -> None:
    out = cli("ask", "Who?", "--trace").out
    for part in ("alice kober 1.000", "0.5000", "names Alice Kober", "dropped 2 chunks over the budget of 10 tokens"):
        assert part in out
    assert "note: a note" in out and "stale: not computed yet: 2 vectors" in out and "retrieve 1.5 ms" in out
    assert re.search(r"1 +c0ffee:0 +0\.4000 +is about alice kober", out)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("{", "cannot be read"),
        ("[" * 100_000, "cannot be read"),
        (f"[{'9' * 5_000}]", "cannot be read"),
        ("[" + " " * 1_000_000, "holds more than 1,000,000 bytes"),
        ("{}", "not a list"),
        ('[{"role": "system", "text": "x"}]', "Turn 1"),
        ("[3]", "Turn 1"),
    ],
)
def test_a_history_that_cannot_be_used_is_refused(cli: Cli, tmp_path: Path, content: str, complaint: str) -> None:
    (tmp_path / "turns.json").write_text(content)
    ran = cli("ask", "Who?", "--history", "turns.json")
    assert ran.code == 2
    assert complaint in ran.err


@pytest.mark.parametrize(
    ("content", "complaint"),
    [(b"x" * 1_000_001, "holds more than 1,000,000 bytes"), (b"\xff", "not UTF-8 text"), (None, "No such file")],
)
def test_a_prompt_from_a_file_that_cannot_be_used_is_refused(
    cli: Cli, tmp_path: Path, content: bytes | None, complaint: str
) -> None:
    if content is not None:
        (tmp_path / "style.txt").write_bytes(content)
    ran = cli("ask", "Who?", "--system-prompt", "@style.txt")
    assert ran.code == 2
    assert complaint in ran.err


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("region=Asia", Condition(field="region", operator="=", value="Asia")),
        ("year >= 1500", Condition(field="year", operator=">=", value="1500")),
        ("year<1500", Condition(field="year", operator="<", value="1500")),
        ("topic != war", Condition(field="topic", operator="!=", value="war")),
        ("topic ~ silk road", Condition(field="topic", operator="contains", value="silk road")),
        ("language in en,ru", Condition(field="language", operator="in", value="en,ru")),
        ("date exists", Condition(field="date", operator="exists", value="")),
        ("inland=in land", Condition(field="inland", operator="=", value="in land")),
    ],
)
def test_conditions_are_read_as_people_write_them(text: str, condition: Condition) -> None:
    assert parse_condition(text) == condition


@pytest.mark.parametrize("text", ["region", "=Asia", "region=", "region in", "", "a b c", "year>>3"])
def test_what_is_not_a_condition_is_refused_with_the_comparisons(cli: Cli, text: str) -> None:
    ran = cli("ask", "Who?", "--where", text)
    assert ran.code == 2
    assert "is not a condition" in ran.err


def test_metadata_takes_the_type_it_is_written_in() -> None:
    pairs = ("a=1", "b=-2.5", "c=True", "d=007", "e=nan", "f=x=y", "g=", "h=1907-01-02")
    assert parse_metadata(pairs) == {
        "a": 1,
        "b": -2.5,
        "c": True,
        "d": "007",
        "e": "nan",
        "f": "x=y",
        "g": "",
        "h": "1907-01-02",
    }


# ---- the others


def test_docs_lists_only_the_status_asked_for(cli: Cli) -> None:
    listed = cli("docs", "--status", "failed", "--json").json
    assert [document["id"] for document in listed] == ["letters/b.md"]


def test_docs_passes_prefix_condition_order_and_place(cli: Cli, engine: FakeEngine) -> None:
    words = ("--prefix", "letters/", "--where", "year >= 1940", "--order", "title", "-k", "1", "--after", '["A","a"]')
    out = cli("docs", *words).out
    [(_, listing, allowed)] = engine.calls
    assert listing == DocumentListing(prefix="letters/", order=DocumentOrder.TITLE, k=1, after='["A","a"]')
    assert allowed == Filter(where=(Condition(field="year", operator=">=", value="1940"),))
    assert f"--after '{listing.cursor(DOCUMENTS[0])}' continues." in out
    assert "continues" not in cli("docs").out


def test_docs_names_the_scanned_pages_that_were_not_read(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    scan = Document(id="a.pdf", title="", status=DocumentStatus.READY, metadata=SCAN_METADATA)
    monkeypatch.setattr("tests.unit.cli.conftest.DOCUMENTS", (scan,))
    out = " ".join(cli("docs").out.split())
    assert "a.pdf: Scanned pages that are not in the text: 2-3. They are not legible. Scan again." in out


def test_docs_says_why_a_document_failed(cli: Cli) -> None:
    assert "letters/b.md: It is empty. Leave it out." in cli("docs").out


def test_search_passes_the_number_of_results(cli: Cli, engine: FakeEngine) -> None:
    cli("search", "长城", "-k", "3")
    assert engine.calls == [("search", "长城", 3)]


def test_verify_ends_with_1_where_something_differs(cli: Cli, engine: FakeEngine) -> None:
    engine.differences = ["entity x has 2 mentions, the facts say 3"]
    ran = cli("verify")
    assert ran.code == 1
    assert "the facts say 3" in ran.out


def test_a_repair_says_what_it_did_and_what_to_do_about_damaged_facts(cli: Cli, engine: FakeEngine) -> None:
    ran = cli("verify", "--repair")
    assert (ran.code, ran.out) == (0, "Sound: everything derived was built again (2 differences repaired).\n")
    engine.repairs = RepairResult(faults=("chunk at rid 1: it differs (document 'a.md')",), losses=("entity 'x'",))
    ran = cli("verify", "--repair", "--accept-losses")
    out = " ".join(ran.out.split())
    assert ran.code == 1
    assert "(document 'a.md') entity 'x' 1 damaged fact and 1 sign that facts are missing" in out
    assert "nothing was changed. Remove the documents that are named (`quipu remove`), add them again" in out
    engine.repairs = RepairResult(left=("vector x: missing",), stopped="the budget is spent")
    assert cli("verify", "--repair").out == "vector x: missing\n1 difference left: the budget is spent.\n"
    assert engine.calls == [("repair", False), ("repair", True), ("repair", False)]
    assert "--accept-losses needs --repair" in cli("verify", "--accept-losses").err


def test_dump_prints_the_lines_as_they_are(cli: Cli) -> None:
    assert cli("dump").out == '{"a": 1}\n{"b": 2}\n'


def test_remove_takes_a_plain_id_at_its_word(cli: Cli, engine: FakeEngine) -> None:
    cli("remove", "kober.md")
    assert engine.calls == [("remove", ["kober.md"])]


def test_remove_by_pattern_needs_a_yes(cli: Cli, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    ran = cli("remove", "letters/*")
    assert ran.code == 2
    assert "This removes 2 documents: add --yes." in ran.err
    cli("remove", "letters/*", "--yes")
    assert engine.calls == [("remove", ["letters/a.md", "letters/b.md"])]


def test_a_dry_run_tells_what_would_go_and_asks_nothing(cli: Cli, engine: FakeEngine) -> None:
    out = cli("remove", "letters/*", "--dry-run").out
    assert engine.calls == [("preview_removal", ["letters/a.md", "letters/b.md"], 10)]
    assert "This would remove 2 documents, 4 chunks." in out
    assert "2 entities and 1 relation would go with them" in out
    assert "  Alice Kober\n  … and 1 more\n" in out
    assert "1 report would be written again.\n  Scripts\n" in out
    assert "3 saved replies of models would go." in out
    assert "The text of 2 answers in saved conversations would go." in out


@pytest.mark.parametrize("prefix", ["quipu", "/api", "/a b", "//host"])
def test_a_server_is_not_started_below_a_sub_path_that_is_none(cli: Cli, prefix: str) -> None:
    ran = cli("serve", "--prefix", prefix)
    assert ran.code == 2
    assert "is no sub-path" in ran.err


def test_a_pattern_that_matches_nothing_is_told_with_the_nearest_ids(cli: Cli, engine: FakeEngine) -> None:
    ran = cli("remove", "kober.md", "leters/*", "--yes")
    assert ran.code != 0
    assert "No document matches 'leters/*'." in ran.err
    assert "Did you mean letters/a.md, letters/b.md?" in " ".join(ran.err.split())
    assert engine.calls == []
    assert "`quipu docs` lists documents" in " ".join(cli("remove", "[xyz]?", "--yes").err.split())


@pytest.mark.parametrize("words", [("remove",), ("remove", "a", "--all"), ("cancel",), ("cancel", "a", "--all")])
def test_names_or_all_but_not_both(cli: Cli, words: tuple[str, ...]) -> None:
    ran = cli(*words)
    assert ran.code == 2
    assert "Name documents, or use --all." in ran.err


def test_cancel_all_leaves_live_documents_alone(cli: Cli, engine: FakeEngine) -> None:
    cli("cancel", "--all")
    assert engine.calls == [("cancel", ["letters/b.md"])]


def test_nothing_waiting_is_said_in_words(cli: Cli, engine: FakeEngine) -> None:
    engine.added = AddResult()
    assert cli("resume").out == "The queue was empty.\n"
    engine.added = AddResult(n_removed=72)
    assert cli("resume").out.startswith("72 removals finished.\n")


@pytest.mark.parametrize("date", ["1500-13", "2026-02-31", "2025-02-29", "2026-02-30T10:00"])
def test_what_is_not_a_date_is_refused(cli: Cli, engine: FakeEngine, date: str) -> None:
    ran = cli("ask", "Who?", "--after", date)
    assert ran.code == 2
    assert f"'{date}' is not a date" in ran.err


def test_retry_queues_again_and_works(cli: Cli, engine: FakeEngine) -> None:
    cli("retry", "kober.md")
    assert engine.calls == [("retry", ["kober.md"]), ("resume",)]


def test_config_shows_where_each_value_came_from(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "quipu.toml").write_text("top_k = 5\n")
    shown = cli("--index", "kb", "config", "--json", env={"QUIPU_STRATEGY": "naive"}).json
    rows = {row["name"]: row for row in shown["settings"]}
    assert rows["index"]["origin"] == "argument --index"
    assert rows["strategy"]["origin"] == "environment QUIPU_STRATEGY"
    assert rows["top_k"]["origin"] == "quipu.toml:1"
    assert rows["chunk_tokens"]["value"] == "auto"
    assert shown["models"] == []


def test_config_prints_the_default_text_of_a_prompt_so_that_it_can_be_changed(cli: Cli, tmp_path: Path) -> None:
    ran = cli("config", "--prompt", "rewrite")
    assert ran.code == 0
    assert "{format}" in ran.out and "stands alone" in ran.out
    assert cli("config", "--prompt", "rewrite", "--json").json["placeholders"] == ["format"]
    (tmp_path / "rewrite.txt").write_text(ran.out)
    (tmp_path / "quipu.toml").write_text('[prompts]\nrewrite.file = "rewrite.txt"\n')
    rows = {row["name"]: row for row in cli("config", "--json").json["settings"]}
    assert (rows["prompts"]["value"], rows["prompts"]["origin"]) == ("rewrite", "quipu.toml:1")


def test_config_lists_the_prompts_where_a_name_is_unknown(cli: Cli) -> None:
    ran = cli("config", "--prompt", "rewriting")
    assert ran.code == 2
    assert "'rewriting'" in ran.err and "extraction, gleaning" in ran.err


def test_a_mistake_in_the_settings_file_stops_every_command_with_the_line(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "quipu.toml").write_text("topk = 5\n")
    ran = cli("status", "--json")
    assert ran.code == 2
    assert json.loads(ran.err)["error"]["message"] == "There is no setting topk (quipu.toml:1)."


def test_doctor_takes_the_whole_way_and_warns_of_variables_that_name_no_setting(cli: Cli) -> None:
    ran = cli("doctor", "--json", env={"QUIPU_TOPK": "3"})
    assert [check for check in ran.json if check["outcome"] == "failed"] == []
    assert ran.code == 0
    outcomes = {(check["name"], check["outcome"]) for check in ran.json}
    assert {("self-test", "ok"), ("settings", "warning"), ("space", "ok")} <= outcomes


def test_doctor_goes_on_after_a_failed_check_and_ends_with_1(
    cli: Cli, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(_engine: FakeEngine, text: str, k: int) -> SearchResult:
        raise Unavailable("The index cannot be searched.", remedy="Install another one.")

    monkeypatch.setattr(FakeEngine, "search", broken)
    ran = cli("doctor", "--json")
    assert ran.code == 1
    failed = [check for check in ran.json if check["outcome"] == "failed"]
    assert [(check["detail"], check["remedy"]) for check in failed] == [
        ("The index cannot be searched.", "Install another one.")
    ]
    assert any(check["name"] == "space" for check in ran.json)


def test_demo_runs_public_commands_only(cli: Cli, engine: FakeEngine) -> None:
    ran = cli("demo")
    assert ran.code == 0
    commands = [line for line in ran.out.splitlines() if line.startswith("$ quipu ")]
    assert commands[0].startswith("$ quipu --index .quipu-demo add ")
    assert len(commands) == 7
    assert all("-s naive -s local -s weave" in line for line in commands[1:])
    assert "Now try:" in ran.out
