"""BM25 by FTS5. Only rows that can be among the k best are scored.

FTS5 finds a row far faster than it scores one, and a common word matches nearly all rows. A row with only common words
cannot score more than the sum of their maximum scores. If this sum is below the score of the k-th row, such rows are
skipped. Source: H. Turtle, J. Flood, Query evaluation: strategies and optimizations (1995), section 4.3 (max_score).
"""

import math
from collections.abc import Sequence
from itertools import accumulate

from sqlalchemy import Connection, text

from quipu.text.unicode import is_unspaced

_MOST_PER_IDF = 2.2  # k1 + 1: what a term adds to a row's score, however often it occurs, over its IDF
_LEAST_IDF = 1e-6  # FTS5's, for a term of more than half of the rows
_MANY_ROWS = 4_000  # of all terms together: to score fewer takes less than to choose among them
_ROWS_TO_START = 4  # times k, found by the first search
_ROUNDING = 1e-5

_FREQUENCY = text("SELECT doc FROM chunk_vocabulary WHERE term = :term")
_LAST_ROW = text("SELECT max(rid) FROM chunk")  # an upper bound of the number of rows
_SCORED = """
    SELECT chunk.id AS id, round(-bm25(chunk_terms), 6) AS score
    FROM chunk_terms JOIN chunk ON chunk.rid = chunk_terms.rowid
    WHERE chunk_terms MATCH :terms {conditions}
    ORDER BY score DESC, chunk.id LIMIT :k
"""
_ALLOWED = "AND chunk.rid IN (SELECT rid FROM temp.allowed_chunk)"
# "+": a row is looked up among those found, where FTS5 would be asked for each of them anew.
_WITH_ONE_OF = "AND +chunk_terms.rowid IN (SELECT rowid FROM chunk_terms WHERE chunk_terms MATCH :needed)"


def search(connection: Connection, terms: Sequence[str], k: int, *, is_filtered: bool) -> list[tuple[str, float]]:
    """Return the ids of the k best chunks for any of the terms with their scores; equal scores by id."""
    if not terms or k <= 0:
        return []
    n_rows = connection.execute(_LAST_ROW).scalar() or 0
    frequency = {term: connection.execute(_FREQUENCY, {"term": term}).scalar() for term in terms}
    if sum(filter(None, frequency.values())) <= _MANY_ROWS:
        return _scored(connection, terms, (), k, is_filtered)
    most = {term: _most(n, n_rows) for term, n in frequency.items()}
    rarest_first = sorted(terms, key=lambda term: (-most[term], term))
    # The maximum score of a row that has none of the first 0, 1, 2 … terms.
    left = [*accumulate((most[term] for term in reversed(rarest_first)), initial=0.0)][::-1]
    n_found = accumulate(frequency[term] or 0 for term in rarest_first)
    n_needed = next((i for i, n in enumerate(n_found, 1) if n >= _ROWS_TO_START * k), len(terms))
    while True:
        best = _scored(connection, terms, rarest_first[:n_needed], k, is_filtered)
        least = best[-1][1] - _ROUNDING if len(best) == k else 0.0
        n_scored = next((i for i, score in enumerate(left) if score < least), len(terms))
        if n_scored <= n_needed:
            return best
        n_needed = n_scored


def _most(n_rows_with: int | None, n_rows: int) -> float:
    """Return what a term can add to a row's score; no bound where FTS5 knows the term by another form, or a prefix."""
    if n_rows_with is None:
        return math.inf
    return _MOST_PER_IDF * max(math.log((n_rows - n_rows_with + 0.5) / (n_rows_with + 0.5)), _LEAST_IDF)


def _scored(
    connection: Connection, terms: Sequence[str], needed: Sequence[str], k: int, is_filtered: bool
) -> list[tuple[str, float]]:
    """Return the best of the rows that have one of the `needed` terms, or of any term if `needed` is empty."""
    is_restricted = 0 < len(needed) < len(terms)
    conditions = (_ALLOWED if is_filtered else "", _WITH_ONE_OF if is_restricted else "")
    parameters = {"terms": _any_of(terms), "k": k, **({"needed": _any_of(needed)} if is_restricted else {})}
    query = text(_SCORED.format(conditions=" ".join(conditions)))
    return [(chunk_id, score) for chunk_id, score in connection.execute(query, parameters)]


def _any_of(terms: Sequence[str]) -> str:
    return " OR ".join(quoted(term) for term in terms)


def quoted(term: str) -> str:
    """Return a term as FTS5 takes it; one character of an unspaced script matches every pair it starts."""
    escaped = '"' + term.replace('"', '""') + '"'
    return f"{escaped} *" if len(term) == 1 and is_unspaced(term) else escaped
