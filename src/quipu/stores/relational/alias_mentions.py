"""Reading the aliases that chunks state."""

from collections.abc import Sequence

from sqlalchemy import select

from quipu.model.graph import AliasMention
from quipu.stores.relational import schema as s
from quipu.stores.relational.lookup import Lookup
from quipu.stores.relational.snapshot import Snapshot

_m, _c, _e = s.alias_mention.c, s.chunk.c, s.entity.c
_IN_CHUNKS = Lookup(
    select(_c.id, _m.ordinal, _e.key, _m.alias, _m.surface)
    .join_from(s.alias_mention, s.chunk, _m.chunk == _c.rid)
    .join(s.entity, _m.entity == _e.rid),
    _c.id,
    said_in=_m.chunk,
)


def alias_mentions(snapshot: Snapshot, chunk_ids: Sequence[str]) -> dict[str, list[AliasMention]]:
    """Return the aliases each chunk states, in order."""
    found: dict[str, list[AliasMention]] = {}
    for chunk, _, key, alias, surface in sorted(_IN_CHUNKS.rows(snapshot, sorted(set(chunk_ids)))):
        found.setdefault(chunk, []).append(AliasMention(key=key, alias=alias, surface=surface))
    return {chunk: found[chunk] for chunk in dict.fromkeys(chunk_ids) if chunk in found}
