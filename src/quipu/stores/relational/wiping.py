"""Wiping: full text without the words of what was removed, which its segments hold until they are merged.

To merge them takes as long as the whole index is large. For removed documents that is done at once, and where documents
were updated when a tenth of all chunks has changed: then it costs each of them as much as ten chunks.
"""

from sqlalchemy import Connection, func, select

from quipu.stores.relational import meta
from quipu.stores.relational import schema as s
from quipu.stores.relational.backend import Backend

_GONE = "text_gone"  # how many chunks have been taken out since the last time
_AT_ONCE = 10**12
_SHARE = 10  # of all chunks, one in so many


def note(connection: Connection, n_gone: int, *, at_once: bool) -> None:
    """Note that chunks have been taken out of full text."""
    if n_gone:
        meta.put(connection, _GONE, _AT_ONCE if at_once else meta.number(connection, _GONE) + n_gone)


def is_due(connection: Connection) -> bool:
    """Say whether full text should be wiped now."""
    n_gone = meta.number(connection, _GONE)
    return n_gone > 0 and n_gone * _SHARE >= (connection.scalar(select(func.count()).select_from(s.chunk)) or 0)


def wipe(connection: Connection, backend: Backend) -> None:
    """Leave nothing of the words that were taken out."""
    backend.wipe_text(connection)
    meta.put(connection, _GONE, 0)
