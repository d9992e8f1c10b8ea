"""Processes that do one job after the other, in a fork each, which begins at once and may die; and what they do."""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from tests.children import PATIENCE_S, ROOT


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """How a job ended, negative where by a signal; how many points it passed, 0 where not known; and its stage then."""

    code: int
    n_points: int
    stage: str


class Mortal:
    """Has a process do jobs, and waits for each."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def live(self, *job: object) -> Life:
        """Have a job done, which is what the module of the process says; paths and numbers are passed as text."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(f"{json.dumps([str(field) for field in job])}\n")
        self._process.stdin.flush()
        is_heard, _, _ = select.select([self._process.stdout], [], [], PATIENCE_S)
        assert is_heard, f"nothing was heard of {job} for {PATIENCE_S:g} s"
        answer = self._process.stdout.readline()
        assert answer, f"the process that was to do {job} has ended"
        code, n_points, stage = json.loads(answer)
        return Life(code=code, n_points=n_points, stage=stage)


@contextmanager
def mortal_of(module: str, *arguments: str, environment: Mapping[str, str] | None = None) -> Iterator[Mortal]:
    """Run a module that does jobs, and end it, and what it may have left alive, whatever happens."""
    command = [sys.executable, "-m", module, *arguments]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield Mortal(process)
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def jobs() -> Iterator[list[str]]:
    """Yield the fields of each job this process is to do, until there are no more."""
    for line in sys.stdin:
        yield json.loads(line)


def tell(life: Life) -> None:
    """Say how the job ended."""
    sys.stdout.write(f"{json.dumps([life.code, life.n_points, life.stage])}\n")
    sys.stdout.flush()


def forked(work: Callable[[], None]) -> int:
    """Do some work in a fork, which begins at once; return how that ended, negative where by a signal."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    try:
        work()
    except BaseException as error:
        print(repr(error), file=sys.stderr)
        os._exit(1)
    os._exit(0)
