"""Counted: a number with its noun, as people read it."""


def counted(n: int, noun: str) -> str:
    """Return a count with its noun, as in "1 document" or "2,000 documents"."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{n:,} {noun if n == 1 else plural}"
