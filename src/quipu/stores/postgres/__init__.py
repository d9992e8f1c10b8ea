"""Indexes in PostgreSQL: the backend, candidates by pgvector, and what a server lets its user do."""

import time
from dataclasses import dataclass
from statistics import median

from sqlalchemy import Connection, text

_N_PINGS = 5
# Kinds of rights that the user lacks on any table; what is no schema has no tables.
_STATE = text("""
    SELECT current_setting('server_version') AS version,
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
        ) AS lacking
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresState:
    """A server as one of its users sees it.

    `lacking` are the rights, as GRANT names them, without which this user cannot add documents; without those of
    `needed` questions cannot be asked either. A connection `is_local` if client and server have one address.
    """

    version: str
    encoding: str
    is_standby: bool
    is_encrypted: bool
    is_local: bool
    round_trip_ms: float
    lacking: tuple[str, ...]
    needed: tuple[str, ...]


def read_state(connection: Connection, schema: str) -> PostgresState:
    """Return the state of the server for the index in a schema, or for one that is to be made there."""
    state = connection.execute(_STATE, {"schema": f'"{schema}"'}).one()
    times = []
    for _ in range(_N_PINGS):
        start = time.perf_counter()
        connection.exec_driver_sql("SELECT 1").scalar()
        times.append(1_000 * (time.perf_counter() - start))
    lacking = [f"{kind} ON ALL TABLES IN SCHEMA {schema}" for kind in state.lacking]
    needed = [right for right in lacking if right.startswith("SELECT")]
    if not state.has_schema:
        needed += [] if state.may_create_schema else ["CREATE ON DATABASE"]
    elif not state.may_use:
        needed.append(f"USAGE ON SCHEMA {schema}")
    elif not state.has_tables and not state.may_create:
        needed.append(f"CREATE ON SCHEMA {schema}")
    return PostgresState(
        version=state.version,
        encoding=state.encoding,
        is_standby=state.is_standby,
        is_encrypted=bool(state.is_encrypted),
        is_local=state.is_local,
        round_trip_ms=median(times),
        lacking=tuple(dict.fromkeys([*needed, *lacking])),
        needed=tuple(needed),
    )
