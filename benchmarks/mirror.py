"""What it costs to mirror a folder in which nothing changed: CPU seconds, and the share of each part.

    python benchmarks/mirror.py [--files N]

N small files are mirrored once; then the mirror is repeated, and timed, three times.
"""

import argparse
import asyncio
import os
import tempfile
import time
from pathlib import Path

import quipu

_N_REPEATS = 3


async def main(n_files: int) -> None:
    """Build the folder and print a line for each mirror."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "notes"
        for number in range(n_files):
            file = folder / f"{number % 100}" / f"{number}.md"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"Keeper{number} Olsen tends lamp {number} of the coast.")
            os.utime(file, (1_600_000_000, 1_600_000_000))
        await asyncio.sleep(2.5)  # a file that changed a moment ago is not trusted
        async with quipu.open(Path(place) / "kb") as kb:
            start = time.process_time()
            await kb.mirror(folder)
            print(f"first mirror of {n_files:,} files: {time.process_time() - start:.2f} s of CPU")
            for _ in range(_N_REPEATS):
                start = time.process_time()
                result = await kb.mirror(folder)
                seconds = time.process_time() - start
                print(f"nothing changed: {seconds:.2f} s of CPU, {result.n_unchanged:,} files unchanged")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=10_000)
    asyncio.run(main(parser.parse_args().files))
