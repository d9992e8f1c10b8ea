"""Tests of segments and postings: whatever is added, removed and merged, the rows say what the chunks say."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, select

from quipu.errors import Corrupt
from quipu.stores.relational import schema as s
from quipu.stores.relational import segments
from quipu.stores.relational.full_text import chunks_with_phrases, key_of
from quipu.stores.relational.postings import MAX_TERM, Postings, PostingsBuilder, phrase_slots, places, posting, segment
from quipu.stores.relational.segments import SegmentWriter
from quipu.stores.sqlite.backend import SqliteBackend

_TERMS = st.lists(st.sampled_from(["a", "b", "c", "长", "长城", "long" * 100, "long" * 100 + "er"]), max_size=8)
_CHUNKS = st.lists(st.tuples(_TERMS, _TERMS), min_size=1, max_size=8)


@pytest.fixture(scope="module")
def backend() -> Iterator[SqliteBackend]:
    with TemporaryDirectory() as folder:
        backend = SqliteBackend(Path(folder) / "index.sqlite", busy_timeout_s=5.0)
        with backend.writing() as connection:
            s.metadata.create_all(connection)
        yield backend
        backend.close()


@pytest.fixture
def connection(backend: SqliteBackend) -> Iterator[Connection]:
    """Return a connection to empty tables, whose changes are rolled back."""
    with pytest.raises(ZeroDivisionError), backend.writing() as connection:
        yield connection
        raise ZeroDivisionError


def _add(connection: Connection, chunks: Sequence[tuple[int, Sequence[str]]]) -> None:
    writer = SegmentWriter(connection)
    for rid, terms in chunks:
        writer.add(rid, terms, ())
    writer.finish()


def _counts(connection: Connection) -> dict[tuple[int, str], int]:
    """Return how often each chunk has each term, from the rows of all segments."""
    counts: dict[tuple[int, str], int] = {}
    for part in segments.read_all(connection):
        for rows in segments.rows_of(connection, part.rid):
            postings = Postings.unpacked_whole(rows)
            terms = np.repeat(np.array(postings.terms, dtype=object), postings.sizes)
            for term, slot, count in zip(terms, postings.slots.tolist(), postings.counts.tolist(), strict=True):
                counts[int(part.chunks[slot]), term] = count
    return counts


def _sizes(connection: Connection) -> list[int]:
    return list(connection.execute(select(segment.c.n_chunks).order_by(segment.c.rid)).scalars())


@settings(deadline=None, max_examples=200, derandomize=True)
@given(chunks=_CHUNKS)
def test_what_is_packed_is_unpacked_as_it_was(chunks: list[tuple[list[str], list[str]]]) -> None:
    builder = PostingsBuilder()
    for rid, (terms, capitals) in enumerate(chunks, 1):
        builder.add(rid, terms, capitals)
    postings = builder.postings()
    again = Postings.unpacked_whole(list(postings.packed()))
    assert list(again.terms) == list(postings.terms) == sorted(postings.terms)
    for name in ("sizes", "slots", "counts", "positions"):
        assert getattr(again, name).tolist() == getattr(postings, name).tolist()
    for term, *columns in postings.packed():
        here = [[i for i, other in enumerate(terms) if other[:MAX_TERM] == term] for terms, _ in chunks]
        if term.startswith("^"):
            has_capital = [any(key_of(other)[:MAX_TERM] == term for other in capitals) for _, capitals in chunks]
            assert np.frombuffer(columns[0], "<u2").tolist() == [slot for slot, has in enumerate(has_capital) if has]
        else:
            expected = [slot << 16 | position for slot, positions in enumerate(here) for position in positions]
            assert places((term, columns[0], columns[1], columns[2])).tolist() == expected


def test_a_word_may_be_in_a_chunk_any_number_of_times() -> None:
    builder = PostingsBuilder()
    builder.add(1, ["often"] * 70_000, ())
    builder.add(2, ["often", "rare"], ())
    postings = Postings.unpacked_whole(list(builder.postings().packed()))
    assert dict(zip(postings.terms, postings.sizes.tolist(), strict=True)) == {"often": 2, "rare": 1}
    assert postings.counts.tolist() == [70_000, 1, 1]
    rows = {row[0]: row for row in builder.postings().packed()}
    assert phrase_slots([places(rows["often"]), places(rows["rare"])]).tolist() == [1]


@settings(deadline=None, max_examples=200, derandomize=True)
@given(
    chunks=st.lists(st.lists(st.sampled_from("abc"), max_size=6), min_size=1, max_size=6),
    phrase=st.lists(st.sampled_from("abc"), min_size=2, max_size=3),
)
def test_a_phrase_is_found_exactly_where_it_stands(chunks: list[list[str]], phrase: list[str]) -> None:
    builder = PostingsBuilder()
    for rid, terms in enumerate(chunks, 1):
        builder.add(rid, terms, ())
    rows = {row[0]: row for row in builder.postings().packed()}
    expected = [slot for slot, terms in enumerate(chunks) if "".join(phrase) in "".join(terms)]
    if all(term in rows for term in phrase):
        assert phrase_slots([places(rows[term]) for term in phrase]).tolist() == expected
    else:
        assert expected == []


@pytest.mark.parametrize("seed", range(6))
def test_rows_say_what_the_chunks_say_after_any_additions_and_removals(
    connection: Connection, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "FANOUT", 3)
    monkeypatch.setattr(segments, "MAX_MERGED", 20)
    random = Random(seed)
    terms_by_rid: dict[int, list[str]] = {}
    for _ in range(40):
        first = max(terms_by_rid, default=0) + 1  # a row number may come again
        new = {first + i: random.choices("abcdefgh", k=random.randint(0, 6)) for i in range(random.randint(1, 5))}
        _add(connection, list(new.items()))
        terms_by_rid |= new
        gone = random.sample(sorted(terms_by_rid), min(len(terms_by_rid), random.randint(0, 4)))
        segments.remove(connection, {rid: set(terms_by_rid.pop(rid)) for rid in gone})
        expected = {(rid, term): terms.count(term) for rid, terms in terms_by_rid.items() for term in terms}
        assert _counts(connection) == expected
        assert list(segments.sum_differences(connection)) == []
        assert sum(_sizes(connection)) == len(terms_by_rid)
        empty = select(posting.c.term).where(posting.c.slots == b"")
        assert connection.execute(empty).all() == []
    assert len(_sizes(connection)) <= 3 * 4 + len(terms_by_rid) // 20


def test_a_posting_is_written_a_few_times_however_large_the_index_is(connection: Connection) -> None:
    sizes = list[int]()
    for rid in range(1, 600):
        _add(connection, [(rid, ["a"])])
        sizes = _sizes(connection)
        assert len(sizes) < 3 * segments.FANOUT
    assert sizes[0] == segments.FANOUT**2
    assert sum(sizes) == 599


def test_a_large_commit_is_written_in_parts(connection: Connection) -> None:
    _add(connection, [(rid, ["a"]) for rid in range(1, 3 * segments.MAX_NEW + 2)])
    assert _sizes(connection) == [segments.MAX_NEW] * 3 + [1]


def test_a_merge_reads_no_more_than_a_part_of_the_index() -> None:
    sizes = [(rid, segments.MAX_MERGED - 1) for rid in range(1, 100)]
    assert segments._to_merge(sizes) == [1, 2, 3, 4]
    assert segments._to_merge([(rid, segments.MAX_MERGED) for rid in range(1, 100)]) == []


def test_phrases_and_capitals_are_found_in_all_segments(connection: Connection) -> None:
    texts = ["new york city", "york new", "city of new york", "new york new york", ""]
    for rid, text in enumerate(texts, 1):
        writer = SegmentWriter(connection)
        writer.add(rid, text.split(), ["york"] if rid % 2 else [])
        writer.finish()
    phrases = {
        "two": ["new", "york"],
        "three": ["new", "york", "city"],
        "again": ["york", "new", "york"],
        "capital": [key_of("york")],
        "none": ["city", "new"],
        "unknown": ["zanzibar", "new"],
    }
    assert chunks_with_phrases(connection, phrases) == {
        "two": [1, 3, 4],
        "three": [1],
        "again": [4],
        "capital": [1, 3, 5],
    }
    assert chunks_with_phrases(connection, {}) == {}


@pytest.mark.parametrize("column", ["slots", "counts", "positions"])
def test_a_damaged_row_is_named_with_the_remedy(connection: Connection, column: str) -> None:
    _add(connection, [(1, ["wall", "wall"]), (2, ["wall"])])
    connection.execute(posting.update().values({column: b"\x01\x00\x02"}))
    with pytest.raises(Corrupt, match="wall") as caught:
        chunks_with_phrases(connection, {"key": ["wall", "wall"]})
    assert "quipu refresh --rebuild" in caught.value.remedy
