"""Tests of the PostgreSQL backend: rights, locks, lost connections, and what other databases do not have."""

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg
import pytest

from quipu.errors import Busy, InvalidInput, NotFound, Unavailable
from quipu.model.delta import Delta
from quipu.model.index_address import parse_database_address
from quipu.model.query import Condition, Filter
from quipu.ports.derivation_view import NodeKind
from quipu.stores.postgres.backend import PostgresBackend
from quipu.stores.relational.store import RelationalStore
from quipu.testing.contract.steps import dump, embed, publish, remove
from quipu.testing.facts import document, entity, passage, source
from tests.postgres import PostgresIndexes

_RIGHTS = """
    GRANT USAGE ON SCHEMA quipu_rights TO {user};
    GRANT {rights} ON ALL TABLES IN SCHEMA quipu_rights TO {user}
"""
_KILL_ALL = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'quipu'"
_READ, _WRITE = "SELECT", "SELECT, INSERT, UPDATE, DELETE"
_CHANGES = ("INSERT", "UPDATE", "DELETE")


@asynccontextmanager
async def _opened(
    postgres: PostgresIndexes, name: str = "first", *, user: str = "postgres"
) -> AsyncIterator[RelationalStore]:
    address = parse_database_address(postgres.server.address(name, user=user))
    store = RelationalStore(PostgresBackend(address, busy_timeout_s=30.0), lease_s=60.0)
    try:
        await store.prepare()
        if user == "postgres":
            postgres.note_created(name)
        yield store
    finally:
        await store.close()


def _grant(postgres: PostgresIndexes, user: str, rights: str) -> None:
    """Make a user who has these rights, on the tables of the workspace `rights`, and no others."""
    with psycopg.connect(postgres.server.uri(), autocommit=True) as connection:
        if not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (user,)).fetchone():
            connection.execute(f"CREATE ROLE {user} LOGIN")
            connection.execute("REVOKE TEMPORARY ON DATABASE postgres FROM PUBLIC")
        connection.execute(_RIGHTS.format(user=user, rights=rights))


async def test_a_reader_without_any_other_right_can_ask(postgres: PostgresIndexes) -> None:
    async with _opened(postgres, "rights") as owner:
        await publish(owner, document("a", "A wall."), document("b", "A gate.", metadata={"x": 1}))
        _grant(postgres, "reader", _READ)
        async with _opened(postgres, "rights", user="reader") as store:
            only = Filter(where=(Condition(field="x", operator="=", value="1"),))
            async with store.view(only) as view:
                assert [doc.id for doc in await view.documents()] == ["b"]
                assert len(await view.search_text(NodeKind.CHUNK, "wall gate", 5)) == 1
            assert await dump(store) == await dump(owner)
            with pytest.raises(Unavailable, match="permission denied") as caught:
                await publish(store, document("c", "A roof."))
            assert "docs/scaling.md" in caught.value.remedy
        assert len(await dump(owner)) > 0
        assert await owner.verify() == []


async def test_a_writer_needs_no_right_to_create_anything(postgres: PostgresIndexes) -> None:
    async with _opened(postgres, "rights") as owner:
        _grant(postgres, "writer", _WRITE)
        async with _opened(postgres, "rights", user="writer") as store:
            await store.set_embedder("tests/words", 4)
            await store.commit(Delta(enqueue=[source("a")]))
            await store.claim_jobs(5)
            await publish(store, document("b", passage("A gate.", entity("Gate"))))
            await embed(store)
            await store.commit(Delta(rebuild_text=True))
            await store.purge()
            await remove(store, "b")
        assert await owner.verify() == []


@pytest.mark.parametrize(
    ("user", "rights", "name", "lacking", "needed"),
    [
        ("postgres", "", "rights", (), ()),
        ("postgres", "", "another", (), ()),
        ("writer", _WRITE, "rights", (), ()),
        ("reader", _READ, "rights", tuple(f"{kind} ON ALL TABLES IN SCHEMA quipu_rights" for kind in _CHANGES), ()),
        ("reader", _READ, "another", ("CREATE ON DATABASE postgres",), ("CREATE ON DATABASE postgres",)),
    ],
)
async def test_the_state_of_a_server_names_the_rights_that_a_user_lacks(
    postgres: PostgresIndexes, user: str, rights: str, name: str, lacking: tuple[str, ...], needed: tuple[str, ...]
) -> None:
    async with _opened(postgres, "rights"):
        if rights:
            _grant(postgres, user, rights)
        backend = PostgresBackend(parse_database_address(postgres.server.address(name, user=user)), busy_timeout_s=5.0)
        state = backend.state()
        backend.close()
    assert (state.missing_to_add, state.missing_to_ask) == (lacking, needed)
    assert (state.encoding, state.is_standby, state.is_local) == ("UTF8", False, True)
    assert int(state.version.split(".")[0]) >= 12 and state.round_trip_ms > 0


async def test_who_may_not_use_the_schema_needs_that_right_first(postgres: PostgresIndexes) -> None:
    async with _opened(postgres, "rights"):
        _grant(postgres, "stranger", _READ)
        with psycopg.connect(postgres.server.uri(), autocommit=True) as connection:
            connection.execute("REVOKE USAGE ON SCHEMA quipu_rights FROM stranger")
        address = parse_database_address(postgres.server.address("rights", user="stranger"))
        backend = PostgresBackend(address, busy_timeout_s=5.0)
        assert backend.state().missing_to_ask == ("USAGE ON SCHEMA quipu_rights",)
        backend.close()


async def test_a_user_who_may_not_create_an_index_hears_what_to_grant(postgres: PostgresIndexes) -> None:
    async with _opened(postgres, "rights"):
        _grant(postgres, "reader", _READ)
    with pytest.raises(Unavailable, match="permission denied for database"):
        async with _opened(postgres, "another", user="reader"):
            pass


async def test_a_hot_standby_answers_and_refuses_to_write(postgres: PostgresIndexes) -> None:
    async with _opened(postgres) as store:
        await publish(store, document("a", "A wall."), document("b", "A gate.", metadata={"x": 1}))
        with postgres.server.standby() as standby:
            address = parse_database_address(standby.address("first"))
            reader = RelationalStore(PostgresBackend(address, busy_timeout_s=30.0), lease_s=60.0)
            await reader.prepare()
            async with reader.view(Filter(where=(Condition(field="x", operator="=", value="1"),))) as view:
                assert [doc.id for doc in await view.documents()] == ["b"]
                assert len(await view.search_text(NodeKind.CHUNK, "wall gate", 5)) == 1
            assert await dump(reader) == await dump(store)
            with pytest.raises(Unavailable, match="read-write mode during recovery") as caught:
                await publish(reader, document("c", "A roof."))
            assert "standby" in caught.value.remedy
            await reader.close()
            backend = PostgresBackend(address, busy_timeout_s=5.0)
            assert backend.state().is_standby
            backend.close()


async def test_texts_are_in_code_point_order_whatever_the_database_says(postgres: PostgresIndexes) -> None:
    """The test server sorts by the rules of English where it can; the order of a dump must not show it."""
    names = ["a b", "A", "ab", "a-b", "Ä", "z", "Z"]
    async with _opened(postgres) as store:
        await publish(store, *(document(name, passage(f"{name} is.", entity(f"{name}x"))) for name in names))
        lines = await dump(store)
    with psycopg.connect(postgres.server.uri()) as connection:
        rows = connection.execute("SELECT x FROM unnest(%s::text[]) AS x ORDER BY x", (names,)).fetchall()
        is_icu = connection.execute(
            "SELECT datlocprovider = 'i' FROM pg_database WHERE datname = current_database()"
        ).fetchone()
    assert is_icu is None or not is_icu[0] or [row[0] for row in rows] != sorted(names)
    ids = [line for line in lines if line.startswith('{"content_hash"')]
    assert ids == sorted(ids, key=lambda line: line.split('"id":"')[1])


async def test_long_keys_that_do_not_compress_are_kept_and_looked_up(postgres: PostgresIndexes) -> None:
    """An index row holds 2,704 bytes, and compresses what it can: so the texts are random."""
    noise = random.Random(7)
    first, second, word = ("".join(noise.choices("abcdefghijklmnopqrstuvwxyz", k=8_192)) for _ in range(3))
    spec = passage(f"Long {word}.", entity(f"Name {first}", "Person"), entity(f"Name {second}", "Person"))
    async with _opened(postgres) as store:
        await store.commit(Delta(enqueue=[source(f"{first}queued")]))
        await publish(
            store, document(first, spec, metadata={"f": first}), document(second, "x", metadata={"f": second})
        )
        async with store.view(Filter(where=(Condition(field="f", operator="=", value=second),))) as view:
            assert [doc.id for doc in await view.documents()] == [second]
        async with store.view() as view:
            assert [doc.id for doc in await view.documents([first])] == [first]
            assert len(await view.search_text(NodeKind.CHUNK, word, 5)) == 1
        assert await store.verify() == []
        await publish(store, document(first, "y"))
        await remove(store, first, second)
        assert await dump(store) == []


async def test_a_writer_waits_and_then_hears_that_another_writes(postgres: PostgresIndexes) -> None:
    async with _opened(postgres) as store:
        holder, other = postgres.backend("first"), postgres.backend("first", busy_timeout_s=0.05)
        with holder.writing():
            with pytest.raises(Busy, match="'first'"), other.writing():
                pass
            assert await dump(store) == []  # a reader does not wait
        with other.writing() as connection:
            assert connection.exec_driver_sql("SELECT 1").scalar() == 1
        holder.close()
        other.close()


async def test_workspaces_of_one_database_share_nothing_and_do_not_wait_for_each_other(
    postgres: PostgresIndexes,
) -> None:
    async with _opened(postgres, "first") as first, _opened(postgres, "second") as second:
        await publish(first, document("a", "One."))
        backend = postgres.backend("first")
        with backend.writing():
            await publish(second, document("b", "Two."))
        backend.close()
        for store, name in ((first, "a"), (second, "b")):
            async with store.view() as view:
                assert [doc.id for doc in await view.documents()] == [name]
        assert await first.identity() != await second.identity()


async def test_leases_end_by_the_clock_of_the_server(
    postgres: PostgresIndexes, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with _opened(postgres) as store, _opened(postgres) as other:
        await store.commit(Delta(enqueue=[source("a")]))
        assert len(await store.claim_jobs(5)) == 1
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now + 1e6)  # the clock of the other machine is wrong
        assert await other.claim_jobs(5) == []
        async with store.derivation_lease() as is_held, other.derivation_lease() as is_held_too:
            assert (is_held, is_held_too) == (True, False)


async def test_a_connection_that_the_server_closed_is_replaced(postgres: PostgresIndexes) -> None:
    async with _opened(postgres) as store:
        await publish(store, document("a", "One."))
        with psycopg.connect(postgres.server.uri(), autocommit=True) as connection:
            connection.execute(_KILL_ALL)
        async with store.view() as view:
            assert [doc.id for doc in await view.documents()] == ["a"]
        await publish(store, document("b", "Two."))
        assert await store.verify() == []


async def test_a_view_keeps_its_snapshot_while_another_commits(postgres: PostgresIndexes) -> None:
    async with _opened(postgres) as store:
        await publish(store, document("a", "One."))
        async with store.view() as view:
            await publish(store, document("b", "Two."))
            assert [doc.id for doc in await view.documents()] == ["a"]
            assert await view.search_text(NodeKind.CHUNK, "two", 5) == []


async def test_many_committers_on_connections_of_their_own_lose_nothing(postgres: PostgresIndexes) -> None:
    async with _opened(postgres) as first, _opened(postgres) as second:
        stores = (first, second)
        await asyncio.gather(*(publish(stores[n % 2], document(f"d{n}", f"Gate {n} of Troy.")) for n in range(8)))
        assert await first.verify() == []
        async with second.view() as view:
            assert len(await view.documents()) == 8


async def test_a_view_whose_connection_is_lost_says_that_the_server_is_away(postgres: PostgresIndexes) -> None:
    async with _opened(postgres) as store:
        await publish(store, document("a", "A wall."))
        with pytest.raises(Unavailable, match="terminating connection"):
            async with store.view() as view:
                with psycopg.connect(postgres.server.uri(), autocommit=True) as other:
                    other.execute(_KILL_ALL)
                await view.documents()
        async with store.view() as view:
            assert len(await view.documents()) == 1


async def test_an_index_that_does_not_exist_is_told_apart_from_a_server_that_does_not_answer(
    postgres: PostgresIndexes,
) -> None:
    backend = postgres.backend("nobody")
    store = RelationalStore(backend, lease_s=60.0)
    assert not await store.exists()
    with pytest.raises(NotFound, match="no index in the workspace 'nobody'"):
        async with store.view():
            pass
    await store.close()
    away = RelationalStore(
        PostgresBackend(parse_database_address("postgresql://me@/db?host=/nowhere"), busy_timeout_s=1.0), lease_s=60.0
    )
    with pytest.raises(Unavailable, match="/nowhere") as caught:
        await away.exists()
    assert "server runs" in caught.value.remedy
    await away.close()
    wrong = parse_database_address(postgres.server.address(database="nodb"))
    missing = RelationalStore(PostgresBackend(wrong, busy_timeout_s=1.0), lease_s=60.0)
    with pytest.raises(Unavailable, match="nodb"):
        await missing.exists()
    await missing.close()


async def test_what_is_no_text_is_refused(postgres: PostgresIndexes) -> None:
    async with _opened(postgres) as store:
        for name in ("\ud800", "nul\0"):
            with pytest.raises(InvalidInput):
                async with store.view() as view:
                    await view.documents([name])


def test_an_address_that_libpq_cannot_read_is_refused() -> None:
    with pytest.raises(InvalidInput, match="nonsense"):
        PostgresBackend(parse_database_address("postgresql://db/notes?nonsense=1"), busy_timeout_s=1.0)
