"""What the laws with models share: one scripted server, a process of its own, and how those who meet wait."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from quipu import engine
from quipu.engine import ingestion, refresh
from quipu.engine.components import Models
from quipu.ports.store import Store
from quipu.testing.postgres_server import PostgresServer
from tests.laws.world import DATABASE_VARIABLE


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The kind of database of every index that the test makes, and its child processes."""
    if request.param == "postgres":
        running: PostgresServer = request.getfixturevalue("running_postgres")
        monkeypatch.setenv(DATABASE_VARIABLE, running.uri())
    return str(request.param)


@pytest.fixture
def on_postgres(running_postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> PostgresServer:
    """The server that holds every index that the test makes, and its child processes."""
    monkeypatch.setenv(DATABASE_VARIABLE, running_postgres.uri())
    return running_postgres


@pytest.fixture
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have each engine look often what the others do."""
    for module in (ingestion, refresh):
        monkeypatch.setattr(module, "POLL_S", 0.002)


@pytest.fixture
def nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have all engines derive at once, whosever turn it is."""

    @asynccontextmanager
    async def at_once(_store: Store, _models: Models) -> AsyncIterator[None]:
        yield

    monkeypatch.setattr(engine, "derivation_lease", at_once)
