"""Machine: what a run was measured on, in words that name no folder and no host."""

import os
import platform
import subprocess
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def machine() -> dict[str, str]:
    """Return processor, cores, memory and system."""
    return {
        "processor": _field(Path("/proc/cpuinfo"), "model name") or platform.machine(),
        "cores": str(os.cpu_count()),
        "memory": _memory(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }


def versions(names: Sequence[str] = ("quipu-rag", "numpy", "sqlalchemy")) -> dict[str, str]:
    """Return the versions of what does the work."""
    return {name: version(name) for name in names}


def commit() -> str:
    """Return the commit of the code, with a + where files were changed since; empty where that is not known."""
    try:
        head = _git("rev-parse", "--short", "HEAD")
        return head + ("+" if _git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.CalledProcessError):
        return ""


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def _memory() -> str:
    kilobytes = _field(Path("/proc/meminfo"), "MemTotal").split()
    return f"{int(kilobytes[0]) / 1024**2:.0f} GB" if kilobytes else "unknown"


def _field(path: Path, name: str) -> str:
    try:
        lines = path.read_text("utf-8").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), "")
