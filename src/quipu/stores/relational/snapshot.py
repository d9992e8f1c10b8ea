"""A snapshot: what every read needs to know."""

from dataclasses import dataclass

from sqlalchemy import Connection

from quipu.stores.relational.backend import Backend
from quipu.text.analyzer import Analyzer


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A connection inside a read transaction, and whether its temporary tables restrict what may be seen."""

    connection: Connection
    backend: Backend
    analyzer: Analyzer
    is_filtered: bool
