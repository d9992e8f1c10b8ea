"""Report inputs: what the report on a community is written from, most important first.

Importance is counted within a community: relations whose ends have most relations there come first, then the heaviest.
So nothing outside a community changes its report. Notes that do not fit into a request are replaced by the reports on
sub-communities, the largest first, as D. Edge et al. describe (2024, section 3.1.4); notes on relations between
sub-communities stay.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from quipu.algo.edge_list import Ints, edge_list
from quipu.model.cluster import Cluster, ClusterReport, report_text
from quipu.model.graph import Chunk, Entity, Relation
from quipu.model.ids import relation_id
from quipu.ports.derivation_view import NodeKind
from quipu.ports.providers import Tokenizer
from quipu.ports.store import OccurrenceKind, ReadView
from quipu.ports.topology import EdgeWeight, Topology

MAX_ENTITIES = 150  # in larger communities, reports replace the notes on all sub-communities
MAX_RELATIONS = 200  # read for one community, and as many again between its sub-communities
MAX_SUBJECTS = 300  # entities
MAX_CHUNKS = 8
N_RANKING_RELATIONS = 32  # that decide which chunks are most important
MAX_NOTE_TOKENS = 8_000
REPORTS_SHARE = 0.75  # the largest share of these tokens for reports on sub-communities


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportNotes:
    """The notes in a request: reports on sub-communities, notes on entities (subjects) and on relations."""

    reports: tuple[str, ...]
    subjects: tuple[str, ...]
    connections: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportInputs:
    """Everything a report on one community is written from, as of `revision`.

    `notes` are for a model. `names` are the names of entities, `pairs` the names of related ones, most important first.
    `chunks` state most of these relations. `documents` are all documents with facts about the community.
    """

    cluster: Cluster
    notes: ReportNotes
    names: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    chunks: tuple[Chunk, ...] = ()
    documents: tuple[str, ...] = ()
    revision: int | None = None


class CommunityTree:
    """All communities, with their children."""

    def __init__(self, clusters: Sequence[Cluster]) -> None:
        self.by_id = {cluster.id: cluster for cluster in clusters}
        self._children: dict[str, list[str]] = {}
        for cluster in clusters:
            self._children.setdefault(cluster.parent, []).append(cluster.id)

    def children(self, cluster_id: str) -> Sequence[str]:
        """Return the ids of the sub-communities."""
        return self._children.get(cluster_id, ())

    def entities(self, cluster_id: str) -> list[str]:
        """Return the keys of all entities in a community and below it, ordered."""
        keys: list[str] = []
        pending = [cluster_id]
        while pending:
            current = pending.pop()
            keys += self.by_id[current].members
            pending += self.children(current)
        return sorted(keys)


async def read_report_inputs(
    ids: Sequence[str], tree: CommunityTree, view: ReadView, topology: Topology, tokenizer: Tokenizer
) -> list[ReportInputs]:
    """Return the inputs of the reports on these communities, in their order."""
    keys_by_id = {cluster_id: tree.entities(cluster_id) for cluster_id in ids}
    number_by_key = await view.numbers(NodeKind.ENTITY, sorted({key for keys in keys_by_id.values() for key in keys}))
    ranked = [
        _rank(tree, cluster_id, [key for key in keys if key in number_by_key], number_by_key, topology)
        for cluster_id, keys in keys_by_id.items()
    ]
    facts = await _read_facts(ranked, tree, view)
    return [_inputs(community, tree.children(community.cluster.id), facts, tokenizer) for community in ranked]


@dataclass(frozen=True, slots=True)
class _RankedCommunity:
    """Entity keys and pairs of related keys, most important first; `child_by_key` is each entity's sub-community."""

    cluster: Cluster
    keys: Sequence[str]
    pairs: Sequence[tuple[str, str]]
    child_by_key: Mapping[str, str]

    def relation_ids(self) -> list[str]:
        return [relation_id(*pair) for pair in self.pairs]

    def subjects(self) -> list[str]:
        """Return the entities in the order in which the relations name them, then the others."""
        ends = [key for pair in self.pairs for key in pair]
        return list(dict.fromkeys([*ends, *self.keys]))[:MAX_SUBJECTS]


@dataclass(frozen=True, slots=True)
class _CommunityFacts:
    """What a view holds about several communities together."""

    entities: Mapping[str, Entity]
    relations: Mapping[str, Relation]
    chunks_by_fact: Mapping[str, Collection[str]]  # by relation id, or by entity key in communities without relations
    chunks: Mapping[str, Chunk]
    reports: Mapping[str, ClusterReport]
    documents: Mapping[str, tuple[str, ...]]
    revision: int


def _rank(
    tree: CommunityTree, cluster_id: str, keys: list[str], number_by_key: Mapping[str, int], topology: Topology
) -> _RankedCommunity:
    numbers = np.array([number_by_key[key] for key in keys], dtype=np.int64)
    neighbours = topology.relations(EdgeWeight.WEIGHT).neighbours(numbers)
    order = np.argsort(numbers)
    position = np.searchsorted(numbers[order], neighbours.columns).clip(max=max(len(numbers) - 1, 0))
    is_inside = numbers[order][position] == neighbours.columns if len(numbers) else np.zeros(0, dtype=bool)
    first, second = neighbours.positions[is_inside], order[position[is_inside]]
    is_once = first < second
    pairs = edge_list(len(keys), first[is_once], second[is_once], neighbours.weights[is_inside][is_once])
    degrees = np.bincount(np.concatenate([pairs.sources, pairs.targets]), minlength=len(keys))
    degree_sums, weights = degrees[pairs.sources] + degrees[pairs.targets], pairs.weights.round(6)
    best_pairs = np.lexsort((pairs.targets, pairs.sources, -weights, -degree_sums))
    strengths = pairs.degrees().round(6)
    best_entities = np.lexsort((np.arange(len(keys)), -strengths, -degrees))
    child_by_key = {key: child for child in tree.children(cluster_id) for key in tree.entities(child)}
    children = [child_by_key.get(key, "") for key in keys]
    selected = _select_pairs(best_pairs, pairs.sources, pairs.targets, children)
    ends = zip(pairs.sources[selected].tolist(), pairs.targets[selected].tolist(), strict=True)
    return _RankedCommunity(
        cluster=tree.by_id[cluster_id],
        keys=[keys[place] for place in best_entities.tolist()],
        pairs=[(keys[source], keys[target]) for source, target in ends],
        child_by_key=child_by_key,
    )


def _select_pairs(best: Ints, sources: Ints, targets: Ints, children: Sequence[str]) -> Ints:
    """Return the first relations, and the first of those between sub-communities, which are in no report on one."""
    codes = np.unique(children, return_inverse=True)[1] if len(children) else np.empty(0, dtype=np.int64)
    is_between = codes[sources[best]] != codes[targets[best]] if len(best) else np.zeros(0, dtype=bool)
    places = np.union1d(np.arange(min(len(best), MAX_RELATIONS)), np.flatnonzero(is_between)[:MAX_RELATIONS])
    return best[places]


async def _read_facts(ranked: Sequence[_RankedCommunity], tree: CommunityTree, view: ReadView) -> _CommunityFacts:
    relation_ids = {identifier for community in ranked for identifier in community.relation_ids()}
    ranking_ids = {identifier for community in ranked for identifier in community.relation_ids()[:N_RANKING_RELATIONS]}
    unrelated = {key for community in ranked if not community.pairs for key in community.keys[:N_RANKING_RELATIONS]}
    chunks_by_fact = await view.occurrences(OccurrenceKind.RELATION, sorted(ranking_ids))
    chunks_by_fact |= await view.occurrences(OccurrenceKind.MENTION, sorted(unrelated), MAX_CHUNKS * MAX_CHUNKS)
    chunk_ids = {chunk for community in ranked for chunk in _top_chunks(community, chunks_by_fact)}
    subjects = {key for community in ranked for key in community.subjects()}
    children = [child for community in ranked for child in tree.children(community.cluster.id)]
    return _CommunityFacts(
        entities={entity.key: entity for entity in await view.entities(sorted(subjects))},
        relations={relation.id: relation for relation in await view.relations(sorted(relation_ids))},
        chunks_by_fact=chunks_by_fact,
        chunks={chunk.id: chunk for chunk in await view.chunks(sorted(chunk_ids))},
        reports={report.cluster: report for report in await view.cluster_reports(children)},
        documents=await view.cluster_documents([community.cluster.id for community in ranked]),
        revision=view.revision,
    )


def _top_chunks(community: _RankedCommunity, chunks_by_fact: Mapping[str, Collection[str]]) -> list[str]:
    """Return the chunks that state most of the first relations; ties go to the chunk that states the best relation."""
    ranks_by_chunk: dict[str, list[int]] = {}
    facts = community.relation_ids()[:N_RANKING_RELATIONS] or community.keys[:N_RANKING_RELATIONS]
    for rank, fact in enumerate(facts):
        for chunk in chunks_by_fact.get(fact, ()):
            ranks_by_chunk.setdefault(chunk, []).append(rank)
    return sorted(ranks_by_chunk, key=lambda chunk: (-len(ranks_by_chunk[chunk]), ranks_by_chunk[chunk], chunk))[
        :MAX_CHUNKS
    ]


def _inputs(
    community: _RankedCommunity, children: Sequence[str], facts: _CommunityFacts, tokenizer: Tokenizer
) -> ReportInputs:
    entities = {key: facts.entities[key] for key in community.subjects() if key in facts.entities}
    child_reports = [facts.reports[child] for child in children if child in facts.reports]
    child_reports.sort(key=lambda report: (-report.rating, report.cluster))
    candidates = CandidateNotes(
        subjects={key: entity_note(entity) for key, entity in entities.items()},
        connections={
            pair: relation_note(facts.relations[identifier])
            for pair, identifier in zip(community.pairs, community.relation_ids(), strict=True)
            if identifier in facts.relations
        },
        child_by_key=community.child_by_key,
        reports={report.cluster: report_text(report) for report in child_reports},
    )
    is_large = community.cluster.n_entities > MAX_ENTITIES
    return ReportInputs(
        cluster=community.cluster,
        notes=select_notes(candidates, tokenizer.count, is_large=is_large),
        names=tuple(entities[key].name for key in community.keys if key in entities),
        pairs=tuple(
            (entities[source].name, entities[target].name)
            for source, target in community.pairs[:N_RANKING_RELATIONS]
            if source in entities and target in entities
        ),
        chunks=tuple(
            facts.chunks[chunk] for chunk in _top_chunks(community, facts.chunks_by_fact) if chunk in facts.chunks
        ),
        documents=facts.documents.get(community.cluster.id, ()),
        revision=facts.revision,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateNotes:
    """All notes on a community, most important first: `subjects` by entity key, `connections` by pair of keys.

    `child_by_key` is the sub-community of each entity. `reports` are the texts of the reports on sub-communities.
    """

    subjects: Mapping[str, str]
    connections: Mapping[tuple[str, str], str]
    child_by_key: Mapping[str, str]
    reports: Mapping[str, str]


def select_notes(candidates: CandidateNotes, count: Callable[[str], int], *, is_large: bool) -> ReportNotes:
    """Return as many notes as fit into MAX_NOTE_TOKENS.

    If all notes do not fit, reports replace the notes on one sub-community after the other, the largest first. In a
    large community they replace all of them. `count` returns the number of tokens of a text.
    """
    groups = (candidates.subjects, candidates.connections, candidates.reports)
    tokens_by_text = {text: count(text) + 1 for group in groups for text in group.values()}
    child_of_each_entity = list(candidates.child_by_key.values())
    largest_first = sorted(candidates.reports, key=lambda child: (-child_of_each_entity.count(child), child))
    replaced = frozenset(largest_first) if is_large else frozenset[str]()
    for child in largest_first:
        texts = {*_remaining_notes(candidates, replaced), *(candidates.reports[other] for other in replaced)}
        if sum(tokens_by_text[text] for text in texts) <= MAX_NOTE_TOKENS:
            break
        replaced |= {child}
    reports_budget = int(MAX_NOTE_TOKENS * REPORTS_SHARE)
    report_texts = (text for child, text in candidates.reports.items() if child in replaced)
    reports, unused = _take_first(report_texts, tokens_by_text, reports_budget)
    notes_budget = MAX_NOTE_TOKENS - reports_budget + unused
    notes = frozenset(_take_first(_remaining_notes(candidates, replaced), tokens_by_text, notes_budget)[0])
    return ReportNotes(
        reports=tuple(reports),
        subjects=tuple(text for text in candidates.subjects.values() if text in notes),
        connections=tuple(text for text in candidates.connections.values() if text in notes),
    )


def entity_note(entity: Entity) -> str:
    """Return the note on an entity."""
    return f"{entity.name} ({entity.type})" + (f": {entity.description}" if entity.description else "")


def relation_note(relation: Relation) -> str:
    """Return the note on a relation."""
    description = relation.description or ", ".join(relation.keywords)
    return f"{relation.source_name} | {relation.target_name}" + (f": {description}" if description else "")


def _remaining_notes(candidates: CandidateNotes, replaced: frozenset[str]) -> Iterator[str]:
    """Yield the notes that no report replaces: each connection after its two subjects, then the other subjects."""
    for pair, text in candidates.connections.items():
        children = [candidates.child_by_key.get(key, "") for key in pair]
        if children[0] != children[1] or children[0] not in replaced:
            for key, child in zip(pair, children, strict=True):
                if key in candidates.subjects and child not in replaced:
                    yield candidates.subjects[key]
            yield text
    for key, text in candidates.subjects.items():
        if candidates.child_by_key.get(key, "") not in replaced:
            yield text


def _take_first(texts: Iterable[str], tokens_by_text: Mapping[str, int], budget: int) -> tuple[Sequence[str], int]:
    """Return the first distinct texts that fit into a budget of tokens, and the tokens left over.

    The first text is always included, even if it is too long: some models accept it, and without it nothing can be
    written.
    """
    selected: dict[str, None] = {}
    for text in texts:
        if text in selected:
            continue
        if tokens_by_text[text] > budget and selected:
            break
        selected[text] = None
        budget -= tokens_by_text[text]
    return list(selected), max(budget, 0)
