"""Formatting: counts, costs and wrapped lines as people read them."""

import re
from collections.abc import Iterator
from itertools import pairwise

from quipu.model.derivation import RefreshCost
from quipu.model.usage import MICRO

MIN_WRAPPED_CHARS = 50  # of the longest line: shorter ones are verses, addresses or code

_NO_PROSE = re.compile(r"\s*(?:#{1,6}\s|[|>]|[-=~*_]{3,}\s*$)|.* \| ")
_ITEM = re.compile(r"\s*(?:[-*+•]|\(?[\w]{1,3}[.)])\s")
_FENCE = re.compile(r"\s*(?:`{3}|~{3})")


def wrapped_lines(lines: list[str]) -> Iterator[int]:
    """Yield the numbers of the lines, from 0, that go on in the next one, as in paragraphs of e-mails.

    No line of such a paragraph has room for the first word of the next one. Code between fences and tables have none.
    """
    paragraph: list[int] = []
    is_code = False
    for number, line in enumerate([*lines, ""]):
        is_fence = _FENCE.match(line) is not None
        is_prose = bool(line.strip()) and not (is_code or is_fence or _NO_PROSE.match(line))
        is_code ^= is_fence
        if not is_prose or _ITEM.match(line):
            yield from paragraph[:-1] if _is_wrapped([lines[n].rstrip() for n in paragraph]) else ()
            paragraph = []
        if is_prose:
            paragraph.append(number)


def _is_wrapped(lines: list[str]) -> bool:
    width = max(map(len, lines), default=0)
    return width >= MIN_WRAPPED_CHARS and all(len(f"{a} {b.split()[0]}") > width for a, b in pairwise(lines))


def format_count(n: int, noun: str) -> str:
    """Return a number with its noun, as in "1 document" or "2,000 documents"."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{n:,} {noun if n == 1 else plural}"


def format_times(n: int) -> str:
    """Return how often something occurs, as in "once" or "12 times"."""
    return "once" if n == 1 else f"{n:,} times"


def format_cost(cost: RefreshCost) -> str:
    """Return a cost in words.

    An example: "about 41 model calls (120,000 tokens in, 8,000 out, 0.0123 USD), 300 texts to embed".
    """
    parts = []
    if cost.n_calls:
        details = []
        if cost.input_tokens:
            details = [f"{format_count(cost.input_tokens, 'token')} in", f"{cost.output_tokens:,} out"]
        if cost.money is not None:
            details.append(f"{cost.money / MICRO:.4f} {cost.currency}".rstrip())
        in_brackets = f" ({', '.join(details)})" if details else ""
        parts.append(f"about {format_count(cost.n_calls, 'model call')}{in_brackets}")
    if cost.n_texts:
        parts.append(f"{format_count(cost.n_texts, 'text')} to embed")
    return ", ".join(parts) or "nothing to pay"
