"""Events: what long-running work tells its caller while it runs."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """What models have cost since a call of the engine began. `cost` is in millionths of a unit of money.

    Calls without a complete reply count with the most that they may have cost; replies from the cache cost nothing.
    """

    n_calls: int = 0
    n_tokens: int = 0
    cost: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """`n_done` of `n_total` units of a stage are finished. `n_total` may grow while more work is discovered.

    `stage` is "read", "pages" (of one long PDF), "pictures", "extract", "embed", "remove", "import", "sample", "ask",
    "summarise", "aggregate", "derive", "backup", "restore", "check" or the name of a derivation. `document_id` is the
    document of the unit that was finished last; "" for work that belongs to no single document. `spent` is what the
    call has spent so far.
    """

    stage: str
    n_done: int
    n_total: int
    detail: str = ""
    document_id: str = ""
    spent: Spending = Spending()


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentDone:
    """Work on a document has ended. `status` is its new status; `error` is "" unless it failed.

    `spent` is what the call has spent so far, for all its documents.
    """

    document_id: str
    status: str
    error: str = ""
    spent: Spending = Spending()


Event = Progress | DocumentDone
EventSink = Callable[[Event], None]


def ignore_event(event: Event) -> None:
    """Discard an event: the default EventSink."""
