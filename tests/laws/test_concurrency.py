"""Law 3: readers see only whole snapshots while a writer works, and two writers lose no update."""

import subprocess
import sys
from pathlib import Path

from quipu.ingest.reading import read
from quipu.model.document import SourceDocument
from tests.laws.world import RECIPE, document, engine, fresh_state, state

ROOT = Path(__file__).resolve().parents[2]


def writer(folder: Path, first: int, last: int) -> subprocess.Popen[bytes]:
    """Start a process that adds the documents `own{first}` … and, over and over, three that all writers share."""
    command = [sys.executable, "-m", "tests.laws.child", "write", str(folder), str(first), str(last)]
    return subprocess.Popen(command, cwd=ROOT)


def written(first: int, last: int) -> dict[str, SourceDocument]:
    """Return what such a writer leaves behind."""
    own = {f"own{number}.md": document(f"own{number}.md", number) for number in range(first, last)}
    return own | {f"shared{number % 3}.md": document(f"shared{number % 3}.md", 0) for number in range(first, last)}


async def test_readers_see_only_whole_snapshots_while_another_process_writes(tmp_path: Path) -> None:
    async with engine(tmp_path / "kb") as kb:
        process = writer(tmp_path / "kb", 0, 40)
        n_snapshots, sizes = 0, set[int]()
        while process.poll() is None or n_snapshots == 0:
            assert await kb.verify() == []
            documents = await kb.documents()
            for known in documents:
                report = await kb.document(known.id)
                texts = [chunk.text for chunk in report.chunks]
                whole = [chunk.text for chunk in read(written(0, 40)[known.id], RECIPE).chunks]
                assert texts in ([], whole)
            n_snapshots += 1
            sizes.add(len(documents))
        assert process.returncode == 0
        assert len(sizes) > 1, "the reader never saw the index grow"


async def test_a_view_does_not_change_while_another_process_writes(tmp_path: Path) -> None:
    async with engine(tmp_path / "kb") as kb:
        await kb.add(document("before.md", 0))
        lines = kb.dump()
        first = await anext(lines)
        process = writer(tmp_path / "kb", 0, 5)
        assert process.wait() == 0
        seen = [first, *[line async for line in lines]]
        assert not any("own1.md" in line for line in seen)
        assert any("own1.md" in line for line in [line async for line in kb.dump()])


async def test_two_writers_lose_no_update(tmp_path: Path) -> None:
    async with engine(tmp_path / "kb") as kb:
        processes = [writer(tmp_path / "kb", 0, 15), writer(tmp_path / "kb", 15, 30)]
        assert [process.wait() for process in processes] == [0, 0]
        await kb.resume()
        assert await kb.verify() == []
        together = await state(kb)
    assert together == await fresh_state(tmp_path / "fresh", list(written(0, 30).values()))
