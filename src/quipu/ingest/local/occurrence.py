"""Occurrence: one place where a chunk's text may name something, and why we think so."""

from dataclasses import dataclass
from enum import StrEnum


class Cue(StrEnum):
    """What made a stretch of text look like a name."""

    TITLE = "title"
    HEADING = "heading"
    SPEAKER = "speaker"
    QUOTED = "quoted"
    CAPITALS = "capitals"
    STARTER = "starter"  # one capitalised word at the start of a sentence: weak
    HAN = "han"
    HAN_BARE = "han bare"  # left over between common Chinese words: weak
    TERM = "term"


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A name as it stands at [start, end) of the chunk's text; `kind` is a type its surroundings give away, or ""."""

    name: str
    start: int
    end: int
    cue: Cue
    kind: str = ""
