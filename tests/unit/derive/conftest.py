"""Benches for the tests of the hierarchy."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from quipu.derive.derivation import DerivationContext
from tests.unit.derive.guilds import shelf
from tests.unit.derive.workshop import open_bench, publish


@pytest.fixture
async def context(tmp_path: Path) -> AsyncIterator[DerivationContext]:
    """An empty index."""
    async with open_bench(tmp_path / "first") as opened:
        yield opened


@pytest.fixture
async def other(tmp_path: Path) -> AsyncIterator[DerivationContext]:
    """A second empty index."""
    async with open_bench(tmp_path / "second") as opened:
        yield opened


@pytest.fixture
async def guilds(context: DerivationContext) -> DerivationContext:
    """An index with twenty ledgers of about two hundred craftsmen."""
    await publish(context, *shelf())
    return context
