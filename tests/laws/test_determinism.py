"""Law 4: the same documents give the same bytes and rankings whatever the hash seed of the process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from quipu.testing.postgres_server import PostgresServer
from tests.children import PATIENCE_S, ROOT
from tests.laws.world import DATABASE_VARIABLE

SEEDS = ("0", "1", "4711")


def built(folder: Path, seed: str, server: str = "") -> tuple[list[str], list[str]]:
    """Return dump and rankings as a process with this hash seed has them, and where the order of a set decides."""
    command = [sys.executable, "-m", "tests.laws.child", "state", str(folder), "order of a set"]
    environment = {**os.environ, "PYTHONHASHSEED": seed, DATABASE_VARIABLE: server}
    ended = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True, timeout=PATIENCE_S
    )
    sound, broken = json.loads(ended.stdout)
    return sound, broken


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[list[str], list[str]]]:
    """What processes with different hash seeds have."""
    return [built(tmp_path_factory.mktemp("seed"), seed) for seed in SEEDS]


def test_hash_seeds_change_nothing(states: list[tuple[list[str], list[str]]]) -> None:
    first, *others = [sound for sound, _ in states]
    assert others == [first, first]
    assert any('"kind":"entity"' in line for line in first)


def test_another_hash_seed_and_another_database_change_nothing(
    states: list[tuple[list[str], list[str]]], running_postgres: PostgresServer, tmp_path: Path
) -> None:
    assert built(tmp_path, "99", running_postgres.uri())[0] == states[0][0]


def test_the_law_fails_where_the_order_of_a_set_decides(states: list[tuple[list[str], list[str]]]) -> None:
    first, *others = [broken for _, broken in states]
    assert others != [first, first]
