"""Events: what long work reports while it runs."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """`done` of `total` units of a stage are finished; `total` may grow while work is found."""

    stage: str  # "read" | "parse" | "extract" | "publish" | "embed" | "remove" | "derive" | a derivation
    done: int
    total: int
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentDone:
    """A document reached the end of its way, well or badly."""

    document_id: str
    status: str
    error: str = ""


Event = Progress | DocumentDone


EventSink = Callable[[Event], None]


def ignore_event(event: Event) -> None:
    """Take an event and do nothing."""
