"""A sample of the entities that the local extractor finds in real documents, for a reader to judge.

Run: python benchmarks/entity_sample.py [FOLDER] [--count 300] [--seed 1] > sample.tsv

It indexes FOLDER (by default the documents of `realdocs`) without a model and prints COUNT entities, one to a line:
key, name, type, how many chunks state it, and the words around its first span. An entity is drawn by the hash of the
seed and its key. So two versions of the extractor share the entities that both find, and a reader judges those once.

The reader writes down for each entity whether it is right. The name is right if a person who lists what the documents
are about (people, bodies, places, works, products, programs, parts of an API, events, terms of a field) would list it,
and if its boundary is right. The type is right if it is true of what is named, or Other.
"""

import argparse
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quipu import sync

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("QUIPU_DATA") or ROOT / "../shared/data")
AROUND = 120  # characters before and after the name


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledEntity:
    """An entity with the words around its first span."""

    key: str
    name: str
    entity_type: str
    n_chunks: int
    context: str


def main() -> int:
    """Print the sample; return 1 where the documents do not exist."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", default=DATA / "realdocs/documents")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if not options.folder.is_dir():
        sys.stderr.write(f"{options.folder} is not a folder: name a folder of documents\n")
        return 1
    with tempfile.TemporaryDirectory() as folder, sync.open(Path(folder) / "index", extractor="local") as index:
        index.add(options.folder, root=options.folder)
        entities = draw(index.dump(), options.count, options.seed)
    for entity in entities:
        fields = (entity.key, entity.name, entity.entity_type, str(entity.n_chunks), entity.context)
        sys.stdout.write("\t".join(fields) + "\n")
    return 0


def draw(lines: Iterable[str], count: int, seed: int) -> list[SampledEntity]:
    """Return `count` entities of a dump, in the order of a hash of the seed and their keys."""
    rows: dict[str, list[Mapping[str, Any]]] = {"entity": [], "entity_mention": [], "chunk": []}
    for row in map(json.loads, lines):
        if row["kind"] in rows:
            rows[row["kind"]].append(row)
    by_hash = {hashlib.sha256(f"{seed} {row['key']}".encode()).hexdigest(): row for row in rows["entity"]}
    text_by_chunk = {row["id"]: row["text"] for row in rows["chunk"]}
    context_by_key: dict[str, str] = {}
    for row in rows["entity_mention"]:
        context_by_key.setdefault(row["entity"], _context(text_by_chunk[row["chunk"]], row["span"]))
    return [
        SampledEntity(
            key=row["key"],
            name=row["name"],
            entity_type=row["type"],
            n_chunks=row["n_chunks"],
            context=context_by_key.get(row["key"], ""),
        )
        for _, row in sorted(by_hash.items())[:count]
    ]


def _context(text: str, span: tuple[int, int]) -> str:
    """Return the words around a span on one line, the name in [[ ]]; "" if the name has no span."""
    start, end = span
    if not end:
        return "(title or heading) " + " ".join(text[: 2 * AROUND].split())
    around = f"{text[max(0, start - AROUND) : start]}[[{text[start:end]}]]{text[end : end + AROUND]}"
    return " ".join(around.split())


if __name__ == "__main__":
    sys.exit(main())
