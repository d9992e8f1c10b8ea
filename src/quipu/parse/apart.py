"""Apart: a stranger's bytes read by native code in a process of its own, which may crash, hang or be stopped alone."""

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from quipu.errors import InvalidDocument, Unavailable
from quipu.model.document import Block, ParsedDocument
from quipu.parse.limits import MAX_MARKUP_BYTES, MAX_MARKUP_SECONDS

_LAUNCHER = Path(__file__).with_name("confined.py")
_FOLDER = Path(__file__).parents[2]  # it holds quipu
_WALL = 2  # times the CPU time allowed: a process may hang without using any


class Stopped(Exception):
    """The process ended without an answer: out of `time` or `memory`, or by a `crash` with its exit code."""

    def __init__(self, reason: str, code: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code


def read_apart(script: str, arguments: Sequence[int | str], data: bytes, *, max_bytes: int, max_seconds: int) -> bytes:
    """Return what `script` (a file beside this one) writes to its output when given `data`.

    `max_bytes` of memory (on Linux) and `max_seconds` of CPU time are enforced by the system. Raises Stopped where it
    writes nothing, Unavailable where no process can be started, KeyboardInterrupt where Ctrl-C reached it first.
    """
    limits = [str(max_bytes), str(max_seconds)]
    try:
        # -P: the modules beside the script are no part of its path, for they have names of the standard library's.
        done = subprocess.run(
            [sys.executable, "-P", str(_LAUNCHER), *limits, str(_FOLDER), str(_LAUNCHER.parent / script)]
            + [str(argument) for argument in arguments],
            input=data,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_WALL * max_seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise Stopped("time") from error
    except OSError as error:
        raise Unavailable(
            f"No process to read a document in can be started: {error}.", remedy="Free memory, or allow processes."
        ) from error
    if done.returncode == -signal.SIGINT:
        raise KeyboardInterrupt
    if done.returncode or not done.stdout:
        raise Stopped(_reason(done.returncode), done.returncode)
    return done.stdout


def read_markup_apart(module: str, markup: str, name: str) -> ParsedDocument:
    """Return what `read_markup` of a module of this package makes of `markup`, without metadata.

    Raises InvalidDocument, naming the document `name`, where that takes too much memory or time.
    """
    data = markup.encode("utf-8", "surrogatepass")
    try:
        answer = read_apart(
            "markup_process.py",
            (module,),
            data,
            max_bytes=MAX_MARKUP_BYTES + 8 * len(data),
            max_seconds=MAX_MARKUP_SECONDS,
        )
    except Stopped as stopped:
        raise _too_much(name, is_time=stopped.reason == "time") from stopped
    said = json.loads(answer)
    if "error" in said:
        raise _too_much(name, is_time=False)
    paths = [tuple(path) for path in said["paths"]]
    return ParsedDocument(
        text=said["text"],
        title=said["title"],
        blocks=tuple(
            Block(start=start, end=end, kind=kind, headings=paths[path], header=header)
            for start, end, kind, path, header in said["blocks"]
        ),
    )


def _too_much(name: str, *, is_time: bool) -> InvalidDocument:
    what = f"than {MAX_MARKUP_SECONDS} seconds to read" if is_time else "memory than a page may"
    return InvalidDocument(
        f"{name} takes more {what}: its markup is large or not sound.",
        remedy="Save it as plain text, split it, or leave it out.",
    )


def _reason(code: int) -> str:
    """Return why a process ended; below zero `code` is the signal that ended it."""
    reasons = {"SIGXCPU": "time", "SIGKILL": "memory", "SIGABRT": "memory"}
    return next((why for name, why in reasons.items() if code and code == -getattr(signal, name, 0)), "crash")
