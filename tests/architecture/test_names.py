"""Names: a class name stands for one thing, a local name says what it holds, and no text uses archaic words.

VAGUE_NAMES_LEFT counts, by module, the local names that say nothing. The list may only shrink: a count that is higher
than the truth fails, and so does a module that is not in the list.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping

from scripts.house import VAGUE_NAMES, Source, local_names, read_sources, repeated_classes

VAGUE_NAMES_LEFT: Mapping[str, int] = {}

ARCHAIC = re.compile(
    r"\b(whence|thereof|therein|hitherto|whither|thence|henceforth|betimes|whilst|mend(s|ed)?)\b", re.I
)


def test_no_local_name_says_nothing() -> None:
    counts: Counter[str] = Counter()
    for place in local_names(read_sources()):
        module, _, name = place.rpartition(" ")
        counts[module.partition(":")[0]] += name in VAGUE_NAMES
    assert {module: n for module, n in counts.items() if n} == VAGUE_NAMES_LEFT


def test_no_class_name_is_used_twice() -> None:
    assert repeated_classes(read_sources()) == ()


def test_no_text_uses_an_archaic_word() -> None:
    texts = [(source.name, text) for source in read_sources() for text in _texts(source)]
    assert [(name, match.group()) for name, text in texts if (match := ARCHAIC.search(text))] == []


def _texts(source: Source) -> Iterator[str]:
    """Yield the docstrings and string literals of a module."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
