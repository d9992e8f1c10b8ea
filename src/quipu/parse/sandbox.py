"""Sandbox: a script reads untrusted bytes in a process with limits, so that only this process can crash or hang."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

from quipu.errors import Unavailable
from quipu.ports.ingest import OnPages

_LAUNCHER = Path(__file__).with_name("sandbox_launcher.py")
_FOLDER = Path(__file__).parents[2]  # it contains the package quipu
_WALL_TIME_FACTOR = 2  # wall time per CPU time allowed: a process may hang without using the CPU

_PROGRESS = re.compile(rb"(\d{1,9})/(\d{1,9})")
_MAX_LINE, _MAX_PART = 20, 4_096  # bytes
_REPORT_S = 0.2
_DRAIN_S = 1.0


class SandboxFailure(Exception):
    """The process ended without output: `reason` is "time", "memory" or "crash", `code` its exit code."""

    def __init__(self, reason: str, code: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code


def run_sandboxed(
    script: str,
    arguments: Sequence[int | str],
    input_bytes: bytes,
    *,
    max_bytes: int,
    max_seconds: int,
    on_pages: OnPages | None = None,
) -> bytes:
    """Run `script`, a file in this folder, with `input_bytes` as its input, and return its output.

    The system enforces `max_bytes` of memory (on Linux) and `max_seconds` of CPU time. `on_pages` gets the progress
    that the script writes to its standard error, as "3/300" on a line. Raises SandboxFailure if the script writes
    nothing, Unavailable if no process can be started, and KeyboardInterrupt if it received Ctrl-C.
    """
    limits = [str(max_bytes), str(max_seconds)]
    try:
        # -P: the script's folder must not be on its path, because modules in it are named as in the standard library.
        with _progress(on_pages) as errors:
            process = subprocess.run(
                [sys.executable, "-P", str(_LAUNCHER), *limits, str(_FOLDER), str(_LAUNCHER.parent / script)]
                + [str(argument) for argument in arguments],
                input=input_bytes,
                stdout=subprocess.PIPE,
                stderr=errors,
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


@contextmanager
def _progress(on_pages: OnPages | None) -> Iterator[int]:
    """Yield what the standard error of a process is: a pipe from which progress is read, or nothing."""
    if on_pages is None:
        yield subprocess.DEVNULL
        return
    source, target = os.pipe()
    reader = Thread(target=_report, args=(source, on_pages), daemon=True)
    reader.start()
    try:
        yield target
    finally:
        os.close(target)
        reader.join(_DRAIN_S)  # a process that the script started may hold the pipe open


def _report(source: int, on_pages: OnPages) -> None:
    """Call `on_pages` with the latest progress in a pipe, a few times a second, and in the end where it was called.

    Whatever else is in the pipe is skipped.
    """
    rest, due, reported = b"", time.monotonic() + _REPORT_S, (0, 0)
    latest = reported
    with open(source, "rb", buffering=0) as pipe:
        while part := pipe.read(_MAX_PART):
            *lines, rest = (rest + part).split(b"\n")
            rest = rest[-_MAX_LINE:]
            latest = next(((int(m[1]), int(m[2])) for line in lines[::-1] if (m := _PROGRESS.fullmatch(line))), latest)
            if latest != reported and time.monotonic() >= due:
                due, reported = time.monotonic() + _REPORT_S, latest
                on_pages(*latest)
    if reported not in ((0, 0), latest):
        on_pages(*latest)


def _failure_reason(code: int) -> str:
    """Return why a process ended; a negative `code` is the signal that ended it."""
    reasons = {"SIGXCPU": "time", "SIGKILL": "memory", "SIGABRT": "memory"}
    return next((reason for name, reason in reasons.items() if code and code == -getattr(signal, name, 0)), "crash")
