"""Formatting: counts and costs as people read them, and texts that are safe to print.

Text of documents and names of files may hold control characters, which must not reach the terminal.
"""

import json
import unicodedata

from quipu.model.derivation import RefreshCost
from quipu.model.usage import MICRO

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_JOINERS = "\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}\N{SOFT HYPHEN}"
_MAX_NAME = 1_000  # characters


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


def clean(text: str) -> str:
    """Return `text` with control characters replaced, except line ends and tabs."""
    return "".join(_REPLACEMENT if _is_control(character) else character for character in text)


def clean_name(name: str) -> str:
    """Return the name of a document or file on one line, cut if very long, so that it cannot imitate our output."""
    line = clean(name.replace("\n", _REPLACEMENT).replace("\t", _REPLACEMENT))
    return line if len(line) <= _MAX_NAME else f"{line[:_MAX_NAME]}…"


def clean_json(text: str) -> str:
    """Return JSON with control characters escaped; its values stay the same."""
    return "".join(json.dumps(character)[1:-1] if _is_control(character) else character for character in text)


def _is_control(character: str) -> bool:
    return character not in "\n\t" and unicodedata.category(character) in ("Cc", "Cf") and character not in _JOINERS
