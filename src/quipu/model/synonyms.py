"""Synonyms: entities whose names are much alike, as a comparison found them."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SynonymPair:
    """Two entities and the cosine of their names."""

    first: str
    second: str
    similarity: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The names that were compared with all others as of a revision, and the pairs this found.

    What has another name since then, or is gone, is left out when this is written. `anew` first drops every pair there
    is, so that all names are to be compared again; it comes alone.
    """

    revision: int = 0
    names: Sequence[str] = ()  # keys of entities
    pairs: Sequence[SynonymPair] = ()
    anew: bool = False
