"""Sandbox launcher: runs a script within limits that the system enforces; quipu.parse.sandbox starts it.

It imports nothing from quipu, so that the script alone decides how much is loaded. Usage:
sandbox_launcher.py BYTES SECONDS FOLDER SCRIPT ARGUMENT…, where FOLDER contains the package quipu.
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
    # Without this, native code continues after Ctrl-C, and (on Linux) after its parent process has ended.
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
    """Set a limit, unless a lower one is set. The hard limit is `grace` higher, so a signal arrives first."""
    _, hard = resource.getrlimit(what)
    maximum = value + grace if hard == resource.RLIM_INFINITY else min(value + grace, hard)
    resource.setrlimit(what, (min(value, maximum), maximum))


if __name__ == "__main__":
    main()
