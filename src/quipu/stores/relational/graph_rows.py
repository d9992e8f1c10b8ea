"""Where entities and relations occur: for given ones, and as arrays of row ids for the topology outside the database.

How often a chunk names an entity is the number of its mentions there or of the occurrences of its names there (its key
and its aliases), whichever is larger.
"""

import sys
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy import Select, bindparam, func, select

from quipu.ports.derivation_view import AliasRows, ChangeSet, GraphRows
from quipu.ports.store import OccurrenceKind
from quipu.stores.relational import schema as s
from quipu.stores.relational.chunks import chunk_ids
from quipu.stores.relational.entities import entity_numbers, entity_rids, synonym_rows
from quipu.stores.relational.full_text import chunks_with_terms
from quipu.stores.relational.relations import relation_rids
from quipu.stores.relational.snapshot import Lookup, Snapshot, cached_values, in_order
from quipu.stores.relational.sql import Ints, as_texts, from_texts
from quipu.text.names import title_keys

_c, _e, _n, _l, _r = s.chunk.c, s.entity.c, s.name.c, s.link.c, s.relation.c
_em, _rm, _am = s.entity_mention.c, s.relation_mention.c, s.alias_mention.c

_MENTION = select(_em.entity, _em.chunk)
_LINK = select(_l.name, _l.chunk, _l.n)
_OWN_NAME = select(_n.rid, _e.rid).join_from(s.name, s.entity, _e.key == _n.key)
_ALIAS = (
    select(_n.rid, _am.entity)
    .join_from(s.alias_mention, s.name, _n.key == _am.alias)
    .join(s.entity, _e.rid == _am.entity)
    .where(_e.key != _am.alias)
)
_STATEMENT = select(_r.source, _r.target, _rm.chunk, _rm.weight).join_from(
    s.relation_mention, s.relation, _r.rid == _rm.relation
)
_PLACE = select(_c.rid, _c.document, _c.ordinal)
_TITLE = select(_c.rid, s.document.c.title).join(s.document, s.document.c.rid == _c.document)

_MENTIONS_IN, _MENTIONS_OF = Lookup(_MENTION, _em.chunk), Lookup(_MENTION, _em.entity)
_LINKS_IN, _LINKS_OF = Lookup(_LINK, _l.chunk), Lookup(_LINK, _l.name)
_OWN_NAMES, _OWN_NAMES_OF = Lookup(_OWN_NAME, _n.rid), Lookup(_OWN_NAME, _e.rid)
_ALIASES, _ALIASES_OF = Lookup(_ALIAS, _n.rid), Lookup(_ALIAS, _am.entity)
_STATEMENTS_IN, _PLACES = Lookup(_STATEMENT, _rm.chunk), Lookup(_PLACE, _c.rid)
_TITLES = Lookup(_TITLE, _c.rid, stated_in=_c.rid)
_WITH_ALIASES = as_texts(select(_am.entity))

_ALLOWED_MENTIONS = Lookup(_MENTION, _em.entity, stated_in=_em.chunk)
_ALLOWED_LINKS = Lookup(_LINK, _l.name, stated_in=_l.chunk)
_ALLOWED_ALIASES = Lookup(_ALIAS, _am.entity, stated_in=_am.chunk)
_ALLOWED_STATEMENTS = Lookup(select(_rm.relation, _rm.chunk), _rm.relation, stated_in=_rm.chunk)
_ALIAS_TEXTS = Lookup(select(_am.entity, _am.alias).distinct(), _am.entity, stated_in=_am.chunk)
_NAME_RIDS = Lookup(select(_n.key, _n.rid), _n.key)
_LAST_CHUNK = select(func.max(_c.rid))
_FIRST_CHUNKS = select(_c.rid, _c.id).order_by(_c.id).limit(bindparam("n"))

_NO_ENTITY = -1
_NONE: Ints = np.empty(0, dtype=np.int64)
_CHUNK_BITS = 40  # an entity's position and a chunk's row id form one number


def occurrences(
    snapshot: Snapshot, kind: OccurrenceKind, ids: Sequence[str], k: int | None = None
) -> dict[str, dict[str, int]]:
    """Return the first `k` chunks in which each entity or relation occurs, and how often it occurs there."""
    limit = sys.maxsize if k is None else max(k, 0)
    return _OCCURRENCES[kind](snapshot, ids, limit) if limit else {}


def graph_rows(snapshot: Snapshot, changed: ChangeSet | None = None) -> GraphRows:
    """Return what all chunks state and all synonyms, or the current state of what changed; whatever the filter."""
    mentions, own_names, aliases = _all_counts(snapshot) if changed is None else _changed_counts(snapshot, changed)
    entities, chunks, n_mentions, n_own, n_aliases = _sum_parts([mentions, own_names, aliases])
    sources, targets, stated_in, weights = _all_or_changed(snapshot, _STATEMENT, _STATEMENTS_IN, changed)
    placed, documents, ordinals = _all_or_changed(snapshot, _PLACE, _PLACES, changed)
    return GraphRows(
        entities=entities,
        chunks=chunks,
        counts=np.maximum(n_mentions, n_own + n_aliases),
        mentions=n_mentions,
        keyed=n_own,
        sources=sources,
        targets=targets,
        stated_in=stated_in,
        weights=weights,
        placed=placed,
        documents=documents,
        ordinals=ordinals,
        synonyms=synonym_rows(snapshot, None if changed is None else changed.entities),
    )


def title_entities(snapshot: Snapshot, chunks: Sequence[int]) -> dict[int, int]:
    """Return the entity that the title of each chunk's document names; chunks without one are left out."""
    entities = cached_values(snapshot.cache.title_entities, set(chunks), lambda missing: _named(snapshot, missing))
    return {chunk: entities[chunk] for chunk in dict.fromkeys(chunks) if entities.get(chunk, _NO_ENTITY) != _NO_ENTITY}


def _named(snapshot: Snapshot, chunks: Sequence[int]) -> dict[int, int]:
    """Return the entity that the title of each of these chunks names, or `_NO_ENTITY`."""
    keys_by_chunk = {rid: title_keys(title) for rid, title in _TITLES.rows(snapshot, sorted(chunks))}
    rid_by_key = entity_numbers(snapshot, sorted({key for keys in keys_by_chunk.values() for key in keys}))
    return {
        chunk: next((rid_by_key[key] for key in keys if key in rid_by_key), _NO_ENTITY)
        for chunk, keys in keys_by_chunk.items()
    }


def alias_rows(snapshot: Snapshot) -> AliasRows:
    """Return how often the allowed chunks name entities by the aliases that allowed chunks state."""
    with_aliases = from_texts(snapshot.connection.execute(_WITH_ALIASES).all(), 1)[0]
    names, owners = _distinct_pairs(*_ALLOWED_ALIASES.ints(snapshot, np.unique(with_aliases).tolist()))
    links = _Counts(*_ALLOWED_LINKS.ints(snapshot, np.unique(names).tolist()))
    entities, chunks, counts = _sum_parts([_counts_of_owners(links, names, owners)])
    return AliasRows(entities=entities, chunks=chunks, counts=counts)


def _chunks_of_entities(snapshot: Snapshot, keys: Sequence[str], k: int) -> dict[str, dict[str, int]]:
    key_by_rid = {rid: key for key, rid in entity_rids(snapshot, keys).items()}
    rids = sorted(key_by_rid)
    candidates = [_most_frequent(chunks, counts, k) for chunks, counts in _chunk_counts(snapshot, key_by_rid, rids)]
    ids = _candidate_ids(snapshot, candidates, k)
    counts_by_key = {key_by_rid[rid]: chunks.ranked(ids, k) for rid, chunks in zip(rids, candidates, strict=True)}
    return in_order({key: counts for key, counts in counts_by_key.items() if counts}, keys)


def _chunks_mentioning(snapshot: Snapshot, keys: Sequence[str], k: int) -> dict[str, dict[str, int]]:
    rid_by_key = entity_rids(snapshot, keys)
    entities, chunks = _ALLOWED_MENTIONS.ints(snapshot, sorted(rid_by_key.values()))
    counts_by_key = {key: np.unique(chunks[entities == rid], return_counts=True) for key, rid in rid_by_key.items()}
    counts_by_key = {key: counts for key, counts in counts_by_key.items() if len(counts[0])}
    ids = _candidate_ids(snapshot, [_Candidates(_NONE, _NONE, tied, 1) for tied, _ in counts_by_key.values()], k)
    first_by_key: dict[str, dict[str, int]] = {}
    for key, (mentioning, counts) in counts_by_key.items():
        pairs = zip(mentioning.tolist(), counts.tolist(), strict=True)
        first_by_key[key] = dict(sorted((ids[chunk], n) for chunk, n in pairs if chunk in ids)[:k])
    return in_order(first_by_key, keys)


def _chunks_of_relations(snapshot: Snapshot, ids: Sequence[str], k: int) -> dict[str, dict[str, int]]:
    id_by_rid = relation_rids(snapshot, ids)
    relations, chunks = (column.tolist() for column in _ALLOWED_STATEMENTS.ints(snapshot, sorted(id_by_rid)))
    chunk_id_by_rid = chunk_ids(snapshot, set(chunks))
    counts_by_id: dict[str, Counter[str]] = {}
    for relation, chunk in zip(relations, chunks, strict=True):
        counts_by_id.setdefault(id_by_rid[relation], Counter())[chunk_id_by_rid[chunk]] += 1
    return in_order({relation: dict(sorted(counts.items())[:k]) for relation, counts in counts_by_id.items()}, ids)


def _chunks_with_terms(snapshot: Snapshot, terms: Sequence[str], k: int) -> dict[str, dict[str, int]]:
    counts_by_term = chunks_with_terms(snapshot, terms, k)
    ids = chunk_ids(snapshot, {chunk for counts in counts_by_term.values() for chunk in counts})
    named = {
        term: dict(sorted((ids[chunk], n) for chunk, n in counts.items())) for term, counts in counts_by_term.items()
    }
    return in_order(named, terms)


_OCCURRENCES = {
    OccurrenceKind.ENTITY: _chunks_of_entities,
    OccurrenceKind.MENTION: _chunks_mentioning,
    OccurrenceKind.RELATION: _chunks_of_relations,
    OccurrenceKind.TERM: _chunks_with_terms,
}


def _chunk_counts(snapshot: Snapshot, key_by_rid: Mapping[int, str], rids: Sequence[int]) -> list[tuple[Ints, Ints]]:
    """Return the chunks that name each entity, and how often."""
    positions = np.arange(len(rids) + 1)
    entities, chunks = _ALLOWED_MENTIONS.ints(snapshot, rids)
    mentions = (np.searchsorted(rids, entities) << _CHUNK_BITS) | chunks
    links, link_counts = _name_occurrences(snapshot, key_by_rid, rids)
    codes, inverse = np.unique(np.concatenate([mentions, links]), return_inverse=True)
    n_mentions = np.bincount(inverse[: len(mentions)], minlength=len(codes))
    n_links = np.bincount(inverse[len(mentions) :], weights=link_counts, minlength=len(codes)).astype(np.int64)
    counts = np.maximum(n_mentions, n_links)
    # Under a filter an entity exists only if an allowed chunk mentions it, wherever its name occurs.
    exists = np.isin(positions, mentions >> _CHUNK_BITS) | (not snapshot.is_filtered)
    starts = np.searchsorted(codes, positions << _CHUNK_BITS)
    ends = np.where(exists[:-1], starts[1:], starts[:-1])
    ranges = [slice(start, end) for start, end in zip(starts.tolist(), ends.tolist(), strict=False)]
    chunks = codes & ((1 << _CHUNK_BITS) - 1)
    return [(chunks[range_], counts[range_]) for range_ in ranges]


def _name_occurrences(snapshot: Snapshot, key_by_rid: Mapping[int, str], rids: Sequence[int]) -> tuple[Ints, Ints]:
    """Return the links of all names of each entity, as (position, chunk) codes, and the count of each."""
    names = {(key, rid) for rid, key in key_by_rid.items()}
    names.update((alias, rid) for rid, alias in _ALIAS_TEXTS.rows(snapshot, rids))
    name_rids: dict[str, int] = dict(_NAME_RIDS.rows(snapshot, sorted({name for name, _ in names})))
    linked, chunks, counts = _ALLOWED_LINKS.ints(snapshot, sorted(name_rids.values()))
    order = np.argsort(linked, kind="stable")
    linked, chunks, counts = linked[order], chunks[order], counts[order]
    owned = sorted((name_rids[name], bisect_left(rids, rid)) for name, rid in names if name in name_rids)
    starts = np.searchsorted(linked, [name for name, _ in owned], side="left").tolist()
    ends = np.searchsorted(linked, [name for name, _ in owned], side="right").tolist()
    parts = [slice(start, end) for start, end in zip(starts, ends, strict=True)]
    codes = [chunks[part] | (position << _CHUNK_BITS) for part, (_, position) in zip(parts, owned, strict=True)]
    return np.concatenate([_NONE, *codes]), np.concatenate([_NONE, *(counts[part] for part in parts)])


@dataclass(frozen=True, slots=True)
class _Candidates:
    """The chunks that name an entity most, with counts [n]; `tied` chunks all name it `least` times, which is fewer."""

    chunks: Ints
    counts: Ints
    tied: Ints
    least: int

    def ranked(self, ids: Mapping[int, str], k: int) -> dict[str, int]:
        """Return the first `k` chunks with their counts: most first, equal ones by id. `ids` may lack tied chunks."""
        rows = zip(self.chunks.tolist(), self.counts.tolist(), strict=True)
        above = sorted((-n, ids[chunk]) for chunk, n in rows)
        tied = sorted(ids[chunk] for chunk in self.tied.tolist() if chunk in ids)
        return {chunk_id: -n for n, chunk_id in above} | dict.fromkeys(tied[: k - len(above)], self.least)


def _most_frequent(chunks: Ints, counts: Ints, k: int) -> _Candidates:
    """Return the chunks with the `k` largest counts; all chunks that equal the smallest of these are `tied`."""
    if len(counts) <= k:
        return _Candidates(chunks, counts, _NONE, 0)
    least = int(np.partition(counts, len(counts) - k)[len(counts) - k])
    is_above = counts > least
    return _Candidates(chunks[is_above], counts[is_above], chunks[counts == least], least)


def _candidate_ids(snapshot: Snapshot, candidates: Sequence[_Candidates], k: int) -> dict[int, str]:
    """Return the ids, by row id, of chunks that include the first `k` of all candidates."""
    needed = {chunk for candidate in candidates for chunk in candidate.chunks.tolist()}
    first = _first_chunks(snapshot, max((len(candidate.tied) for candidate in candidates), default=0), k)
    rids = np.fromiter((rid for rid, _ in first), np.int64, len(first))
    ids: dict[int, str] = {}
    for candidate in candidates:
        positions = _NONE
        if first and len(candidate.tied) > k:
            positions = np.flatnonzero(np.isin(rids, candidate.tied))[:k]
        ids.update(first[position] for position in positions.tolist())
        if len(positions) < k:
            needed.update(candidate.tied.tolist())
    return ids | chunk_ids(snapshot, needed)


def _first_chunks(snapshot: Snapshot, n_tied: int, k: int) -> list[tuple[int, str]]:
    """Return row ids and ids of the first chunks of the index, likely to include `k` of any `n_tied`; [] for few tied.

    Of thousands of tied chunks only those with the first ids are needed. Ids are digests, so these are among the first
    of all chunks, and reading those takes less time than looking up each tied chunk.
    """
    n_chunks = snapshot.connection.scalar(_LAST_CHUNK) or 0 if n_tied > k else 0
    if n_tied**2 <= k * n_chunks or not n_chunks:
        return []
    limit = k * n_chunks * 4 // (n_tied * 3)
    return [(rid, chunk_id) for rid, chunk_id in snapshot.connection.execute(_FIRST_CHUNKS, {"n": limit})]


@dataclass(frozen=True, slots=True)
class _Counts:
    """How often owners (entities or names) occur in chunks: `owners`, `chunks`, `counts`, each [n]."""

    owners: Ints
    chunks: Ints
    counts: Ints


def _all_counts(snapshot: Snapshot) -> tuple[_Counts, _Counts, _Counts]:
    """Return the mentions, the occurrences of own names and those of aliases, by entity, in the whole index."""
    links = _Counts(*_all(snapshot, _LINK, 3))
    return (
        _ones(*_all(snapshot, _MENTION, 2)),
        _counts_of_owners(links, *_all(snapshot, _OWN_NAME, 2)),
        _counts_of_owners(links, *_distinct_pairs(*_all(snapshot, _ALIAS, 2))),
    )


def _changed_counts(snapshot: Snapshot, changed: ChangeSet) -> tuple[_Counts, _Counts, _Counts]:
    """Return the same counts for the changed chunks, and for the changed entities in all other chunks."""
    chunks, entities = changed.chunks.tolist(), changed.entities.tolist()
    links = _Counts(*_LINKS_IN.ints(snapshot, chunks))
    names = np.unique(links.owners).tolist()

    def occurrences(by_name: Lookup, by_entity: Lookup) -> _Counts:
        names_of_changed, owners = _distinct_pairs(*by_entity.ints(snapshot, entities))
        links_of_changed = _Counts(*_LINKS_OF.ints(snapshot, np.unique(names_of_changed).tolist()))
        in_chunks = _counts_of_owners(links, *_distinct_pairs(*by_name.ints(snapshot, names)))
        return _join(in_chunks, _counts_of_owners(links_of_changed, names_of_changed, owners), changed.chunks)

    mentions = _ones(*_MENTIONS_IN.ints(snapshot, chunks))
    mentions_of_changed = _ones(*_MENTIONS_OF.ints(snapshot, entities))
    return (
        _join(mentions, mentions_of_changed, changed.chunks),
        occurrences(_OWN_NAMES, _OWN_NAMES_OF),
        occurrences(_ALIASES, _ALIASES_OF),
    )


def _join(in_chunks: _Counts, of_entities: _Counts, chunks: Ints) -> _Counts:
    """Return the counts in `chunks` (rising), and those of entities in all other chunks."""
    is_other = ~np.isin(of_entities.chunks, chunks)
    return _Counts(
        np.concatenate([in_chunks.owners, of_entities.owners[is_other]]),
        np.concatenate([in_chunks.chunks, of_entities.chunks[is_other]]),
        np.concatenate([in_chunks.counts, of_entities.counts[is_other]]),
    )


def _counts_of_owners(links: _Counts, names: Ints, owners: Ints) -> _Counts:
    """Return the links of names as counts of the names' owners; a name may have several owners."""
    order = np.argsort(links.owners, kind="stable")
    rising = links.owners[order]
    first = np.searchsorted(rising, names, side="left")
    n_links = np.searchsorted(rising, names, side="right") - first
    ends = np.cumsum(n_links)
    rows = order[np.arange(int(n_links.sum())) + np.repeat(first - ends + n_links, n_links)]
    return _Counts(np.repeat(owners, n_links), links.chunks[rows], links.counts[rows])


def _distinct_pairs(names: Ints, owners: Ints) -> tuple[Ints, Ints]:
    """Return each pair once: an alias may be stated many times."""
    order = np.lexsort((owners, names))
    names, owners = names[order], owners[order]
    is_new = np.ones(len(names), dtype=bool)
    is_new[1:] = (np.diff(names) != 0) | (np.diff(owners) != 0)
    return names[is_new], owners[is_new]


def _ones(owners: Ints, chunks: Ints) -> _Counts:
    return _Counts(owners, chunks, np.ones(len(owners), dtype=np.int64))


def _sum_parts(parts: Sequence[_Counts]) -> tuple[Ints, ...]:
    """Return each (owner, chunk) pair of all parts once, ordered by chunk and owner, and its sum in each part."""
    owners = np.concatenate([part.owners for part in parts])
    chunks = np.concatenate([part.chunks for part in parts])
    n_owners = int(owners.max(initial=0)) + 1
    codes, inverse = np.unique(chunks * n_owners + owners, return_inverse=True)
    splits = np.cumsum([len(part.owners) for part in parts])[:-1]
    sums = [
        np.bincount(positions, weights=part.counts, minlength=len(codes)).astype(np.int64)
        for positions, part in zip(np.split(inverse, splits), parts, strict=True)
    ]
    return codes % n_owners, codes // n_owners, *sums


def _all_or_changed(
    snapshot: Snapshot, query: Select[tuple[int, ...]], in_chunks: Lookup, changed: ChangeSet | None
) -> tuple[Ints, ...]:
    if changed is None:
        return _all(snapshot, query, len(query.selected_columns))
    return in_chunks.ints(snapshot, changed.chunks.tolist())


def _all(snapshot: Snapshot, query: Select[tuple[int, ...]], n_columns: int) -> tuple[Ints, ...]:
    return from_texts(snapshot.connection.execute(as_texts(query)).all(), n_columns)
