"""What a backup and a restore cost: CPU seconds, megabytes, and the share of the largest parts.

    python benchmarks/backup.py [--chunks N] [--index DIR]

The index is that of `benchmarks/speed`: chunks of 1,100 words, eight entities in each, vectors of 384 dimensions. It is
made first, which takes some minutes for 40,000 chunks; with --index, an existing one is copied. The restored index must
have the same dump.
"""

import argparse
import asyncio
import hashlib
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # so that it runs as a file, too

from benchmarks.speed import workload
from benchmarks.speed.ours import open_index
from benchmarks.speed.process import Given
from quipu.settings import Settings
from quipu.wiring.restoring import check_archive, restore_index


async def main(n_chunks: int, index: Path | None) -> None:
    """Print what each step costs."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        index = index or await _made_index(folder, n_chunks)
        archive, restored = folder / "kb.quipu", folder / "restored"
        start = time.process_time()
        async with open_index(index, Given()) as (kb, _):
            summary = await kb.backup(archive)
        print(f"{summary.n_chunks:,} chunks, {summary.n_bytes / 1e6:,.0f} MB")
        print(f"backup:  {time.process_time() - start:.1f} s of CPU", flush=True)
        start = time.process_time()
        await check_archive(archive)
        print(f"check:   {time.process_time() - start:.1f} s of CPU", flush=True)
        start = time.process_time()
        await restore_index(archive, Settings(index=restored))
        print(f"restore: {time.process_time() - start:.1f} s of CPU", flush=True)
        print("dump:    " + ("the same" if await _dump(index) == await _dump(restored) else "DIFFERENT"))


async def _made_index(folder: Path, n_chunks: int) -> Path:
    index = folder / "kb"
    index.mkdir()
    paths = workload.document_paths(folder / "texts", n_chunks)
    workload.write(paths, workload.CHUNKS_PER_DOCUMENT, workload.Texts())
    async with open_index(index, Given()) as (kb, _):
        await kb.add(*paths)
    return index


async def _dump(index: Path) -> str:
    digest = hashlib.blake2b()
    async with open_index(index, Given()) as (kb, _):
        async for line in kb.dump():
            digest.update(line.encode())
    return digest.hexdigest()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chunks", type=int, default=40_000)
    parser.add_argument("--index", type=Path)
    arguments = parser.parse_args()
    asyncio.run(main(arguments.chunks, arguments.index))
