"""Databases and services in place of local files: PostgreSQL, and candidates of Qdrant or pgvector."""

from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from quipu.errors import InvalidInput
from quipu.model.index_address import parse_database_address
from quipu.ports.vector_index import CandidateIndex, VectorIndex
from quipu.settings import Settings
from quipu.settings.sources import find_key, find_secrets
from quipu.stores.relational.archive import copy_to_file
from quipu.stores.sqlite.backend import SqliteBackend
from quipu.vectors.approximate import ApproximateVectors

if TYPE_CHECKING:
    from quipu.stores.postgres.backend import PostgresBackend

QDRANT_KEY = "QUIPU_QDRANT_KEY"


async def open_approximate(settings: Settings, identity: str, exact: VectorIndex) -> ApproximateVectors:
    """Return the approximate index that the settings name. `identity` is that of the index. Qdrant is not asked yet.

    Raises InvalidInput for settings that do not fit together, and Unavailable for a missing library or extension.
    """
    if not identity:
        raise InvalidInput(
            f"vector_search = {settings.vector_search!r} needs an index with an identity, and this one is older.",
            remedy="Copy it, which gives it one: quipu copy FROM TO.",
        )
    candidates = _qdrant(settings, identity) if settings.vector_search == "qdrant" else await _pgvector(settings)
    return ApproximateVectors(exact, candidates, settings.exact_below)


async def _pgvector(settings: Settings) -> CandidateIndex:
    if settings.folder:
        raise InvalidInput(
            f"vector_search = 'pgvector' needs an index in PostgreSQL, and {settings.folder} is a folder.",
            remedy="Copy it there (quipu copy), or set vector_search to local.",
        )
    from quipu.stores.postgres.pgvector import PgVectorCandidates

    candidates = PgVectorCandidates(open_postgres(settings, str(settings.index)))
    try:
        await candidates.check()
    except BaseException:
        await candidates.close()
        raise
    return candidates


def _qdrant(settings: Settings, identity: str) -> CandidateIndex:
    from quipu.vectors.qdrant import open_qdrant

    url = settings.qdrant_url
    if not url:
        raise InvalidInput(
            "vector_search = 'qdrant' needs the address of its server.",
            remedy='Set qdrant_url, as in "http://localhost:6333".',
        )
    key = find_key((QDRANT_KEY,), [urlsplit(url).netloc], find_secrets(settings.secrets, settings.outer_folder))
    return open_qdrant(url, key.value if key else "", identity)


def open_postgres(settings: Settings, address: str) -> "PostgresBackend":
    """Return the database at an address, which can be copied to a SQLite file. Raises Unavailable without psycopg."""
    from quipu.stores.postgres.backend import PostgresBackend

    draft = partial(SqliteBackend, busy_timeout_s=settings.busy_timeout_s, is_draft=True)
    return PostgresBackend(
        parse_database_address(address),
        busy_timeout_s=settings.busy_timeout_s,
        copy_to_file=partial(copy_to_file, draft=draft),
    )
