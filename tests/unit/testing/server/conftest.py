"""One scripted server for all tests of it; each test finds it as if it had just started."""

from collections.abc import AsyncIterator, Iterator

import pytest

from quipu.testing.scripted.script import Script
from quipu.testing.server import ServerHandle, serving
from tests.unit.testing.server.client import Client


@pytest.fixture(scope="session")
def running() -> Iterator[ServerHandle]:
    """A server that runs as long as the tests."""
    with serving() as server:
        yield server


@pytest.fixture
def server(running: ServerHandle) -> ServerHandle:
    """The server with the default script and nothing counted."""
    running.configure(Script())
    running.reset()
    return running


@pytest.fixture
async def client(server: ServerHandle) -> AsyncIterator[Client]:
    """A client of the server."""
    async with Client(server.base_url) as client:
        yield client
