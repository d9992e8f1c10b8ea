"""Heading path: the headings above the place a parser has reached."""

MAX_HEADING = 300  # characters; what is longer is marked up as a heading, but is text


class HeadingPath:
    """Keeps the open headings while a document is read from top to bottom."""

    def __init__(self) -> None:
        self._open: list[tuple[int, str]] = []

    def above(self, level: int | None = None) -> tuple[str, ...]:
        """Return the headings above text here, outermost first, or above a new heading of `level`."""
        return tuple(text for depth, text in self._open if level is None or depth < level)

    def enter(self, level: int, text: str) -> None:
        """Go below a heading of `level` (1 is the highest); headings of its level and lower ones end."""
        self._open = [(depth, heading) for depth, heading in self._open if depth < level]
        self._open.append((level, text))

    def leave(self, level: int) -> None:
        """End the headings of `level` and those below it."""
        self._open = [(depth, heading) for depth, heading in self._open if depth < level]
