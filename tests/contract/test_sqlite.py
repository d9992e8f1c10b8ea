"""The store contract, kept by SQLite."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest

from quipu.ports.store import Store
from quipu.stores.relational.store import RelationalStore
from quipu.stores.sqlite.backend import SqliteBackend
from quipu.testing.contract.archives import ArchivesContract, ArchivesOf, Load
from quipu.testing.contract.conversations import ConversationsContract, ConversationsOf
from quipu.testing.contract.edits import EditsContract, EditsOf
from quipu.testing.store_contract import OpenStore, StoreContract
from quipu.text.words import Analyzer
from quipu.wiring.restoring import restore_database


@pytest.fixture
def open_store(tmp_path: Path) -> OpenStore:
    """Return what opens a store, one file a storage."""

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


@pytest.fixture
def conversations_of() -> ConversationsOf:
    """Return what gives the conversations of an open store."""
    return lambda store: cast(RelationalStore, store).conversations


@pytest.fixture
def edits_of() -> EditsOf:
    """Return what gives the edits of an open store."""
    return lambda store: cast(RelationalStore, store).edits


@pytest.fixture
def archives_of() -> ArchivesOf:
    """Return what makes the archives of an open store."""
    return lambda store: cast(RelationalStore, store).archives


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Return what makes the file of a storage from an archive."""

    async def load(archive: bytes, storage: str) -> None:
        file = tmp_path / "archive.quipu"
        file.write_bytes(archive)
        database = tmp_path / f"{storage}.sqlite"
        restore_database(file, database, Analyzer(), busy_timeout_s=30.0, on_bytes=lambda *_: None)

    return load


class TestSqlite(StoreContract):
    """SQLite keeps every promise of a store."""


class TestSqliteConversations(ConversationsContract):
    """SQLite keeps every promise about conversations."""


class TestSqliteEdits(EditsContract):
    """SQLite keeps every promise about edits."""


class TestSqliteArchives(ArchivesContract):
    """SQLite keeps every promise about archives."""
