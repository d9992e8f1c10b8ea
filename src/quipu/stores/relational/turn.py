"""The turn to derive: one worker at a time makes what is derived, under a lease, so that no call is paid for twice."""

from sqlalchemy import Connection

from quipu.stores.relational import meta
from quipu.stores.relational.lease import is_dead

_TURN = "deriving"  # "UNTIL OWNER", "" while it is nobody's


def begin(connection: Connection, owner: str, *, now_s: float, lease_s: float) -> bool:
    """Take the turn; return False where it is taken by another."""
    if _held(connection)[1] != owner and is_taken(connection, now_s=now_s):
        return False
    _hold(connection, owner, now_s + lease_s)
    return True


def is_taken(connection: Connection, *, now_s: float) -> bool:
    """Say whether anybody has the turn who, as far as is known, lives and whose lease runs."""
    until_s, holder = _held(connection)
    return bool(holder) and until_s >= now_s and not is_dead(holder)


def renew(connection: Connection, owner: str, until_s: float) -> None:
    """Renew the lease of the turn where this owner has it."""
    if _held(connection)[1] == owner:
        _hold(connection, owner, until_s)


def end(connection: Connection, owner: str) -> None:
    """Give the turn back where this owner has it."""
    if _held(connection)[1] == owner:
        meta.put(connection, _TURN, "")


def _held(connection: Connection) -> tuple[float, str]:
    until_s, _, holder = (meta.get(connection, _TURN) or "").partition(" ")
    return float(until_s or 0), holder


def _hold(connection: Connection, owner: str, until_s: float) -> None:
    meta.put(connection, _TURN, f"{until_s} {owner}")
