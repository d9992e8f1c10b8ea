"""Child processes of tests: run, heard line by line, told to go on; nobody waits for one without an end."""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PATIENCE_S = 300.0  # for what takes a few seconds on an idle machine: then it hangs
ENDED = ""  # heard of one that has come to its end


@asynccontextmanager
async def running(module: str, *arguments: str, environment: Mapping[str, str] | None = None) -> AsyncIterator[Process]:
    """Run a module in a child process, and end it whatever happens."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module, *arguments),
        cwd=ROOT,
        env={**os.environ, **(environment or {})},
        stdin=PIPE,
        stdout=PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def heard(process: Process) -> str:
    """Return what a child says next, ENDED where it has come to its end."""
    assert process.stdout is not None
    try:
        async with asyncio.timeout(PATIENCE_S):
            return (await process.stdout.readline()).decode().strip()
    except TimeoutError:
        raise AssertionError(f"a child has said nothing for {PATIENCE_S:g} s") from None


async def go_on(process: Process) -> None:
    """Let a child that waits for a line go on."""
    assert process.stdin is not None
    process.stdin.write(b"\n")
    await process.stdin.drain()


async def end(process: Process) -> int:
    """Hear a child to its end, and return its exit code."""
    while await heard(process) != ENDED:
        pass
    async with asyncio.timeout(PATIENCE_S):
        return await process.wait()
