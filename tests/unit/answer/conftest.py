"""A real store for answers."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.unit.retrieve.fakes import Library


@pytest.fixture
async def library(tmp_path: Path) -> AsyncIterator[Library]:
    """An empty library, open."""
    opened = Library(tmp_path)
    await opened.open()
    yield opened
    await opened.close()
