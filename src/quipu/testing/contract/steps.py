"""Steps that the tests of the contract share: opening, publishing, embedding, reading everything."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from quipu.model.delta import CommitResult, Delta, DocumentFacts, SynonymPair, VectorRow
from quipu.model.derivation import SUMMARIES
from quipu.model.graph import AliasMention, ClaimMention, Entity, EntityMention, Relation, RelationMention
from quipu.model.ids import claim_id, digest
from quipu.model.query import Filter
from quipu.model.summary import Summary, SummaryTarget, SummaryTask
from quipu.ports.derivation_view import NodeKind
from quipu.ports.store import OccurrenceKind, ReadView, Store, VectorSpace

MODEL, DIMENSION = "tests/words", 4


class OpenStore(Protocol):
    """Opens a store that is ready for use; `storage` names one of several places, each empty when a test begins.

    A name given twice opens the same place again, also while the first is still open. `lease_s` may be negative: then
    every claim has expired at once.
    """

    def __call__(self, storage: str = "first", *, lease_s: float = 60.0) -> AbstractAsyncContextManager[Store]: ...


async def publish(store: Store, *documents: DocumentFacts) -> CommitResult:
    """Publish documents in one commit."""
    return await store.commit(Delta(publish=documents))


async def remove(store: Store, *ids: str) -> CommitResult:
    """Remove documents in one commit."""
    return await store.commit(Delta(remove=ids))


async def dump(store: Store) -> list[str]:
    """Return the canonical state."""
    async with store.view() as view:
        return [line async for line in view.dump()]


async def only_entity(store: Store, key: str, allowed: Filter | None = None) -> Entity:
    """Return one entity; fails where it is not there."""
    async with store.view(allowed) as view:
        (node,) = await view.entities([key])
    return node


async def only_relation(store: Store, identifier: str) -> Relation:
    """Return one relation; fails where it is not there."""
    async with store.view() as view:
        (edge,) = await view.relations([identifier])
    return edge


def vector(text_hash: str, model: str = MODEL, dimension: int = DIMENSION) -> VectorRow:
    """Return a vector that depends on model and text alone."""
    seed = bytes.fromhex(digest(model, text_hash))
    vector_values = np.frombuffer(seed[:dimension], np.uint8).astype(np.float16) / np.float16(256)
    return VectorRow(model=model, text_hash=text_hash, vector=vector_values)


async def embed(store: Store, model: str = MODEL, dimension: int = DIMENSION) -> list[str]:
    """Give every text that waits its vector; return the texts, sorted."""
    texts: list[str] = []
    while waiting := await store.texts_without_vector(model, 7):
        await store.commit(Delta(vectors=[vector(entry, model, dimension) for entry in waiting]))
        texts += waiting.values()
    return sorted(texts)


async def pair_of(store: Store, first: str, second: str) -> SynonymPair:
    """Return two entities as a comparison of their names would find them; these have vectors."""
    async with store.view() as view:
        rows, block = (
            await view.numbers(VectorSpace.NAME, [first, second]),
            await view.vectors(VectorSpace.NAME),
        )
    one, other = (block.vectors[np.searchsorted(block.rows, rows[key])].astype(np.float64) for key in (first, second))
    return SynonymPair(first=first, second=second, similarity=min(round(float(one @ other), 6), 1.0))


async def summary_targets(store: Store) -> list[SummaryTarget]:
    """Return what needs a summary."""
    async with store.view() as view:
        return [SummaryTarget.from_id(id_) for id_ in await view.pending(SUMMARIES)]


def summary_of(task: SummaryTask) -> Summary:
    """Return a summary that depends on the names and the descriptions alone."""
    texts = [description.text for description in task.descriptions]
    text = f"{' and '.join(task.names)}: {len(texts)} notes, {digest(*texts)[:8]}."
    return Summary(target=task.target, inputs_hash=task.inputs_hash, text=text, model="tests/summaries")


async def summarise(store: Store) -> list[Summary]:
    """Give everything that waits its summary; return them, ordered by what they are of."""
    written = [summary_of(task) for task in await store.summary_tasks(await summary_targets(store))]
    await store.commit(Delta(summaries=written))
    return written


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTargets:
    """What to read: ids that exist somewhere, and words to search."""

    documents: Sequence[str]
    chunks: Sequence[str]
    keys: Sequence[str]
    relations: Sequence[str]
    words: Sequence[str]


async def everything(view: ReadView, targets: ReadTargets) -> dict[str, object]:
    """Return what each read of the graph and the texts answers, in the order of the answers."""
    return {
        "documents": [(doc.id, doc.title, doc.metadata) for doc in await view.documents()],
        "some documents": [doc.id for doc in await view.documents(targets.documents)],
        "chunks": await view.chunks(targets.chunks),
        "document chunks": [await view.chunks(document_id=document_id) for document_id in targets.documents],
        "entities": await view.entities(targets.keys),
        "relations": await view.relations(targets.relations),
        "incident": await view.relations(entities=targets.keys),
        "strongest relations": [await view.strongest_relations(targets.keys, k) for k in (1, 4, 1_000)],
        "most related": [await view.entities(targets.keys, k) for k in (0, 1, 4, 1_000)],
        "named": list((await view.keys_by_name(targets.keys)).items()),
        "search": [await view.search_text(NodeKind.ENTITY, word, 10) for word in targets.words],
        "chunks of entities": [
            (key, list(counts.items()))
            for k in (1, 2, 1_000)
            for key, counts in (await view.occurrences(OccurrenceKind.ENTITY, targets.keys, k)).items()
        ],
        "chunks mentioning": [
            list((await view.occurrences(OccurrenceKind.MENTION, targets.keys, k)).items()) for k in (1, 2, 1_000)
        ],
        "chunks of relations": list((await view.occurrences(OccurrenceKind.RELATION, targets.relations)).items()),
        "entity mentions": list((await view.mentions(EntityMention, targets.chunks)).items()),
        "relation mentions": list((await view.mentions(RelationMention, targets.chunks)).items()),
        "alias mentions": list((await view.mentions(AliasMention, targets.chunks)).items()),
        "claim mentions": list((await view.mentions(ClaimMention, targets.chunks)).items()),
        "claims of entities": [await view.claims(subjects=targets.keys, k=k) for k in (1, 3, 1_000)],
        "claims": await view.claims([claim_id(chunk, n) for chunk in targets.chunks for n in range(3)]),
    }


async def synonyms(view: ReadView, keys: Sequence[str]) -> dict[str, list[tuple[str, float]]]:
    """Return the visible synonyms of each of these entities with their cosine, nearest first, equal ones by key."""
    rows = (await view.graph_rows()).synonyms
    key_by_number = await view.ids(NodeKind.ENTITY, [*rows.firsts.tolist(), *rows.seconds.tolist()])
    synonyms_by_key: dict[str, list[tuple[str, float]]] = {}
    for first, second, cosine in zip(rows.firsts.tolist(), rows.seconds.tolist(), rows.similarities, strict=True):
        for number, other in ((first, second), (second, first)):
            if number in key_by_number and other in key_by_number:
                pair = key_by_number[other], float(cosine)
                synonyms_by_key.setdefault(key_by_number[number], []).append(pair)
    return {
        key: sorted(synonyms_by_key[key], key=lambda pair: (-pair[1], pair[0]))
        for key in keys
        if key in synonyms_by_key
    }


async def report_ratings(view: ReadView, ids: Sequence[str]) -> dict[str, float]:
    """Return the rating of each report that may be read, by cluster, in the order of the reports."""
    return {report.cluster: report.rating for report in await view.cluster_reports(ids, with_text=False)}


def floats(vector_values: npt.NDArray[np.float16]) -> list[float]:
    """Return a vector as numbers that compare."""
    return [float(value) for value in vector_values]
