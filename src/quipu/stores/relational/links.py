"""Links: where known names occur, in both directions, kept in the transaction that brings the name or the chunk.

A link is a count for one name (an entity's key or a stated alias) and one chunk, a function of those two alone:
so the order in which documents came never matters, and one document never rewrites another's links.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, bindparam, select

from quipu.stores.relational import schema as s
from quipu.stores.relational.backend import Backend
from quipu.stores.relational.name_sieve import NameSieve
from quipu.stores.relational.sql import ByValues, execute_rows, insert_rows, next_rid
from quipu.text.names import (
    anchor,
    capital_term,
    count_occurrences,
    count_occurrences_at,
    find_name_starts,
    is_linkable,
    name_forms,
    phrase_terms,
)
from quipu.text.words import Words, split_words

_n = s.name.c
_BY_KEY = ByValues(select(s.name), _n.key)
_BY_ANCHOR = ByValues(select(_n.anchor, _n.key, _n.rid), _n.anchor)
_COUNT = s.name.update().where(_n.rid == bindparam("row")).values(n=bindparam("count"))
_DROP_NAMES = ByValues(s.name.delete(), _n.rid)
_DROP_LINKS_OF_NAMES = ByValues(s.link.delete(), s.link.c.name)
_DROP_LINKS_OF_CHUNKS = ByValues(s.link.delete(), s.link.c.chunk)
_TEXTS = ByValues(select(s.chunk.c.rid, s.chunk.c.text), s.chunk.c.rid)


def change_names(connection: Connection, sieve: NameSieve, references: Mapping[str, int]) -> dict[str, int]:
    """Add to the number of entities and aliases that use each name; drop unused names with their links.

    Returns the rows of names that are new.
    """
    changes = {key: n for key, n in references.items() if n and is_linkable(key)}
    known = _BY_KEY.rows(connection, sorted(changes))
    counts = {row.rid: row.n + changes[row.key] for row in known}
    execute_rows(connection, _COUNT, [{"row": rid, "count": n} for rid, n in counts.items()])
    unused = [rid for rid, n in counts.items() if not n]
    _DROP_LINKS_OF_NAMES.run(connection, unused)
    _DROP_NAMES.run(connection, unused)
    new = sorted(changes.keys() - {row.key for row in known})
    first = next_rid(connection, s.name) if new else 0
    added = [
        {"rid": first + i, "key": key, "anchor": anchor(name_forms(key)), "n": changes[key]}
        for i, key in enumerate(new)
    ]
    insert_rows(connection, s.name, added)
    sieve.add([str(row["anchor"]) for row in added])
    return {key: first + i for i, key in enumerate(new)}


def link_new_chunks(connection: Connection, sieve: NameSieve, words_by_chunk: Mapping[int, Words]) -> None:
    """Find every known name in the words of new chunks."""
    places_by_chunk = {rid: sieve.sift(connection, find_name_starts(words)) for rid, words in words_by_chunk.items()}
    wanted = set[str]().union(*(places.anchors for places in places_by_chunk.values()))
    found = _BY_ANCHOR.rows(connection, sorted(wanted))
    keys_by_anchor: dict[str, list[str]] = {}
    for row in found:
        keys_by_anchor.setdefault(row.anchor, []).append(row.key)
    rid_by_key = {row.key: row.rid for row in found}
    counts = {
        rid: count_occurrences_at(words, places_by_chunk[rid], keys_by_anchor) for rid, words in words_by_chunk.items()
    }
    _insert(connection, counts, rid_by_key)


def link_new_names(connection: Connection, backend: Backend, names: Mapping[str, int], new_chunks: set[int]) -> None:
    """Find new names in the chunks that were there before."""
    keys_by_chunk: dict[int, list[str]] = {}
    for key in names:
        for chunk in _candidates(connection, backend, key):
            if chunk not in new_chunks:
                keys_by_chunk.setdefault(chunk, []).append(key)
    texts = _TEXTS.rows(connection, sorted(keys_by_chunk))
    counts: dict[int, dict[str, int]] = {}
    for row in texts:
        by_anchor: dict[str, list[str]] = {}
        for key in keys_by_chunk[row.rid]:
            by_anchor.setdefault(anchor(name_forms(key)), []).append(key)
        counts[row.rid] = count_occurrences(split_words(row.text), by_anchor)
    _insert(connection, counts, names)


def drop_chunks(connection: Connection, chunks: Sequence[int]) -> None:
    """Remove the links of chunks."""
    _DROP_LINKS_OF_CHUNKS.run(connection, chunks)


def references(new_entities: Sequence[str], gone_entities: Sequence[str], aliases: Counter[str]) -> Counter[str]:
    """Return by how much the use of each name changes."""
    total = Counter(aliases)
    total.update(new_entities)
    total.subtract(gone_entities)
    return total


def _candidates(connection: Connection, backend: Backend, key: str) -> list[int]:
    forms = name_forms(key)
    if len(forms) == 1:
        return backend.chunks_with_capital(connection, capital_term(key))
    return backend.chunks_with_phrase(connection, phrase_terms(key))


def _insert(connection: Connection, counts: Mapping[int, Mapping[str, int]], rid_by_key: Mapping[str, int]) -> None:
    insert_rows(
        connection,
        s.link,
        [
            {"name": rid_by_key[key], "chunk": chunk, "n": n}
            for chunk, names in counts.items()
            for key, n in names.items()
        ],
    )
