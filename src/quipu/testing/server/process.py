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
from quipu.testing.server.request_log import STATS, Stats

_STOP_S = 10.0


@dataclass(frozen=True, slots=True)
class ServerHandle:
    """A running server: `base_url` is for OpenAI clients, `address` is the part before /v1."""

    address: str
    pid: int

    @property
    def base_url(self) -> str:
        """The address with /v1."""
        return f"{self.address}/v1"

    def azure_url(self, deployment: str) -> str:
        """Return the address of a deployment in Azure's format."""
        return f"{self.address}/openai/deployments/{deployment}"

    def stats(self) -> Stats:
        """Return all requests and counts since the start or the last reset."""
        return STATS.validate_json(self._send("GET", "/stats"))

    def settled(self) -> Stats:
        """Return the stats as soon as no request is running; async code must call it in a thread.

        Requests of a killed client are running until the server notices.
        """
        return STATS.validate_json(self._send("GET", "/stats?settled"))

    def summary(self) -> Stats:
        """Return the stats without the single requests."""
        return STATS.validate_json(self._send("GET", "/stats?summary"))

    def reset(self) -> None:
        """Forget what was prompt and counted; the script stays."""
        self._send("POST", "/reset", b"")

    def configure(self, script: Script) -> None:
        """Follow another script from now on; what was counted stays. Raises InvalidInput where it cannot be."""
        self._send("PUT", "/script", write_script(script))

    def _send(self, method: str, path: str, body: bytes | None = None) -> bytes:
        request = Request(f"{self.address}{path}", data=body, method=method)
        try:
            with build_opener(ProxyHandler({})).open(request, timeout=30) as response:
                content: bytes = response.read()
                return content
        except HTTPError as error:
            with error:
                raise InvalidInput(error.read().decode()) from error


@contextmanager
def serving(script: Script | None = None, *, port: int = 0) -> Iterator[ServerHandle]:
    """Run a server in its own process while the block runs; it ends with the block or with this process.

    Raises Unavailable with the server's error output if it does not start.
    """
    command = [sys.executable, "-m", "quipu.testing.server", "--until-eof", "--port", str(port)]
    with tempfile.TemporaryFile() as error_output:
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=error_output)
        try:
            handle = ServerHandle(_read_address(child, error_output), child.pid)
            if script is not None:
                handle.configure(script)
            yield handle
        finally:
            _stop(child)


def _read_address(child: subprocess.Popen[bytes], error_output: IO[bytes]) -> str:
    assert child.stdout is not None
    line = child.stdout.readline().decode().strip()
    if not line:
        child.wait()
        error_output.seek(0)
        raise Unavailable(f"The scripted server did not start: {error_output.read().decode(errors='replace').strip()}")
    return line


def _stop(child: subprocess.Popen[bytes]) -> None:
    """End the child and wait for it, so that no zombie remains."""
    assert child.stdin is not None and child.stdout is not None
    child.stdin.close()
    try:
        child.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    child.stdout.close()
