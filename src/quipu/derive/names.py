"""Names: a vector of each entity's name alone, by which a name in a question or another entity's name is matched.

Entities have vectors of name and description already; MiniRAG, HippoRAG 2 and LinearRAG match names with names.
"""

from quipu.derive.derivation import Derivation, DerivationContext
from quipu.derive.embedding import embed_stale
from quipu.derive.keeping import held, keep, kept_by, state_of
from quipu.model.derivation import NAMES, DerivationResult, DerivationState
from quipu.ports.store import ReadView, VectorSpace

_IDENTITY = "names/1"


async def read_state(view: ReadView, context: DerivationContext) -> DerivationState:
    """Return how many names there are, and how many have no vector yet."""
    n_bytes = 2 * await view.vector_dimension(VectorSpace.NAME)
    return await state_of(view, NAMES, _IDENTITY, what="name", n_bytes_each=n_bytes)


async def refresh(context: DerivationContext, rebuild: bool) -> DerivationResult:
    """Keep names from now on, and embed those that have no vector; the store follows entities in each commit.

    Made anew, every row is compared with its entity; vectors of texts that stay are kept.
    """
    if rebuild or await kept_by(context.store, NAMES) != _IDENTITY:
        await keep(context.store, NAMES, _IDENTITY)
    n_missing = (await held(context.store, NAMES)).n_stale
    await embed_stale(context.store, context.embedder, context.on_event, context.on_embedded)
    now = await held(context.store, NAMES)
    return DerivationResult(name=NAMES, n_built=n_missing, n_unchanged=max(now.n_items - n_missing, 0))


DERIVATION = Derivation(
    name=NAMES,
    summary="vectors of entity names alone, for matching names with names",
    read_state=read_state,
    refresh=refresh,
)
