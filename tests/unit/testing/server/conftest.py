"""One scripted server for all tests of it; each test finds it as if it had just started."""

from collections.abc import AsyncIterator

import pytest

from quipu.testing.server import ServerHandle
from tests.unit.testing.server.client import Client


@pytest.fixture
async def client(server: ServerHandle) -> AsyncIterator[Client]:
    """A client of the server."""
    async with Client(server.base_url) as client:
        yield client
