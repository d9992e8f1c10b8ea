"""Texts on the command line: given as they are, or as @FILE."""

from pathlib import Path

import click


def text_or_file(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    """Return the text of an option, or the content of the file named behind an @; a callback for click."""
    if not value.startswith("@"):
        return value
    try:
        return Path(value[1:]).expanduser().read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise click.BadParameter(f"{value[1:]} cannot be read ({reason}).", ctx, parameter) from None
