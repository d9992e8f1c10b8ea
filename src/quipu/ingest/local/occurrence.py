"""Occurrence: one place where a chunk's text may name something, and why we think so."""

from dataclasses import dataclass
from enum import StrEnum


class Cue(StrEnum):
    """What made a stretch of text look like a name, strongest first."""

    TITLE = "title"
    SUBJECT = "subject"  # the first name inside a longer title: what the page is about
    HEADING = "heading"
    SPEAKER = "speaker"
    QUOTED = "quoted"
    CAPITALS = "capitals"
    HAN = "han"
    STARTER = "starter"  # one capitalised word at the start of a sentence: weak
    HAN_BARE = "han bare"  # left over between common Chinese words: weak
    TERM = "term"


STRENGTH = {cue: rank for rank, cue in enumerate(Cue)}


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A name as it stands at [start, end) of the chunk's text; `kind` is a type its surroundings give away, or "".

    A name that only the title or a heading has stands at (0, 0).
    """

    name: str
    start: int
    end: int
    cue: Cue
    kind: str = ""
