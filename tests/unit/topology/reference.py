"""The topology, told slowly: read from a view's own answers, as dictionaries of what links to what."""

from collections import Counter

import numpy as np

from quipu.model.graph import EntityMention
from quipu.ports.derivation_view import NodeKind
from quipu.ports.store import OccurrenceKind, ReadView
from quipu.ports.topology import AdjacencyMatrix, EdgeWeight, Floats, Topology
from quipu.testing.contract.steps import synonyms as synonyms_of

Pairs = dict[tuple[str, str], float]
ALL = 1_000_000


async def told(view: ReadView, keys: list[str]) -> dict[str, Pairs]:
    """Return what the topology of a view should hold, by keys and ids."""
    documents = await view.documents()
    chunks = [[chunk.id for chunk in await view.chunks(document_id=document.id)] for document in documents]
    shown = [entity.key for entity in await view.entities(keys)]
    relations = await view.relations(entities=shown)
    named = await view.occurrences(OccurrenceKind.ENTITY, shown, ALL)
    synonyms = await synonyms_of(view, shown)
    said = await view.mentions(EntityMention, [chunk for of_document in chunks for chunk in of_document])
    mentioned = Counter((mention.key, chunk) for chunk, mentions in said.items() for mention in mentions)
    return {
        EdgeWeight.ONE: _both({(r.source, r.target): 1.0 for r in relations}),
        EdgeWeight.WEIGHT: _both({(r.source, r.target): r.weight for r in relations}),
        EdgeWeight.MENTIONS: _both({(r.source, r.target): float(r.n_mentions) for r in relations}),
        "occurrences": {(key, chunk): float(n) for key, counts in named.items() for chunk, n in counts.items()},
        "mentions in chunks": {pair: float(n) for pair, n in mentioned.items()},
        "synonyms": {(key, other): cosine for key, others in synonyms.items() for other, cosine in others},
    }


async def read(topology: Topology, view: ReadView) -> dict[str, Pairs]:
    """Return what a topology holds, by keys and ids."""
    entities = await view.ids(NodeKind.ENTITY, range(topology.n_entities))
    chunks = await view.ids(NodeKind.CHUNK, range(topology.n_chunks))
    read = {measure.value: links(topology.relations(measure), entities, entities) for measure in EdgeWeight}
    occurrences_by_chunk = links(topology.occurrences_by_chunk(), chunks, entities)
    occurrences = links(topology.occurrences(), entities, chunks)
    assert {(key, chunk): n for (chunk, key), n in occurrences_by_chunk.items()} == occurrences
    return {
        **read,
        "occurrences": occurrences,
        "mentions in chunks": links(topology.mentions(), entities, chunks),
        "synonyms": links(topology.synonyms(), entities, entities),
    }


def links(found: AdjacencyMatrix, rows: dict[int, str], columns: dict[int, str]) -> Pairs:
    """Return links by the ids of their ends, each of which must be there; raises KeyError for one that is not."""
    all_rows = np.arange(found.shape[0])
    near = found.neighbours(all_rows)
    triples = zip(near.positions.tolist(), near.columns.tolist(), near.weights.tolist(), strict=True)
    pairs = {(rows[row], columns[column]): weight for row, column, weight in triples}
    assert found.n_entries == len(near.columns) == len(pairs)
    sums = Counter[int]()
    for row, weight in zip(near.positions.tolist(), near.weights.tolist(), strict=True):
        sums[row] += weight
    assert np.allclose(found.row_sums(), [sums[row] for row in range(found.shape[0])])
    weights = np.random.default_rng(found.shape[1]).random(found.shape[1])
    assert np.allclose(found.multiply(weights), _dense(found) @ weights)
    assert np.array_equal(_dense(found.unweighted()), _dense(found) > 0)
    return pairs


def _dense(found: AdjacencyMatrix) -> Floats:
    near = found.neighbours(np.arange(found.shape[0]))
    dense = np.zeros(found.shape)
    dense[near.positions, near.columns] = near.weights
    return dense


def _both(pairs: Pairs) -> Pairs:
    return pairs | {(b, a): weight for (a, b), weight in pairs.items()}
