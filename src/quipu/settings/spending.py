"""Budgets as people write them: "5.00", "2M tokens", "300 calls", or several with commas between."""

import re

from quipu.model.usage import MICRO, Spending

SPENDING = 'money, tokens or calls, as in "5.00", "2M tokens" or "5.00, 300 calls"'

_PART = re.compile(r"[$€£]?\s*(\d[\d_]*(?:\.\d+)?)\s*([km]?)\s*(tokens?|calls?|)", re.IGNORECASE)
_THOUSANDS = {"": 1, "k": 1_000, "m": 1_000_000}


def parse_spending(text: str) -> Spending:
    """Return the limits that `text` names; raises ValueError where it names none, or one twice."""
    found: dict[str, int] = {}
    for part in text.split(","):
        match = _PART.fullmatch(part.strip())
        if match is None:
            raise ValueError(f"{part.strip()!r} is no amount")
        number, scale, unit = float(match[1].replace("_", "")), _THOUSANDS[match[2].lower()], match[3].lower()
        kind = unit.rstrip("s") + "s" if unit else "cost"
        if kind in found:
            raise ValueError(f"{kind} are named twice")
        found[kind] = round(number * scale * (MICRO if kind == "cost" else 1))
    return Spending(**found)
