"""A server over a small index, asked in this process."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

import quipu
from quipu.server import ServerComponents, Workspaces
from quipu.server.app import make_app

LETTER = "# Letters\n\nAda Lovelace wrote to Charles Babbage about the Analytical Engine in 1843."


@pytest.fixture
async def index(tmp_path: Path) -> Path:
    """Return the folder of an index with one document."""
    async with quipu.open(tmp_path / "kb") as kb:
        await kb.add_text(LETTER, id="letters/1.md")
    return tmp_path / "kb"


@pytest.fixture
def server(index: Path) -> ServerComponents:
    """Return the components of a server of that index."""
    return ServerComponents.of(Workspaces(index=index))


@pytest.fixture
async def client(server: ServerComponents) -> AsyncIterator[httpx.AsyncClient]:
    """Return a client of that server."""
    async with http_client(server) as client:
        yield client


class http_client:  # noqa: N801 - used as a function
    """A client of a server, which is closed after the block."""

    def __init__(self, server: ServerComponents) -> None:
        self._server = server
        transport = httpx.ASGITransport(make_app(server))
        self._client = httpx.AsyncClient(transport=transport, base_url="http://localhost")

    async def __aenter__(self) -> httpx.AsyncClient:
        return await self._client.__aenter__()

    async def __aexit__(self, *error: object) -> None:
        await self._client.aclose()
        await self._server.jobs.close()
        if self._server.job_process is not None:
            await self._server.job_process.close()
        await self._server.workspaces.close()
