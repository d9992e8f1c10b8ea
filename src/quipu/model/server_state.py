"""Server state: what a server remembers about a workspace beside its index: jobs, and replies it would repeat."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerJob:
    """Work that a server does after it has answered: documents to read, or derivations to refresh.

    `kind` is "add" or "refresh", `subjects` are ids of documents or names of derivations. `stage`, `n_done` and
    `n_total` are the latest progress of the process that works on it. `stopped` says why it rests before its end, ""
    if it does not. Times are ISO 8601 in UTC, "" for not yet.
    """

    id: str
    kind: str
    subjects: tuple[str, ...]
    created_at: str
    started_at: str = ""
    finished_at: str = ""
    stage: str = ""
    n_done: int = 0
    n_total: int = 0
    stopped: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredReply:
    """A reply to a request with an Idempotency-Key; `digest` is that of the request.

    `status` is 0 until the reply is there. `created` is the time in seconds since 1970.
    """

    key: str
    digest: str
    status: int
    body: bytes
    created: float
