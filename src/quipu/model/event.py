"""Events: what long-running work tells its caller while it runs."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """`n_done` of `n_total` units of a stage are finished. `n_total` may grow while more work is discovered.

    `stage` is "read", "parse", "extract", "publish", "embed", "remove", "derive" or the name of a derivation.
    """

    stage: str
    n_done: int
    n_total: int
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentDone:
    """Work on a document has ended. `status` is its new status; `error` is "" unless it failed."""

    document_id: str
    status: str
    error: str = ""


Event = Progress | DocumentDone
EventSink = Callable[[Event], None]


def ignore_event(event: Event) -> None:
    """Discard an event: the default EventSink."""
