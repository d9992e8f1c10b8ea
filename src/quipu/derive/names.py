"""Entity names: the derivation `names` (a vector for each name) and the derivation `synonyms` (pairs of similar names).

A name in a question is matched with the vectors of names alone (MiniRAG, HippoRAG 2, LinearRAG). The vectors of
entities that every index has are of name and description together.

Source of synonyms: B. J. Gutiérrez et al., "HippoRAG" (2024) and "From RAG to Memory" (HippoRAG 2, 2025): two names are
synonyms if their cosine is at least 0.8. Here n entities with very similar names (numbered chapters, full dates) have
up to n² / 2 pairs, because no limit may depend on the rest of the index.

Differences from the papers' code:
- The hundred nearest names of a name → all from a cosine of `MIN_COSINE`, because the order of documents must not
  matter.
- All names are compared with all on every addition → new and changed ones with all, because time must not grow with the
  square.
- Names of more than two Latin letters and digits → of `MIN_LETTERS` in any script, because names are written in all.
"""

from quipu.derive.derivation import (
    Derivation,
    DerivationContext,
    embed_stale,
    read_counts,
    read_identity,
    read_row_state,
    record_derivation,
)
from quipu.model.delta import Delta, SynonymPair, SynonymUpdate
from quipu.model.derivation import NAMES, SYNONYMS, DerivationResult, DerivationState
from quipu.model.event import Progress
from quipu.ports.store import ReadView, VectorSpace

MIN_COSINE = 0.8
MIN_LETTERS = 3  # letters and digits of any script: shorter names are similar by chance
NAMES_PER_COMMIT = 1_024  # names compared with all others between two commits
_NAMES_IDENTITY = "names/1"
_SYNONYMS_IDENTITY = "synonyms/1 cosine 0.8"
_PAIR_BYTES = 30  # of a row and its index entry


async def read_names_state(view: ReadView, context: DerivationContext) -> DerivationState:
    """Return how many names there are, and how many have no vector yet."""
    vector_bytes = 2 * (await view.counts("embedder")).vector_dimension
    return await read_row_state(view, NAMES, _NAMES_IDENTITY, noun="name", bytes_per_item=vector_bytes)


async def refresh_names(context: DerivationContext, rebuild: bool) -> DerivationResult:
    """Embed the names that have no vector. From the first refresh on, each commit keeps the rows of names up to date.

    A rebuild compares every row with its entity; vectors of unchanged names are kept.
    """
    if rebuild or await read_identity(context.store, NAMES) != _NAMES_IDENTITY:
        await record_derivation(context.store, NAMES, _NAMES_IDENTITY)
    n_missing = (await read_counts(context.store, NAMES)).n_stale
    await embed_stale(context.store, context.embedder, context.on_event, context.on_embedded)
    n_names = (await read_counts(context.store, NAMES)).n_items
    return DerivationResult(name=NAMES, n_built=n_missing, n_unchanged=max(n_names - n_missing, 0))


async def read_synonyms_state(view: ReadView, context: DerivationContext) -> DerivationState:
    """Return how many pairs there are, and how many names have not been compared yet."""
    return await read_row_state(view, SYNONYMS, _SYNONYMS_IDENTITY, noun="pair", bytes_per_item=_PAIR_BYTES)


async def refresh_synonyms(context: DerivationContext, rebuild: bool) -> DerivationResult:
    """Compare the names that are new with all names, and commit the pairs block by block."""
    if rebuild or await read_identity(context.store, SYNONYMS) != _SYNONYMS_IDENTITY:
        await record_derivation(context.store, SYNONYMS, _SYNONYMS_IDENTITY, synonym_update=SynonymUpdate(reset=True))
    before = await read_counts(context.store, SYNONYMS)
    n_compared = 0
    while update := await _compare_names(context):
        await context.store.commit(Delta(synonyms=update))
        n_compared += len(update.names)
        context.on_event(Progress(stage=SYNONYMS, n_done=n_compared, n_total=max(before.n_stale, n_compared)))
    after = await read_counts(context.store, SYNONYMS)
    return DerivationResult(
        name=SYNONYMS, n_built=max(after.n_items - before.n_items, 0), n_unchanged=min(before.n_items, after.n_items)
    )


async def _compare_names(context: DerivationContext) -> SynonymUpdate | None:
    """Compare the next names with all others; None once every name has been compared."""
    async with context.store.view() as view:
        names = await view.pending(SYNONYMS, NAMES_PER_COMMIT)
        if not names:
            return None
        candidates = [key for key in names if is_comparable(key)]
        similar_pairs = await context.vectors.similar_pairs(view, VectorSpace.NAME, candidates, min_score=MIN_COSINE)
        pairs = [
            SynonymPair(first=pair.first, second=pair.second, similarity=min(pair.score, 1.0))
            for pair in similar_pairs
            if is_comparable(pair.first) and is_comparable(pair.second)
        ]
        return SynonymUpdate(revision=view.revision, names=names, pairs=pairs)


def is_comparable(key: str) -> bool:
    """Return whether a name is long enough for its similarity to another to mean something."""
    return sum(character.isalnum() for character in key) >= MIN_LETTERS


NAME_VECTORS = Derivation(
    name=NAMES,
    summary="vectors of entity names alone, to match names with names",
    read_state=read_names_state,
    refresh=refresh_names,
)

SYNONYM_PAIRS = Derivation(
    name=SYNONYMS,
    summary="pairs of entities with similar names (cosine 0.8 or more)",
    read_state=read_synonyms_state,
    refresh=refresh_synonyms,
    needs=(NAMES,),
)
