"""Leases: who works on a job, and whether they are still alive."""

import os
import socket
import sys
import uuid
from pathlib import Path

# Of /proc/PID/stat behind the name of the program, which may hold anything; see proc(5), where it is field 2.
_STATE, _START_TIME = 0, 19
_DEAD = ("Z", "X")  # killed, and nobody has waited for it: such a process can still be sent signals


def new_owner() -> str:
    """Return a name for this worker that another process on the same host can check: host, process, start, worker."""
    pid = os.getpid()
    return f"{_host()}/{pid}/{_started(pid)}/{uuid.uuid4().hex[:8]}"


def is_dead(owner: str) -> bool:
    """Say whether `owner` was a process of this host that is gone; of other hosts nothing is known here."""
    host, pid, started, _ = owner.split("/")
    return host == _host() and (not _is_running(int(pid)) or _started(int(pid)) != started)


def _host() -> str:
    """Name where process numbers mean something: the host and, of containers that share its name, the one."""
    try:
        namespace = Path("/proc/self/ns/pid").readlink().name
    except OSError:
        namespace = ""
    return f"{socket.gethostname()}{namespace}".replace("/", "-")


def _is_running(pid: int) -> bool:
    if sys.platform == "win32":
        return True  # asking would send the process a signal there; its lease will end
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return _stat(pid, _STATE) not in _DEAD


def _started(pid: int) -> str:
    """Return the process's start time, so that a reused process number is not taken for the old process."""
    return _stat(pid, _START_TIME)


def _stat(pid: int, field: int) -> str:
    """Return what the system tells of a process, "" where it tells nothing."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return stat.rsplit(") ", 1)[1].split()[field]
