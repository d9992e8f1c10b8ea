"""Usage in tables: what models were asked and what it cost, added up by day, stage, model and subject."""

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

from sqlalchemy import Connection, Row, select

from quipu.model.chat import TokenCount
from quipu.model.usage import Stage, UsageRow
from quipu.stores.relational import schema as s
from quipu.stores.relational.backend import Backend
from quipu.stores.relational.sql import Upsert

QUESTION_DAYS = 90  # for how long the text of a question is kept beside what it cost

# Calls whose subject is a question; that of all others is a document. Vectors of documents have no subject.
_QUESTION_STAGES = (Stage.KEYWORDS, Stage.RERANK, Stage.ANSWER, Stage.JUDGE, Stage.EMBED)

_u = s.usage.c
_ADD = Upsert(s.usage, counts=[column.name for column in _u if not column.primary_key])
_KEY = (_u.day, _u.stage, _u.model, _u.subject)


def add(connection: Connection, backend: Backend, rows: Sequence[UsageRow]) -> None:
    """Add to what was counted before."""
    _ADD.run(connection, backend, [_values(row) for row in rows])


def read(connection: Connection, since: str, until: str) -> list[UsageRow]:
    """Return what was counted on the days from `since` to `until`, both included; "" for no limit."""
    query = select(s.usage).order_by(*_KEY)
    if since:
        query = query.where(_u.day >= since)
    if until:
        query = query.where(_u.day <= until)
    return [_row(row) for row in connection.execute(query)]


def purge(connection: Connection, backend: Backend, today: date) -> int:
    """Forget which document or question calls were for, where it is gone or long ago; the sums stay. Return how many.

    A document is gone when it is neither live nor waiting, a question when it is QUESTION_DAYS old.
    """
    known = select(s.document.c.id).union(select(s.job.c.document))
    is_question = _u.stage.in_(_QUESTION_STAGES)
    long_ago = (today - timedelta(days=QUESTION_DAYS)).isoformat()
    is_gone = (~is_question & _u.subject.not_in(known)) | (is_question & (_u.day < long_ago))
    gone = connection.execute(select(s.usage).where(_u.subject != "", is_gone).order_by(*_KEY)).all()
    connection.execute(s.usage.delete().where(_u.subject != "", is_gone))
    _ADD.run(connection, backend, [{**row._asdict(), "subject": ""} for row in gone])
    return len(gone)


def _values(row: UsageRow) -> dict[str, Any]:
    return {
        "day": row.day,
        "stage": row.stage.value,
        "model": row.model,
        "subject": row.subject,
        "n_calls": row.n_calls,
        "input_tokens": row.tokens.input,
        "cached_tokens": row.tokens.cached,
        "output_tokens": row.tokens.output,
        "cost": row.cost,
        "n_unpriced": row.n_unpriced,
        "n_interrupted": row.n_interrupted,
        "interrupted_input_tokens": row.interrupted_tokens.input,
        "interrupted_cached_tokens": row.interrupted_tokens.cached,
        "interrupted_output_tokens": row.interrupted_tokens.output,
        "interrupted_cost": row.interrupted_cost,
    }


def _row(row: Row[Any]) -> UsageRow:
    return UsageRow(
        day=row.day,
        stage=Stage(row.stage),
        model=row.model,
        subject=row.subject,
        n_calls=row.n_calls,
        tokens=TokenCount(input=row.input_tokens, cached=row.cached_tokens, output=row.output_tokens),
        cost=row.cost,
        n_unpriced=row.n_unpriced,
        n_interrupted=row.n_interrupted,
        interrupted_tokens=TokenCount(
            input=row.interrupted_input_tokens,
            cached=row.interrupted_cached_tokens,
            output=row.interrupted_output_tokens,
        ),
        interrupted_cost=row.interrupted_cost,
    )
