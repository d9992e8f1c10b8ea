"""Budgets as people write them: "5.00", "2M tokens", "300 calls", or several with commas between."""

import re

from quipu.model.usage import MICRO, SpendingLimit

SPENDING = 'money, tokens or calls, as in "5.00", "2M tokens" or "5.00, 300 calls", with no comma within a number'

_PART = re.compile(r"[$€£]?\s*(\d[\d_]*(?:\.\d+)?)\s*([km]?)\s*(tokens?|calls?|)", re.IGNORECASE)
_COMMA_IN_NUMBER = re.compile(r"\d,\d")
_THOUSANDS = {"": 1, "k": 1_000, "m": 1_000_000}


def parse_spending(text: str) -> SpendingLimit:
    """Return the limits that `text` names; raises ValueError where it names none, or one twice.

    A comma between digits is refused: "1,5M tokens" is one limit to some, and was two here.
    """
    if _COMMA_IN_NUMBER.search(text):
        raise ValueError("a comma stands between two limits, with a space behind it; write 1.5M or 1000")
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
    return SpendingLimit(**found)
