"""The store contract, kept by SQLite."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from quipu.ports.store import Store
from quipu.stores.relational.store import RelationalStore
from quipu.stores.sqlite.backend import SqliteBackend
from quipu.testing.store_contract import OpenStore, StoreContract


class TestSqlite(StoreContract):
    """SQLite, one file a storage."""

    @pytest.fixture
    def open_store(self, tmp_path: Path) -> OpenStore:
        @asynccontextmanager
        async def opened(storage: str = "first", *, lease_s: float = 60.0) -> AsyncIterator[Store]:
            backend = SqliteBackend(tmp_path / f"{storage}.sqlite", busy_timeout_s=30.0)
            store = RelationalStore(backend, lease_s=lease_s)
            await store.prepare()
            try:
                yield store
            finally:
                await store.close()

        return opened
