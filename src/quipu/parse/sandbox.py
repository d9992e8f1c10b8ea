"""Sandbox: a script reads untrusted bytes in a process with limits, so that only this process can crash or hang."""

import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from quipu.errors import Unavailable

_LAUNCHER = Path(__file__).with_name("sandbox_launcher.py")
_FOLDER = Path(__file__).parents[2]  # it contains the package quipu
_WALL_TIME_FACTOR = 2  # wall time per CPU time allowed: a process may hang without using the CPU


class SandboxFailure(Exception):
    """The process ended without output: `reason` is "time", "memory" or "crash", `code` its exit code."""

    def __init__(self, reason: str, code: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code


def run_sandboxed(
    script: str, arguments: Sequence[int | str], input_bytes: bytes, *, max_bytes: int, max_seconds: int
) -> bytes:
    """Run `script`, a file in this folder, with `input_bytes` as its input, and return its output.

    The system enforces `max_bytes` of memory (on Linux) and `max_seconds` of CPU time. Raises SandboxFailure if the
    script writes nothing, Unavailable if no process can be started, and KeyboardInterrupt if it received Ctrl-C.
    """
    limits = [str(max_bytes), str(max_seconds)]
    try:
        # -P: the script's folder must not be on its path, because modules in it are named as in the standard library.
        process = subprocess.run(
            [sys.executable, "-P", str(_LAUNCHER), *limits, str(_FOLDER), str(_LAUNCHER.parent / script)]
            + [str(argument) for argument in arguments],
            input=input_bytes,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_WALL_TIME_FACTOR * max_seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise SandboxFailure("time") from error
    except OSError as error:
        raise Unavailable(
            f"Cannot start a process to read the document in: {error}.", remedy="Free memory, or allow processes."
        ) from error
    if process.returncode == -signal.SIGINT:
        raise KeyboardInterrupt
    if process.returncode or not process.stdout:
        raise SandboxFailure(_failure_reason(process.returncode), process.returncode)
    return process.stdout


def _failure_reason(code: int) -> str:
    """Return why a process ended; a negative `code` is the signal that ended it."""
    reasons = {"SIGXCPU": "time", "SIGKILL": "memory", "SIGABRT": "memory"}
    return next((reason for name, reason in reasons.items() if code and code == -getattr(signal, name, 0)), "crash")
