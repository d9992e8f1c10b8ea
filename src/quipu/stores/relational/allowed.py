"""The part of the graph that a filter allows, by the mentions of its chunks: worked out once a revision and filter."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sqlalchemy import Connection, Select, select

from quipu.stores.relational import schema as s
from quipu.stores.relational.filters import ALLOWED_CHUNK
from quipu.stores.relational.memo import arrays_once
from quipu.stores.relational.sql import Ints, as_texts, from_texts

_em, _rm, _r, _e = s.entity_mention.c, s.relation_mention.c, s.relation.c, s.entity.c
_chunks = select(ALLOWED_CHUNK.c.rid)
_CHUNKS = as_texts(_chunks)
_stated = select(_rm.relation).where(_rm.chunk.in_(_chunks))
_mentioned = select(_em.entity).where(_em.chunk.in_(_chunks))
_MENTIONED = as_texts(_mentioned)
_N_MENTIONS = as_texts(select(_e.rid, _e.n_mentions).where(_e.rid.in_(_mentioned)))
_STATED = as_texts(select(_rm.relation, _rm.weight).where(_rm.chunk.in_(_chunks)))
_ENDS = as_texts(select(_r.rid, _r.source, _r.target).where(_r.rid.in_(_stated)))


@dataclass(frozen=True, slots=True)
class AllowedRelations:
    """Relations by row, rising: their ends, and their weights in thousandths, each [n]."""

    rids: Ints
    sources: Ints
    targets: Ints
    weights: Ints


class AllowedGraph:
    """The entities and relations that the chunks of a filtered snapshot speak of, by row.

    What was worked out stands in `arrays`, which snapshots of the same revision and filter share.
    """

    def __init__(self, connection: Connection, arrays: dict[str, tuple[Ints, ...]]) -> None:
        self._connection = connection
        self._arrays = arrays

    @property
    def chunks(self) -> Ints:
        """The allowed chunks, rising."""
        return arrays_once(self._arrays, "chunks", lambda: (np.sort(self._read(_CHUNKS, 1)[0]),))[0]

    @property
    def entities(self) -> Ints:
        """The entities that an allowed chunk mentions, rising."""
        return arrays_once(self._arrays, "entities", self._mentioned)[0]

    @property
    def is_theirs(self) -> Ints:
        """Whether allowed chunks alone mention each of `entities`, [n], 0 or 1."""
        return arrays_once(self._arrays, "entities", self._mentioned)[1]

    @cached_property
    def relations(self) -> AllowedRelations:
        """The relations that an allowed chunk states, with the weight that the allowed chunks give them."""
        return AllowedRelations(*arrays_once(self._arrays, "relations", self._stated))

    def among(self, entities: Collection[int]) -> frozenset[int]:
        """Return those of some entities that an allowed chunk mentions."""
        wanted = np.array(list(entities), dtype=np.int64)
        return frozenset(wanted[find(self.entities, wanted)[1]].tolist())

    def _mentioned(self) -> tuple[Ints, Ints]:
        rids, counts = np.unique(self._read(_MENTIONED, 1)[0], return_counts=True)
        known, totals = self._read(_N_MENTIONS, 2)
        return rids, (totals[np.argsort(known)] == counts).astype(np.int64)

    def _stated(self) -> tuple[Ints, Ints, Ints, Ints]:
        relation, weight = self._read(_STATED, 2)
        order = np.argsort(relation, kind="stable")
        rids, starts = np.unique(relation[order], return_index=True)
        weights = np.add.reduceat(weight[order], starts) if len(rids) else weight
        ends = self._read(_ENDS, 3)
        by_rid = np.argsort(ends[0])
        return rids, ends[1][by_rid], ends[2][by_rid], weights

    def degrees(self, entities: Ints) -> Ints:
        """Return the number of allowed relations of each entity."""
        known, counts = self._degrees
        places, is_known = find(known, entities)
        return np.where(is_known, counts.take(places, mode="clip") if len(counts) else 0, 0)

    @cached_property
    def _degrees(self) -> tuple[Ints, Ints]:
        return np.unique(np.concatenate([self.relations.sources, self.relations.targets]), return_counts=True)

    def _read(self, query: Select[Any], n_columns: int) -> tuple[Ints, ...]:
        return from_texts(self._connection.execute(query).all(), n_columns)


def find(rising: Ints, wanted: Ints) -> tuple[Ints, "np.ndarray[Any, np.dtype[np.bool_]]"]:
    """Return where each of `wanted` would stand in `rising`, and whether it does."""
    places = np.searchsorted(rising, wanted)
    if not len(rising):
        return places, np.zeros(len(wanted), dtype=bool)
    return places, rising.take(places, mode="clip") == wanted
