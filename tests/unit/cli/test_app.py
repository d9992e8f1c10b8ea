"""The command line as a whole: shared options, help, errors, exit codes."""

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import click
import pytest

from quipu.cli.app import COMMANDS, load_command
from quipu.model.document import Document
from tests.unit.cli.conftest import Cli, FakeEngine

NAMES = [name for section in COMMANDS.values() for name in section]


def test_every_command_is_in_the_table() -> None:
    folder = Path(import_module("quipu.cli.commands").__file__ or "").parent
    modules = [import_module(f"quipu.cli.commands.{file.stem}") for file in folder.glob("*.py")]
    commands = {value for module in modules for value in vars(module).values() if isinstance(value, click.Command)}
    subcommands = {
        value for command in commands if isinstance(command, click.Group) for value in command.commands.values()
    }
    assert {command.name for command in commands - subcommands} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_the_table_says_what_the_command_says_of_itself(name: str) -> None:
    command = load_command(name)
    summary = next(summaries[name] for summaries in COMMANDS.values() if name in summaries)
    assert (command.help or "").split("\n\n")[0].replace("\n", " ") == summary


@pytest.mark.parametrize("name", NAMES)
def test_every_help_page_has_examples_that_start_with_the_command(cli: Cli, name: str) -> None:
    ran = cli(name, "--help")
    assert ran.code == 0
    assert f"quipu {name}" in ran.out.split("Examples:")[1]
    assert "--index DIR" in ran.out


def test_help_imports_no_command_and_nothing_heavy() -> None:
    probe = (
        "import sys; from quipu.cli.app import run; run(['--help']);"
        "print([m for m in ('asyncio', 'numpy', 'pydantic', 'rich', 'sqlalchemy', 'quipu.engine',"
        " 'quipu.cli.commands') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("words", [("--index", "kb", "status"), ("status", "--index", "kb")])
def test_the_index_is_accepted_before_and_after_the_command(
    cli: Cli, engine: FakeEngine, words: tuple[str, ...]
) -> None:
    assert cli(*words).code == 0
    assert engine.settings is not None and engine.settings.index == Path("kb")


def test_the_index_after_the_command_wins(cli: Cli, engine: FakeEngine) -> None:
    cli("--index", "one", "status", "--index", "two")
    assert engine.settings is not None and engine.settings.index == Path("two")


def test_a_nested_command_takes_the_shared_options_too(cli: Cli, engine: FakeEngine) -> None:
    assert cli("show", "--index", "kb", "entity", "Alice Kober", "--json").json["entity"]["name"] == "Alice Kober"
    assert engine.settings is not None and engine.settings.index == Path("kb")


def test_the_environment_names_the_index(cli: Cli, engine: FakeEngine) -> None:
    cli("status", env={"QUIPU_INDEX": "from-env"})
    assert engine.settings is not None and engine.settings.index == Path("from-env")


def test_the_version_is_printed_before_and_after_a_command(cli: Cli) -> None:
    assert cli("--version").out == cli("status", "--version").out == "quipu 0.1.0\n"


def test_an_error_is_one_line_and_its_remedy_on_stderr(cli: Cli) -> None:
    ran = cli("show", "document", "kobr.md")
    assert ran.code == 1
    assert ran.out == ""
    assert ran.err == "Error: There is no document 'kobr.md'.\nDid you mean kober.md?\n"


def test_with_json_an_error_is_one_json_document_on_stderr(cli: Cli) -> None:
    ran = cli("show", "document", "kobr.md", "--json")
    assert ran.out == ""
    assert json.loads(ran.err) == {
        "error": {
            "kind": "NotFound",
            "message": "There is no document 'kobr.md'.",
            "remedy": "Did you mean kober.md?",
        }
    }


def test_a_mistyped_command_names_the_closest(cli: Cli) -> None:
    ran = cli("stats")
    assert ran.code == 2
    assert "There is no command 'stats'. Did you mean status?" in ran.err


def test_a_mistyped_option_names_the_closest_also_in_json(cli: Cli) -> None:
    ran = cli("ask", "Who?", "--top", "3", "--json")
    assert ran.code == 2
    error = json.loads(ran.err)["error"]
    assert (error["kind"], "--top-k" in error["message"]) == ("Usage", True)


def test_an_unexpected_error_says_where_to_report_and_verbose_shows_the_traceback(
    cli: Cli, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(_engine: FakeEngine, *_: object) -> list[Document]:
        raise ZeroDivisionError("by nought")

    monkeypatch.setattr(FakeEngine, "documents", broken)
    ran = cli("docs")
    assert ran.code == 1
    assert "ZeroDivisionError: by nought" in ran.err and "report it" in ran.err
    assert "Traceback" not in ran.err
    assert "Traceback" in cli("docs", "-v").err


def test_the_engine_is_closed_also_after_an_error(cli: Cli, engine: FakeEngine) -> None:
    cli("show", "document", "kobr.md")
    assert engine.is_closed


def test_stopping_says_what_is_saved_and_how_to_go_on(cli: Cli, engine: FakeEngine, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("A")
    engine.is_interrupted = True
    ran = cli("--index", "my kb", "add", "a.md")
    assert ran.code == 130
    assert ran.err == ("Stopped. 2 documents in the index, 4 waiting.\nContinue with `quipu --index 'my kb' resume`.\n")
    assert engine.is_closed


def test_stopping_where_nothing_waits_says_what_finishes_what_is_derived(
    cli: Cli, engine: FakeEngine, tmp_path: Path
) -> None:
    (tmp_path / "a.md").write_text("A")
    engine.is_interrupted, engine.jobs = True, ()
    assert cli("add", "a.md").err.endswith("\nNothing is lost.\n")
    engine.stale = ("not up to date: reports",)
    assert cli("add", "a.md").err.endswith("\nFinished results are saved. Continue with `quipu refresh`.\n")


def test_control_characters_of_a_document_never_reach_the_terminal(cli: Cli) -> None:
    out = cli("show", "chunk", "c0ffee").out
    assert "\x1b" not in out
    assert "\N{REPLACEMENT CHARACTER}[31m [bold]" in out


@pytest.mark.parametrize(
    "words",
    [
        ("status",),
        ("docs",),
        ("search", "x"),
        ("ask", "x"),
        ("compare", "x"),
        ("explain", "x"),
        ("refresh", "--dry-run"),
        ("refresh", "--drop", "reports"),
        ("strategies",),
        ("config",),
        ("verify",),
        ("show", "entity", "x"),
        ("show", "relation", "x", "y"),
        ("show", "chunk", "x"),
        ("show", "document", "kober.md"),
        ("resume",),
        ("retry",),
        ("cancel", "--all"),
        ("purge",),
        ("refresh",),
        ("reembed",),
        ("usage",),
        ("remove", "kober.md"),
        ("remove", "kober.md", "--dry-run"),
        ("add", "--text", "x"),
    ],
)
def test_every_command_prints_one_json_document_or_plain_text_without_colour(cli: Cli, words: tuple[str, ...]) -> None:
    as_json, plain = cli(*words, "--json"), cli(*words)
    assert as_json.code == plain.code == 0
    assert as_json.json is not None
    assert as_json.err == plain.err == ""
    assert plain.out.strip()
    assert "\x1b" not in plain.out


def test_only_commands_that_add_may_make_an_index(cli: Cli, engine: FakeEngine) -> None:
    cli("status")
    assert not engine.may_create
    cli("add", "--text", "x")
    assert engine.may_create


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_stream_that_the_caller_has_closed_leads_nowhere(tmp_path: Path, closed: str) -> None:
    command = f'"$0" -m quipu --index kb add --text "Alice Kober taught classics." {closed}'
    ran = subprocess.run(
        ["sh", "-c", command, sys.executable], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert (tmp_path / "kb" / "index.sqlite").read_bytes().startswith(b"SQLite format 3")
