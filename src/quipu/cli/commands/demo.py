"""`quipu demo`: index a small corpus and ask six questions, through public commands only."""

import json
import shlex
from importlib.resources import as_file, files
from pathlib import Path

import click

from quipu.cli.app import run
from quipu.cli.options import QuipuCommand, load_settings, shared
from quipu.cli.output import stdout, styled

_CORPORA = "testing/corpora"
_DEFAULT_INDEX = ".quipu-demo"
_STRATEGIES = ("naive", "local", "weave")


@click.command("demo", cls=QuipuCommand, examples=("quipu demo", "quipu demo --index /tmp/demo"))
@click.option(
    "--with-model",
    "has_model",
    is_flag=True,
    help="Use your language model to read and answer; its calls may cost money.",
)
def command(has_model: bool) -> int:
    """Index a small corpus and ask six questions.

    The corpus ships with Quipu: short documents about the history of writing, printing and travel, in English, Russian
    and Chinese. The index goes to ./.quipu-demo unless --index says otherwise. Every step is a command you can type. No
    language model is used without --with-model.
    """
    index = shared().index or _DEFAULT_INDEX
    settings = load_settings()
    modest = ["--no-model"] if not has_model and settings.names_model else []
    with as_file(files("quipu") / _CORPORA) as corpora:
        corpus = corpora / "demo"
        code = _say_and_run("--index", index, "add", str(corpus), "--root", str(corpus), *modest)
        for question in _questions(corpora / "demo-questions.json"):
            strategies = [word for name in _STRATEGIES for word in ("-s", name)]
            code = code or _say_and_run("--index", index, "ask", question, *strategies, *modest)
    if not code and not shared().as_json:
        _say_what_next(index)
    return code


def _questions(file: Path) -> list[str]:
    entries = json.loads(file.read_text(encoding="utf-8"))
    return [entry["question"] for entry in entries]


def _say_and_run(*words: str) -> int:
    """Print a command as a user would type it, then run it."""
    as_json = shared().as_json
    if not as_json:
        stdout().print(styled(f"\n$ {shlex.join(['quipu', *words])}", "bold cyan"), soft_wrap=True)
    return run([*words, *(["--json"] if as_json else [])], click.get_current_context().find_root().obj)


def _say_what_next(index: str) -> None:
    console = stdout()
    console.print("\nNow try:", style="bold")
    quoted = shlex.quote(index)
    for line in (
        f'quipu --index {quoted} ask "Who built on the work of Alice Kober?" --trace',
        f'quipu --index {quoted} show entity "Alice Kober"',
        f"quipu --index {quoted} search 长城",
        f"quipu --index {quoted} verify",
        f"quipu --index {quoted} serve   # then open http://127.0.0.1:8787 in a browser",
        "quipu add ./your-folder",
        'quipu ask "your question"',
    ):
        console.print(styled(f"  {line}"), soft_wrap=True)
