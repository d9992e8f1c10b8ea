"""Server state: what a server remembers about a workspace beside its index: jobs, and replies it would repeat.

It is one small SQLite file, shared by all processes of a server. So is what they spend while the server runs.
"""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.pool import NullPool

from quipu.model.usage import Amount, LedgerSums

FILE_NAME = ".server.sqlite"
MAX_RESERVED_S = 60.0  # which a key stays reserved without a reply, unless it is renewed
_MAX_JOBS = 1_000  # finished ones that are remembered

_metadata = sa.MetaData()
_JOB = sa.Table(
    "job",
    _metadata,
    sa.Column("n", sa.Integer, primary_key=True),
    sa.Column("id", sa.Text, nullable=False, unique=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("subjects", sa.Text, nullable=False),
    sa.Column("created_at", sa.Text, nullable=False),
    sa.Column("started_at", sa.Text, nullable=False),
    sa.Column("finished_at", sa.Text, nullable=False, index=True),
    sa.Column("stage", sa.Text, nullable=False),
    sa.Column("n_done", sa.Integer, nullable=False),
    sa.Column("n_total", sa.Integer, nullable=False),
    sa.Column("stopped", sa.Text, nullable=False),
)
_REPLY = sa.Table(
    "reply",
    _metadata,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("digest", sa.Text, nullable=False),
    sa.Column("status", sa.Integer, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
    sa.Column("created", sa.Float, nullable=False),
)


_SPENDING = """
    CREATE TABLE IF NOT EXISTS spending (process INTEGER PRIMARY KEY, cost INTEGER, tokens INTEGER, calls INTEGER,
        reserved_cost INTEGER, reserved_tokens INTEGER, reserved_calls INTEGER)
"""
# A process with this number that died may have paid for all that it reserved.
_BEGIN_SPENDING = """
    INSERT INTO spending VALUES (?, 0, 0, 0, 0, 0, 0) ON CONFLICT DO UPDATE SET cost = cost + reserved_cost,
        tokens = tokens + reserved_tokens, calls = calls + reserved_calls,
        reserved_cost = 0, reserved_tokens = 0, reserved_calls = 0
"""
_SUMS = """
    SELECT sum(cost), sum(tokens), sum(calls), sum(reserved_cost), sum(reserved_tokens), sum(reserved_calls)
    FROM spending
"""
_ADD_SPENDING = """
    UPDATE spending SET cost = cost + ?, tokens = tokens + ?, calls = calls + ?, reserved_cost = reserved_cost + ?,
        reserved_tokens = reserved_tokens + ?, reserved_calls = reserved_calls + ?
    WHERE process = ?
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerJob:
    """Work that a server does after it has answered: documents to read, or derivations to refresh.

    `kind` is "add" or "refresh", `subjects` are ids of documents or names of derivations. `stage`, `n_done` and
    `n_total` are the latest progress of the process that works on it. `stopped` says why it rests, or was ended,
    before its work was done; "" if that is not so. Times are ISO 8601 in UTC, "" for not yet.
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


class ServerState:
    """The state of one workspace. Every method opens the file for itself, so that any thread may call it."""

    def __init__(self, folder: Path) -> None:
        self._engine = sa.create_engine(
            sa.URL.create("sqlite", database=str(folder / FILE_NAME)), poolclass=NullPool, connect_args={"timeout": 30}
        )
        with self._writing() as connection:
            connection.exec_driver_sql("PRAGMA journal_mode = WAL")
        _metadata.create_all(self._engine)

    def add_job(self, job: ServerJob) -> None:
        """Remember a job, and forget the oldest of many finished ones."""
        with self._writing() as connection:
            connection.execute(sa.insert(_JOB).values({**asdict(job), "subjects": json.dumps(job.subjects)}))
            old = sa.select(_JOB.c.n).where(_JOB.c.finished_at != "").order_by(_JOB.c.n.desc()).offset(_MAX_JOBS)
            connection.execute(sa.delete(_JOB).where(_JOB.c.n.in_(old)))

    def job(self, job_id: str) -> ServerJob | None:
        """Return a job, None if there is none of this id."""
        jobs = self._jobs(_JOB.c.id == job_id, k=1)
        return jobs[0] if jobs else None

    def jobs(self, *, k: int = 100, is_unfinished: bool = False, after: str = "") -> Sequence[ServerJob]:
        """Return the latest jobs, the newest first; with `after`, those before the job with this id."""
        condition = _JOB.c.finished_at == "" if is_unfinished else sa.true()
        if after:
            condition &= _JOB.c.n < sa.select(_JOB.c.n).where(_JOB.c.id == after).scalar_subquery()
        return self._jobs(condition, k=k)

    def update_jobs(self, ids: Sequence[str], **values: str | int) -> None:
        """Set fields of those of these jobs that have not ended."""
        with self._writing() as connection:
            connection.execute(sa.update(_JOB).where(_JOB.c.id.in_(ids), _JOB.c.finished_at == "").values(values))

    def reply(self, key: str) -> StoredReply | None:
        """Return the reply to the request with this key, None if there is none."""
        with self._engine.connect() as connection:
            row = connection.execute(sa.select(_REPLY).where(_REPLY.c.key == key)).first()
        return StoredReply(**row._mapping) if row else None

    def add_reply(self, reply: StoredReply, since: float) -> bool:
        """Remember a reply, and forget those from before `since`; return False if there is one with this key.

        A reply with the status 0 reserves the key. Where a process died before its reply, that ends after a minute.
        """
        unanswered = (_REPLY.c.status == 0) & (_REPLY.c.created < reply.created - MAX_RESERVED_S)
        with self._writing() as connection:
            connection.execute(sa.delete(_REPLY).where((_REPLY.c.created < since) | unanswered))
            added = connection.execute(insert(_REPLY).values(asdict(reply)).on_conflict_do_nothing())
        return added.rowcount == 1

    def renew_reply(self, key: str, now: float) -> None:
        """Keep a key reserved for another minute, if its reply is not there yet."""
        with self._writing() as connection:
            unanswered = (_REPLY.c.key == key) & (_REPLY.c.status == 0)
            connection.execute(sa.update(_REPLY).where(unanswered).values(created=now))

    def update_reply(self, reply: StoredReply) -> None:
        """Set the reply for a reserved key."""
        with self._writing() as connection:
            connection.execute(sa.update(_REPLY).where(_REPLY.c.key == reply.key).values(asdict(reply)))

    def remove_reply(self, key: str) -> None:
        """Forget a key: its request failed, and may be sent again."""
        with self._writing() as connection:
            connection.execute(sa.delete(_REPLY).where(_REPLY.c.key == key))

    def _jobs(self, condition: "sa.ColumnElement[bool]", *, k: int) -> list[ServerJob]:
        query = sa.select(_JOB).where(condition).order_by(_JOB.c.n.desc()).limit(k)
        with self._engine.connect() as connection:
            return [_job(row._mapping) for row in connection.execute(query)]

    @contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        with self._engine.begin() as connection:
            connection.exec_driver_sql("PRAGMA synchronous = NORMAL")
            yield connection


def _job(row: Any) -> ServerJob:
    values = {name: row[name] for name in ServerJob.__dataclass_fields__}
    return ServerJob(**{**values, "subjects": tuple(json.loads(row["subjects"]))})


class SpendingFile:
    """What the processes of a server spent of one budget: cost, tokens, calls, and as much of each that is reserved.

    It is a file of its own, in which each process has a row by its number, and lives as long as the server. A change
    takes a tenth of a millisecond, and a call of a model far more.
    """

    def __init__(self, path: Path, process: int) -> None:
        self._process = process
        self._file = sqlite3.connect(path, timeout=30, isolation_level=None)
        self._file.execute("PRAGMA synchronous = OFF")  # a machine that fails ends the server, too
        self._file.execute(_SPENDING)
        self._file.execute(_BEGIN_SPENDING, (process,))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep all other processes from changing anything during the block."""
        self._file.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            self._file.execute("COMMIT")

    def read(self) -> LedgerSums:
        """Return the sums over all processes."""
        cost, tokens, calls, *reserved = self._file.execute(_SUMS).fetchone()
        return LedgerSums(
            spent=Amount(cost=cost, tokens=tokens, calls=calls),
            reserved=Amount(cost=reserved[0], tokens=reserved[1], calls=reserved[2]),
        )

    def add(self, change: LedgerSums) -> None:
        """Add to both sums of this process; inside `locked`."""
        self._file.execute(_ADD_SPENDING, (*astuple(change.spent), *astuple(change.reserved), self._process))
