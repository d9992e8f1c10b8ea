"""Keywords: what a question names (low level) and what it is about (high level), told by its words or by a model."""

from collections.abc import Sequence
from dataclasses import dataclass

from quipu.model.evidence import Scored, Seed
from quipu.model.query import Query
from quipu.ports.store import ReadView
from quipu.retrieve.steps.names import link_names
from quipu.text.names import entity_key

# To know that a chunk holds a name of every fifth chunk is worth ln 5 = 1.6 nats or less: a rarer name decides better.
MAX_CHUNK_SHARE = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class LowLevel:
    """What the question names: one text to embed, and a seed for each name that is a known entity."""

    text: str
    names: tuple[Seed, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Named:
    """A name or term of the question, with the entities it is known for; none where it is not."""

    surface: str
    keys: tuple[str, ...]


async def low_level(query: Query, view: ReadView) -> LowLevel:
    """Return the given low-level keywords, else the known names in the question and a model's keywords, else itself.

    As in LightRAG the keywords are joined and embedded once. A name in more than `MAX_CHUNK_SHARE` of the chunks, and
    in more than `chunk_top_k` of them, is left out where a rarer name remains. A model's keywords only add to the names
    found in the question, so that none is lost where the model leaves it out.
    """
    if query.low_level_keywords:
        return await _given(query.low_level_keywords, view)
    linked = [_Named(surface=name.surface, keys=name.keys) for name in await link_names(query.text, view)]
    named = linked + await _added(query.model_keywords.low_level, linked, view)
    if not named:
        note = "the question names no known entity: its whole text stands in for low-level keywords"
        return LowLevel(text=query.text, notes=(note,))
    dropped = await _common(named, query.chunk_top_k, view)
    kept = [name for name in named if name not in dropped]
    left_out = ", ".join(dict.fromkeys(name.surface for name in named if name in dropped))
    return LowLevel(
        text=", ".join(dict.fromkeys(name.surface for name in kept)),
        names=tuple(_seed(name.surface, name.keys) for name in kept if name.keys),
        notes=(f"too common to tell where to look, left out: {left_out}",) if left_out else (),
    )


def high_level(query: Query) -> str:
    """Return the given high-level keywords, joined, else a model's, else the question itself."""
    return ", ".join(query.high_level_keywords or query.model_keywords.high_level) or query.text


async def _given(keywords: Sequence[str], view: ReadView) -> LowLevel:
    named = await _looked_up(keywords, view)
    return LowLevel(
        text=", ".join(keywords), names=tuple(_seed(name.surface, name.keys) for name in named if name.keys)
    )


async def _added(keywords: Sequence[str], linked: Sequence[_Named], view: ReadView) -> list[_Named]:
    """Return the keywords that are not among the linked names."""
    known = {entity_key(name.surface) for name in linked} | {key for name in linked for key in name.keys}
    return await _looked_up([keyword for keyword in keywords if entity_key(keyword) not in known], view)


async def _looked_up(keywords: Sequence[str], view: ReadView) -> list[_Named]:
    keys = [entity_key(keyword) for keyword in keywords]
    known = await view.keys_by_name(sorted({key for key in keys if key}))
    return [
        _Named(surface=keyword, keys=tuple(known.get(key, ()))) for keyword, key in zip(keywords, keys, strict=True)
    ]


async def _common(named: Sequence[_Named], n_readable: int, view: ReadView) -> frozenset[_Named]:
    """Return the names too common to tell where to look, none where no rarer one would remain."""
    known = [name for name in named if name.keys]
    entities = await view.entities(sorted({key for name in known for key in name.keys}))
    frequent = [entity for entity in entities if entity.n_chunks > n_readable]
    limit = MAX_CHUNK_SHARE * await view.n_chunks() if frequent else 0
    common_keys = {entity.key for entity in frequent if entity.n_chunks > limit}
    common = frozenset(name for name in known if common_keys.issuperset(name.keys))
    return common if len(common) < len(set(known)) else frozenset()


def _seed(surface: str, keys: Sequence[str]) -> Seed:
    return Seed(text=surface, kind="name", matches=tuple(Scored(id=key, score=1.0) for key in keys))
