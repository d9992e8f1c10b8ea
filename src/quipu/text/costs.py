"""Costs of refreshing, as people read them."""

from quipu.model.derivation import RefreshCost
from quipu.model.usage import MICRO
from quipu.text.counted import counted


def cost_in_words(cost: RefreshCost) -> str:
    """Return it as in "about 41 calls of a model (120,000 tokens in, 8,000 out, 0.0123), 300 texts to embed"."""
    parts = []
    if cost.n_calls:
        told = [f"{counted(cost.input_tokens, 'token')} in", f"{cost.output_tokens:,} out"] if cost.input_tokens else []
        told += [] if cost.money is None else [f"{cost.money / MICRO:.4f}"]
        details = f" ({', '.join(told)})" if told else ""
        parts.append(f"about {counted(cost.n_calls, 'call')} of a model{details}")
    if cost.n_texts:
        parts.append(f"{counted(cost.n_texts, 'text')} to embed")
    return ", ".join(parts) or "no call of a model"
