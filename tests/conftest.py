"""Options of the whole test run."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from quipu.errors import Unavailable
from quipu.testing import postgres_server
from quipu.testing.postgres_server import PostgresServer
from quipu.testing.server import ServerHandle
from quipu.testing.server import serving as serving_models
from tests.postgres import PostgresIndexes


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let `make laws` run more histories and crashes than CI, and golden files be written again."""
    parser.addoption("--laws-scale", type=int, default=1, help="multiplies the number of histories and crashes")
    parser.addoption("--need-postgres", action="store_true", help="fails where there is no PostgreSQL to test with")
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


@pytest.fixture(scope="session")
def running_postgres(request: pytest.FixtureRequest) -> Iterator[PostgresServer]:
    """A PostgreSQL server of this test run; without one, tests that need it are skipped."""
    serving = postgres_server.serving()
    try:
        server = serving.__enter__()
    except Unavailable as error:
        if request.config.getoption("--need-postgres"):
            raise
        pytest.skip(str(error))
    try:
        yield server
    finally:
        serving.__exit__(None, None, None)


@pytest.fixture(scope="session")
def all_postgres_indexes(running_postgres: PostgresServer) -> PostgresIndexes:
    """The indexes that tests have made."""
    return PostgresIndexes(running_postgres)


@pytest.fixture
def postgres(all_postgres_indexes: PostgresIndexes) -> PostgresIndexes:
    """Indexes in PostgreSQL, all of them empty."""
    all_postgres_indexes.empty()
    return all_postgres_indexes


@pytest.fixture(scope="session")
def server() -> Iterator[ServerHandle]:
    """A server of scripted models, a process of its own; each test tells it what to do, and to forget what was."""
    with serving_models() as running:
        yield running
