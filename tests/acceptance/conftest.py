"""What acceptance tests share: one scripted server, a process of its own."""

from collections.abc import Iterator

import pytest

from quipu.testing.server import serving
from quipu.testing.server.process import ServerHandle


@pytest.fixture(scope="session")
def server() -> Iterator[ServerHandle]:
    """A running server; each test tells it what to do and to forget what was before."""
    with serving() as running:
        yield running
