"""Summaries: what a language model makes of descriptions too many to be shown, and what it makes that from."""

from dataclasses import dataclass, field
from enum import StrEnum


class SummaryTargetKind(StrEnum):
    """What descriptions are of."""

    ENTITY = "entity"
    RELATION = "relation"


@dataclass(frozen=True, slots=True, order=True)
class SummaryTarget:
    """An entity, by its key, or a relation, by its id."""

    kind: SummaryTargetKind
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """One description, and the first (by id) of the live documents that state it."""

    text: str
    document: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryTask:
    """Descriptions that want a summary: all there are, in the order of their rank.

    `names` are the keys of what they describe, two for a relation: names as shown may change while what is said stays.
    It was read as of `revision`.
    """

    owner: SummaryTarget
    names: tuple[str, ...]
    descriptions: tuple[Description, ...]
    inputs_hash: str
    revision: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A summary of the descriptions of `inputs_hash`; `model` names the model and the prompt that made it."""

    owner: SummaryTarget
    inputs_hash: str
    text: str
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryFailure:
    """A summary that could not be made, and why; it will be tried again."""

    owner: SummaryTarget
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryResult:
    """What a run of summaries did: how many it made, with how many calls (and replies kept before), and what failed.

    `n_outdated` were made of descriptions that have changed meanwhile, and dropped.
    """

    n_done: int = 0
    n_calls: int = 0
    n_reused: int = 0
    n_outdated: int = 0
    failed: tuple[SummaryFailure, ...] = ()
