"""Measures full text against SQLite's FTS5, in turns in one run: the same terms, the same questions, two files.

    python benchmarks/full_text.py [--texts DIR] [--sizes N…] [--words N] [--made-up N] [--json FILE]

With --texts, a chunk is made of sentences of the `corpus.jsonl` files below DIR, shuffled with a fixed seed; else of
made-up words by Zipf's law. Chunks are written in commits of 290. Questions have 14 different terms of one chunk, and
`same` counts those for which both sides give equal ids and scores. --made-up measures our side alone at that many
chunks. FTS5 is asked as Quipu did before it had segments: rows with only common words are skipped if they cannot be
among the best. Milliseconds are CPU time of this process; bytes are those handed to the file system.
"""

import argparse
import json
import math
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path
from random import Random
from statistics import median
from typing import TypeVar

import numpy as np
from sqlalchemy import Connection

from quipu.stores.relational import schema as s
from quipu.stores.relational import segments
from quipu.stores.relational.full_text import LEAST_IDF, chunks_with_phrases, search
from quipu.stores.relational.segments import SegmentWriter
from quipu.stores.relational.snapshot import Snapshot, SnapshotCache
from quipu.stores.relational.sql import blocks
from quipu.stores.sqlite.backend import SqliteBackend
from quipu.text.sentences import sentence_spans
from quipu.text.unicode import is_unspaced
from quipu.text.words import STOP_WORDS, Analyzer, index_terms, split_words

V = TypeVar("V")
R = TypeVar("R")

COMMIT, N_QUESTIONS, N_TERMS, K = 290, 60, 14, 20
N_PHRASES = 500
N_MADE_UP_WORDS = 200_000
_ROUNDING, _MANY_ROWS, _ROWS_TO_START = 1e-5, 4_000, 4
_FTS5 = """CREATE VIRTUAL TABLE full_text USING fts5(terms, content='',
    tokenize = "unicode61 remove_diacritics 0 categories 'L* N* M* S* Co' tokenchars '#'")"""
_PRAGMAS = (
    *("journal_mode = WAL", "synchronous = FULL", "wal_autocheckpoint = 8000", "temp_store = MEMORY"),
    *("secure_delete = ON", "cache_size = -32768", "mmap_size = 2147418112"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """What one side takes at one size; milliseconds of CPU. 0 where it was not measured."""

    side: str
    n_chunks: int
    add_ms: float  # a chunk
    written_kb: float  # a chunk
    size_kb: float  # a chunk
    ask_ms: float
    ask_p95_ms: float
    phrase_ms: float
    remove_one_ms: float  # a document of ten chunks, with its words
    remove_ms: float  # a chunk of a tenth of all chunks
    same: int  # questions and phrases with equal answers


class Fts5:
    """FTS5 over the terms of chunks, in a file of its own."""

    name = "FTS5"

    def __init__(self, file: Path) -> None:
        self._connection = sqlite3.connect(file, isolation_level=None)
        for pragma in _PRAGMAS:
            self._connection.execute(f"PRAGMA {pragma}")
        self._connection.execute(_FTS5)
        self._connection.execute("CREATE VIRTUAL TABLE vocabulary USING fts5vocab(full_text, row)")
        self._n_rows = 0

    def add(self, rows: Sequence[tuple[int, list[str]]]) -> None:
        """Add chunks in one transaction."""
        self._n_rows += len(rows)
        self._connection.execute("BEGIN IMMEDIATE")
        texts = [(rid, " ".join(terms)) for rid, terms in rows]
        self._connection.executemany("INSERT INTO full_text(rowid, terms) VALUES (?, ?)", texts)
        self._connection.execute("COMMIT")

    def remove(self, rows: Sequence[tuple[int, list[str]]]) -> None:
        """Remove chunks and merge what is left, so that their words leave the file."""
        self._connection.execute("BEGIN IMMEDIATE")
        texts = [(rid, " ".join(terms)) for rid, terms in rows]
        self._connection.executemany("INSERT INTO full_text(full_text, rowid, terms) VALUES ('delete', ?, ?)", texts)
        self._connection.execute("INSERT INTO full_text(full_text) VALUES ('optimize')")
        self._connection.execute("COMMIT")

    def phrase(self, terms: Sequence[str]) -> list[int]:
        """Return the chunks with these terms next to each other."""
        return [
            row[0] for row in self._connection.execute("SELECT rowid FROM full_text(?)", [_quoted(" ".join(terms))])
        ]

    def ask(self, terms: Sequence[str]) -> list[tuple[int, float]]:
        """Return the best chunks. Source: H. Turtle, J. Flood, Query evaluation (1995), section 4.3 (max_score)."""
        frequency = {term: self._frequency(term) for term in terms}
        if sum(frequency.values()) <= _MANY_ROWS:
            return self._scored(terms, ())
        most = {
            term: 2.2 * max(math.log((self._n_rows - n + 0.5) / (n + 0.5)), LEAST_IDF) for term, n in frequency.items()
        }
        rarest_first = sorted(terms, key=lambda term: (-most[term], term))
        left = [*accumulate((most[term] for term in reversed(rarest_first)), initial=0.0)][::-1]
        totals = accumulate(frequency[term] for term in rarest_first)
        n_needed = next((i for i, n in enumerate(totals, 1) if n >= _ROWS_TO_START * K), len(terms))
        while True:
            best = self._scored(terms, rarest_first[:n_needed])
            least = best[-1][1] - _ROUNDING if len(best) == K else 0.0
            n_scored = next((i for i, score in enumerate(left) if score < least), len(terms))
            if n_scored <= n_needed:
                return best
            n_needed = n_scored

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _frequency(self, term: str) -> int:
        row = self._connection.execute("SELECT doc FROM vocabulary WHERE term = ?", [term]).fetchone()
        return row[0] if row else 0

    def _scored(self, terms: Sequence[str], needed: Sequence[str]) -> list[tuple[int, float]]:
        condition = (
            "AND +rowid IN (SELECT rowid FROM full_text WHERE full_text MATCH ?)"
            if 0 < len(needed) < len(terms)
            else ""
        )
        query = f"""SELECT rowid, round(-bm25(full_text), 6) AS score FROM full_text WHERE full_text MATCH ? {condition}
            ORDER BY score DESC, rowid LIMIT {K}"""
        matches = [_any_of(terms), _any_of(needed)] if condition else [_any_of(terms)]
        return self._connection.execute(query, matches).fetchall()


class Segments:
    """Quipu's segments, in a file of their own."""

    name = "segments"

    def __init__(self, file: Path) -> None:
        self._backend = SqliteBackend(file, busy_timeout_s=30)
        with self._backend.writing() as connection:
            s.metadata.create_all(connection)

    def add(self, rows: Sequence[tuple[int, list[str]]]) -> None:
        """Add chunks in one transaction."""
        with self._backend.writing() as connection:
            writer = SegmentWriter(connection)
            for rid, terms in rows:
                writer.add(rid, terms, ())
            writer.finish()

    def remove(self, rows: Sequence[tuple[int, list[str]]]) -> None:
        """Remove chunks with their words."""
        with self._backend.writing() as connection:
            for some in blocks(rows, segments.MAX_NEW):
                segments.remove(connection, {rid: set(terms) for rid, terms in some})

    def phrase(self, terms: Sequence[str]) -> list[int]:
        """Return the chunks with these terms next to each other."""
        with self._backend.reading() as connection:
            return chunks_with_phrases(connection, {"": terms}).get("", [])

    def ask(self, terms: Sequence[str]) -> list[tuple[int, float]]:
        """Return the best chunks; nothing is cached from one question to the next."""
        with self._backend.viewing() as connection:
            return sorted(search(_snapshot(connection, self._backend), terms, K), key=_best_first)[:K]

    def close(self) -> None:
        """Close the file."""
        self._backend.close()


def measure(
    chunks: Sequence[list[str]], folder: Path, sides: Sequence[Callable[[Path], Fts5 | Segments]]
) -> list[Figure]:
    """Return the figures of the sides, which take turns."""
    opened = [side(folder / f"{number}.sqlite") for number, side in enumerate(sides)]
    rows = list(enumerate(chunks, 1))
    added, written = [0.0] * len(opened), [0] * len(opened)
    for commit in blocks(rows, COMMIT):
        for number, side in enumerate(opened):
            start = _bytes_written()
            added[number] += _timed(side.add, commit)[0]
            written[number] += _bytes_written() - start
    sizes = [sum(file.stat().st_size for file in folder.glob(f"{number}.sqlite*")) for number in range(len(opened))]
    asked = [[_timed(side.ask, question) for side in opened] for question in _questions(chunks)]
    phrased = [[_timed(side.phrase, phrase) for side in opened] for phrase in _phrases(chunks)]
    n_same = sum(map(_are_equal, asked)) + sum(map(_are_equal, phrased))
    middle = len(rows) // 2
    document, tenth = rows[middle : middle + 10], [*rows[:middle], *rows[middle + 10 :]][::10]
    removed_one = [_timed(side.remove, document)[0] for side in opened]
    removed = [_timed(side.remove, tenth)[0] for side in opened]
    figures: list[Figure] = []
    for number, side in enumerate(opened):
        side.close()
        ask_ms = sorted(of_sides[number][0] for of_sides in asked)
        figures.append(
            Figure(
                side=side.name,
                n_chunks=len(chunks),
                add_ms=added[number] / len(chunks),
                written_kb=written[number] / len(chunks) / 1e3,
                size_kb=sizes[number] / len(chunks) / 1e3,
                ask_ms=median(ask_ms),
                ask_p95_ms=ask_ms[int(0.95 * len(ask_ms))],
                phrase_ms=sum(of_sides[number][0] for of_sides in phrased) / len(phrased),
                remove_one_ms=removed_one[number],
                remove_ms=removed[number] / len(tenth),
                same=n_same,
            )
        )
    return figures


def real_chunks(folder: Path, n: int, n_words: int) -> list[list[str]]:
    """Return the terms of `n` chunks of shuffled sentences of the corpora below a folder."""
    random = Random(1)
    texts = [json.loads(line)["text"] for file in sorted(folder.rglob("corpus.jsonl")) for line in file.open("rb")]
    sentences = [
        index_terms(split_words(text[start:end]), text[start:end])
        for text in texts
        for start, end in sentence_spans(text)
    ]
    chunks: list[list[str]] = []
    while len(chunks) < n:
        chunk: list[str] = []
        while len(chunk) < n_words:
            chunk += random.choice(sentences)
        chunks.append(chunk)
    return chunks


def made_up_chunks(n: int, n_words: int) -> Iterator[list[str]]:
    """Yield the terms of `n` chunks of words whose frequencies follow Zipf's law."""
    random = np.random.default_rng(1)
    shares = np.cumsum(1 / (np.arange(N_MADE_UP_WORDS) + 2.7))
    for _ in range(n):
        ranks = np.searchsorted(shares, random.random(n_words) * shares[-1])
        yield [f"w{rank}" for rank in ranks.tolist()]


def _questions(chunks: Sequence[list[str]]) -> list[list[str]]:
    random = Random(2)
    asked: list[list[str]] = []
    while len(asked) < N_QUESTIONS:
        terms = sorted({term for term in random.choice(chunks) if term not in STOP_WORDS and len(term) > 1})
        if len(terms) >= N_TERMS:
            asked.append(random.sample(terms, N_TERMS))
    return asked


def _phrases(chunks: Sequence[list[str]]) -> list[list[str]]:
    random = Random(3)
    starts = [(chunk, random.randrange(len(chunk) - 1)) for chunk in random.choices(chunks, k=N_PHRASES)]
    return [chunk[start : start + 2] for chunk, start in starts]


def _snapshot(connection: Connection, backend: SqliteBackend) -> Snapshot:
    return Snapshot(connection=connection, backend=backend, analyzer=Analyzer(), cache=SnapshotCache())


def _best_first(hit: tuple[int, float]) -> tuple[float, int]:
    return -hit[1], hit[0]


def _timed(work: Callable[[V], R], value: V) -> tuple[float, R]:
    start = time.process_time()
    result = work(value)
    return (time.process_time() - start) * 1e3, result


def _are_equal(results: Sequence[tuple[float, object]]) -> bool:
    return all(answer == results[0][1] for _, answer in results)


def _bytes_written() -> int:
    line = next(line for line in Path("/proc/self/io").read_text("utf-8").splitlines() if line.startswith("wchar"))
    return int(line.split()[1])


def _any_of(terms: Sequence[str]) -> str:
    return " OR ".join(map(_quoted, terms))


def _quoted(term: str) -> str:
    return f'"{term}" *' if len(term) == 1 and is_unspaced(term) else f'"{term}"'


def main() -> None:
    """Measure what the command line asks for, and print a line for each side and size."""
    parser = argparse.ArgumentParser(description="Measures full text against SQLite's FTS5.")
    parser.add_argument("--texts", type=Path, help="a folder with corpus.jsonl files")
    parser.add_argument("--sizes", type=int, nargs="*", default=[4_000, 40_000])
    parser.add_argument("--words", type=int, default=120, help="words of a chunk")
    parser.add_argument("--made-up", type=int, default=0, help="measure our side alone at this many chunks")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    figures: list[Figure] = []
    for n in [*options.sizes, *([options.made_up] if options.made_up else [])]:
        is_alone = n == options.made_up
        chunks = (
            list(made_up_chunks(n, options.words))
            if is_alone or not options.texts
            else real_chunks(options.texts, n, options.words)
        )
        with tempfile.TemporaryDirectory() as folder:
            for figure in measure(chunks, Path(folder), [Segments] if is_alone else [Segments, Fts5]):
                figures.append(figure)
                print(
                    json.dumps({k: round(v, 3) if isinstance(v, float) else v for k, v in asdict(figure).items()}),
                    flush=True,
                )
    if options.json:
        options.json.write_text(json.dumps([asdict(figure) for figure in figures], indent=1), "utf-8")


if __name__ == "__main__":
    main()
