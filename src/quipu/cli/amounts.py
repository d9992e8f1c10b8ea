"""Amounts of money, tokens and time, as people read them."""

from collections.abc import Sequence

from quipu.model.usage import MICRO, UsageRow, total
from quipu.text.formatting import format_count


def money(micro: int) -> str:
    """Return millionths of a unit as money: cents, or as many digits as a small sum needs."""
    value = micro / MICRO
    return f"{value:,.2f}" if value >= 1 or not value else f"{value:.4f}"


def tokens(n: int) -> str:
    """Return a number of tokens, from a million on with three digits."""
    return f"{n:,}" if n < MICRO else f"{n / MICRO:,.2f}M"


def duration(seconds: float) -> str:
    """Return seconds as the two largest units that matter."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.1f} h"


def spent(rows: Sequence[UsageRow]) -> str:
    """Return what models were asked, as in "2 calls: 3,210 tokens in, 120 out, 0.0012"."""
    sums = total(rows)
    parts = [f"{tokens(sums.tokens.input)} tokens in", f"{tokens(sums.tokens.output)} out"]
    if sums.tokens.cached:
        parts.insert(1, f"{tokens(sums.tokens.cached)} of them cached")
    if sums.n_unpriced < sums.n_calls:
        parts.append(money(sums.cost) + (f" ({sums.n_unpriced:,} without a price)" if sums.n_unpriced else ""))
    broken = f"; {sums.n_interrupted:,} broke off, at most {money(sums.interrupted_cost)} more"
    return f"{format_count(sums.n_calls, 'call')}: {', '.join(parts)}{broken if sums.n_interrupted else ''}"
