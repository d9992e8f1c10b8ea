"""BM25 that scores some rows alone: the same answers as scoring every row."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from sqlalchemy import Connection

from quipu.stores.relational import schema as s
from quipu.stores.sqlite.backend import SqliteBackend, _scored, quoted, search_bm25

_N = 3_000
_WORDS = [f"w{rank}" for rank in range(60)]


def _texts() -> list[str]:
    """Return texts in which the first words are in nearly all, the last in a few; lengths differ tenfold."""
    random = Random(3)
    weights = [1 / (rank + 1) ** 1.3 for rank in range(len(_WORDS))]
    return [" ".join(random.choices(_WORDS, weights, k=random.randint(4, 40))) for _ in range(_N)]


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    folder: Path = tmp_path_factory.mktemp("bm25")
    backend = SqliteBackend(folder / "index.sqlite", busy_timeout_s=5.0)
    with backend.writing() as connection:
        s.metadata.create_all(connection)
        backend.create_text(connection)
        texts = _texts()
        rows = [_chunk(rid, text) for rid, text in enumerate(texts, 1)]
        connection.execute(s.chunk.insert(), rows)
        backend.index_text(connection, [(rid, text, "") for rid, text in enumerate(texts, 1)])
        connection.exec_driver_sql("CREATE TEMP TABLE allowed_chunk (rid INTEGER PRIMARY KEY)")
        connection.exec_driver_sql("INSERT INTO allowed_chunk SELECT rid FROM chunk WHERE rid % 7 = 0")
        yield connection
    backend.close()


def _chunk(rid: int, text: str) -> dict[str, object]:
    empty = dict.fromkeys(("headings", "header", "text_hash", "input_hash", "vector_hash", "error"), "")
    numbers = {"document": 1, "ordinal": rid, "start_char": 0, "end_char": 0, "n_tokens": 0}
    return {"rid": rid, "id": f"c{rid * 7919 % _N:05d}", "text": text, **numbers, **empty}


@pytest.mark.parametrize("is_filtered", [False, True])
@pytest.mark.parametrize("seed", range(25))
def test_what_is_left_out_could_not_be_among_the_best(connection: Connection, seed: int, is_filtered: bool) -> None:
    random = Random(seed)
    terms = random.sample(_WORDS, random.randint(1, 12)) + ["nowhere"] * (seed % 2)
    for k in (1, 3, 20, _N):
        expected = _scored(connection, terms, (), k, is_filtered)
        assert search_bm25(connection, terms, k, is_filtered=is_filtered) == expected


def test_words_of_every_text_alone_find_what_they_did(connection: Connection) -> None:
    expected = _scored(connection, _WORDS[:3], (), 10, False)
    assert len(expected) == 10
    assert search_bm25(connection, _WORDS[:3], 10, is_filtered=False) == expected


def test_only_rows_with_a_rare_word_are_scored(connection: Connection) -> None:
    rare, common = _WORDS[-1], _WORDS[0]
    found = _scored(connection, [common, rare], [rare], _N, False)
    with_rare = connection.exec_driver_sql(
        "SELECT count(*) FROM chunk WHERE ' ' || text || ' ' LIKE ?", (f"% {rare} %",)
    )
    assert len(found) == with_rare.scalar_one()
    assert 0 < len(found) < _N / 4


def test_nothing_is_asked_for_and_nothing_found(connection: Connection) -> None:
    assert search_bm25(connection, [], 10, is_filtered=False) == []
    assert search_bm25(connection, ["w1"], 0, is_filtered=False) == []
    assert search_bm25(connection, ["nowhere"], 10, is_filtered=False) == []


def test_a_quote_is_doubled_and_one_character_of_an_unspaced_script_is_a_prefix() -> None:
    assert quoted('a"b') == '"a""b"'
    assert quoted("长") == '"长" *'
