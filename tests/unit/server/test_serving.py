"""`quipu serve` as a process: it listens, answers, and ends when it is asked to."""

import json
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from quipu.errors import InvalidInput
from quipu.server import ServerComponents, ServerOptions, Workspaces, serve


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM to send")
def test_a_server_answers_and_ends_on_sigterm(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "quipu", "--index", str(tmp_path / "kb"), "serve", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        address = process.stderr.readline().rsplit(" ", 1)[1].strip()
        with urllib.request.urlopen(f"{address}/health", timeout=30) as response:
            assert json.load(response) == {"status": "ok"}
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) in (0, -signal.SIGTERM)


async def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    service = ServerComponents.of(Workspaces(index=tmp_path), ServerOptions(host="192.0.2.1"))
    with pytest.raises(InvalidInput, match=r"192\.0\.2\.1, port 8787"):
        await serve(service, lambda _: None)
