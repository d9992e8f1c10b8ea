"""Formatting: counts and costs as people read them."""

from quipu.model.derivation import RefreshCost
from quipu.model.usage import MICRO


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
