"""The programs in examples/ run as a user runs them, and print what they are there to show."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.source import PROJECT

EXAMPLES = sorted((PROJECT / "examples").glob("*.py"))
EXPECTED = {
    "change_documents": ("The two indexes are equal.", "verify found no problem."),
    "compare_strategies": ("lexical", "ppr", "Jaccard"),
    "explain_passage": ("linear-b: ", "relation Linear B – Michael Ventris"),
    "filter_documents": (
        "all letters: letters/1, letters/2\n",
        "letters since 2000: letters/2\n",
        "letters of the archive in Lisbon: letters/1\n",
    ),
    "quickstart": ("He built on the work of Alice Kober. [1]", "[1] ventris"),
}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_prints_what_it_shows(example: Path, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, str(example)], cwd=tmp_path, capture_output=True, text=True, encoding="utf-8", check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert [line for line in EXPECTED[example.stem] if line not in ran.stdout] == []
