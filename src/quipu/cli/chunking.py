"""Chunking on the command line: how the documents of one call are cut."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import click

from quipu.cli.session import load_settings
from quipu.model.chunking import TAKES, Chunking

_ESCAPES = {"\\n": "\n", "\\t": "\t", "\\f": "\f", "\\\\": "\\"}
_OPTIONS = (
    click.option("--chunker", "method", type=click.Choice(list(TAKES)), help="How to cut these documents."),
    click.option("--chunk-tokens", "max_tokens", type=int, metavar="N", help="Most tokens a chunk."),
    click.option("--chunk-overlap", "overlap", type=int, metavar="N", help="Tokens repeated of the chunk before."),
    click.option("--chunk-separator", "separator", metavar="TEXT", help=r"Text to cut at; \n ends a line, \f a page."),
    click.option("--chunk-percentile", "percentile", type=int, metavar="N", help="Percentage of places not to cut at."),
)


def chunking_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of `parse_chunking`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def parse_chunking(**options: str | int | None) -> Chunking | None:
    """Return what the options say, or None where they say nothing.

    A chunker that is named is taken with its defaults; without one, the options change the one in the settings. Raises
    InvalidInput for what cannot be meant.
    """
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    if "separator" in given:
        given["separator"] = re.sub(r"\\[ntf\\]", lambda found: _ESCAPES[found[0]], given["separator"])
    if not given:
        return None
    return Chunking(**given) if "method" in given else replace(load_settings().default_chunking, **given)
