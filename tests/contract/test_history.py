"""The contract of history, kept by SQLite."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest

from quipu.ports.store import Store
from quipu.stores.relational.store import RelationalStore
from quipu.stores.sqlite.backend import SqliteBackend
from quipu.testing.contract.history import HistoryContract, HistoryOf, OpenCopy
from quipu.testing.store_contract import OpenStore


@asynccontextmanager
async def _opened(file: Path, *, lease_s: float = 60.0, keeps_history: bool = True) -> AsyncIterator[Store]:
    backend = SqliteBackend(file, busy_timeout_s=30.0)
    store = RelationalStore(backend, lease_s=lease_s, keeps_history=keeps_history)
    await store.prepare()
    try:
        yield store
    finally:
        await store.close()


@pytest.fixture
def open_keeping(tmp_path: Path) -> OpenStore:
    """Return what opens a store that keeps history."""
    return lambda storage="first", *, lease_s=60.0: _opened(tmp_path / f"{storage}.sqlite", lease_s=lease_s)


@pytest.fixture
def open_store(tmp_path: Path) -> OpenStore:
    """Return what opens a store that keeps no history."""
    return lambda storage="first", *, lease_s=60.0: _opened(
        tmp_path / f"{storage}.sqlite", lease_s=lease_s, keeps_history=False
    )


@pytest.fixture
def history_of() -> HistoryOf:
    """Return what gives the history of an open store."""
    return lambda store: cast(RelationalStore, store).history


@pytest.fixture
def open_copy(tmp_path: Path, history_of: HistoryOf) -> OpenCopy:
    """Return what opens a copy of a store."""

    @asynccontextmanager
    async def opened(store: Store) -> AsyncIterator[Store]:
        await history_of(store).copy_to(tmp_path / "copy.sqlite")
        async with _opened(tmp_path / "copy.sqlite") as copy:
            yield copy

    return opened


class TestSqliteHistory(HistoryContract):
    """SQLite keeps every promise about history."""
