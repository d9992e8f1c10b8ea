"""The programs of docs/integrations.md run as a user runs them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from quipu import sync
from tests.architecture.source import PROJECT

PAGE = (PROJECT / "docs/integrations.md").read_text(encoding="utf-8")
PROGRAMS = dict(re.findall(r"^## (\w+)\n.*?^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
LIBRARIES = {"LangChain": "langchain_core", "LlamaIndex": "llama_index.core", "Haystack": "haystack"}


def test_every_integration_has_a_program() -> None:
    assert PROGRAMS.keys() == LIBRARIES.keys()


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_of_the_page_finds_the_document(name: str, tmp_path: Path) -> None:
    pytest.importorskip(LIBRARIES[name], reason=f"{name} is not installed")
    with sync.open(tmp_path / "kb") as kb:
        kb.add_text("Michael Ventris built on the work of Alice Kober.", id="ventris")
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAMS[name]],
        cwd=tmp_path,
        env={**os.environ, "HAYSTACK_TELEMETRY_ENABLED": "False"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "ventris" in ran.stdout
