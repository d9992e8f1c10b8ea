"""Lexicon: the word lists the rules consult, read once from the text files beside this module."""

from functools import cache
from importlib.resources import files


@cache
def word_set(name: str) -> frozenset[str]:
    """Return the casefolded words of the list `name`; a line that starts with "#" is a remark."""
    text = (files("quipu.ingest.local") / "lexicon" / f"{name}.txt").read_text("utf-8")
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    return frozenset(word for line in lines for word in line.casefold().split())
