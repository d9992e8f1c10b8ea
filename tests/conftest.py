"""Options of the whole test run."""

import pytest
from hypothesis import HealthCheck, settings


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let `make laws` run more histories and crashes than CI, and golden files be written again."""
    parser.addoption("--laws-scale", type=int, default=1, help="multiplies the number of histories and crashes")
    parser.addoption("--rewrite-golden", action="store_true", help="writes tests/data/golden again from what is found")


def pytest_configure(config: pytest.Config) -> None:
    """Have examples be the same in every run, however slow the machine is; `make laws` tries others."""
    settings.register_profile(
        "quipu",
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        derandomize=config.getoption("--laws-scale") == 1,
    )
    settings.load_profile("quipu")


@pytest.fixture(scope="session")
def laws_scale(request: pytest.FixtureRequest) -> int:
    """How many times the CI's number of histories and crashes to run."""
    scale: int = request.config.getoption("--laws-scale")
    return scale


@pytest.fixture(scope="session")
def rewrite_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be written again."""
    wanted: bool = request.config.getoption("--rewrite-golden")
    return wanted
