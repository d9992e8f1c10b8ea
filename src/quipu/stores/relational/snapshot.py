"""A snapshot: what every read needs to know."""

from dataclasses import dataclass

from sqlalchemy import Connection

from quipu.stores.relational.allowed import AllowedGraph
from quipu.stores.relational.backend import Backend
from quipu.stores.relational.memo import Memo
from quipu.text.words import Analyzer


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A connection inside a read transaction; `allowed` where its temporary tables restrict what may be seen.

    `memo` holds what other snapshots of the same revision and filter have looked up.
    """

    connection: Connection
    backend: Backend
    analyzer: Analyzer
    memo: Memo
    allowed: AllowedGraph | None = None

    @property
    def is_filtered(self) -> bool:
        """Say whether less than the whole index may be seen."""
        return self.allowed is not None
