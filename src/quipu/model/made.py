"""Made: a note that a derivation is kept."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A derivation that is kept: what it was made by (algorithm, version, parameters), and of which revision."""

    name: str
    identity: str
    revision: int
