"""Prints an error with its remedy to stderr, and chooses the exit code."""

import json
import sys
import traceback
from dataclasses import dataclass

import click

from quipu.errors import InvalidDocument, InvalidInput, QuipuError
from quipu.text.unicode import clean, clean_json

FAILURE, USAGE, INTERRUPTED = 1, 2, 130


class WorkStopped(Exception):
    """The user stopped the work. Everything finished so far is saved."""

    def __init__(self, message: str, *, remedy: str) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


@dataclass(frozen=True, slots=True, kw_only=True)
class _ErrorReport:
    kind: str
    message: str
    remedy: str
    code: int


def report_error(error: Exception, *, as_json: bool, is_verbose: bool) -> int:
    """Print `error` to stderr, as one JSON document with --json, and return the exit code."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return USAGE
    failure = _describe(error)
    if is_verbose:
        traceback.print_exception(error)
    if as_json:
        body = {"kind": failure.kind, "message": failure.message, "remedy": failure.remedy}
        print(clean_json(json.dumps({"error": body}, ensure_ascii=False)), file=sys.stderr)
    else:
        _print(failure)
    return failure.code


def _describe(error: Exception) -> _ErrorReport:
    """Return what a person needs to know about an error."""
    match error:
        case WorkStopped():
            return _ErrorReport(kind="Interrupted", message=error.message, remedy=error.remedy, code=INTERRUPTED)
        case click.Abort():
            return _ErrorReport(kind="Interrupted", message="Stopped.", remedy="", code=INTERRUPTED)
        case InvalidInput() if not isinstance(error, InvalidDocument):
            return _ErrorReport(kind=type(error).__name__, message=error.message, remedy=error.remedy, code=USAGE)
        case QuipuError():
            return _ErrorReport(kind=type(error).__name__, message=error.message, remedy=error.remedy, code=FAILURE)
        case click.UsageError():
            return _ErrorReport(kind="Usage", message=error.format_message(), remedy=_help_hint(error), code=USAGE)
        case click.ClickException():
            return _ErrorReport(kind="Usage", message=error.format_message(), remedy="", code=USAGE)
        case OSError():
            where = f": {error.filename}" if error.filename else ""
            return _ErrorReport(kind="System", message=f"{error.strerror or error}{where}.", remedy="", code=FAILURE)
    message = f"Quipu failed in a way it should not: {type(error).__name__}: {error}"
    remedy = "Please report it to the project with the output of `quipu doctor` and of this command with -v."
    return _ErrorReport(kind="Internal", message=message, remedy=remedy, code=FAILURE)


def _help_hint(error: click.UsageError) -> str:
    return f"`{error.ctx.command_path} --help` shows how it is used." if error.ctx else ""


def _print(failure: _ErrorReport) -> None:
    label = "" if failure.code == INTERRUPTED else "Error: "
    click.secho(f"{label}{clean(failure.message)}", fg=None if failure.code == INTERRUPTED else "red", err=True)
    if failure.remedy:
        click.echo(clean(failure.remedy), err=True)
