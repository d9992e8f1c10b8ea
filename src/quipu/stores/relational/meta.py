"""The few single values of an index: schema number, revision, tokenizer, the next vector row."""

from sqlalchemy import Connection, select

from quipu.stores.relational import schema as s


def get(connection: Connection, key: str) -> str | None:
    """Return a value, or None where it was never put."""
    return connection.scalar(select(s.meta.c.value).where(s.meta.c.key == key))


def number(connection: Connection, key: str) -> int:
    """Return a number, 0 where it was never put."""
    return int(get(connection, key) or 0)


def put(connection: Connection, key: str, value: str | int) -> None:
    """Set a value."""
    changed = connection.execute(s.meta.update().where(s.meta.c.key == key).values(value=str(value)))
    if not changed.rowcount:
        connection.execute(s.meta.insert().values(key=key, value=str(value)))
