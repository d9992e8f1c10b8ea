"""Full-text search: BM25 and phrases over the postings of all segments.

A score depends on the question, on the chunk and on sums over the whole index, never on the segment that a chunk is in.
It is summed in the order of the question's terms, in float64. So equal indexes give equal scores to the last bit.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress

import numpy as np
import numpy.typing as npt
from sqlalchemy import Connection, bindparam, case, func, select

from quipu.stores.relational.filters import allowed_chunks, find_sorted
from quipu.stores.relational.postings import (
    KEY,
    MAX_TERM,
    ROWS,
    SLOT_BYTES,
    Postings,
    index_key,
    phrase_slots,
    places,
    posting,
    read_segments,
    segment,
)
from quipu.stores.relational.snapshot import Snapshot, cached_arrays
from quipu.stores.relational.sql import ByValues, Ints, blocks, driver_rows
from quipu.text.references import NAMED, REFERENCE_MARKS
from quipu.text.words import is_one_character

Floats = npt.NDArray[np.float64]

K1, B = 1.2, 0.75
LEAST_IDF = 1e-6  # of a term in more than half of all chunks: a shared word is never evidence against a chunk
_DECIMALS = 6
_PHRASES_AT_ONCE = 128
_AFTER_ALL = "\U0010ffff"
_NAMES_PER_CHUNK = 4  # measured: the mean over 317 files

_g, _p = segment.c, posting.c
_every = select(_g.rid)
_ALL_SEGMENTS = select(_g.rid, _g.chunks, _g.lengths).order_by(_g.rid)
_CHUNKS_OF = ByValues(select(_g.rid, _g.chunks, _g.lengths), _g.rid)
# Naming every segment makes a database use the key (segment, term).
_LISTS = ByValues(select(_p.term, _p.slots, _p.counts, _p.segment).where(_p.segment.in_(_every)), _p.term)
_LISTS_FROM = select(_p.term, _p.slots, _p.counts, _p.segment).where(
    _p.segment.in_(_every), _p.term >= bindparam("first"), _p.term < bindparam("end")
)
_is_short = func.length(_p.slots) <= bindparam("n_bytes")
_ALL_NAMES = select(_p.term).where(_p.segment.in_(_every), _p.term >= KEY + NAMED, _p.term < KEY + NAMED + _AFTER_ALL)
_SHORT_LISTS = ByValues(
    select(_p.term, *(case((_is_short, part)) for part in (_p.slots, _p.counts)), _p.segment).where(
        _p.segment.in_(_every)
    ),
    _p.term,
)
_SLOTS = ByValues(select(_p.term, _p.segment, _p.slots).where(_p.segment.in_(_every)), _p.term)


def search(snapshot: Snapshot, terms: Sequence[str], k: int) -> list[tuple[int, float]]:
    """Return chunks with any of these distinct terms, by row number, and their BM25 scores, in no order.

    They are the k best and those whose score, rounded, may equal that of the last. Scores are rounded to six decimals.
    One character of an unspaced script stands for all terms that begin with it. Under a filter only allowed chunks are
    returned, but frequencies and lengths are those of the whole index. Source: S. Robertson and H. Zaragoza, The
    Probabilistic Relevance Framework: BM25 and Beyond (2009), section 3, as SQLite's FTS5 computes it: no IDF is below
    LEAST_IDF.
    """
    if not terms or k <= 0:
        return []
    segments, starts, chunks, lengths = _slots_of_all_chunks(snapshot)
    n_chunks = int(np.count_nonzero(chunks))
    if not lengths.any():
        return []
    norms = K1 * ((1 - B) + (B * lengths) / (float(lengths.sum()) / n_chunks))
    scores = np.zeros(len(chunks))
    for rows in _rows_by_term(snapshot.connection, terms):
        slots, frequencies = _matches(rows, segments, starts, is_one_term=len({row[0] for row in rows}) == 1)
        if len(slots):
            idf = max(math.log((n_chunks - len(slots) + 0.5) / (len(slots) + 0.5)), LEAST_IDF)
            scores[slots] += idf * ((frequencies * (K1 + 1)) / (frequencies + norms[slots]))
    matching = np.flatnonzero(scores)
    if (allowed := allowed_chunks(snapshot)) is not None:
        matching = matching[find_sorted(allowed, chunks[matching])[1]]
    best = matching[_may_be_best(scores[matching], k)]
    rounded = [round(score, _DECIMALS) for score in scores[best].tolist()]
    return list(zip(chunks[best].tolist(), rounded, strict=True))


def chunks_with_phrases(connection: Connection, phrases: Mapping[str, Sequence[str]]) -> dict[str, list[int]]:
    """Return for each key the chunks, by row number, that contain its terms next to each other in this order.

    Only keys with such chunks are returned. Of each phrase the longest term, which is likely to be rare, is looked up
    first, the others only in segments that have it.
    """
    chunks_by_key: dict[str, list[int]] = {}
    for keys in blocks(phrases, _PHRASES_AT_ONCE):
        slots_by_key = _find_phrases(connection, {key: [index_key(term) for term in phrases[key]] for key in keys})
        rids = sorted({rid for slots_by_segment in slots_by_key.values() for rid in slots_by_segment})
        chunks_by_segment = {part.rid: part.chunks for part in read_segments(_CHUNKS_OF.rows(connection, rids))}
        for key, slots_by_segment in slots_by_key.items():
            chunks = [chunks_by_segment[rid][slots] for rid, slots in slots_by_segment.items()]
            chunks_by_key[key] = np.sort(np.concatenate(chunks)).tolist()
    return chunks_by_key


def chunks_with_terms(snapshot: Snapshot, terms: Sequence[str], max_chunks: int) -> dict[str, dict[int, int]]:
    """Return, for each term, its chunks by row number, and how often they have it: 0 for reference keys.

    A term that is in no chunk, or in more than `max_chunks` of the whole index, is left out.
    """
    known = _without_unknown_names(snapshot, terms)
    term_by_key = {index_key(key_of(term) if term.startswith(REFERENCE_MARKS) else term): term for term in known}
    n_bytes = max_chunks * SLOT_BYTES
    rows = _SHORT_LISTS.tuples(snapshot.connection, sorted(term_by_key), n_bytes=n_bytes)
    n_bytes_by_key = Counter[str]()
    for key, slots, *_ in rows:
        n_bytes_by_key[key] += n_bytes + 1 if slots is None else len(slots)
    rows = [row for row in rows if n_bytes_by_key[row[0]] <= n_bytes]
    if not rows:
        return {}
    segments, starts, chunks, _ = _slots_of_all_chunks(snapshot)
    postings = Postings.unpacked(rows)
    row_starts = starts[np.searchsorted(segments, [row[3] for row in rows])]
    numbers = chunks[np.repeat(row_starts, postings.sizes) + postings.slots]
    terms_of_slots = np.repeat([term_by_key[row[0]] for row in rows], postings.sizes)
    allowed = allowed_chunks(snapshot)
    visible = slice(None) if allowed is None else find_sorted(allowed, numbers)[1]
    chunks_by_term: dict[str, dict[int, int]] = {}
    columns = terms_of_slots[visible], numbers[visible], postings.counts[visible]
    for term, number, n in zip(*(column.tolist() for column in columns), strict=True):
        chunks_by_term.setdefault(term, {})[number] = n
    return chunks_by_term


def key_of(name: str) -> str:
    """Return the key of full text with this name: of a capitalised term, or of a reference."""
    return KEY + name


def _without_unknown_names(snapshot: Snapshot, terms: Sequence[str]) -> Sequence[str]:
    """Return the terms without most of those that are names of no passage: of a thousand phrases, few are names.

    The hashes of all names are cached once look-ups have cost as much as reading them.
    """
    names = [term for term in terms if term.startswith(NAMED) and len(term) < MAX_TERM]
    cache = snapshot.cache.unfiltered
    segments, _, chunks, _ = _slots_of_all_chunks(snapshot)
    (n_lookups,) = cache.get("name look-ups", (np.zeros(1, dtype=np.int64),))
    cache["name look-ups"] = (n_lookups + len(names) * len(segments),)
    if int(n_lookups[0]) < _NAMES_PER_CHUNK * len(chunks):
        return terms

    def read() -> tuple[Ints]:
        keys = driver_rows(snapshot.connection.execute(_ALL_NAMES))
        return (np.unique(_hashes(key.removeprefix(KEY) for (key,) in keys)),)

    (hashes,) = cached_arrays(cache, "names", read)
    unknown = set(compress(names, (~find_sorted(hashes, _hashes(names))[1]).tolist()))
    return [term for term in terms if term not in unknown]


def _hashes(names: Iterable[str]) -> Ints:
    return np.fromiter(map(hash, names), dtype=np.int64)


def _slots_of_all_chunks(snapshot: Snapshot) -> tuple[Ints, ...]:
    """Return the segments, rising, [n_segments]; where the slots of each start in the arrays of all slots; the chunk in
    each slot, 0 for none, and its length in terms, 0 for none, both [n_slots].
    """

    def read() -> tuple[Ints, ...]:
        parts = read_segments(snapshot.connection.execute(_ALL_SEGMENTS))
        if not parts:
            return (np.empty(0, dtype=np.int64),) * 4
        chunks = np.concatenate([part.chunks for part in parts])
        lengths = np.concatenate([part.lengths for part in parts])
        starts = np.cumsum([0, *(len(part.chunks) for part in parts[:-1])])
        return np.array([part.rid for part in parts]), starts, chunks, np.where(chunks > 0, lengths, 0)

    return cached_arrays(snapshot.cache.unfiltered, "full text", read)


def _rows_by_term(connection: Connection, terms: Sequence[str]) -> list[list[tuple[str, bytes, bytes, int]]]:
    """Return for each term its rows: term, slots, counts, segment."""
    keys = {term: index_key(term) for term in terms if not is_one_character(term)}
    rows_by_key: dict[str, list[tuple[str, bytes, bytes, int]]] = {key: [] for key in keys.values()}
    for key, slots, counts, rid in _LISTS.tuples(connection, sorted(rows_by_key)):
        rows_by_key[key].append((key, slots, counts, rid))
    return [rows_by_key[keys[term]] if term in keys else _rows_from(connection, term) for term in terms]


def _rows_from(connection: Connection, prefix: str) -> list[tuple[str, bytes, bytes, int]]:
    rows = driver_rows(connection.execute(_LISTS_FROM, {"first": prefix, "end": prefix + _AFTER_ALL}))
    return [(term, slots, counts, rid) for term, slots, counts, rid in rows]


def _matches(
    rows: Sequence[tuple[str, bytes, bytes, int]], segments: Ints, starts: Ints, *, is_one_term: bool
) -> tuple[Ints, Ints]:
    """Return the slots with one of the terms of these rows, each once, and how often these terms are in its chunk."""
    postings = Postings.unpacked(rows)
    row_starts = starts[np.searchsorted(segments, [row[3] for row in rows])] if rows else starts[:0]
    slots = np.repeat(row_starts, postings.sizes) + postings.slots
    if is_one_term:
        return slots, postings.counts
    distinct, places_of = np.unique(slots, return_inverse=True)
    return distinct, np.bincount(places_of, weights=postings.counts, minlength=len(distinct)).astype(np.int64)


def _may_be_best(scores: Floats, k: int) -> Ints:
    """Return the positions of scores that may be among the k best once they are rounded."""
    if len(scores) <= k:
        return np.arange(len(scores))
    least = np.partition(scores, len(scores) - k)[len(scores) - k]
    return np.flatnonzero(scores >= least - 10.0**-_DECIMALS)


def _find_phrases(connection: Connection, phrases: Mapping[str, Sequence[str]]) -> dict[str, dict[int, Ints]]:
    """Return for each key in which slots of which segments its phrase is; keys without any are left out."""
    lead_by_key = {key: max(terms, key=len) for key, terms in phrases.items()}
    slots_by_term: dict[str, dict[int, bytes]] = {}
    for term, rid, slots in _SLOTS.tuples(connection, sorted(set(lead_by_key.values()))):
        slots_by_term.setdefault(term, {})[rid] = slots
    terms_by_segment: dict[int, set[str]] = {}
    for key, terms in phrases.items():
        if len(terms) > 1:
            for rid in slots_by_term.get(lead_by_key[key], ()):
                terms_by_segment.setdefault(rid, set()).update(terms)
    places_by_pair = {
        (rid, row[0]): places(row)
        for rid, terms in terms_by_segment.items()
        for row in ROWS.tuples(connection, sorted(terms), of=rid)
    }
    slots_by_key: dict[str, dict[int, Ints]] = {}
    for key, terms in phrases.items():
        for rid, slots in slots_by_term.get(lead_by_key[key], {}).items():
            if len(terms) == 1:
                matching = np.frombuffer(slots, "<u2").astype(np.int64)
            elif all((rid, term) in places_by_pair for term in terms):
                matching = phrase_slots([places_by_pair[rid, term] for term in terms])
            else:
                continue
            if len(matching):
                slots_by_key.setdefault(key, {})[rid] = matching
    return slots_by_key
