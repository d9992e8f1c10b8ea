"""Passage links: from the passages most similar to a question to those that they refer to or share rare terms with.

Source: Y. Wang et al., "Knowledge Graph Prompting for Multi-Document Question Answering" (2024), section 3. There, the
graph is built ahead. Here, full text has the names of passages as keys (`text.references`), and the links of a few
passages are read when they are followed, because an index must not grow with the pairs of its passages.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from quipu.algo.similarity import largest_with_ties
from quipu.model.graph import Chunk
from quipu.ports.derivation_view import NodeKind
from quipu.ports.store import OccurrenceKind, ReadView
from quipu.ports.topology import Floats
from quipu.retrieve.steps.graph_walk import PassageSubgraph
from quipu.retrieve.steps.passages import densest_part
from quipu.text.references import BEGINS, LINKS_TO, NAMED, REFERENCE_MARKS, References, references_in, words_of
from quipu.text.unicode import is_unspaced
from quipu.text.words import STOP_WORDS, index_terms, split_words

N_SEEDS, MAX_SHARED = 5, 8
MAX_CHARS_READ = 2_000  # of a passage: the part with most of the question
SHARPNESS, REFERENCE_WEIGHT = 8.0, 3.0
DAMPING, N_STEPS = 0.7, 10
RANK_SCALE = 0.003  # above this share of the walk, ranks count by their logarithm
_NONE = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageLink:
    """What passages share: a key of full text, its weight, the seeds that refer by it, and the passages under it."""

    key: str
    weight: float
    sources: frozenset[int]
    targets: frozenset[int]

    @property
    def passages(self) -> list[int]:
        """The linked passages, by ascending number."""
        return sorted(self.sources | self.targets)

    def sources_of(self, passage: int) -> frozenset[int]:
        """Return the seeds that this link joins a passage with, none if the passage is not linked."""
        return self.sources - {passage} if passage in self.sources or passage in self.targets else frozenset()

    def describe(self, passage: int, seed: Chunk) -> str:
        """Return in words how this link joins a passage with a seed."""
        if self.key.startswith(BEGINS):
            return f"passage {seed.id} links to it"
        if self.key.startswith(LINKS_TO):
            return f"it links to the document of passage {seed.id}"
        if self.key.startswith(NAMED):
            words = words_of(self.key.removeprefix(NAMED), seed.text)
            relation = "names it" if passage in self.targets else "it mentions, too"
            return f"passage {seed.id} mentions '{words}', which {relation}"
        return f"it shares the rare term '{self.key}' with passage {seed.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkWalk:
    """The links of the seeds, by key; the share of the walk at each passage, [n_chunks], scaled from 0 to 1."""

    links: Sequence[PassageLink]
    shares: Floats
    seeds: Mapping[int, Chunk]
    reset: Mapping[int, float]

    def reasons(self, passages: Iterable[int]) -> dict[int, str]:
        """Return, for each of these passages that is linked, "; " and its heaviest link with a seed in words."""
        links_by_passage: dict[int, list[PassageLink]] = defaultdict(list)
        for link in self.links:
            for passage in link.passages:
                links_by_passage[passage].append(link)
        reasons = {}
        for passage in passages:
            linked = links_by_passage.get(passage, ())
            links = [(link, others) for link in linked if (others := link.sources_of(passage))]
            if links:
                link, others = max(links, key=lambda pair: pair[0].weight * max(map(self.reset.__getitem__, pair[1])))
                seed = min(others, key=lambda number: (-self.reset[number], self.seeds[number].id))
                reasons[passage] = f"; {link.describe(passage, self.seeds[seed])}"
        return reasons


async def follow_links(
    terms: Sequence[str], similarity: Floats, view: ReadView, *, n_seeds: int = N_SEEDS, max_shared: int = MAX_SHARED
) -> LinkWalk:
    """Return personalised PageRank over passages and what they share, from the passages most similar to a question.

    `terms` are the content terms of the question: of a long passage only the part with most of them is read.
    `similarity` is [n_chunks]. It restarts at the seeds, by similarity to the power of `SHARPNESS`. A link weighs its
    IDF, and a reference `REFERENCE_WEIGHT` times as much. A link that joins more than `max_shared` passages is dropped.
    """
    best = largest_with_ties(similarity, n_seeds)
    ids = await view.ids(NodeKind.CHUNK, best[similarity[best] > 0].tolist())
    number_by_id = {chunk: number for number, chunk in ids.items()}
    seeds = {number_by_id[chunk.id]: chunk for chunk in await view.chunks(sorted(number_by_id))}
    reset = {seed: float(similarity[seed] ** SHARPNESS) for seed in seeds}
    links = await _find_links(terms, seeds, view, max_shared)
    ranks = np.log1p(_walk(reset, links, len(similarity)) / RANK_SCALE)
    shares = ranks / max(float(ranks.max(initial=0.0)), 1e-12)
    return LinkWalk(links=links, shares=shares, seeds=seeds, reset=reset)


async def _find_links(
    terms: Sequence[str], seeds: Mapping[int, Chunk], view: ReadView, max_shared: int
) -> list[PassageLink]:
    """Return the links of the seeds that join at least two passages, by key."""
    references_by_seed = {seed: _references(terms, chunk) for seed, chunk in seeds.items()}
    documents_by_key: dict[str, list[str]] = defaultdict(list)
    for key, document in {pair for references in references_by_seed.values() for pair in references.keys_in_document}:
        documents_by_key[key].append(document)
    keys = {*documents_by_key}.union(*(references.keys for references in references_by_seed.values()))
    ids_by_key = await view.occurrences(OccurrenceKind.TERM, sorted(keys), max_shared)
    number_by_id = await view.numbers(NodeKind.CHUNK, sorted({chunk for ids in ids_by_key.values() for chunk in ids}))
    confined = {chunk for key in documents_by_key for chunk in ids_by_key.get(key, ())}
    document_by_id = {chunk.id: chunk.document_id for chunk in await view.chunks(sorted(confined))}
    n_chunks = len((await view.chunk_vector_rows())[0])
    links = []
    pairs = [(key, document) for key in ids_by_key for document in ("", *documents_by_key.get(key, ()))]
    for key, document in sorted(pairs):
        ids = [chunk for chunk in ids_by_key[key] if not document or document_by_id.get(chunk) == document]
        targets = frozenset(number_by_id[chunk] for chunk in ids)
        referring = frozenset(
            seed
            for seed, references in references_by_seed.items()
            if ((key, document) in references.keys_in_document if document else key in references.keys)
        )
        if referring and targets and len(targets | referring) > 1:
            weight = math.log((n_chunks + 1) / len(targets))
            weight *= REFERENCE_WEIGHT if key.startswith(REFERENCE_MARKS) else 1
            links.append(PassageLink(key=key, weight=weight, sources=referring, targets=targets))
    return links


def _references(question_terms: Sequence[str], chunk: Chunk) -> References:
    """Return what a passage refers to, and its terms.

    A pair of characters of an unspaced script is no word: passages share many by chance.
    """
    text = densest_part(chunk.text, question_terms, MAX_CHARS_READ)
    words = split_words(text)
    references = references_in(text, words, chunk.document_id)
    terms = {*index_terms(words, text)} - STOP_WORDS
    references.keys.update(
        term for term in terms if not (term.isdigit() or term.startswith(":") or is_unspaced(term[0]))
    )
    return references


def _walk(reset: Mapping[int, float], links: Sequence[PassageLink], n_chunks: int) -> Floats:
    """Return the personalised PageRank of each passage, [n_chunks], over the links, from the seeds."""
    ranks = np.zeros(n_chunks)
    if links:
        linked = [(row, passage) for row, link in enumerate(links) for passage in link.passages]
        rows, passages = np.array(linked, dtype=np.int64).T
        chunks = np.union1d(passages, list(reset))
        graph = PassageSubgraph(  # the links stand where entities do
            entities=np.arange(len(links)),
            chunks=chunks,
            mention_rows=rows,
            mention_columns=np.searchsorted(chunks, passages),
            relation_rows=_NONE,
            relation_columns=_NONE,
            relation_weights=np.empty(0),
        )
        by_chunk = np.array([reset.get(chunk, 0.0) for chunk in chunks.tolist()])
        weights = np.array([link.weight for link in links])[rows]
        start = np.concatenate([np.zeros(len(links)), by_chunk])
        ranks[chunks] = graph.walk(weights, start, damping=DAMPING, n_steps=N_STEPS).ranks[len(links) :]
    return ranks
