"""The demo corpus: its binary files are what the script beside it writes."""

import subprocess
import sys

from tests.architecture.source import PROJECT


def test_the_demos_binary_files_are_what_the_script_writes() -> None:
    script = PROJECT / "scripts" / "demo_files.py"
    ran = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout.strip()) == (0, "")
