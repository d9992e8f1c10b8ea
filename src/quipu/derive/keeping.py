"""Keeping: what derivations that the store holds as rows have in common."""

from quipu.model.delta import Delta, SynonymUpdate
from quipu.model.derivation import DerivationRecord, DerivationState, Freshness, RefreshCost
from quipu.ports.derivation_view import DerivationCounts
from quipu.ports.store import ReadView, Store
from quipu.text.formatting import format_count


async def state_of(view: ReadView, name: str, identity: str, *, what: str, n_bytes_each: int = 0) -> DerivationState:
    """Return the state of a derivation that `view.held` knows; `what` names its items, as in "name"."""
    made, held = (await view.derivations()).get(name), await view.derivation_counts(name)
    is_stale = held.n_stale > 0 or (made is not None and made.identity != identity)
    return DerivationState(
        name=name,
        freshness=Freshness.MISSING if made is None else Freshness.STALE if is_stale else Freshness.FRESH,
        contents=format_count(held.n_items, what) if made is not None else "",
        n_items=held.n_items,
        n_stale=held.n_stale,
        n_bytes=held.n_items * n_bytes_each,
        cost=RefreshCost(n_texts=held.n_texts),
    )


async def kept_by(store: Store, name: str) -> str:
    """Return the identity by which a derivation is kept, "" where it is not."""
    async with store.view() as view:
        made = (await view.derivations()).get(name)
    return made.identity if made is not None else ""


async def keep(store: Store, name: str, identity: str, *, synonyms: SynonymUpdate | None = None) -> None:
    """Note that a derivation is kept by this identity; in the same commit, what that does to synonyms."""
    async with store.view() as view:
        revision = view.revision
    made = DerivationRecord(name=name, identity=identity, revision=revision)
    await store.commit(Delta(derivations=[made], synonyms=synonyms))


async def held(store: Store, name: str) -> DerivationCounts:
    """Return what there is of a derivation now."""
    async with store.view() as view:
        return await view.derivation_counts(name)
