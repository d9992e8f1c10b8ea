"""Tests of what is derived on the command line: refresh, the table of status, auto-refresh, compare and explain."""

from dataclasses import replace

import pytest

from quipu.model.answer import Overlap, StrategyResult
from quipu.model.derivation import DerivationResult
from quipu.model.evidence import ExplainedChunk, Explanation, SupportingHit
from quipu.model.results import AddResult, RefreshResult
from quipu.retrieve.mix import MixOptions, MixWeights
from tests.unit.cli import conftest
from tests.unit.cli.conftest import COMPARISON, READ, STATES, Cli, FakeEngine

MADE = DerivationResult(
    name="reports",
    n_built=3,
    n_unchanged=38,
    n_calls=3,
    n_reused=2,
    failed=(("ab", "too\x1b long"),) * 7,
    notes=("extractive",),
)

# ---- refresh


@pytest.mark.parametrize(
    ("words", "call"),
    [
        ((), ("refresh", (), False)),
        (("reports", "hierarchy"), ("refresh", ("reports", "hierarchy"), False)),
        (("reports", "--rebuild"), ("refresh", ("reports",), True)),
        (("--rebuild",), ("refresh", (), True)),
        (("--dry-run", "reports"), ("plan", ("reports",), False)),
        (("--dry-run", "--rebuild"), ("plan", (), True)),
        (("--drop", "reports", "--drop", "hierarchy"), ("drop", ("reports", "hierarchy"))),
    ],
)
def test_refresh_passes_on_what_it_is_told(
    cli: Cli, engine: FakeEngine, words: tuple[str, ...], call: tuple[object, ...]
) -> None:
    assert cli("refresh", *words).code == 0
    assert engine.calls == [call]


@pytest.mark.parametrize("words", [("--drop", "x", "y"), ("--drop", "x", "--rebuild"), ("--drop", "x", "--dry-run")])
def test_refresh_refuses_what_cannot_be_meant(cli: Cli, engine: FakeEngine, words: tuple[str, ...]) -> None:
    assert cli("refresh", *words).code == 2
    assert not engine.calls


def test_refresh_tells_of_each_derivation_and_fails_where_something_is_left(cli: Cli, engine: FakeEngine) -> None:
    engine.refreshed = RefreshResult(derivations=(MADE, DerivationResult(name="idle")), usage=(READ,))
    ran = cli("refresh", "reports")
    assert ran.code == 1
    assert "reports: 3 built, 38 unchanged (3 calls, 2 replies cached)." in ran.out
    assert "  extractive\n" in ran.out
    assert ran.out.count("ab: too\ufffd long") == 5
    assert "… and 2 more." in ran.out
    assert "3 calls: 3,000 tokens in" in ran.out
    assert ran.out.startswith("Not finished; 0 texts embedded.")
    assert "idle" not in ran.out
    assert cli("refresh", "--json").json["derivations"][0]["n_unchanged"] == 38


@pytest.mark.parametrize(
    ("report", "headline"),
    [
        (RefreshResult(n_embedded=1), "Up to date; 1 text embedded.\n"),
        (RefreshResult(derivations=(DerivationResult(name="names", failed=(("Oslo", "No."),)),)), "Not finished; "),
        (RefreshResult(stopped="It is gone."), "Stopped; 0 texts embedded.\n"),
    ],
)
def test_refresh_says_up_to_date_only_of_what_is(
    cli: Cli, engine: FakeEngine, report: RefreshResult, headline: str
) -> None:
    engine.refreshed = report
    ran = cli("refresh")
    assert ran.out.startswith(headline)
    assert ran.code == (0 if report.is_complete else 1)


def test_of_what_was_not_begun_only_the_cause_is_told(cli: Cli, engine: FakeEngine) -> None:
    left_out = tuple(DerivationResult(name=name, stopped="It is gone.") for name in ("names", "reports"))
    engine.refreshed = RefreshResult(derivations=left_out, stopped="It is gone.")
    assert cli("refresh").out == "Stopped; 0 texts embedded.\nStopped: It is gone.\n"


def test_a_plan_is_a_table_of_costs(cli: Cli, engine: FakeEngine) -> None:
    assert cli("refresh", "--dry-run").out == "Everything is up to date.\n"
    engine.planned = STATES[1:]
    out = " ".join(cli("refresh", "--dry-run").out.split())
    assert "stale, 3 to do" in out
    assert "about 3 model calls (9,000 tokens in, 1,200 out, 0.0123), 3 texts to embed" in out
    assert [state["freshness"] for state in cli("refresh", "--dry-run", "--json").json] == ["stale", "missing"]


def test_a_plan_to_rebuild_says_what_is_made_anew_and_that_known_replies_cost_nothing(
    cli: Cli, engine: FakeEngine
) -> None:
    engine.planned = (replace(STATES[0], is_rebuild=True), replace(STATES[1], is_rebuild=True))
    out = " ".join(cli("refresh", "--rebuild", "--dry-run").out.split())
    assert "vectors fresh, to be rebuilt" in out
    assert "reports stale, to be rebuilt" in out
    assert "about this much. Cached replies, and vectors of unchanged texts, cost nothing again" in out
    assert "Different communities and changed facts may cost more" in out
    assert "at most" not in out
    assert "Nothing was changed." in out
    assert [state["is_rebuild"] for state in cli("refresh", "--rebuild", "--dry-run", "--json").json] == [True, True]


def test_what_is_dropped_is_told(cli: Cli) -> None:
    assert cli("refresh", "--drop", "reports").out == "reports: dropped.\n"
    assert cli("refresh", "--drop", "reports", "--json").json == {"dropped": ["reports"]}


def test_adding_and_removing_tell_what_they_brought_up_to_date(cli: Cli, engine: FakeEngine) -> None:
    engine.added = AddResult(n_added=1, derivations=(MADE,))
    assert "reports: 3 built, 38 unchanged" in cli("add", "--text", "x").out
    engine.refreshed = RefreshResult(n_summarised=2, derivations=(MADE,), usage=(READ,), stopped="All is spent.")
    out = cli("remove", "kober.md").out
    assert "1 document removed, with the facts that only it stated." in out
    assert "2 summaries written." in out
    assert "reports: 3 built, 38 unchanged" in out
    assert "3 calls: 3,000 tokens in" in out
    assert "Stopped: All is spent." in out
    told = cli("remove", "kober.md", "--json").json
    assert (told["removed"], told["refreshed"]["n_summarised"]) == (["kober.md"], 2)


# ---- status


def test_status_shows_what_is_derived(cli: Cli) -> None:
    out = cli("status").out
    assert "\x1b" not in out
    rows = {line.split()[0]: " ".join(line.split()) for line in out.splitlines() if line.strip()}
    assert rows["vectors"] == "vectors fresh 5 by wordllama 2.5 MB"
    assert rows["reports"].startswith("reports stale, 3 to do 41 reports\ufffd[31m 20 kB about 3 model calls")
    assert rows["hierarchy"].startswith("hierarchy missing about 12 model calls")
    assert [each["name"] for each in cli("status", "--json").json["derivations"]] == ["vectors", "reports", "hierarchy"]


# ---- ask


def test_ask_prepares_what_is_missing_where_it_is_told_to(cli: Cli, engine: FakeEngine) -> None:
    cli("ask", "Who?")
    assert not engine.calls
    cli("ask", "Who?", "-s", "naive", "-s", "mix", "--auto-refresh")
    assert engine.calls == [("prepare", "naive"), ("prepare", "mix")]
    cli("ask", "Who?", env={"QUIPU_AUTO_REFRESH": "true"})
    assert engine.calls[2:] == [("prepare", "weave")]


def test_the_arms_of_mix_are_weighed(cli: Cli, engine: FakeEngine) -> None:
    weights = ("--entity-weight", "2", "--relation-weight", "0", "--vector-weight", "0.5")
    cli("ask", "Who?", *weights)
    weights_asked = engine.queries[0].options_of(MixOptions).mix_weights
    assert weights_asked == MixWeights(entity=2.0, relation=0.0, vector=0.5)
    assert cli("ask", "Who?", "--entity-weight", "-1").code == 2


# ---- compare


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ((), ()),
        (("--strategies", "naive, mix"), ("naive", "mix")),
        (("-s", "naive", "-s", "local,mix"), ("naive", "local", "mix")),
    ],
)
def test_compare_takes_strategies_with_commas_or_one_by_one(
    cli: Cli, engine: FakeEngine, words: tuple[str, ...], names: tuple[str, ...]
) -> None:
    assert cli("compare", "Who?", *words, "--doc", "a.md", "--chunk-top-k", "3", "--keyword", "Kober").code == 0
    assert engine.calls == [("compare", names)]
    (query,) = engine.queries
    assert (query.filter.documents, query.chunk_top_k, query.low_level_keywords) == (("a.md",), 3, ("Kober",))


@pytest.mark.parametrize("names", ["", ",,"])
def test_compare_refuses_a_list_that_names_no_strategy(cli: Cli, engine: FakeEngine, names: str) -> None:
    ran = cli("compare", "Who?", "--strategies", names)
    assert (ran.code, engine.calls) == (2, [])
    assert "is empty" in ran.err


def test_a_comparison_shows_figures_overlap_evidence_and_answers(cli: Cli) -> None:
    out = cli("compare", "Who?").out
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert "naive 1 1,234 2 8" in lines
    assert "naive 0.25" in lines
    assert "not asked: bypass. It looks nothing up." in lines
    assert "Alice\ufffd Kober c0ffee 1" in lines
    assert "naive Brooklyn College" in lines
    assert "community_local Kober and Linear B (beefed00)" in lines


def test_strategies_that_say_the_same_share_a_panel_and_others_have_their_own(cli: Cli, engine: FakeEngine) -> None:
    out = cli("compare", "Who?").out
    assert out.count("She taught classics. [1]") == 1
    assert "naive, mix, community_local · extractive" in out
    first = COMPARISON.results[0]
    assert first.answer is not None
    other = replace(first, strategy="path", answer=replace(first.answer, text="She did not.", generator="openai/small"))
    engine.also_compared = (other,)
    out = cli("compare", "Who?").out
    assert "naive, mix, community_local · extractive" in out
    assert "path · openai/small" in out
    engine.comparison = replace(COMPARISON, results=(first,))
    engine.also_compared = ()
    assert "same answer" not in cli("compare", "Who?").out


def test_a_comparison_says_what_answered_only_where_that_differs(cli: Cli, engine: FakeEngine) -> None:
    assert "answer by" not in cli("compare", "Who?").out
    first = COMPARISON.results[0]
    assert first.answer is not None
    engine.also_compared = (replace(first, strategy="path", answer=replace(first.answer, generator="openai/small")),)
    lines = [" ".join(line.split()) for line in cli("compare", "Who?").out.splitlines()]
    assert {"naive 1 1,234 2 8 extractive", "path 1 1,234 2 8 openai/small"} <= set(lines)


def test_a_comparison_has_columns_only_of_what_some_found(cli: Cli, engine: FakeEngine) -> None:
    assert "claims" not in cli("compare", "Who?").out
    engine.also_compared = (replace(COMPARISON.results[0], strategy="lca", n_claims=7),)
    lines = [" ".join(line.split()) for line in cli("compare", "Who?").out.splitlines()]
    assert "strategy passages claims tokens calls ms" in lines
    assert {"naive 1 0 1,234 2 8", "lca 1 7 1,234 2 8"} <= set(lines)
    nothing_asked = tuple(replace(each, n_calls=0) for each in COMPARISON.results)
    engine.comparison, engine.also_compared = replace(COMPARISON, results=nothing_asked), ()
    out = cli("compare", "Who?").out
    assert "calls" not in out
    assert "No language model was asked." in out


def test_passages_are_in_order_of_how_many_found_them(cli: Cli, engine: FakeEngine) -> None:
    first = COMPARISON.results[0]
    found = [replace(first.chunks[0], id=name, title=name * 3) for name in ("aa", "bb", "cc", "dd")]
    engine.comparison = replace(
        COMPARISON,
        results=(
            replace(first, chunks=(found[0], found[1], found[3])),
            replace(first, strategy="mix", chunks=(found[2], found[1], found[0])),
        ),
    )
    lines = [" ".join(line.split()) for line in cli("compare", "Who?").out.splitlines()]
    start = lines.index("passage chunk naive mix")
    assert lines[start + 2 : start + 6] == ["aaaaaa aa 1 3", "bbbbbb bb 2 2", "cccccc cc · 1", "dddddd dd 3 ·"]


@pytest.mark.parametrize("width", [80, 110, 140])
@pytest.mark.parametrize("n", [5, 15])
def test_a_comparison_breaks_no_name_and_no_number(cli: Cli, engine: FakeEngine, width: int, n: int) -> None:
    first = COMPARISON.results[0]
    names = [f"community_{place:06d}" for place in range(n)]
    engine.comparison = replace(
        COMPARISON,
        results=tuple(replace(first, strategy=name, n_relations=123_456) for name in names),
        overlaps=tuple(
            Overlap(first=a, second=b, jaccard=0.39, n_both=1)
            for place, a in enumerate(names)
            for b in names[place + 1 :]
        ),
    )
    lines = cli("compare", "Who?", env={"COLUMNS": str(width)}).out.splitlines()
    words = " ".join(lines).split()
    assert words.count("0.39") == n * (n - 1) // 2
    assert words.count("123,456") == n
    assert {"passages", "entities", "relations", "tokens", *names} <= set(words)
    assert max(map(len, lines)) <= width


def test_a_strategy_that_failed_is_told_and_ends_with_1(cli: Cli, engine: FakeEngine) -> None:
    engine.also_compared = (StrategyResult(strategy="lca", error="It needs hierarchy. Run `quipu refresh hierarchy`."),)
    ran = cli("compare", "Who?")
    assert ran.code == 1
    assert "lca: It needs hierarchy. Run `quipu refresh hierarchy`." in ran.out
    told = cli("compare", "Who?", "--json").json["results"]
    assert told[3]["error"].startswith("It needs hierarchy.")
    assert (told[0]["answer"]["text"], told[0]["answer"]["context"]) == ("She taught classics. [1]", "")


# ---- explain


@pytest.mark.parametrize(
    ("words", "call"),
    [
        ((), ("explain", "", None)),
        (("--rank", "2"), ("explain", "", 2)),
        (("--chunk", "c0ffee", "-s", "local"), ("explain", "c0ffee", None)),
    ],
)
def test_explain_passes_on_what_it_is_told(
    cli: Cli, engine: FakeEngine, words: tuple[str, ...], call: tuple[object, ...]
) -> None:
    assert cli("explain", "Who?", *words).code == 0
    assert engine.calls == [call]
    assert engine.queries[0].strategy == ("local" if "-s" in words else "weave")


def test_explain_takes_one_of_rank_and_chunk(cli: Cli, engine: FakeEngine) -> None:
    ran = cli("explain", "Who?", "--rank", "1", "--chunk", "c0ffee")
    assert (ran.code, engine.calls) == (2, [])
    assert "not both" in ran.err


def test_an_explanation_is_a_tree_from_the_question_to_each_passage(cli: Cli) -> None:
    out = cli("explain", "Who?").out
    assert "\x1b" not in out
    for line in (
        "mix, revision 3: 2 passages",
        "Kober (by name) → Alice Kober 1.000",
        "kober.md, chunk c0ffee",
        "#1 Letters",
        "0.5000: names Alice Kober",
        "Kober (by vector, 0.400) → matches the passage directly",
        "Kober (by name, 1.000) → Alice Kober",
        "Alice Kober → Brooklyn: She taught there.",
        "by entity",
        "#2 Alice Kober, mentioned 2 times; score 0.9000 (named)",
        "b.md, chunk dead",
        "not found b.md",
        "no evidence of this strategy leads to it",
        "note: a note",
    ):
        assert line in out
    assert cli("explain", "Who?", "--json").json["chunks"][0]["chains"][1]["start"] == "Alice Kober"


def test_a_passage_found_by_a_walk_alone_is_not_said_to_be_found_by_nothing(cli: Cli, engine: FakeEngine) -> None:
    chunk = ExplainedChunk(id="c0ffee", document_id="a", title="A", text="", rank=9, score=0.1, reason="by ada → bob")
    engine.explanation = Explanation(question="Who?", strategy="hippo", revision=3, n_chunks=9, chunks=(chunk,))
    out = cli("explain", "Who?").out
    assert "no evidence of this strategy leads to it" not in out
    assert "the reason above says how it was found" in out


def test_where_no_passage_is_ranked_reports_are_shown_instead(cli: Cli, engine: FakeEngine) -> None:
    report = SupportingHit(
        kind="report", id="c0", name="On\x1b roads", rank=1, score=0.75, reason="rated 7", connection="rests on 2"
    )
    engine.explanation = Explanation(
        question="Who?",
        strategy="global",
        revision=3,
        n_chunks=0,
        n_reports=40,
        ranks_passages=False,
        other_evidence=(report,),
    )
    out = cli("explain", "Who?").out
    assert "global, revision 3: 40 reports" in out
    assert "global ranks no passages; it found this instead" in out
    assert "#1 On\ufffd roads [c0], rests on 2; score 0.7500 (rated 7)" in out
    engine.explanation = Explanation(
        question="Who?", strategy="bypass", revision=3, n_chunks=0, ranks_passages=False, searches_index=False
    )
    assert "bypass retrieves nothing, so there is no evidence" in cli("explain", "Who?").out


def test_an_explanation_without_seeds_tells_what_was_found_and_no_lie(cli: Cli, engine: FakeEngine) -> None:
    engine.explanation = Explanation(
        question="Who?", strategy="community_global", revision=3, n_chunks=0, n_claims=2, n_reports=40, n_points=1
    )
    out = cli("explain", "Who?").out
    assert "community_global, revision 3: 0 passages, 2 claims, 40 reports, 1 point" in out
    assert "with no entity or passage" in out
    engine.explanation = Explanation(question="Who?", strategy="bypass", revision=3, n_chunks=0, searches_index=False)
    assert "nowhere: nothing was retrieved" in cli("explain", "Who?").out


# ---- strategies


def test_strategies_list_what_they_need_made(cli: Cli) -> None:
    out = cli("strategies").out
    assert "calls of a language model are those before the answer, at most." in " ".join(out.split())
    assert all(name in out for name in ("naive", "mix"))


@pytest.mark.parametrize("width", [60, 80, 140])
def test_strategies_are_listed_in_few_lines_however_narrow_the_terminal(cli: Cli, width: int) -> None:
    lines = cli("strategies", env={"COLUMNS": str(width)}).out.splitlines()
    assert max(map(len, lines)) <= width
    assert len(lines) <= 16 * {60: 8, 80: 6, 140: 4}[width] + 4
    (first,) = (place for place, line in enumerate(lines) if line.startswith("lca"))
    told = " ".join(" ".join(lines[first : first + 8]).split())
    assert told.startswith("lca entities nearest to the question, and the aggregates that connect them")
    assert "when: the question connects similar things" in told
    assert "LeanRAG · needs hierarchy · no call" in told


def test_status_tells_why_something_cannot_be_refreshed(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    hindered = replace(STATES[2], unavailable_reason="scikit-learn is not installed. Install\x1b it.")
    monkeypatch.setattr(conftest, "STATES", (hindered,))
    out = " ".join(cli("status").out.split())
    assert "hierarchy missing scikit-learn is not installed. Install\ufffd it." in out
