"""`python -m quipu.testing.server`: the scripted server as a process."""

import argparse
import asyncio
import signal
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from quipu.errors import QuipuError
from quipu.testing.scripted.script import Script, read_script
from quipu.testing.server.app import serve


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until a signal or the end of input; return the exit status."""
    options = _parser().parse_args(arguments)
    try:
        asyncio.run(_run(_script(options), options.port, until_eof=options.until_eof))
    except (QuipuError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m quipu.testing.server", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1; 0 takes a free one")
    parser.add_argument("--script", type=Path, help="script as JSON (see docs/testing.md)")
    parser.add_argument("--extraction", type=Path, help="recorded extractions, with corpus.jsonl beside them")
    parser.add_argument("--log", type=Path, help="file that gets a line for every request")
    parser.add_argument("--until-eof", action="store_true", help="stop when standard input ends")
    return parser


def _script(arguments: argparse.Namespace) -> Script:
    script = read_script(arguments.script) if arguments.script else Script()
    if arguments.extraction:
        script = replace(script, answering=replace(script.answering, extraction=str(arguments.extraction)))
    return replace(script, log=str(arguments.log)) if arguments.log else script


async def _run(script: Script, port: int, *, until_eof: bool) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: loop.call_soon_threadsafe(stopping.set))
    if until_eof:
        threading.Thread(target=_wait_for_eof, args=(loop, stopping), daemon=True).start()
    await serve(script, port, _announce, stopping)


def _announce(base_url: str) -> None:
    sys.stdout.write(f"{base_url}\n")
    sys.stdout.flush()


def _wait_for_eof(loop: asyncio.AbstractEventLoop, stopping: asyncio.Event) -> None:
    """Stop the server at the end of its input: a parent that ends, even by a kill, closes the pipe."""
    sys.stdin.buffer.read()
    loop.call_soon_threadsafe(stopping.set)


if __name__ == "__main__":
    sys.exit(main())
