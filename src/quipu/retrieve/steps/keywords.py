"""Keywords: what a question names (low level) and what it is about (high level), without a model."""

from collections.abc import Sequence
from dataclasses import dataclass

from quipu.model.evidence import Scored, Seed
from quipu.model.query import Query
from quipu.ports.store import ReadView
from quipu.retrieve.steps.names import LinkedName, link_names
from quipu.text.names import entity_key

# To know that a chunk holds a name of every fifth chunk is worth ln 5 = 1.6 nats or less: a rarer name decides better.
MAX_CHUNK_SHARE = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class LowLevel:
    """What the question names: one text to embed, and a seed for each name that is a known entity."""

    text: str
    names: tuple[Seed, ...] = ()
    notes: tuple[str, ...] = ()


async def low_level(query: Query, view: ReadView) -> LowLevel:
    """Return the given low-level keywords, else the known names in the question, else the question itself.

    As in LightRAG the keywords are joined and embedded once. A name in more than `MAX_CHUNK_SHARE` of the chunks, and
    in more than `chunk_top_k` of them, is left out where a rarer name remains.
    """
    if query.low_level_keywords:
        return await _given(query.low_level_keywords, view)
    linked = await link_names(query.text, view)
    if not linked:
        note = "the question names no known entity: its whole text stands in for low-level keywords"
        return LowLevel(text=query.text, notes=(note,))
    common = await _common(linked, query.chunk_top_k, view)
    kept = [name for name in linked if name not in common] or linked
    dropped = [name.surface for name in linked if name not in kept]
    return LowLevel(
        text=", ".join(dict.fromkeys(name.surface for name in kept)),
        names=tuple(_seed(name.surface, name.keys) for name in kept),
        notes=(f"too common to tell where to look, left out: {', '.join(dropped)}",) if dropped else (),
    )


def high_level(query: Query) -> str:
    """Return the given high-level keywords, joined, else the question itself."""
    return ", ".join(query.high_level_keywords) or query.text


async def _given(keywords: Sequence[str], view: ReadView) -> LowLevel:
    keys = [entity_key(keyword) for keyword in keywords]
    known = await view.named(sorted({key for key in keys if key}))
    names = (_seed(keyword, known[key]) for keyword, key in zip(keywords, keys, strict=True) if known.get(key))
    return LowLevel(text=", ".join(keywords), names=tuple(names))


async def _common(linked: Sequence[LinkedName], n_readable: int, view: ReadView) -> frozenset[LinkedName]:
    entities = await view.entities(sorted({key for name in linked for key in name.keys}))
    frequent = [entity for entity in entities if entity.n_chunks > n_readable]
    limit = MAX_CHUNK_SHARE * await view.n_chunks() if frequent else 0
    common_keys = {entity.key for entity in frequent if entity.n_chunks > limit}
    return frozenset(name for name in linked if common_keys.issuperset(name.keys))


def _seed(surface: str, keys: Sequence[str]) -> Seed:
    return Seed(text=surface, kind="name", found=tuple(Scored(id=key, score=1.0) for key in keys))
