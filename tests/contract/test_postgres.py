"""The store contract, kept by PostgreSQL."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import pytest

from quipu.ports.store import Store
from quipu.stores.relational.store import RelationalStore
from quipu.testing.contract.conversations import ConversationsContract, ConversationsOf
from quipu.testing.contract.edits import EditsContract, EditsOf
from quipu.testing.store_contract import OpenStore, StoreContract
from tests.postgres import PostgresIndexes


@pytest.fixture
def open_store(postgres: PostgresIndexes) -> OpenStore:
    """Return what opens a store, one schema a storage."""

    @asynccontextmanager
    async def opened(storage: str = "first", *, lease_s: float = 60.0) -> AsyncIterator[Store]:
        with postgres.lent(storage) as backend:
            store = RelationalStore(backend, lease_s=lease_s)
            await store.prepare()
            postgres.note_created(storage)
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


class TestPostgres(StoreContract):
    """PostgreSQL keeps every promise of a store."""


class TestPostgresConversations(ConversationsContract):
    """PostgreSQL keeps every promise about conversations."""


class TestPostgresEdits(EditsContract):
    """PostgreSQL keeps every promise about edits."""
