"""What the tests of stores share."""

from pathlib import Path

import pytest


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Return where an index may be made."""
    return tmp_path / "index.sqlite"
