"""The few single values of an index: schema number, revision, tokenizer, the next vector row."""

from sqlalchemy import Connection, bindparam, select

from quipu.stores.relational import schema as s

_GET = select(s.meta.c.value).where(s.meta.c.key == bindparam("name"))
_GET_SOME = select(s.meta).where(s.meta.c.key.in_(bindparam("names", expanding=True)))
_PUT = s.meta.update().where(s.meta.c.key == bindparam("name")).values(value=bindparam("new"))


def get(connection: Connection, key: str) -> str | None:
    """Return a value, or None where it was never put."""
    return connection.scalar(_GET, {"name": key})


def number(connection: Connection, key: str) -> int:
    """Return a number, 0 where it was never put."""
    return int(get(connection, key) or 0)


def numbers(connection: Connection, *keys: str) -> tuple[int, ...]:
    """Return several numbers in one go."""
    found = {row.key: int(row.value) for row in connection.execute(_GET_SOME, {"names": keys})}
    return tuple(found.get(key, 0) for key in keys)


def put(connection: Connection, key: str, value: str | int) -> None:
    """Set a value."""
    if not connection.execute(_PUT, {"name": key, "new": str(value)}).rowcount:
        connection.execute(s.meta.insert(), {"key": key, "value": str(value)})
