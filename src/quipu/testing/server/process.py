"""Process: the scripted server as a child of a test or a benchmark, and the handle to it."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

from quipu.errors import InvalidInput, Unavailable
from quipu.testing.scripted.script import Script, write_script
from quipu.testing.server.ledger import STATS, Stats

_STOP_S = 10.0


@dataclass(frozen=True, slots=True)
class ServerHandle:
    """A running server; `base_url` is what an OpenAI client is given, `address` what stands before /v1."""

    address: str
    pid: int

    @property
    def base_url(self) -> str:
        """Address with /v1."""
        return f"{self.address}/v1"

    def azure_url(self, deployment: str) -> str:
        """Return the address of a deployment in Azure's shape."""
        return f"{self.address}/openai/deployments/{deployment}"

    def stats(self) -> Stats:
        """Return what was asked and given since the start or the last reset."""
        return STATS.validate_json(self._send("GET", "/stats"))

    def settled(self) -> Stats:
        """Return the same as soon as no request is under way; in async code this belongs into a thread.

        Requests of a client that was killed are under way until the server has noticed.
        """
        return STATS.validate_json(self._send("GET", "/stats?settled"))

    def summary(self) -> Stats:
        """Return the same without the single requests."""
        return STATS.validate_json(self._send("GET", "/stats?summary"))

    def reset(self) -> None:
        """Forget what was asked and counted; the script stays."""
        self._send("POST", "/reset", b"")

    def configure(self, script: Script) -> None:
        """Follow another script from now on; what was counted stays. Raises InvalidInput where it cannot be."""
        self._send("PUT", "/script", write_script(script))

    def _send(self, method: str, path: str, data: bytes | None = None) -> bytes:
        request = Request(f"{self.address}{path}", data=data, method=method)
        try:
            with build_opener(ProxyHandler({})).open(request, timeout=30) as response:
                body: bytes = response.read()
                return body
        except HTTPError as error:
            with error:
                raise InvalidInput(error.read().decode()) from error


@contextmanager
def serving(script: Script | None = None, *, port: int = 0) -> Iterator[ServerHandle]:
    """Run a server in a process of its own while the block runs; it ends with the block, or with this process.

    Raises Unavailable with what the server said where it does not start.
    """
    command = [sys.executable, "-m", "quipu.testing.server", "--until-eof", "--port", str(port)]
    with tempfile.TemporaryFile() as complaints:
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=complaints)
        try:
            handle = ServerHandle(_read_address(child, complaints), child.pid)
            if script is not None:
                handle.configure(script)
            yield handle
        finally:
            _stop(child)


def _read_address(child: subprocess.Popen[bytes], complaints: IO[bytes]) -> str:
    assert child.stdout is not None
    line = child.stdout.readline().decode().strip()
    if not line:
        child.wait()
        complaints.seek(0)
        raise Unavailable(f"The scripted server did not start: {complaints.read().decode(errors='replace').strip()}")
    return line


def _stop(child: subprocess.Popen[bytes]) -> None:
    """End the child and take its status, so that no zombie stays."""
    assert child.stdin is not None and child.stdout is not None
    child.stdin.close()
    try:
        child.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    child.stdout.close()
