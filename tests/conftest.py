"""Options of the whole test run."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let `make laws` run more histories and crashes than CI."""
    parser.addoption("--laws-scale", type=int, default=1, help="multiplies the number of histories and crashes")


@pytest.fixture(scope="session")
def laws_scale(request: pytest.FixtureRequest) -> int:
    """How many times the CI's number of histories and crashes to run."""
    scale: int = request.config.getoption("--laws-scale")
    return scale
