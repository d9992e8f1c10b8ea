"""Filters: which documents a snapshot may see, worked out once, before any search."""

import re
from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, exists, insert, or_, select
from sqlalchemy import column as sql_column
from sqlalchemy import table as sql_table

from quipu.errors import InvalidInput
from quipu.model.query import Condition, Filter
from quipu.stores.relational import schema as s
from quipu.stores.relational.sql import member_sets

ALLOWED_DOCUMENT = sql_table("allowed_document", sql_column("rid"), schema=None)
ALLOWED_CHUNK = sql_table("allowed_chunk", sql_column("rid"), schema=None)

_DATE = re.compile(r"\d{4}(-\d{2}(-\d{2}(T.+)?)?)?")
_COMPARE: dict[str, Callable[[Any, Any], ColumnElement[bool]]] = {
    "=": lambda left, right: left == right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}


def allow(connection: Connection, allowed: Filter) -> None:
    """Fill the snapshot's temporary tables with what the filter allows. Raises InvalidInput for an empty field."""
    d = s.document.c
    conditions: list[ColumnElement[bool]] = []
    if allowed.documents:
        conditions.append(_named(connection, allowed.documents))
    if allowed.exclude:
        conditions.append(~_named(connection, allowed.exclude))
    conditions += [_holds(condition) for condition in allowed.where]
    for date in filter(None, (allowed.after, allowed.before)):
        _check_date(date)
    if allowed.after:
        conditions.append(_any_value("date", s.metadata_value.c.text >= allowed.after.casefold()))
    if allowed.before:
        # "~" sorts after every digit and dash: 2001 includes all of 2001.
        conditions.append(_any_value("date", s.metadata_value.c.text <= allowed.before.casefold() + "~"))
    documents = select(d.rid).where(and_(True, *conditions))
    connection.execute(insert(ALLOWED_DOCUMENT).from_select(["rid"], documents))
    chunks = select(s.chunk.c.rid).where(s.chunk.c.document.in_(select(ALLOWED_DOCUMENT.c.rid)))
    connection.execute(insert(ALLOWED_CHUNK).from_select(["rid"], chunks))


def is_allowed(chunk: Any) -> ColumnElement[bool]:
    """Hold where the snapshot may see the chunk at this row number.

    EXISTS, not IN: the planner would start from every allowed chunk instead of looking each one up.
    """
    return select(1).where(ALLOWED_CHUNK.c.rid == chunk).correlate_except(ALLOWED_CHUNK).exists()


def _check_date(text: str) -> None:
    if not _DATE.fullmatch(text):
        raise InvalidInput(
            f"{text!r} is not a date.", remedy="Write a year, a month or a day: 1907, 1907-03, 1907-03-31."
        )


def _named(connection: Connection, names: Sequence[str]) -> ColumnElement[bool]:
    """Hold for documents with one of these ids, or an id of one of these patterns; there may be thousands of ids."""
    patterns = [name for name in names if "*" in name or "?" in name]
    ids = sorted(set(names) - set(patterns))
    parts = [s.document.c.id.in_(members) for members in member_sets(connection, s.document.c.id, ids)]
    return or_(*parts, *(_matches(pattern) for pattern in patterns))


def _matches(pattern: str) -> ColumnElement[bool]:
    """Compare a document id with a shell pattern of `*` and `?`."""
    escaped = pattern.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return s.document.c.id.like(escaped.replace("*", "%").replace("?", "_"), escape="\\")


def _holds(condition: Condition) -> ColumnElement[bool]:
    if not condition.field.strip():
        raise InvalidInput("A metadata condition has no field.", remedy='Write it as "field=value".')
    if condition.comparison == "exists":
        return _any_value(condition.field)
    if condition.comparison == "!=":
        return ~_any_value(condition.field, _equals(condition.value))
    return _any_value(condition.field, _compares(condition))


def _compares(condition: Condition) -> ColumnElement[bool]:
    v = s.metadata_value.c
    if condition.comparison == "in":
        parts = [part.strip() for part in condition.value.split(",")]
        numbers = [number for number in map(_number, parts) if number is not None]
        return or_(and_(v.number.is_(None), v.text.in_([p.casefold() for p in parts])), v.number.in_(numbers))
    if condition.comparison == "contains":
        return v.text.contains(condition.value.casefold(), autoescape=True)
    compare = _COMPARE.get(condition.comparison)
    if compare is None:
        raise InvalidInput(
            f"Unknown comparison {condition.comparison!r}.",
            remedy=f"Use one of {', '.join([*_COMPARE, '!=', 'in', 'contains', 'exists'])}.",
        )
    number = _number(condition.value)
    as_text = and_(v.number.is_(None), compare(v.text, condition.value.casefold()))
    return as_text if number is None else or_(as_text, compare(v.number, number))


def _equals(value: str) -> ColumnElement[bool]:
    return _compares(Condition(field="value", comparison="=", value=value))


def _any_value(field: str, *conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    v = s.metadata_value.c
    return exists().where(v.document == s.document.c.rid, v.field == field, *conditions)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
