"""Summaries that a language model writes of an entity's or relation's descriptions when there are too many to show."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self


class SummaryTargetKind(StrEnum):
    """What the descriptions are about."""

    ENTITY = "entity"
    RELATION = "relation"


@dataclass(frozen=True, slots=True, order=True)
class SummaryTarget:
    """An entity, by its key, or a relation, by its id."""

    kind: SummaryTargetKind
    id: str

    @classmethod
    def from_id(cls, id_: str) -> Self:
        """Return the entity or relation with this id; no entity's key looks like the id of a relation."""
        return cls(SummaryTargetKind.RELATION if " -- " in id_ else SummaryTargetKind.ENTITY, id_)


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """One description, and the first live document (by id) that states it."""

    text: str
    document: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryTask:
    """All descriptions of one target, in order of rank, to be summarised; read at `revision`.

    `names` are the entity keys of the target, two for a relation. Keys are used because display names may change while
    the descriptions stay the same.
    """

    target: SummaryTarget
    names: tuple[str, ...]
    descriptions: tuple[Description, ...]
    inputs_hash: str
    revision: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A summary of the descriptions with hash `inputs_hash`. `model` identifies the model and the prompt."""

    target: SummaryTarget
    inputs_hash: str
    text: str
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryFailure:
    """A summary that failed, and why. The next refresh tries again."""

    target: SummaryTarget
    error: str
