"""What commands do where a language model is set, or none is: cost before, while and after it is spent."""

from dataclasses import replace
from pathlib import Path

import pytest

from quipu.model.document import Document, DocumentStatus
from quipu.model.results import AddResult, RefreshResult
from quipu.model.summary import SummaryFailure, SummaryTarget, SummaryTargetKind
from quipu.model.usage import Range, SpendingLimit
from quipu.settings import Settings
from tests.unit.cli.conftest import ASKED, ESTIMATE, READ, Cli, FakeEngine

MODEL = {"QUIPU_LLM": "openai/gpt-4.1-mini"}


def _settings(engine: FakeEngine) -> Settings:
    assert engine.settings is not None
    return engine.settings


# ---- add


def test_a_dry_run_shows_likely_least_and_most_and_adds_nothing(cli: Cli, engine: FakeEngine) -> None:
    ran = cli("add", "--text", "Hello", "--dry-run")
    assert ran.code == 0
    assert [call[0] for call in engine.calls] == ["estimate"]
    figures = {
        line.split()[0]: line.split()[1:] for line in ran.out.splitlines() if line.startswith(("calls", "money"))
    }
    assert figures == {"calls": ["57", "38", "76"], "money,": ["USD", "0.0560", "0.0100", "1.10"]}
    for said in (
        "3 documents to read, 1 unchanged",
        "2 cached, 38 to read",
        "1.23M",
        "2 min",
        "2.5 h",
        "--budget",
    ):
        assert said in ran.out


def test_a_dry_run_of_a_model_without_a_price_says_how_to_give_one(cli: Cli, engine: FakeEngine) -> None:
    engine.estimated = replace(ESTIMATE, cost=None, sample_calls=3)
    out = cli("add", "--text", "Hello", "--dry-run").out
    assert "money" not in out
    assert "give one in a [[price]] table" in out
    assert "The sample took 3 calls. Its replies are kept" in out


def test_a_dry_run_without_a_model_says_that_nothing_is_spent(cli: Cli, engine: FakeEngine) -> None:
    engine.estimated = replace(ESTIMATE, model="")
    assert "No model is asked, and nothing is spent" in cli("add", "--text", "Hello", "--dry-run").out


def test_a_dry_run_tells_what_vectors_of_a_service_take(cli: Cli, engine: FakeEngine) -> None:
    vectors = Range(low=1_200, likely=2_000, high=4_500)
    engine.estimated = replace(ESTIMATE, embedder="openai/small", embedded_tokens=vectors, embedding_cost=vectors)
    out = cli("add", "--text", "Hello", "--dry-run").out
    assert "tokens of vectors, openai/small" in out and "money for vectors" in out
    engine.estimated = replace(engine.estimated, model="", embedding_cost=None)
    out = cli("add", "--text", "Hello", "--dry-run").out
    assert "tokens of vectors, openai/small" in out and "2,000" in out
    assert "calls" not in out and "nothing is spent" not in out and "money for vectors" not in out


def test_a_dry_run_of_what_is_known_asks_no_model(cli: Cli, engine: FakeEngine) -> None:
    engine.estimated = replace(ESTIMATE, n_cached=40)
    assert "No model would be asked." in cli("add", "--text", "Hello", "--dry-run").out


def test_a_sample_that_could_not_be_read_is_told(cli: Cli, engine: FakeEngine) -> None:
    engine.estimated = replace(
        ESTIMATE, sample_calls=3, n_sampled=3, n_sample_failed=2, sample_error="It named nothing."
    )
    ran = cli("add", "--text", "Hello", "--dry-run", "--sample", "3")
    assert ran.code == 0
    assert "2 of the 3 chunks could not be read, and would have to be paid for again: It named nothing." in " ".join(
        ran.out.split()
    )
    engine.estimated = replace(engine.estimated, n_sample_failed=3)
    assert cli("add", "--text", "Hello", "--dry-run", "--sample", "3").code == 1


def test_a_sample_is_handed_over_and_goes_with_a_dry_run_only(cli: Cli, engine: FakeEngine) -> None:
    cli("add", "--text", "Hello", "--dry-run", "--sample", "7")
    assert engine.calls[0][2] == 7
    ran = cli("add", "--text", "Hello", "--sample", "7")
    assert ran.code == 2
    assert "--sample needs --dry-run" in ran.err


WITH_WORDS = (("add", "--text", "x"), ("ask", "Who?"), ("remove", "a"), ("compare", "Who?"), ("explain", "Who?"))


@pytest.mark.parametrize("words", [*WITH_WORDS, ("resume",), ("retry",), ("refresh",), ("reembed",)])
def test_a_budget_reaches_the_settings(cli: Cli, engine: FakeEngine, words: tuple[str, ...]) -> None:
    assert cli(*words, "--budget", "2.50, 300 calls").code == 0
    assert _settings(engine).spending == SpendingLimit(cost=2_500_000, calls=300)


def test_a_budget_that_is_none_is_refused_with_examples(cli: Cli, engine: FakeEngine) -> None:
    ran = cli("add", "--text", "x", "--budget", "lots")
    assert ran.code == 2
    assert "budget = 'lots' (argument) is not allowed." in ran.err and '"2M tokens"' in ran.err
    assert not engine.calls


@pytest.mark.parametrize("words", WITH_WORDS)
def test_no_model_takes_the_model_out_of_the_settings(cli: Cli, engine: FakeEngine, words: tuple[str, ...]) -> None:
    assert cli(*words, env=MODEL).code == 0
    assert _settings(engine).names_model
    assert cli(*words, "--no-model", env=MODEL).code == 0
    assert not _settings(engine).names_model


def test_work_that_was_stopped_says_why_what_waits_and_how_to_go_on(cli: Cli, engine: FakeEngine) -> None:
    engine.added = AddResult(
        n_added=1, n_chunks=2, stopped="The budget of 3 calls is used up.", n_waiting=4, usage=(READ,)
    )
    ran = cli("--index", "kb", "add", "--text", "x")
    assert ran.code == 1
    assert "Stopped: The budget of 3 calls is used up." in ran.out
    assert "4 documents in the queue; `quipu --index kb resume` continues." in ran.out
    assert "3 calls: 3,000 tokens in, 1,000 of them cached, 900 out, 0.0023 USD." in ran.out


def test_what_was_left_out_and_what_wants_a_look_is_told(cli: Cli, engine: FakeEngine) -> None:
    engine.added = AddResult(n_added=1, n_dropped=1_200, notes=("openai/x cannot be asked.",))
    out = cli("add", "--text", "x").out
    assert "1,200 records of the model left out, because the text does not support them." in out
    assert "openai/x cannot be asked." in out


IN_PART = (Document(id="kober.md", title="", status=DocumentStatus.PARTIAL, error="2 chunks failed."),)


def test_a_document_read_in_part_names_the_command_that_tries_again(cli: Cli, engine: FakeEngine) -> None:
    engine.added = AddResult(partial=IN_PART, n_chunks=3, n_extracted=1)
    ran = cli("add", "--text", "x")
    assert ran.code == 0
    assert "Partly read: kober.md: 2 chunks failed." in ran.out
    assert "`quipu retry` tries the failed chunks again." in ran.out
    assert "doctor" not in ran.out


@pytest.mark.parametrize("words", [("add", "--text", "x", "-q"), ("retry",)])
def test_where_not_one_chunk_could_be_read_the_command_fails_and_says_where_to_look(
    cli: Cli, engine: FakeEngine, words: tuple[str, ...]
) -> None:
    engine.added = AddResult(partial=IN_PART, n_chunks=2, n_resumed=1)
    ran = cli(*words)
    assert ran.code == 1
    assert "No chunk could be read. `quipu doctor` checks what reads them." in ran.out
    assert "`quipu retry` tries the failed chunks again." in ran.out


# ---- refresh, status, usage


def test_refresh_says_what_it_wrote_and_ends_with_1_where_something_is_left(cli: Cli, engine: FakeEngine) -> None:
    assert cli("refresh").out == "Up to date; 1 text embedded.\n"
    failure = SummaryFailure(target=SummaryTarget(SummaryTargetKind.ENTITY, "alice kober"), error="too long")
    engine.refreshed = RefreshResult(n_summarised=2, summary_failures=(failure,) * 7, stopped="The budget is used up.")
    ran = cli("refresh")
    assert ran.code == 1
    assert ran.out.startswith("Stopped; 0 texts embedded.\n2 summaries written.\n")
    assert ran.out.count("No summary of alice kober: too long") == 5
    assert "… and of 2 more." in ran.out and "Stopped: The budget is used up." in ran.out


def test_the_status_names_the_models_by_their_work(cli: Cli, engine: FakeEngine) -> None:
    roles = ("extract", "keywords", "summarise", "report", "answer", "judge")
    engine.models = tuple((role, "openai/small") for role in roles)
    assert "language model openai/small for all work" in cli("status").out
    engine.models = (*engine.models[:4], ("answer", "openai/large"))
    out = cli("status").out
    assert "language model openai/small for extract, keywords, summarise, report" in out
    assert "language model openai/large for answer" in out


def test_usage_says_that_no_model_was_asked(cli: Cli) -> None:
    assert cli("usage").out == "No model has been asked.\n"


def test_usage_is_added_up_by_stage_with_what_is_not_in_the_cost(cli: Cli, engine: FakeEngine) -> None:
    engine.usage_rows = [READ, ASKED, replace(READ, subject="other.md")]
    out = cli("usage").out
    lines = {line.split()[0]: " ".join(line.split()) for line in out.splitlines() if line.strip()}
    assert lines["extract"] == "extract 6 6,000 2,000 1,800 0.0047"
    assert lines["answer"] == "answer 1 2.00M 0 100 no price 1 0.00"
    assert lines["all"].startswith("all 7 2.01M")
    assert "Of 1 call no price is known" in out


@pytest.mark.parametrize(
    ("by", "names"),
    [
        ("model", ["custom/own", "openai/gpt-4.1-mini"]),
        ("day", ["2026-01-02", "2026-01-03"]),
        ("subject", ["kober.md", "(shared)", "Who was Alice Kober?"]),  # the dearest first
    ],
)
def test_usage_is_added_up_by_other_columns(cli: Cli, engine: FakeEngine, by: str, names: list[str]) -> None:
    engine.usage_rows = [READ, ASKED, *([replace(READ, subject="", cost=1)] if by == "subject" else [])]
    ran = cli("usage", "--by", by, "--json")
    assert list(ran.json["groups"]) == names


def test_usage_asks_for_the_days_given(cli: Cli, engine: FakeEngine) -> None:
    cli("usage", "--since", "2026-01-01", "--until", "2026-02")
    assert engine.calls == [("usage", "2026-01-01", "2026-02")]
    ran = cli("usage", "--since", "yesterday")
    assert ran.code == 2
    assert "'yesterday' is not a date" in ran.err


# ---- ask


def test_options_for_a_model_reach_the_query(cli: Cli, engine: FakeEngine, tmp_path: Path) -> None:
    (tmp_path / "style.txt").write_text("Write like a\nlibrarian.\n", encoding="utf-8")
    words = (
        "--language",
        "German",
        "--answer-tokens",
        "500",
        "--system-prompt",
        "@style.txt",
        "--user-prompt",
        "Be brief",
    )
    assert cli("ask", "Who?", *words).code == 0
    (query,) = engine.queries
    assert (query.language, query.budget.answer) == ("German", 500)
    assert (query.system_prompt, query.user_prompt) == ("Write like a\nlibrarian.", "Be brief")


def test_a_prompt_file_that_is_not_there_is_refused(cli: Cli, engine: FakeEngine) -> None:
    ran = cli("ask", "Who?", "--system-prompt", "@none.txt")
    assert ran.code == 2
    assert "none.txt cannot be read (No such file or directory)" in ran.err
    assert not engine.queries


@pytest.mark.parametrize("output", ["--context", "--prompt"])
def test_a_context_or_prompt_alone_asks_for_no_answer(cli: Cli, engine: FakeEngine, output: str) -> None:
    cli("ask", "Who?", output)
    cli("ask", "Who?", output, "--json")
    assert [query.with_answer for query in engine.queries] == [False, True]


def test_in_a_pipe_an_answer_is_not_streamed(cli: Cli, engine: FakeEngine) -> None:
    cli("ask", "Who?", env=MODEL)
    assert engine.calls == []
    assert len(engine.queries) == 1


TERMINAL = {**MODEL, "TTY_COMPATIBLE": "1", "TERM": "xterm"}


def test_on_a_terminal_an_answer_is_watched_and_then_shown_whole(cli: Cli, engine: FakeEngine) -> None:
    out = cli("ask", "Who?", "-s", "naive", "-s", "mix", env=TERMINAL).out
    assert engine.calls == [("stream", "naive"), ("stream", "mix")]
    draft, _, whole = out.rpartition("Who?")
    assert "mix ·" in draft
    assert whole.count("Brooklyn College. [1]") == 2


@pytest.mark.parametrize("words", [("--json",), ("--context",), ("--no-model",)])
def test_what_is_no_answer_of_a_model_for_people_is_not_watched(
    cli: Cli, engine: FakeEngine, words: tuple[str, ...]
) -> None:
    cli("ask", "Who?", *words, env=TERMINAL)
    assert engine.calls == []


def test_an_answer_says_what_it_cost_and_the_trace_by_whom(cli: Cli, engine: FakeEngine) -> None:
    engine.answer_usage = (READ, ASKED)
    out = " ".join(cli("ask", "Who?", "--trace").out.split())
    assert "4 calls: 2.00M tokens in, 1,000 of them cached, 1,000 out, 0.0023 USD (1 without a price)" in out
    assert "cost: extract by openai/gpt-4.1-mini, 3 calls" in out
    assert "cost: answer by custom/own, 1 call" in out


# ---- demo


def test_the_demo_asks_no_model_without_being_told_to(cli: Cli, engine: FakeEngine) -> None:
    out = cli("demo", env=MODEL).out
    commands = [line for line in out.splitlines() if line.startswith("$ quipu ")]
    assert len(commands) == 7
    assert all(line.endswith("--no-model") for line in commands)
    assert not _settings(engine).names_model
    assert "--no-model" not in cli("demo", "--with-model").out
    assert _settings(engine).names_model


# ---- config


def test_config_tells_what_each_model_is_for_and_where_its_key_was_found(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "quipu.toml").write_text(
        'llm = "openai/gpt-4.1-mini"\nreranker = "jina/jina-reranker-v2"\n'
        '[role.answer]\nllm = "deepseek/deepseek-chat"\nfallback = "ollama/qwen3:8b"\n'
        '[[price]]\nmodel = "deepseek/*"\ninput = 1\noutput = 2\n'
    )
    (tmp_path / "secrets.toml").write_text('deepseek = "dk-very-secret"\n')
    env = {"OPENAI_API_KEY": "sk-very-secret"}
    ran = cli("config", "--json", env=env)
    assert "secret" not in ran.out.replace("secrets", "")
    shown = {(", ".join(each["work"])): each for each in ran.json["models"]}
    assert list(shown) == ["extract, keywords, summarise, report, judge", "answer", "answer (fallback)", "reranker"]
    small, answer, fallback, reranker = shown.values()
    assert (small["key"], small["needs_key"], small["concurrency"]) == ("environment OPENAI_API_KEY", False, 16)
    assert (answer["key"], answer["price"]["output"]) == ("secrets.toml (deepseek)", 2)
    assert (fallback["host"], fallback["key"], fallback["needs_key"]) == ("localhost:11434", "", False)
    assert reranker["needs_key"]
    table = cli("config").out
    assert "very-secret" not in table
    assert "missing" in table and "environment" in table and "localhost:11434" in table


def test_config_shows_the_settings_even_where_a_model_cannot_be_used(cli: Cli) -> None:
    ran = cli("config", env={"QUIPU_LLM": "gpt-4o"})
    assert ran.code == 2
    assert "busy_timeout_s" in ran.out
    assert "'gpt-4o' is not a model" in ran.err and "Did you mean openai/gpt-4o?" in ran.err


# ---- currency


def test_money_shows_the_currency_of_the_settings_everywhere(cli: Cli, engine: FakeEngine) -> None:
    engine.usage_rows, engine.answer_usage = [READ, ASKED], (READ,)
    env = {"QUIPU_CURRENCY": "EUR"}
    for arguments in (("usage",), ("add", "--text", "Hello", "--dry-run"), ("ask", "Who?")):
        printed = cli(*arguments, env=env).out
        assert "EUR" in printed and "USD" not in printed, arguments
    assert cli("usage", "--json", env=env).json["total"]["currency"] == "EUR"
    assert '"currency":"EUR"' in cli("ask", "Who?", "--json", env=env).out.replace(" ", "")
    assert cli("add", "--text", "Hello", "--dry-run", "--json", env=env).json["currency"] == "EUR"


def test_a_currency_is_a_code_of_three_letters(cli: Cli) -> None:
    ran = cli("usage", env={"QUIPU_CURRENCY": "euros"})
    assert ran.code != 0
    assert "code of three letters" in ran.err
