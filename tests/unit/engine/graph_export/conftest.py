"""An index with hostile names."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from quipu.engine import Quipu
from tests.unit.engine.graph_export.world import hostile_world


@pytest.fixture
async def kb(tmp_path: Path) -> AsyncIterator[Quipu]:
    async with hostile_world(tmp_path / "kb") as kb:
        yield kb
