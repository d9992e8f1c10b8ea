"""Law 4: the same documents give the same bytes and rankings whatever the hash seed of the process."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def built(folder: Path, seed: str, fault: str = "") -> str:
    """Return dump and rankings as a child process with this hash seed prints them."""
    command = [sys.executable, "-m", "tests.laws.child", "state", str(folder)]
    environment = {**os.environ, "PYTHONHASHSEED": seed, "LAWS_FAULT": fault}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout


def test_hash_seeds_change_nothing(tmp_path: Path) -> None:
    outputs = {built(tmp_path / seed, seed) for seed in ("0", "1", "4711")}
    assert len(outputs) == 1
    assert '"kind":"entity"' in outputs.pop()


def test_the_law_fails_where_the_order_of_a_set_decides(tmp_path: Path) -> None:
    outputs = {built(tmp_path / seed, seed, fault="order of a set") for seed in ("0", "1", "4711")}
    assert len(outputs) > 1
