"""Files of graphs: mapped as they were written, absent where they are not what was written."""

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from quipu.ports.derivation_view import GraphRows, SynonymRows
from quipu.topology import index
from quipu.topology.graph import Graph, GraphTables, build_graph
from quipu.topology.index import is_intact, load_newest_graph, remove_graphs, save_graph


def graph(revision: int = 7) -> Graph:
    one, two = np.array([1, 2]), np.array([3, 4])
    rows = GraphRows(
        entities=one,
        chunks=two,
        counts=two,
        mentions=one,
        keyed=two,
        sources=one[:1],
        targets=one[1:],
        stated_in=two[:1],
        weights=np.array([1500]),
        placed=two,
        documents=np.array([1, 1]),
        ordinals=np.array([0, 1]),
        synonyms=SynonymRows(firsts=one[:1], seconds=one[1:], similarities=np.array([0.875])),
    )
    return build_graph(revision, rows)


def arrays(made: Graph) -> list[list[int]]:
    bases = [getattr(made.tables, each.name).base for each in fields(GraphTables)]
    return [array.tolist() for base in bases for array in (base.starts, base.columns, *base.values)]


def test_a_graph_is_read_as_it_was_written(tmp_path: Path) -> None:
    written = save_graph(tmp_path, graph(), 42)
    found = load_newest_graph(tmp_path, 7)
    assert found is not None
    assert (found.header.revision, found.header.history_nonce, found.path) == (7, 42, written.path)
    assert arrays(found.graph) == arrays(written.graph) == arrays(graph())
    assert (found.graph.n_entities, found.graph.n_chunks) == (3, 5)
    assert is_intact(found)


def test_equal_graphs_are_equal_files(tmp_path: Path) -> None:
    first, second = save_graph(tmp_path / "a", graph(), 42), save_graph(tmp_path / "b", graph(), 42)
    assert first.path.read_bytes() == second.path.read_bytes()


def test_an_empty_graph_is_written_too(tmp_path: Path) -> None:
    none = np.empty(0, dtype=np.int64)
    no_synonyms = SynonymRows(firsts=none, seconds=none, similarities=none.astype(float))
    columns = {each.name: none for each in fields(GraphRows) if each.name != "synonyms"}
    empty = build_graph(1, GraphRows(**columns, synonyms=no_synonyms))
    assert arrays(save_graph(tmp_path, empty, None).graph) == arrays(empty)


def test_the_newest_file_up_to_a_revision_counts(tmp_path: Path) -> None:
    save_graph(tmp_path, graph(9), 1)
    save_graph(tmp_path, graph(5), 1)
    found = load_newest_graph(tmp_path, 8)
    assert found is not None
    assert found.header.revision == 5
    assert load_newest_graph(tmp_path, 4) is None


def test_earlier_and_unfinished_files_are_cleared_away(tmp_path: Path) -> None:
    save_graph(tmp_path, graph(5), 1)
    (tmp_path / "graph-000000000006-0.unfinished").write_bytes(b"half")
    save_graph(tmp_path, graph(9), 1)
    assert [path.name for path in tmp_path.iterdir()] == ["graph-000000000009.arrays"]
    remove_graphs(tmp_path)
    assert list(tmp_path.iterdir()) == []


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-8])


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _flip(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


def _other_format(path: Path) -> None:
    content = path.read_bytes().replace(b'"format":1', b'"format":9')
    path.write_bytes(content)


@pytest.mark.parametrize(
    "damage",
    [
        _cut,
        _empty,
        lambda path: _flip(path, 3),
        lambda path: _flip(path, 40),
        lambda path: _flip(path, -5),
        _other_format,
    ],
    ids=["cut", "empty", "header checksum", "header", "arrays", "format"],
)
def test_a_damaged_file_is_absent(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    damage(save_graph(tmp_path, graph(), 42).path)
    assert load_newest_graph(tmp_path, 7) is None


def test_damage_to_a_large_file_is_found_when_it_is_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "_MAX_CHECKED_BYTES", 0)  # as if it were large
    saved = save_graph(tmp_path, graph(), 42)
    _flip(saved.path, -5)
    found = load_newest_graph(tmp_path, 7)
    assert found is not None
    assert not is_intact(found)


def test_other_files_in_the_folder_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "graph-new.arrays").write_bytes(b"?")
    assert load_newest_graph(tmp_path, 7) is None
    assert load_newest_graph(tmp_path / "nowhere", 7) is None
