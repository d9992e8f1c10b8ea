"""The command line: its commands, and how errors are reported."""

import gc
import io
import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from importlib import import_module
from keyword import iskeyword
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NoReturn, cast

import click

from quipu.cli.errors import report_error
from quipu.cli.options import QuipuGroup
from quipu.text.unicode import clean

if TYPE_CHECKING:
    from quipu.cli.options import Opener

COMMANDS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "Everyday": {
            "add": "Add files, folders or text to the index.",
            "mirror": "Keep the index equal to a folder.",
            "import": "Add documents with a graph that another system extracted.",
            "ask": "Answer a question, with citations.",
            "compare": "Ask several strategies the same question, side by side.",
            "explain": "Show why a passage is among the evidence for a question.",
            "search": "Find passages and entities by their words.",
            "show": "Show a document, chunk, entity, relation or report, or a part of the graph.",
            "docs": "List the documents of the index.",
            "remove": "Remove documents and the facts that only they state.",
            "status": "Show what the index contains, what is queued and what is stale.",
            "usage": "Show the calls, tokens and cost of models.",
        },
        "Unfinished work": {
            "resume": "Finish work that was stopped or killed.",
            "work": "Read documents that others queue, until Ctrl-C.",
            "retry": "Try failed documents again.",
            "cancel": "Drop queued work; live documents stay.",
        },
        "Corrections": {
            "edit": "Correct the graph; an edit survives updates and can be undone.",
            "resolve": "Find entities that may be one, and merge them or tell them apart.",
            "history": "List the edits of the graph, or those of one entity.",
            "undo": "Undo edits: the graph is then as if they had never been made.",
        },
        "The index": {
            "verify": "Recompute every derivation and compare it with the index.",
            "dump": "Print the canonical state as JSON lines.",
            "copy": "Copy an index between folders and databases.",
            "export": "Write the graph to FILE: entities and their relations, in some formats documents, too.",
            "backup": "Write everything that the index holds to one archive.",
            "restore": "Make the index again from an archive of `quipu backup`.",
            "refresh": "Bring derivations up to date, or compute one on demand.",
            "reembed": "Compute every vector again with the current embedder.",
            "bench": "Measure strategies on your documents and questions, say which one to choose, and measure speed.",
            "tune": "Suggest an ontology for your documents from a sample.",
            "purge": "Drop earlier versions, cached replies and vectors that nothing needs.",
        },
        "Other programs": {
            "serve": "Serve an index over HTTP, or every index below a folder.",
            "mcp": "Answer a client of the Model Context Protocol (MCP).",
            "keys": "Create, list and revoke the keys of a server.",
        },
        "About Quipu": {
            "demo": "Index a small corpus and ask six questions.",
            "strategies": "List the retrieval strategies.",
            "config": "Show each setting and its origin.",
            "doctor": "Check that everything works here.",
        },
    }
)


_SHARED_MODULES = {
    **dict.fromkeys(("verify", "dump", "copy", "reembed", "purge"), "maintenance"),
    **dict.fromkeys(("resume", "work", "retry", "cancel"), "jobs"),
    **dict.fromkeys(("backup", "restore"), "backup"),
    **dict.fromkeys(("edit", "history", "undo"), "edit"),
    "docs": "status",
    "status": "status",
}


class _LazyGroup(QuipuGroup):
    """Imports a command's module only when the command is used, so that `quipu --help` stays quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, in the order of the help page."""
        return [name for section in COMMANDS.values() for name in section]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of that name from its module."""
        if cmd_name not in self.list_commands(ctx):
            return None
        return load_command(cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table of commands without importing them."""
        for title, section in COMMANDS.items():
            with formatter.section(title):
                formatter.write_dl(list(section.items()))


def load_command(name: str) -> click.Command:
    """Import the module of a command and return the command."""
    if name in _SHARED_MODULES:
        return cast(click.Command, getattr(import_module(f"quipu.cli.commands.{_SHARED_MODULES[name]}"), name))
    module = f"{name}_" if iskeyword(name) else name  # a keyword cannot name a module
    return cast(click.Command, import_module(f"quipu.cli.commands.{module}").command)


@click.group(
    cls=_LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    examples=(
        "quipu demo",
        "quipu add ./notes",
        'quipu ask "Who built on the work of Alice Kober?"',
        "quipu ask --help",
    ),
)
def cli() -> None:
    """Quipu reads documents once, keeps what they say as a graph with the proof of every fact, and answers
    questions with citations. It needs no key, no server and no download."""


def run(arguments: Sequence[str], opener: "Opener | None" = None) -> int:
    """Run one command line and return its exit code; `opener` opens the index in place of the real one."""
    as_json = "--json" in arguments
    is_verbose = not {"-v", "--verbose"}.isdisjoint(arguments)
    _prepare_streams(as_json)
    try:
        with _log_to_stderr() if is_verbose else nullcontext():
            code = cli.main(list(arguments), prog_name="quipu", standalone_mode=False, obj=opener)
    except Exception as error:
        return report_error(error, as_json=as_json, is_verbose=is_verbose)
    return code if isinstance(code, int) else 0


def main() -> NoReturn:
    """Run the command line of this process.

    Garbage collection is off until the engine is open: start-up creates no garbage, and looking for it takes a tenth
    of the time.
    """
    gc.disable()
    sys.exit(run(sys.argv[1:]))


class _LogFormatter(logging.Formatter):
    """One line for each record, without characters that steer a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        return clean(super().format(record))


@contextmanager
def _log_to_stderr() -> Iterator[None]:
    """Print what the library logs, from INFO up, to stderr within the context."""
    logger, handler = logging.getLogger("quipu"), logging.StreamHandler()
    handler.setFormatter(_LogFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)


def _prepare_streams(as_json: bool) -> None:
    """Escape the characters that the terminal cannot show, so that no document can stop the output.

    A stream that the caller has closed is replaced by the null device; otherwise output would go into the next file
    that is opened.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - open as long as the process runs
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8" if as_json else None, errors="backslashreplace")
