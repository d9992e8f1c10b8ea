"""Found: what one side of a graph search brings back, and how two sides are joined."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Self

from quipu.algo.ranking import round_robin
from quipu.model.evidence import Evidence, Hit, Seed


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Entities and relations, best first, the seeds they were found from, and what a reader should know of it."""

    entities: tuple[Hit, ...] = ()
    relations: tuple[Hit, ...] = ()
    seeds: tuple[Seed, ...] = ()
    notes: tuple[str, ...] = ()

    def and_seed(self, seed: Seed) -> Self:
        """Return this with one more place where the search started."""
        return replace(self, seeds=(*self.seeds, seed))

    def with_chunks(self, chunks: Iterable[Hit]) -> Evidence:
        """Return this as evidence, with the passages that go with it."""
        return Evidence(
            chunks=tuple(chunks),
            entities=self.entities,
            relations=self.relations,
            seeds=self.seeds,
            notes=self.notes,
        )


def join(first: Found, second: Found, weights: Sequence[float] = ()) -> Found:
    """Return both in turn, the first side ahead; what both found stays where it comes first (LightRAG).

    With `weights` one side is taken from more often than the other: see `algo.fusion`.
    """
    return Found(
        entities=tuple(round_robin([first.entities, second.entities], lambda hit: hit.id, weights)),
        relations=tuple(round_robin([first.relations, second.relations], lambda hit: hit.id, weights)),
        seeds=first.seeds + second.seeds,
        notes=first.notes + second.notes,
    )


def by_place(hits: Iterable[Hit]) -> tuple[Hit, ...]:
    """Return hits whose order alone says how good they are, each with one over its place as its score."""
    return tuple(replace(hit, score=round(1 / place, 6)) for place, hit in enumerate(hits, 1))
