"""A small working directory in the form in which LightRAG 1.5.7 writes it, with its default file stores."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

SEP = "<SEP>"
NODE_KEYS = ("entity_id", "entity_type", "description", "source_id", "file_path", "created_at", "truncate")
EDGE_KEYS = ("weight", "description", "keywords", "source_id", "file_path", "created_at", "truncate")
TEXT = (
    "Alice Kober was a classicist. She sorted the signs of Linear B on cards.\n\n"
    "Michael Ventris was an architect. He deciphered Linear B in 1952."
)
KOBER, VENTRIS = TEXT.split("\n\n")


def write_directory(folder: Path) -> Path:
    """Write a document of two chunks that overlap, three entities and two relations; return the folder.

    "Linear B" is described once by each chunk. An entity that a person has added has no chunk.
    """
    folder.mkdir(parents=True, exist_ok=True)
    first, second = TEXT[: len(KOBER) + 17], TEXT[len(KOBER) + 2 :]
    write_store(folder, "full_docs", {
        "doc-1": {"content": TEXT, "file_path": "scripts.txt", "parse_format": "raw", "_id": "doc-1"},
    })  # fmt: skip
    write_store(folder, "text_chunks", {
        "doc-1-chunk-000": _chunk(first, 0, ["default:extract:a"]),
        "doc-1-chunk-001": _chunk(second, 1, ["default:extract:b"]),
    })  # fmt: skip
    write_store(folder, "doc_status", {
        "doc-1": {"status": "processed", "chunks_count": 2, "file_path": "scripts.txt", "track_id": "insert_1"},
        "doc-2": {"status": "failed", "error_msg": "Connection error.", "file_path": "evans.txt"},
    })  # fmt: skip
    write_store(folder, "llm_response_cache", {
        "default:extract:a": _reply("entity<|#|>Linear B<|#|>concept<|#|>A script that Kober sorted."),
        "default:extract:b": _reply("entity<|#|>Linear B<|#|>concept<|#|>A script that Ventris deciphered."),
    })  # fmt: skip
    both = ["doc-1-chunk-000", "doc-1-chunk-001"]
    write_store(folder, "entity_chunks", {"Linear B": {"chunk_ids": both, "count": 2, "_id": "Linear B"}})
    (folder / "vdb_entities.json").write_text('{"embedding_dim": 4, "data": [], "matrix": ""}')
    nodes = [
        ("Alice Kober", "person", "A classicist.", both[:1]),
        ("Linear B", "concept", f"A script that Kober sorted.{SEP}A script that Ventris deciphered.", both[:1]),
        ("Michael Ventris", "person", "An architect.", both[1:]),
        ("Knossos", "UNKNOWN", "A palace.", ["manual_creation"]),
    ]
    edges = [
        ("Alice Kober", "Linear B", 1.0, "Kober sorted its signs.", "study,cards", both[:1]),
        ("Michael Ventris", "Linear B", 3.0, "Ventris deciphered it.", "decipherment", both),
        ("Knossos", "Linear B", 1.0, "Linear B was found at Knossos.", "place", ["manual_creation"]),
    ]
    write_graph(folder, nodes, edges)
    return folder


def write_store(folder: Path, name: str, rows: Mapping[str, Mapping[str, Any]]) -> None:
    """Write a key-value store."""
    (folder / f"kv_store_{name}.json").write_text(json.dumps(rows, indent=2, ensure_ascii=False), "utf-8")


def write_graph(folder: Path, nodes: Sequence[tuple[Any, ...]], edges: Sequence[tuple[Any, ...]]) -> None:
    """Write nodes of (name, type, description, chunks), and edges of (ends, weight, description, keywords, chunks)."""
    lines = ["<?xml version='1.0' encoding='utf-8'?>", '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">']
    owners = [("node", name) for name in NODE_KEYS] + [("edge", name) for name in EDGE_KEYS]
    for number, (owner, name) in enumerate(owners):
        lines.append(f'<key id="d{number}" for="{owner}" attr.name="{name}" attr.type="string" />')
    lines.append('<graph edgedefault="undirected">')
    for name, type_, description, chunks in nodes:
        values = [name, type_, description, SEP.join(chunks), "scripts.txt", "1795492810", ""]
        lines += [f"<node id={quoteattr(name)}>", *_values(values, 0), "</node>"]
    for source, target, weight, description, keywords, chunks in edges:
        values = [weight, description, keywords, SEP.join(chunks), "scripts.txt", "1795492810", ""]
        lines += [f"<edge source={quoteattr(source)} target={quoteattr(target)}>", *_values(values, 7), "</edge>"]
    lines += ["</graph>", "</graphml>"]
    (folder / "graph_chunk_entity_relation.graphml").write_text("\n".join(lines), "utf-8")


def _values(values: Sequence[object], first: int) -> list[str]:
    return [f'<data key="d{first + number}">{escape(str(value))}</data>' for number, value in enumerate(values)]


def _chunk(text: str, order: int, cached: Sequence[str]) -> dict[str, Any]:
    return {
        "tokens": len(text.split()),
        "content": text.strip(),
        "chunk_order_index": order,
        "full_doc_id": "doc-1",
        "file_path": "scripts.txt",
        "llm_cache_list": list(cached),
    }


def _reply(text: str) -> dict[str, Any]:
    return {"return": text, "cache_type": "extract", "original_prompt": "---Task---", "queryparam": None}
