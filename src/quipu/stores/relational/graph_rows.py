"""Graph rows: what chunks say, as row numbers, all of it or what there is now of what changed.

How often a chunk names an entity is counted as in `appearances`: its mentions there or the places of its names,
whichever are more.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy import Select, select

from quipu.ports.derivation_view import AliasRows, ChangeSet, GraphRows, Ints
from quipu.stores.relational import schema as s
from quipu.stores.relational.lookup import Lookup
from quipu.stores.relational.snapshot import Snapshot
from quipu.stores.relational.sql import as_texts, from_texts

_c, _e, _n, _l, _r = s.chunk.c, s.entity.c, s.name.c, s.link.c, s.relation.c
_em, _rm, _am = s.entity_mention.c, s.relation_mention.c, s.alias_mention.c

_SAID = select(_em.entity, _em.chunk)
_LINKED = select(_l.name, _l.chunk, _l.n)
_OWN = select(_n.rid, _e.rid).join_from(s.name, s.entity, _e.key == _n.key)
_ALIAS = (
    select(_n.rid, _am.entity)
    .join_from(s.alias_mention, s.name, _n.key == _am.alias)
    .join(s.entity, _e.rid == _am.entity)
    .where(_e.key != _am.alias)
)
_STATED = select(_r.source, _r.target, _rm.chunk, _rm.weight).join_from(
    s.relation_mention, s.relation, _r.rid == _rm.relation
)
_PLACED = select(_c.rid, _c.document, _c.ordinal)

_SAID_BY, _SAID_OF = Lookup(_SAID, _em.chunk), Lookup(_SAID, _em.entity)
_LINKED_IN, _LINKED_TO = Lookup(_LINKED, _l.chunk), Lookup(_LINKED, _l.name)
_OWNERS, _ALIASED = Lookup(_OWN, _n.rid), Lookup(_ALIAS, _n.rid)
_OWN_OF, _ALIASES_OF = Lookup(_OWN, _e.rid), Lookup(_ALIAS, _am.entity)
_STATED_BY, _PLACED_AT = Lookup(_STATED, _rm.chunk), Lookup(_PLACED, _c.rid)
_ALLOWED_ALIASES = Lookup(_ALIAS, _am.entity, said_in=_am.chunk)
_ALLOWED_LINKS = Lookup(_LINKED, _l.name, said_in=_l.chunk)
_WITH_ALIASES = as_texts(select(_am.entity))

_NONE: Ints = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class _Counted:
    """How often things are in chunks: `owners`, `chunks`, `counts`, each [n]."""

    owners: Ints
    chunks: Ints
    counts: Ints


def read(snapshot: Snapshot, changed: ChangeSet | None = None) -> GraphRows:
    """Return what all chunks say, or what there is now of what changed; whatever the filter."""
    said, own, aliased = _everywhere(snapshot) if changed is None else _of_changed(snapshot, changed)
    entities, chunks, n_said, n_own, n_aliased = _combined([said, own, aliased])
    sources, targets, stated_in, weights = _read(snapshot, _STATED, _STATED_BY, changed)
    placed, documents, ordinals = _read(snapshot, _PLACED, _PLACED_AT, changed)
    return GraphRows(
        entities=entities,
        chunks=chunks,
        counts=np.maximum(n_said, n_own + n_aliased),
        mentions=n_said,
        keyed=n_own,
        sources=sources,
        targets=targets,
        stated_in=stated_in,
        weights=weights,
        placed=placed,
        documents=documents,
        ordinals=ordinals,
    )


def aliases(snapshot: Snapshot) -> AliasRows:
    """Return how often the chunks that may be seen name entities by the aliases that such chunks state."""
    with_aliases = from_texts(snapshot.connection.execute(_WITH_ALIASES).all(), 1)[0]
    names, entities = _distinct(*_ALLOWED_ALIASES.ints(snapshot, np.unique(with_aliases).tolist()))
    linked = _Counted(*_ALLOWED_LINKS.ints(snapshot, np.unique(names).tolist()))
    found, chunks, counts = _combined([_owned(linked, names, entities)])
    return AliasRows(entities=found, chunks=chunks, counts=counts)


def _everywhere(snapshot: Snapshot) -> tuple[_Counted, _Counted, _Counted]:
    """Return mentions, places of own names and places of aliases, by entity."""
    linked = _Counted(*_all(snapshot, _LINKED, 3))
    return (
        _once(*_all(snapshot, _SAID, 2)),
        _owned(linked, *_all(snapshot, _OWN, 2)),
        _owned(linked, *_distinct(*_all(snapshot, _ALIAS, 2))),
    )


def _of_changed(snapshot: Snapshot, changed: ChangeSet) -> tuple[_Counted, _Counted, _Counted]:
    """Return these of the changed chunks, and of the changed entities in all other chunks."""
    chunks, entities = changed.chunks.tolist(), changed.entities.tolist()
    here = _Counted(*_LINKED_IN.ints(snapshot, chunks))
    names = np.unique(here.owners).tolist()

    def places(by_name: Lookup, by_entity: Lookup) -> _Counted:
        owned, owners = _distinct(*by_entity.ints(snapshot, entities))
        elsewhere = _Counted(*_LINKED_TO.ints(snapshot, np.unique(owned).tolist()))
        found = _owned(here, *_distinct(*by_name.ints(snapshot, names)))
        return _both(found, _owned(elsewhere, owned, owners), changed.chunks)

    said, said_elsewhere = _once(*_SAID_BY.ints(snapshot, chunks)), _once(*_SAID_OF.ints(snapshot, entities))
    return _both(said, said_elsewhere, changed.chunks), places(_OWNERS, _OWN_OF), places(_ALIASED, _ALIASES_OF)


def _both(here: _Counted, of_entities: _Counted, chunks: Ints) -> _Counted:
    """Return what is in `chunks` (rising), and of the entities what is in others."""
    other = ~np.isin(of_entities.chunks, chunks)
    return _Counted(
        np.concatenate([here.owners, of_entities.owners[other]]),
        np.concatenate([here.chunks, of_entities.chunks[other]]),
        np.concatenate([here.counts, of_entities.counts[other]]),
    )


def _owned(linked: _Counted, names: Ints, owners: Ints) -> _Counted:
    """Return the links of names, by entity; a name may have several owners."""
    order = np.argsort(linked.owners, kind="stable")
    rising = linked.owners[order]
    first = np.searchsorted(rising, names, side="left")
    n = np.searchsorted(rising, names, side="right") - first
    ends = np.cumsum(n)
    at = order[np.arange(int(n.sum())) + np.repeat(first - ends + n, n)]
    return _Counted(np.repeat(owners, n), linked.chunks[at], linked.counts[at])


def _distinct(names: Ints, owners: Ints) -> tuple[Ints, Ints]:
    """Return each pair once: an alias may be stated often."""
    order = np.lexsort((owners, names))
    names, owners = names[order], owners[order]
    is_new = np.ones(len(names), dtype=bool)
    is_new[1:] = (np.diff(names) != 0) | (np.diff(owners) != 0)
    return names[is_new], owners[is_new]


def _once(owners: Ints, chunks: Ints) -> _Counted:
    return _Counted(owners, chunks, np.ones(len(owners), dtype=np.int64))


def _combined(parts: Sequence[_Counted]) -> tuple[Ints, ...]:
    """Return the owners and chunks of all parts, each pair once, by chunk and owner, and its sum in each part."""
    owners = np.concatenate([part.owners for part in parts])
    chunks = np.concatenate([part.chunks for part in parts])
    n_owners = int(owners.max(initial=0)) + 1
    codes, at = np.unique(chunks * n_owners + owners, return_inverse=True)
    splits = np.cumsum([len(part.owners) for part in parts])[:-1]
    sums = [
        np.bincount(places, weights=part.counts, minlength=len(codes)).astype(np.int64)
        for places, part in zip(np.split(at, splits), parts, strict=True)
    ]
    return codes % n_owners, codes // n_owners, *sums


def _read(
    snapshot: Snapshot, query: Select[tuple[int, ...]], of_chunks: Lookup, changed: ChangeSet | None
) -> tuple[Ints, ...]:
    if changed is None:
        return _all(snapshot, query, len(query.selected_columns))
    return of_chunks.ints(snapshot, changed.chunks.tolist())


def _all(snapshot: Snapshot, query: Select[tuple[int, ...]], n_columns: int) -> tuple[Ints, ...]:
    return from_texts(snapshot.connection.execute(as_texts(query)).all(), n_columns)
