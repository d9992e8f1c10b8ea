"""Texts on the command line: given as they are, or as @FILE."""

from pathlib import Path

import click

MAX_BYTES = 1_000_000  # of a prompt or a history: what is longer is no such thing, or never ends


def text_or_file(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    """Return the text of an option, or the content of the file named behind an @; a callback for click."""
    if not value.startswith("@"):
        return value
    try:
        return read_text(Path(value[1:]).expanduser()).strip()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise click.BadParameter(f"{value[1:]} cannot be read ({reason}).", ctx, parameter) from None


def read_text(file: Path) -> str:
    """Return the text of a file. Raises OSError; ValueError with the reason where it is too long or no text."""
    with file.open("rb") as opened:
        data = opened.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ValueError(f"it holds more than {MAX_BYTES:,} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8 text") from None
