"""Tests of full-text search: BM25 as FTS5 computes it, whatever the segments are."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest
from sqlalchemy import Connection, event

from quipu.stores.relational import schema as s
from quipu.stores.relational import segments
from quipu.stores.relational.full_text import chunks_with_terms, search
from quipu.stores.relational.segments import SegmentWriter
from quipu.stores.relational.snapshot import Snapshot, SnapshotCache
from quipu.stores.relational.sql import blocks
from quipu.stores.sqlite.backend import SqliteBackend
from quipu.text.words import Analyzer

_N = 2_000
_WORDS = [*(f"w{rank}" for rank in range(60)), "长城", "长", "城长"]


def _texts() -> list[list[str]]:
    """Return terms of chunks in which the first words are in nearly all, the last in a few; lengths differ tenfold."""
    random = Random(3)
    weights = [1 / (rank + 1) ** 1.3 for rank in range(len(_WORDS))]
    return [random.choices(_WORDS, weights, k=random.randint(4, 40)) for _ in range(_N)]


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    """Return a connection to an index whose chunks came in commits of several sizes, with a filter of a seventh."""
    backend = SqliteBackend(tmp_path_factory.mktemp("full_text") / "index.sqlite", busy_timeout_s=5.0)
    with backend.writing() as connection:
        s.metadata.create_all(connection)
        rows = list(enumerate(_texts(), 1))
        extra = [(rid, ["w1", "extra"]) for rid in range(_N + 1, _N + 100)]
        for commit in (rows[:1], rows[1:20], *blocks(rows[20:], 290), extra):
            writer = SegmentWriter(connection)
            for rid, terms in commit:
                writer.add(rid, terms, ())
            writer.finish()
        segments.remove(connection, {rid: set(terms) for rid, terms in extra})
        connection.exec_driver_sql("CREATE TEMP TABLE allowed_chunk (rid INTEGER PRIMARY KEY)")
        allowed = ", ".join(f"({rid})" for rid in range(7, _N, 7))
        connection.exec_driver_sql(f"INSERT INTO allowed_chunk VALUES {allowed}")
        yield connection
    backend.close()


@pytest.fixture(scope="module")
def fts5() -> Iterator[sqlite3.Connection]:
    """Return the same chunks in FTS5."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE VIRTUAL TABLE full_text USING fts5(terms, content='')")
        rows = [(rid, " ".join(terms)) for rid, terms in enumerate(_texts(), 1)]
        connection.executemany("INSERT INTO full_text(rowid, terms) VALUES (?, ?)", rows)
        yield connection


def _snapshot(connection: Connection, **options: Any) -> Snapshot:
    backend: Any = None  # searching uses the connection alone
    return Snapshot(connection=connection, backend=backend, analyzer=Analyzer(), cache=SnapshotCache(), **options)


def _scores_of_fts5(fts5: sqlite3.Connection, terms: list[str]) -> list[tuple[int, float]]:
    match = " OR ".join(f'"{term}" *' if term == "长" else f'"{term}"' for term in terms)
    query = "SELECT rowid, round(-bm25(full_text), 6) AS score FROM full_text(?) ORDER BY score DESC, rowid"
    # SQLite's own rounding is off by the last bit now and then.
    return [(rid, round(score, 6)) for rid, score in fts5.execute(query, [match])]


@pytest.mark.parametrize("seed", range(20))
def test_ids_and_scores_are_those_of_fts5(connection: Connection, fts5: sqlite3.Connection, seed: int) -> None:
    random = Random(seed)
    terms = random.sample(_WORDS, random.randint(1, 14)) + ["nowhere"] * (seed % 2)
    expected = _scores_of_fts5(fts5, terms)
    for k in (1, 3, 20, 2 * _N):
        hits = sorted(search(_snapshot(connection), terms, k), key=lambda hit: (-hit[1], hit[0]))
        assert hits[:k] == expected[:k]
        filtered = sorted(search(_snapshot(connection, is_filtered=True), terms, k), key=lambda hit: (-hit[1], hit[0]))
        assert filtered[:k] == [hit for hit in expected if hit[0] % 7 == 0][:k]


def test_of_equal_scores_all_are_returned_so_that_ids_decide(connection: Connection) -> None:
    scores = dict(search(_snapshot(connection), ["w0"], 10))
    least = sorted(scores.values(), reverse=True)[9]
    every = dict(search(_snapshot(connection), ["w0"], _N))
    assert {rid for rid, score in every.items() if score >= least} <= scores.keys()


def test_an_index_whose_chunks_have_no_terms_finds_nothing(tmp_path: Path) -> None:
    backend = SqliteBackend(tmp_path / "index.sqlite", busy_timeout_s=5.0)
    with backend.writing() as connection:
        s.metadata.create_all(connection)
        writer = SegmentWriter(connection)
        writer.add(1, [], [])
        writer.finish()
        assert search(_snapshot(connection), ["w1"], 5) == []
    backend.close()


def test_nothing_is_asked_for_and_nothing_is_found(connection: Connection, tmp_path: Path) -> None:
    assert search(_snapshot(connection), [], 10) == []
    assert search(_snapshot(connection), ["w1"], 0) == []
    assert search(_snapshot(connection), ["w1"], -1) == []
    assert search(_snapshot(connection), ["nowhere", "大"], 10) == []
    backend = SqliteBackend(tmp_path / "empty.sqlite", busy_timeout_s=5.0)
    with backend.writing() as empty:
        s.metadata.create_all(empty)
        assert search(_snapshot(empty), ["w1"], 10) == []
    backend.close()


def test_names_that_no_chunk_has_are_looked_up_only_until_all_names_are_known(tmp_path: Path) -> None:
    backend = SqliteBackend(tmp_path / "index.sqlite", busy_timeout_s=5.0)
    looked_up: list[int] = []
    with backend.writing() as connection:
        s.metadata.create_all(connection)
        writer = SegmentWriter(connection)
        for rid in range(1, 101):
            writer.add(rid, ["w1"], [f"=name {rid % 50}", "/link"])
        writer.finish()
        terms = ["w1", "/link", "=name 7", "=name 8", *(f"=phrase {n}" for n in range(1_000))]
        snapshot = _snapshot(connection)

        @event.listens_for(connection, "before_cursor_execute")
        def note(_: Any, cursor: Any, statement: str, parameters: Any, *others: Any) -> None:
            looked_up.append(str(parameters).count("=phrase"))

        first = chunks_with_terms(snapshot, terms, 100)
        assert first == {
            "w1": dict.fromkeys(range(1, 101), 1),
            "/link": dict.fromkeys(range(1, 101), 0),
            "=name 7": {7: 0, 57: 0},
            "=name 8": {8: 0, 58: 0},
        }
        assert sum(looked_up) == 1_000
        assert chunks_with_terms(snapshot, terms, 100) == first
        assert chunks_with_terms(snapshot, ["=phrase 1", "=name 9"], 100) == {"=name 9": {9: 0, 59: 0}}
        assert sum(looked_up) == 1_000
    backend.close()
