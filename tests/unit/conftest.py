"""What unit tests share."""

import pytest

from quipu.testing.scripted.script import Script
from quipu.testing.server import ServerHandle


@pytest.fixture
def server(server: ServerHandle) -> ServerHandle:
    """The server of scripted models with the default script and nothing counted."""
    server.configure(Script())
    server.reset()
    return server
