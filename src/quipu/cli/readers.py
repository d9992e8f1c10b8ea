"""Who read the documents of an index, in words, and what is to be done where that is not who would read them now."""

from collections.abc import Sequence

from quipu.cli.session import command_line

_UNNOTED = "a version of Quipu that did not note by what"
_REREAD = "--reread"


def left_as_read(n: int, readers: Sequence[str], now: str) -> str:
    """Say that n unchanged documents were read by others than what is set `now`, and how to read them again."""
    were, them = ("was", "it") if n == 1 else ("were", "them")
    names = _enumerated([f"{now} with other settings" if name == now else name for name in readers])
    again = f"`{command_line('add', _REREAD)}` reads {them} again by what is set now: {now}."
    return f"{n:,} of them {were} read by {names}; {again}"


def others_here(readers: Sequence[tuple[str, int]], now: str) -> str:
    """Name the others who read documents of the index, in brackets; "" where there are none."""
    others = [name for name, _ in readers if name not in ("", now)]
    return f" (others here were read by {_enumerated(others)})" if others else ""


def history(readers: Sequence[tuple[str, int]], now: str) -> str:
    """Tell who read the documents of the index, with how many each where they are several, and who would now."""
    if not readers:
        return f"to be read by {now}"
    most_first = sorted(readers, key=lambda each: (-each[1], each[0]))
    names = [name or _UNNOTED for name, _ in most_first]
    if len(readers) > 1:
        names = [f"{name} ({n:,})" for name, (_, n) in zip(names, most_first, strict=True)]
    is_now = len(readers) == 1 and f"({readers[0][0]})" in now
    return f"read by {_enumerated(names)}" + ("" if is_now else f"; set now: {now}")


def _enumerated(names: Sequence[str]) -> str:
    return ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else "".join(names)
