"""One process at a time writes."""

import subprocess
import sys
from pathlib import Path

from quipu.vectors.local.segment_files import try_lock_exclusively

_HOLD = """
import sys
from pathlib import Path
from quipu.vectors.local.segment_files import try_lock_exclusively
with try_lock_exclusively(Path(sys.argv[1])) as is_held:
    print(is_held, flush=True)
    sys.stdin.read()
"""


def test_another_process_holds_the_lock_until_it_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "True\n"
        with try_lock_exclusively(path) as is_held:
            assert not is_held
        holder.kill()
        holder.wait()
        with try_lock_exclusively(path) as is_held:
            assert is_held


def test_a_released_lock_is_given_again(tmp_path: Path) -> None:
    for _ in range(2):
        with try_lock_exclusively(tmp_path / "lock") as is_held:
            assert is_held
            with try_lock_exclusively(tmp_path / "lock") as is_held_twice:
                assert not is_held_twice
