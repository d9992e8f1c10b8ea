"""What becomes of an error: a message and its remedy on stderr, and an exit code."""

import json
import sys
import traceback
from dataclasses import dataclass

import click

from quipu.cli.terminal import clean, clean_json
from quipu.errors import QuipuError

FAILURE, USAGE, INTERRUPTED = 1, 2, 130


class Stopped(Exception):
    """The user stopped work that is saved as far as it went."""

    def __init__(self, message: str, *, remedy: str) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


@dataclass(frozen=True, slots=True, kw_only=True)
class _Report:
    kind: str
    message: str
    remedy: str
    code: int


def report(error: Exception, *, as_json: bool, is_verbose: bool) -> int:
    """Print `error` to stderr, as one JSON document if asked, and return the exit code it stands for."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return USAGE
    told = _told(error)
    if is_verbose:
        traceback.print_exception(error)
    if as_json:
        body = {"kind": told.kind, "message": told.message, "remedy": told.remedy}
        print(clean_json(json.dumps({"error": body}, ensure_ascii=False)), file=sys.stderr)
    else:
        _print(told)
    return told.code


def _told(error: Exception) -> _Report:
    """Say what a person needs to know of each kind of error."""
    match error:
        case Stopped():
            return _Report(kind="Interrupted", message=error.message, remedy=error.remedy, code=INTERRUPTED)
        case click.Abort():
            return _Report(kind="Interrupted", message="Stopped.", remedy="", code=INTERRUPTED)
        case QuipuError():
            return _Report(kind=type(error).__name__, message=error.message, remedy=error.remedy, code=FAILURE)
        case click.UsageError():
            return _Report(kind="Usage", message=error.format_message(), remedy=_help_hint(error), code=USAGE)
        case click.ClickException():
            return _Report(kind="Usage", message=error.format_message(), remedy="", code=error.exit_code)
        case OSError():
            where = f": {error.filename}" if error.filename else ""
            return _Report(kind="System", message=f"{error.strerror or error}{where}.", remedy="", code=FAILURE)
    message = f"Quipu failed in a way it should not: {type(error).__name__}: {error}"
    remedy = "Please report it to the project with the output of `quipu doctor` and of this command with -v."
    return _Report(kind="Internal", message=message, remedy=remedy, code=FAILURE)


def _help_hint(error: click.UsageError) -> str:
    return f"`{error.ctx.command_path} --help` shows how it is used." if error.ctx else ""


def _print(told: _Report) -> None:
    label = "" if told.code == INTERRUPTED else "Error: "
    click.secho(f"{label}{clean(told.message)}", fg=None if told.code == INTERRUPTED else "red", err=True)
    if told.remedy:
        click.echo(clean(told.remedy), err=True)
