"""Confined: runs a script of this package within limits the system enforces; started by quipu.parse.apart.

A file of its own, without imports from quipu: what it starts decides how much is loaded. Usage:
confined.py BYTES SECONDS FOLDER SCRIPT ARGUMENT…, where FOLDER is the one that holds quipu.
"""

import ctypes
import runpy
import signal
import sys

if sys.platform != "win32":
    import resource

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def main() -> None:
    """Run the script named by `sys.argv`."""
    max_bytes, max_seconds, folder, script, *arguments = sys.argv[1:]
    # Native code would go on after Ctrl-C, and after the death of who waits for it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if sys.platform != "win32":
        _limit(resource.RLIMIT_AS, int(max_bytes))
        _limit(resource.RLIMIT_CPU, int(max_seconds), grace=5)
        _limit(resource.RLIMIT_CORE, 0)
    sys.path.append(folder)
    sys.argv = [script, *arguments]
    runpy.run_path(script, run_name="__main__")


def _limit(what: int, value: int, *, grace: int = 0) -> None:
    """Set a limit, or leave a lower one as it is. Within `grace` of it the signal tells which limit it was."""
    _, hard = resource.getrlimit(what)
    most = value + grace if hard == resource.RLIM_INFINITY else min(value + grace, hard)
    resource.setrlimit(what, (min(value, most), most))


if __name__ == "__main__":
    main()
