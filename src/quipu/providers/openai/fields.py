"""Fields of JSON that a stranger wrote: found, or absent."""

from collections.abc import Mapping, Sequence

Step = str | int

MAX_COUNT = 10**9  # of anything in one call: a larger number is damage, and sums of such would overflow


def at(value: object, *path: Step) -> object:
    """Return what stands at `path` in parsed JSON, None where it leads nowhere."""
    for step in path:
        if isinstance(step, str) and isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(step, int) and isinstance(value, list) and -len(value) <= step < len(value):
            value = value[step]
        else:
            return None
    return value


def text_at(value: object, *path: Step) -> str:
    """Return the text at `path`, "" where there is none."""
    found = at(value, *path)
    return found if isinstance(found, str) else ""


def count_at(value: object, *path: Step) -> int | None:
    """Return the whole number from 0 to MAX_COUNT at `path`, None where there is none."""
    found = at(value, *path)
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found <= MAX_COUNT:
        return None
    return int(found)


def list_at(value: object, *path: Step) -> Sequence[object]:
    """Return the list at `path`, () where there is none."""
    found = at(value, *path)
    return found if isinstance(found, list) else ()
