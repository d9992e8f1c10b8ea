"""Lexicon: the word lists the rules consult, read once from the text files beside this module."""

from functools import cache
from importlib.resources import files


def words(text: str) -> frozenset[str]:
    """Return the words of `text`, as a set."""
    return frozenset(text.split())


@cache
def word_set(name: str) -> frozenset[str]:
    """Return the casefolded words of the list `name`; a line that starts with "#" is a remark."""
    text = (files("quipu.ingest.local") / "lexicon" / f"{name}.txt").read_text("utf-8")
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    return frozenset(word for line in lines for word in line.casefold().split())


@cache
def function_words() -> frozenset[str]:
    """Return the words that hold sentences together and say nothing themselves, of languages with capitals."""
    return word_set("en_function") | word_set("ru_function")


@cache
def opening_words() -> frozenset[str]:
    """Return the words that begin sentences and never names, of languages with capitals."""
    return function_words() | word_set("en_openers") | word_set("ru_openers")


@cache
def empty_words() -> frozenset[str]:
    """Return the words that name nothing on their own, even with a capital."""
    lists = ("en_common", "ru_common", "demonyms", "roles")
    return opening_words().union(*(word_set(name) for name in lists))
