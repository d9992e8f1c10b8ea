"""Full text on PostgreSQL: a row for each term of a chunk, and BM25 in SQL."""

from collections import Counter
from collections.abc import Iterable, Sequence

from sqlalchemy import Connection

from quipu.text.unicode import is_unspaced

_PREFIX = 60  # characters of a term that its index holds, because terms may be longer than a row of an index

TABLES = (
    "CREATE TABLE chunk_length (chunk bigint PRIMARY KEY, n bigint NOT NULL)",
    'CREATE TABLE chunk_term (term text COLLATE "C" NOT NULL, chunk bigint NOT NULL, n bigint NOT NULL)',
    f"CREATE INDEX chunk_term_term ON chunk_term (left(term, {_PREFIX}), chunk)",
    "CREATE INDEX chunk_term_chunk ON chunk_term (chunk)",
    'CREATE TABLE chunk_capital (term text COLLATE "C" NOT NULL, chunk bigint NOT NULL)',
    f"CREATE INDEX chunk_capital_term ON chunk_capital (left(term, {_PREFIX}), chunk)",
    "CREATE INDEX chunk_capital_chunk ON chunk_capital (chunk)",
)
NAMES = ("chunk_length", "chunk_term", "chunk_capital")

# A term finds itself; one character of a script without spaces finds every pair that it begins.
_MATCHES = f"""
    SELECT i, chunk, sum(n) AS n
    FROM unnest(%(terms)s::text[]) WITH ORDINALITY AS wanted(word, i)
    JOIN chunk_term ON left(term, {_PREFIX}) = left(word, {_PREFIX}) AND term = word
    GROUP BY i, chunk
    UNION ALL
    SELECT i, chunk, sum(n) AS n
    FROM unnest(%(starts)s::text[], %(ends)s::text[], %(places)s::bigint[]) AS wanted(first, after, i)
    JOIN chunk_term ON left(term, {_PREFIX}) >= first AND left(term, {_PREFIX}) < after
    GROUP BY i, chunk
"""
# BM25 with k1 1.2, b 0.75 and a floor under IDF for terms of more than half of the chunks, as in FTS5.
_SEARCH = f"""
    WITH matches AS MATERIALIZED ({_MATCHES}),
    frequency AS (SELECT i, count(*)::float8 AS df FROM matches GROUP BY i),
    total AS (SELECT count(*)::float8 AS n, sum(n)::float8 / count(*) AS mean FROM chunk_length)
    SELECT chunk.id, round(sum(
        greatest(ln((total.n - df + 0.5) / (df + 0.5)), 1e-6)
        * matches.n::float8 * 2.2 / (matches.n::float8 + 1.2 * (0.25 + 0.75 * chunk_length.n / total.mean)) ORDER BY i
    )::numeric, 6)::float8 AS score
    FROM matches JOIN frequency USING (i) CROSS JOIN total
    JOIN chunk_length USING (chunk) JOIN chunk ON chunk.rid = matches.chunk
    {{condition}}
    GROUP BY chunk.id ORDER BY score DESC, chunk.id LIMIT %(k)s
"""
_ALLOWED = "WHERE chunk.rid IN (SELECT unnest(current_setting('quipu.allowed_chunk')::bigint[]))"
_WITH_ALL = f"SELECT chunk FROM ({_MATCHES}) AS matches GROUP BY chunk HAVING count(*) = %(n)s ORDER BY chunk"
_WITH_CAPITAL = f"""
    SELECT chunk FROM chunk_capital
    WHERE left(term, {_PREFIX}) = left(%(term)s, {_PREFIX}) AND term = %(term)s ORDER BY chunk
"""


def index(connection: Connection, rows: Iterable[tuple[int, str, str]]) -> None:
    """Add chunks: (row, terms, capitalised terms), terms separated by spaces."""
    lengths: list[tuple[int, int]] = []
    postings: list[tuple[str, int, int]] = []
    capitals: list[tuple[str, int]] = []
    for rid, terms, capital_terms in rows:
        counts = Counter(terms.split())
        lengths.append((rid, counts.total()))
        postings += [(term, rid, n) for term, n in sorted(counts.items())]
        capitals += [(term, rid) for term in sorted(set(capital_terms.split()))]
    for table, values in (("chunk_length", lengths), ("chunk_term", postings), ("chunk_capital", capitals)):
        with connection.connection.cursor().copy(f"COPY {table} FROM STDIN") as copy:
            for row in values:
                copy.write_row(row)


def unindex(connection: Connection, rids: Sequence[int]) -> None:
    """Remove chunks."""
    for table in NAMES:
        connection.exec_driver_sql(f"DELETE FROM {table} WHERE chunk = ANY(%(rids)s)", {"rids": list(rids)})


def search(connection: Connection, terms: Sequence[str], k: int, *, is_filtered: bool) -> list[tuple[str, float]]:
    """Return ids and scores of the k best chunks for any of the terms; equal scores by id."""
    if not terms or k <= 0:
        return []
    parameters = {**_wanted(terms), "k": k}
    query = _SEARCH.format(condition=_ALLOWED if is_filtered else "")
    return [(row[0], row[1]) for row in connection.exec_driver_sql(query, parameters)]


def chunks_with_all(connection: Connection, terms: Sequence[str]) -> list[int]:
    """Return the chunks that contain every one of these terms."""
    distinct = sorted(set(terms))
    rows = connection.exec_driver_sql(_WITH_ALL, {**_wanted(distinct), "n": len(distinct)})
    return [row[0] for row in rows]


def chunks_with_capital(connection: Connection, term: str) -> list[int]:
    """Return the chunks that have this capitalised term."""
    return [row[0] for row in connection.exec_driver_sql(_WITH_CAPITAL, {"term": term})]


def frequencies(connection: Connection) -> tuple[dict[str, int], dict[str, int]]:
    """Return in how many chunks each term, and each capitalised term, is."""
    terms, capitals = (
        dict(map(tuple, connection.exec_driver_sql(f"SELECT term, count(*) FROM {table} GROUP BY term")))
        for table in ("chunk_term", "chunk_capital")
    )
    return terms, capitals


def _wanted(terms: Sequence[str]) -> dict[str, list[str | None] | list[str] | list[int]]:
    places = [i for i, term in enumerate(terms, 1) if len(term) == 1 and is_unspaced(term)]
    starts = [terms[i - 1] for i in places]
    return {
        "terms": [None if i in places else term for i, term in enumerate(terms, 1)],
        "starts": starts,
        "ends": [chr(ord(start) + 1) for start in starts],
        "places": places,
    }
