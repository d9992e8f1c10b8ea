"""Process: what the running process cost so far, less what it was given; needs the standard library alone."""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_IO, _STATUS = Path("/proc/self/io"), Path("/proc/self/status")
MARK = "@ "  # opens every line that is meant for the process above


@dataclass(slots=True)
class Given:
    """CPU seconds spent on replies and vectors, which a model would give and neither side pays for."""

    cpu_s: float = 0.0

    @contextmanager
    def clock(self) -> Iterator[None]:
        """Count what this thread does inside; nothing may be awaited there."""
        begun = time.thread_time()
        try:
            yield
        finally:
            self.cpu_s += time.thread_time() - begun


@dataclass(slots=True)
class Meter:
    """What the work inside `running` cost: CPU of all threads without what was given, wall time, bytes written.

    `handed` counts the bytes handed to write calls, `written` those the file system will write to the disk; both are
    left out of `values` where the system does not say.
    """

    given: Given
    cpu_s: float = 0.0
    given_s: float = 0.0
    wall_s: float = 0.0
    handed: int = 0
    written: int = 0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Add the cost of what happens inside."""
        before = _bytes_written()
        wall, cpu, given = time.perf_counter(), time.process_time(), self.given.cpu_s
        try:
            yield
        finally:
            spent, paid = time.process_time() - cpu, self.given.cpu_s - given
            self.wall_s += time.perf_counter() - wall
            self.cpu_s += spent - paid
            self.given_s += paid
            after = _bytes_written()
            self.handed += after[0] - before[0]
            self.written += after[1] - before[1]

    def values(self, per: int = 1) -> dict[str, float]:
        """Return the cost of one of `per` units of work."""
        times = {"cpu_s": self.cpu_s / per, "given_s": self.given_s / per, "wall_s": self.wall_s / per}
        if not _IO.exists():
            return times
        return {**times, "handed_bytes": self.handed / per, "written_bytes": self.written / per}


def peak_memory() -> dict[str, float]:
    """Return the most bytes this process has had resident, as `peak_bytes`; nothing where the system does not say."""
    try:
        lines = _STATUS.read_text("utf-8").splitlines()
    except OSError:
        return {}
    found = [int(line.split()[1]) * 1_024 for line in lines if line.startswith("VmHWM")]
    return {"peak_bytes": found[0]} if found else {}


def bytes_on_disk(folder: Path) -> int:
    """Return the bytes of all files below a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def median_of(meters: list[Meter]) -> dict[str, float]:
    """Return the median of each value of the meters."""
    values = [meter.values() for meter in meters]
    return {name: sorted(each[name] for each in values)[len(values) // 2] for name in values[0]}


def percentile(values: list[float], share: float) -> float:
    """Return the least of `values` that `share` of them do not exceed."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def report(system: str, step: str, n_chunks: int, values: dict[str, float]) -> None:
    """Hand one measurement to the process above."""
    _say({"system": system, "step": step, "n_chunks": n_chunks, "values": values})


def progress(done: int, total: int) -> None:
    """Tell the process above how far the work is."""
    _say({"done": done, "total": total})


def _say(message: dict[str, object]) -> None:
    sys.stdout.write(f"{MARK}{json.dumps(message)}\n")
    sys.stdout.flush()


def _bytes_written() -> tuple[int, int]:
    try:
        lines = _IO.read_text("utf-8").splitlines()
    except OSError:
        return 0, 0
    found = dict(line.split(": ") for line in lines)
    return int(found["wchar"]), int(found["write_bytes"])
