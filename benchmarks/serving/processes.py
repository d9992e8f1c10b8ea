"""Processes: the scripted model, `quipu serve` and LightRAG's server, each in a process of its own."""

import os
import socket
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx

from benchmarks.speed import workload
from benchmarks.speed.machine import ROOT

PEER = "lightrag-hku[api]==1.5.7"
PEER_FOLDER = Path(tempfile.gettempdir()) / "quipu-bench" / "lightrag-server-venv"
_KEPT_ENVIRONMENT = ("PATH", "HOME", "LANG", "TMPDIR")
_START_S = 60.0
# Chunks as long as LightRAG's: its tokens are the words of the workload, of 6.1 bytes, and Quipu's have 4 bytes.
_CHUNK_TOKENS = round(workload.WINDOW * 6.1 / 4)
_OVERLAP_TOKENS = round(workload.OVERLAP * 6.1 / 4)


class NotStarted(Exception):
    """A server did not start; the message is the end of its log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server in another process."""

    name: str
    address: str
    process_id: int

    def cpu_s(self) -> float:
        """Return the CPU time of the process and its threads so far."""
        fields = Path(f"/proc/{self.process_id}/stat").read_text("utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory_kb(self, field: str = "VmRSS") -> int:
        """Return the memory of the process in KB: all, or its own (RssAnon), or mapped pages of files (RssFile)."""
        status = Path(f"/proc/{self.process_id}/status").read_text("utf-8")
        [line] = [line for line in status.splitlines() if line.startswith(f"{field}:")]
        return int(line.split()[1])


@contextmanager
def model_server() -> Iterator[str]:
    """Run the scripted model during the block; yields its address."""
    command = [sys.executable, "-m", "benchmarks.serving.model"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def quipu_settings(model: str) -> dict[str, str]:
    """Return the settings of Quipu with the scripted model and chunks as long as LightRAG's."""
    return {
        "llm": "custom/scripted",
        "llm_base_url": model,
        "embedder": "openai",
        "embedder_model": "custom/scripted",
        "embedder_base_url": model,
        "chunker": "fixed",
        "chunk_tokens": str(_CHUNK_TOKENS),
        "chunk_overlap": str(_OVERLAP_TOKENS),
        "max_gleaning": "0",
    }


@contextmanager
def quipu_server(folder: Path, model: str, *arguments: str) -> Iterator[Server]:
    """Run `quipu serve` during the block; `folder` holds its log, and its index unless `arguments` say otherwise."""
    settings = {f"QUIPU_{name.upper()}": value for name, value in quipu_settings(model).items()} if model else {}
    command = [sys.executable, "-m", "quipu"]
    command += ["--index", str(folder / "index"), "serve"] if "--root" not in arguments else ["serve"]
    command += ["--port", "0", *arguments]
    environment = {**_kept_environment(), "PYTHONPATH": os.environ.get("PYTHONPATH", ""), **settings}
    with _running(command, environment, folder) as process:
        yield Server(name="Quipu", address=_printed_address(folder, process), process_id=process.pid)


@contextmanager
def lightrag_server(folder: Path, model: str) -> Iterator[Server]:
    """Run LightRAG's server during the block, with its defaults. Raises NotStarted where it is not to be had."""
    python, port = _install_peer(), _free_port()
    command = [str(python), "-m", "benchmarks.serving.lightrag_server", "--host", "127.0.0.1", "--port", str(port)]
    command += ["--working-dir", str(folder / "index"), "--input-dir", str(folder / "inputs")]
    settings = {"PYTHONPATH": str(ROOT), "LOG_DIR": str(folder), "EMBEDDING_DIM": str(workload.DIMENSION)}
    for service in ("LLM", "EMBEDDING"):
        settings |= {f"{service}_BINDING": "openai", f"{service}_BINDING_HOST": model}
        settings |= {f"{service}_BINDING_API_KEY": "none", f"{service}_MODEL": "scripted"}
    with _running(command, {**_kept_environment(), **settings}, folder) as process:
        address = f"http://127.0.0.1:{port}"
        _wait_for_health(address, process, folder)
        yield Server(name="LightRAG", address=address, process_id=process.pid)


@contextmanager
def _running(command: list[str], environment: Mapping[str, str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=dict(environment), stdout=log, stderr=log)
        try:
            yield process
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()
            process.wait()


def _printed_address(folder: Path, process: subprocess.Popen[bytes]) -> str:
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline and process.poll() is None:
        for word in (folder / "log").read_text("utf-8").split():
            if word.startswith("http://127.0.0.1:"):
                return word
        time.sleep(0.05)
    raise NotStarted(_end_of_log(folder))


def _wait_for_health(address: str, process: subprocess.Popen[bytes], folder: Path) -> None:
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(httpx.TransportError):
            httpx.get(f"{address}/health", timeout=5).raise_for_status()
            return
        time.sleep(0.2)
    raise NotStarted(_end_of_log(folder))


def _end_of_log(folder: Path) -> str:
    return (folder / "log").read_text("utf-8", "replace").strip()[-400:]


def _install_peer() -> Path:
    """Return the Python of LightRAG's environment, which is made if it is not there."""
    python, mark = PEER_FOLDER / "bin/python", PEER_FOLDER / "installed"
    if not mark.exists():
        try:
            venv.create(PEER_FOLDER, clear=True, with_pip=True)
            command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", PEER]
            subprocess.run(command, check=True, capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError) as error:
            reason = str(getattr(error, "stderr", None) or error).strip()
            raise NotStarted(f"{PEER} could not be installed: {reason[-400:]}") from error
        mark.touch()
    return python


def _kept_environment() -> dict[str, str]:
    return {name: os.environ[name] for name in _KEPT_ENVIRONMENT if name in os.environ}


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port
