"""The few single values of an index: schema number, revision, tokenizer, the next vector row."""

from sqlalchemy import Connection, bindparam, select

from quipu.stores.relational import schema as s

_GET = select(s.meta.c.value).where(s.meta.c.key == bindparam("name"))
_PUT = s.meta.update().where(s.meta.c.key == bindparam("name")).values(value=bindparam("new"))


def get(connection: Connection, key: str) -> str | None:
    """Return a value, or None where it was never put."""
    return connection.scalar(_GET, {"name": key})


def number(connection: Connection, key: str) -> int:
    """Return a number, 0 where it was never put."""
    return int(get(connection, key) or 0)


def put(connection: Connection, key: str, value: str | int) -> None:
    """Set a value."""
    if not connection.execute(_PUT, {"name": key, "new": str(value)}).rowcount:
        connection.execute(s.meta.insert(), {"key": key, "value": str(value)})
