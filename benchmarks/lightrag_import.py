"""Measures `quipu import` of a working directory that LightRAG itself has written.

    python benchmarks/lightrag_import.py [--chunks 1000] [--lightrag PYTHON] [--folder FOLDER]

LightRAG writes the directory with the scripted model of `benchmarks/speed`, which answers in LightRAG's format; PYTHON
is the interpreter of the environment that has it. A directory that is there already is read again. The figure is the
CPU time of the whole command, all its threads and its start included. What was carried over is compared with the graph.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # so that it runs as a file, too

from benchmarks.speed import workload
from quipu.ingest.graph_import.graphml import read_graphml

ROOT = Path(__file__).resolve().parents[1]
GOAL_S = 5.0
QUIPU = "import sys; from quipu.cli import main; sys.exit(main())"


def main() -> int:
    """Write the directory where it is missing, import it, and print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--chunks", type=int, default=1_000)
    parser.add_argument("--lightrag", default=sys.executable, help="the Python that has LightRAG")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "quipu-lightrag-import")
    arguments = parser.parse_args()
    folder = arguments.folder / str(arguments.chunks)
    if not (folder / "done").exists():
        if subprocess.run([arguments.lightrag, "-c", "import lightrag"], capture_output=True, check=False).returncode:
            print(f"skipped: {arguments.lightrag} has no LightRAG (pip install lightrag-hku, then --lightrag PYTHON)")
            return 0
        write_directory(folder, arguments.chunks, arguments.lightrag)
    graph = read_graphml(folder / "rag_storage" / "graph_chunk_entity_relation.graphml")
    with tempfile.TemporaryDirectory() as index:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        imported = quipu(index, "import", str(folder / "rag_storage"))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        status = quipu(index, "status")
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"{arguments.chunks:,} chunks of LightRAG: {cpu_s:.2f} s of CPU (goal: {GOAL_S:g} s for 1,000)")
    print(f"documents: {imported['n_added']:,}; chunks of Quipu: {imported['n_chunks']:,}")
    print(f"entities: {status['n_entities']:,} of {len(graph.nodes):,}")
    print(f"relations: {status['n_relations']:,} of {len(graph.edges):,}")
    for omission in imported["omissions"]:
        print(f"left out: {omission}")
    return 0


def write_directory(folder: Path, n_chunks: int, python: str) -> None:
    """Let LightRAG read the documents of the workload, with a model that answers at once."""
    texts = folder / "texts"
    workload.write(workload.document_paths(texts, n_chunks), workload.CHUNKS_PER_DOCUMENT, workload.Texts())
    step = [python, "-m", "benchmarks.speed.lightrag_driver", "ingest", str(texts), str(folder / "rag_storage")]
    environment = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    subprocess.run([*step, str(n_chunks)], cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)
    (folder / "done").touch()


def quipu(index: str, *arguments: str) -> dict[str, Any]:
    """Return what a command of Quipu prints as JSON."""
    command = [sys.executable, "-c", QUIPU, "--json", "--index", f"{index}/k", *arguments]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)  # type: ignore[no-any-return]


if __name__ == "__main__":
    sys.exit(main())
