"""Indexes in PostgreSQL: the backend, candidates by pgvector, and what a server lets its user do."""

import time
from dataclasses import dataclass
from statistics import median

from sqlalchemy import Connection, text

_N_PINGS = 5
_STATE = text("""
    SELECT current_database() AS database,
        current_setting('server_version') AS version,
        current_setting('server_encoding') AS encoding,
        pg_is_in_recovery() AS is_standby,
        (SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()) AS is_encrypted,
        coalesce(inet_client_addr() = inet_server_addr(), true) AS is_local,
        has_database_privilege(current_database(), 'CREATE') AS may_create_schema,
        to_regnamespace(:schema) IS NOT NULL AS has_schema,
        has_schema_privilege(to_regnamespace(:schema), 'USAGE') AS may_use,
        has_schema_privilege(to_regnamespace(:schema), 'CREATE') AS may_create,
        EXISTS (SELECT FROM pg_class WHERE relkind = 'r' AND relnamespace = to_regnamespace(:schema)) AS has_tables,
        ARRAY(
            SELECT kind FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS kind
            WHERE EXISTS (
                SELECT FROM pg_class
                WHERE relkind = 'r' AND relnamespace = to_regnamespace(:schema) AND NOT has_table_privilege(oid, kind)
            )
        ) AS missing
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresState:
    """A server as one of its users sees it.

    `missing_to_add` are the rights, as GRANT names them, that the user must get to add documents, and `missing_to_ask`
    those of them without which questions cannot be asked either. A connection `is_local` if client and server have
    one address.
    """

    version: str
    encoding: str
    is_standby: bool
    is_encrypted: bool
    is_local: bool
    round_trip_ms: float
    missing_to_add: tuple[str, ...]
    missing_to_ask: tuple[str, ...]


def read_state(connection: Connection, schema: str) -> PostgresState:
    """Return the state of the server for the index in a schema, or for one that is to be made there."""
    state = connection.execute(_STATE, {"schema": f'"{schema}"'}).one()
    times = []
    for _ in range(_N_PINGS):
        start = time.perf_counter()
        connection.exec_driver_sql("SELECT 1").scalar()
        times.append(1_000 * (time.perf_counter() - start))
    to_add = [f"{kind} ON ALL TABLES IN SCHEMA {schema}" for kind in state.missing]
    to_ask = [right for right in to_add if right.startswith("SELECT")]
    if not state.has_schema:
        to_ask += [] if state.may_create_schema else [f"CREATE ON DATABASE {state.database}"]
    elif not state.may_use:
        to_ask.append(f"USAGE ON SCHEMA {schema}")
    elif not state.has_tables and not state.may_create:
        to_ask.append(f"CREATE ON SCHEMA {schema}")
    return PostgresState(
        version=state.version,
        encoding=state.encoding,
        is_standby=state.is_standby,
        is_encrypted=bool(state.is_encrypted),
        is_local=state.is_local,
        round_trip_ms=median(times),
        missing_to_add=tuple(dict.fromkeys([*to_ask, *to_add])),
        missing_to_ask=tuple(to_ask),
    )
