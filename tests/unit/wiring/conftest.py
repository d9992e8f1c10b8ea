"""A server for tests of wiring."""

from collections.abc import Iterator

import pytest

from quipu.testing.server import ServerHandle, serving


@pytest.fixture(scope="module")
def server() -> Iterator[ServerHandle]:
    """Serve models on loopback; each test gives it a script of its own."""
    with serving() as handle:
        yield handle
