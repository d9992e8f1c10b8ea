"""Where entities and relations appear: the chunks that name or state them.

Counted by row number: an entity of every third chunk appears in thousands, of which the first few are looked up.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy import bindparam, func, select

from quipu.stores.relational import numbers
from quipu.stores.relational import schema as s
from quipu.stores.relational.lookup import Lookup
from quipu.stores.relational.rids import entity_rids, relation_rids
from quipu.stores.relational.snapshot import Snapshot
from quipu.stores.relational.sql import Ints

_c, _l = s.chunk.c, s.link.c
_em, _rm, _am = s.entity_mention.c, s.relation_mention.c, s.alias_mention.c
_SAID_IN = Lookup(select(_em.entity, _em.chunk), _em.entity, said_in=_em.chunk)
_STATED_IN = Lookup(select(_rm.relation, _rm.chunk), _rm.relation, said_in=_rm.chunk)
_ALIASES = Lookup(select(_am.entity, _am.alias).distinct(), _am.entity, said_in=_am.chunk)
_NAME_RIDS = Lookup(select(s.name.c.key, s.name.c.rid), s.name.c.key)
_LAST_CHUNK = select(func.max(_c.rid))
_FIRST_CHUNKS = select(_c.rid, _c.id).order_by(_c.id).limit(bindparam("n"))
_LINKED_TO = Lookup(select(_l.name, _l.chunk, _l.n), _l.name, said_in=_l.chunk)

_NONE: Ints = np.empty(0, dtype=np.int64)
_CHUNK_BITS = 40  # an entity's position and a chunk's row make one number


def chunks_of_entities(snapshot: Snapshot, keys: Sequence[str], k: int) -> dict[str, dict[str, int]]:
    """Return the `k` chunks that name each entity most: by its links, or its mentions where they are more."""
    key_by_rid = {rid: key for key, rid in entity_rids(snapshot, keys).items()} if k > 0 else {}
    rids = sorted(key_by_rid)
    candidates = [_most(chunks, counts, k) for chunks, counts in _counts(snapshot, key_by_rid, rids)]
    chunk_ids = _ids(snapshot, candidates, k)
    found = {key_by_rid[rid]: each.ranked(chunk_ids, k) for rid, each in zip(rids, candidates, strict=True)}
    return {key: found[key] for key in dict.fromkeys(keys) if found.get(key)}


def chunks_mentioning(snapshot: Snapshot, keys: Sequence[str], k: int) -> dict[str, list[str]]:
    """Return the first `k` chunks that mention each entity, by id."""
    rid_by_key = entity_rids(snapshot, keys) if k > 0 else {}
    entities, chunks = _SAID_IN.ints(snapshot, sorted(rid_by_key.values()))
    said = {key: np.unique(chunks[entities == rid]) for key, rid in rid_by_key.items()}
    candidates = {key: _Candidates(_NONE, _NONE, here, 1) for key, here in said.items() if len(here)}
    chunk_ids = _ids(snapshot, list(candidates.values()), k)
    return {key: list(candidates[key].ranked(chunk_ids, k)) for key in dict.fromkeys(keys) if key in candidates}


def chunks_of_relations(snapshot: Snapshot, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the chunks that state each relation, ordered by id."""
    id_by_rid = relation_rids(snapshot, ids)
    relations, chunks = (column.tolist() for column in _STATED_IN.ints(snapshot, sorted(id_by_rid)))
    chunk_ids = numbers.chunk_ids(snapshot, set(chunks))
    found: dict[str, set[str]] = {}
    for relation, chunk in zip(relations, chunks, strict=True):
        found.setdefault(id_by_rid[relation], set()).add(chunk_ids[chunk])
    return {i: tuple(sorted(found[i])) for i in dict.fromkeys(ids) if i in found}


def _counts(snapshot: Snapshot, key_by_rid: Mapping[int, str], rids: Sequence[int]) -> list[tuple[Ints, Ints]]:
    """Return the chunks that name each entity, and how often."""
    positions = np.arange(len(rids) + 1)
    entities, chunks = _SAID_IN.ints(snapshot, rids)
    said = (np.searchsorted(rids, entities) << _CHUNK_BITS) | chunks
    linked, times = _occurrences(snapshot, key_by_rid, rids)
    codes, at = np.unique(np.concatenate([said, linked]), return_inverse=True)
    n_said = np.bincount(at[: len(said)], minlength=len(codes))
    n_linked = np.bincount(at[len(said) :], weights=times, minlength=len(codes)).astype(np.int64)
    counts = np.maximum(n_said, n_linked)
    # Under a filter there is no entity where no allowed chunk mentions it, wherever its name stands.
    is_there = np.isin(positions, said >> _CHUNK_BITS) | (not snapshot.is_filtered)
    starts = np.searchsorted(codes, positions << _CHUNK_BITS)
    ends = np.where(is_there[:-1], starts[1:], starts[:-1])
    places = [slice(start, end) for start, end in zip(starts.tolist(), ends.tolist(), strict=False)]
    chunks = codes & ((1 << _CHUNK_BITS) - 1)
    return [(chunks[place], counts[place]) for place in places]


def _occurrences(snapshot: Snapshot, key_by_rid: Mapping[int, str], rids: Sequence[int]) -> tuple[Ints, Ints]:
    """Return the links of all names of each entity, coded, and how often the name stands there."""
    names = {(key, rid) for rid, key in key_by_rid.items()}
    names.update((alias, rid) for rid, alias in _ALIASES.rows(snapshot, rids))
    name_rids: dict[str, int] = dict(_NAME_RIDS.rows(snapshot, sorted({name for name, _ in names})))
    linked, chunks, times = _LINKED_TO.ints(snapshot, sorted(name_rids.values()))
    order = np.argsort(linked, kind="stable")
    linked, chunks, times = linked[order], chunks[order], times[order]
    owned = sorted((name_rids[name], bisect_left(rids, rid)) for name, rid in names if name in name_rids)
    starts = np.searchsorted(linked, [name for name, _ in owned], side="left").tolist()
    ends = np.searchsorted(linked, [name for name, _ in owned], side="right").tolist()
    parts = [slice(start, end) for start, end in zip(starts, ends, strict=True)]
    codes = [chunks[part] | (position << _CHUNK_BITS) for part, (_, position) in zip(parts, owned, strict=True)]
    return np.concatenate([_NONE, *codes]), np.concatenate([_NONE, *(times[part] for part in parts)])


@dataclass(frozen=True, slots=True)
class _Candidates:
    """Chunks that name an entity most, with their counts, and those that all name it `least` times."""

    chunks: Ints
    counts: Ints
    tied: Ints
    least: int

    def ranked(self, ids: Mapping[int, str], k: int) -> dict[str, int]:
        """Return the first `k` with their counts, as far as their ids are given; most first, equal ones by id."""
        counted = zip(self.chunks.tolist(), self.counts.tolist(), strict=True)
        above = sorted((-n, ids[chunk]) for chunk, n in counted)
        tied = sorted(ids[chunk] for chunk in self.tied.tolist() if chunk in ids)
        return {i: -n for n, i in above} | dict.fromkeys(tied[: k - len(above)], self.least)


def _most(chunks: Ints, counts: Ints, k: int) -> _Candidates:
    """Return the chunks with the `k` largest counts, with all that equal the smallest of them apart."""
    if len(counts) <= k:
        return _Candidates(chunks, counts, _NONE, 0)
    least = int(np.partition(counts, len(counts) - k)[len(counts) - k])
    is_above = counts > least
    return _Candidates(chunks[is_above], counts[is_above], chunks[counts == least], least)


def _ids(snapshot: Snapshot, candidates: Sequence[_Candidates], k: int) -> dict[int, str]:
    """Return the ids, by row, of chunks among which are the first `k` of all candidates."""
    wanted = {chunk for each in candidates for chunk in each.chunks.tolist()}
    first = _first_of_all(snapshot, max((len(each.tied) for each in candidates), default=0), k)
    rids = np.fromiter((rid for rid, _ in first), np.int64, len(first))
    ids: dict[int, str] = {}
    for each in candidates:
        here = np.flatnonzero(np.isin(rids, each.tied))[:k] if first and len(each.tied) > k else _NONE
        ids.update(first[place] for place in here.tolist())
        if len(here) < k:
            wanted.update(each.tied.tolist())
    return ids | numbers.chunk_ids(snapshot, wanted)


def _first_of_all(snapshot: Snapshot, n_tied: int, k: int) -> list[tuple[int, str]]:
    """Return the rows and ids of the first of all chunks, among which are `k` of any `n_tied`; none where they are few.

    Of thousands of tied chunks those with the first ids are wanted. Ids are digests, so these are among the first of
    all, and to read those takes less than to look each one up.
    """
    n_chunks = snapshot.connection.scalar(_LAST_CHUNK) or 0 if n_tied > k else 0
    if n_tied**2 <= k * n_chunks or not n_chunks:
        return []
    limit = k * n_chunks * 4 // (n_tied * 3)
    return [(rid, chunk_id) for rid, chunk_id in snapshot.connection.execute(_FIRST_CHUNKS, {"n": limit})]
