"""Synonyms: pairs of entities whose names are much alike, which walks may cross.

Source: B. J. Gutiérrez et al., "HippoRAG" (2024) and "From RAG to Memory" (HippoRAG 2, 2025): the cosine of two names
is at least 0.8. There the nearest hundred of each are kept, and all are compared with all whenever something is added.
Here a pair is there because of its two names alone, so that no order of documents shows; and only names that are new or
were changed are compared, with all others. The price is that n entities whose names are all alike (numbered chapters,
dates in full) have n² / 2 pairs: nothing that looks at the rest of the index may cut them.
"""

from quipu.derive.derivation import Derivation, DerivationContext
from quipu.derive.keeping import held, keep, kept_by, state_of
from quipu.model.delta import Delta, SynonymPair, SynonymUpdate
from quipu.model.derivation import NAMES, SYNONYMS, DerivationResult, DerivationState
from quipu.model.event import Progress
from quipu.ports.store import ReadView, VectorSpace

MIN_COSINE = 0.8
MIN_LETTERS = 3  # letters and digits of any script: shorter names are alike by chance
AT_ONCE = 1_024  # names compared with all others between two commits
_IDENTITY = "synonyms/1 cosine 0.8"
_PAIR_BYTES = 30  # of a row and its place in the index


async def read_state(view: ReadView, context: DerivationContext) -> DerivationState:
    """Return how many pairs there are, and how many names have not been compared."""
    return await state_of(view, SYNONYMS, _IDENTITY, what="pair", n_bytes_each=_PAIR_BYTES)


async def refresh(context: DerivationContext, rebuild: bool) -> DerivationResult:
    """Compare the names that are new with all names; what is found is committed as it comes."""
    if rebuild or await kept_by(context.store, SYNONYMS) != _IDENTITY:
        await keep(context.store, SYNONYMS, _IDENTITY, synonyms=SynonymUpdate(reset=True))
    before = await held(context.store, SYNONYMS)
    n_compared = 0
    while compared := await _compare(context):
        await context.store.commit(Delta(synonyms=compared))
        n_compared += len(compared.names)
        context.on_event(Progress(stage=SYNONYMS, n_done=n_compared, n_total=max(before.n_stale, n_compared)))
    after = await held(context.store, SYNONYMS)
    return DerivationResult(
        name=SYNONYMS, n_built=max(after.n_items - before.n_items, 0), n_unchanged=min(before.n_items, after.n_items)
    )


async def _compare(context: DerivationContext) -> SynonymUpdate | None:
    """Return what comparing the next names finds, None where all have been compared."""
    async with context.store.view() as view:
        names = await view.pending(SYNONYMS, AT_ONCE)
        if not names:
            return None
        telling = [key for key in names if is_telling(key)]
        alike = await context.vectors.similar_pairs(view, VectorSpace.NAME, telling, min_score=MIN_COSINE)
        pairs = [
            SynonymPair(first=pair.first, second=pair.second, similarity=min(pair.score, 1.0))
            for pair in alike
            if is_telling(pair.first) and is_telling(pair.second)
        ]
        return SynonymUpdate(revision=view.revision, names=names, pairs=pairs)


def is_telling(key: str) -> bool:
    """Say whether a name is long enough for its likeness to another to mean something."""
    return sum(character.isalnum() for character in key) >= MIN_LETTERS


DERIVATION = Derivation(
    name=SYNONYMS,
    summary="pairs of entities whose names are much alike (cosine 0.8 or more)",
    read_state=read_state,
    refresh=refresh,
    needs=(NAMES,),
)
