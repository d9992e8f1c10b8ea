"""Explanation: why a chunk is in the evidence, from the evidence and the graph alone, for every strategy."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from quipu.errors import InvalidInput, NotFound
from quipu.model.evidence import Chain, Evidence, ExplainedChunk, Explanation, Hit, Seed, Step, SupportingHit
from quipu.model.graph import Chunk, Claim, Entity, Relation
from quipu.model.ids import relation_ends
from quipu.model.query import Filter, Query
from quipu.ports.store import OccurrenceKind, ReadView
from quipu.text.formatting import format_count, format_times

N_EXPLAINED = 3  # chunks that are explained where none is named
MAX_GROUNDS = 10  # entities, relations and claims, each; points and reports where no passages are ranked
MAX_CHAINS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkChoice:
    """Which chunk to explain: the one with this id or rank (from 1); without either the first `N_EXPLAINED`."""

    chunk: str = ""
    rank: int | None = None

    def __post_init__(self) -> None:
        if self.rank is not None and not isinstance(self.rank, int):
            raise InvalidInput(f"rank = {self.rank!r} is not a whole number.", remedy="Use 1 for the first passage.")
        if self.chunk and self.rank is not None:
            raise InvalidInput("A chunk is named by its id or by its rank, not by both.", remedy="Give one of them.")


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceGraph:
    """What a view holds of the entities, relations, claims and reports of evidence, and which chunks lead to them.

    `entities` are by key, the others by id. `n_by_chunk_of_entity` tells, for each entity, which chunks name it and how
    often; `chunks_of_relation` which chunks state a relation; `reports` hold title and chunks. `names` are for display.
    """

    evidence: Evidence
    entities: Mapping[str, Entity]
    relations: Mapping[str, Relation]
    n_by_chunk_of_entity: Mapping[str, Mapping[str, int]]
    chunks_of_relation: Mapping[str, frozenset[str]]
    claims: Mapping[str, Claim]
    reports: Mapping[str, tuple[str, frozenset[str]]]
    names: Mapping[str, str]


async def explain(query: Query, evidence: Evidence, view: ReadView, choice: ChunkChoice) -> Explanation:
    """Return why chunks are in the evidence for a query.

    Raises NotFound for a chunk that does not exist or that the filter hides, and for a rank beyond the evidence.
    """
    chosen = _choose(evidence, query.strategy, choice)
    graph = await read_evidence_graph(evidence, view)
    chunk_by_id = {chunk.id: chunk for chunk in await view.chunks([hit.id for _, hit in chosen])}
    if choice.chunk and choice.chunk not in chunk_by_id:
        raise NotFound(
            f"There is no chunk {choice.chunk!r}{' that the filter allows' if query.filter != Filter() else ''}.",
            remedy="`quipu show document ID` lists chunk ids.",
        )
    return Explanation(
        question=query.text,
        strategy=query.strategy,
        revision=view.revision,
        n_chunks=len(evidence.chunks),
        n_claims=len(evidence.claims),
        n_reports=len(evidence.reports),
        n_points=len(evidence.points),
        ranks_passages=evidence.ranks_passages,
        searches_index=evidence.searches_index,
        seeds=evidence.seeds,
        chunks=tuple(_explain(rank, hit, chunk_by_id[hit.id], graph) for rank, hit in chosen if hit.id in chunk_by_id),
        other_evidence=() if evidence.ranks_passages or choice.chunk else tuple(points_and_reports(graph)),
        names=tuple(sorted(graph.names.items())),
        notes=evidence.notes,
    )


def _choose(evidence: Evidence, strategy: str, choice: ChunkChoice) -> list[tuple[int, Hit]]:
    """Return the hits to explain with their ranks; a chunk that is not in the evidence has rank 0."""
    ranked = list(enumerate(evidence.chunks, 1))
    if choice.chunk:
        absent = Hit(id=choice.chunk, score=0.0, reason="not among the evidence")
        return [(rank, hit) for rank, hit in ranked if hit.id == choice.chunk] or [(0, absent)]
    if choice.rank is None:
        return ranked[:N_EXPLAINED]
    if not 1 <= choice.rank <= len(ranked):
        raise _rank_not_found(evidence, strategy, choice.rank)
    return ranked[choice.rank - 1 : choice.rank]


def _rank_not_found(evidence: Evidence, strategy: str, rank: int) -> NotFound:
    if not evidence.searches_index:
        return NotFound(
            f"The strategy '{strategy}' looks nothing up, so there is no passage of rank {rank}.",
            remedy="Choose another strategy; `quipu strategies` lists them.",
        )
    if not evidence.ranks_passages:
        return NotFound(
            f"The strategy '{strategy}' ranks no passages.", remedy="Leave out the rank to see what it found instead."
        )
    if evidence.chunks:
        remedy = f"It ends with rank {len(evidence.chunks)}."
        return NotFound(f"The evidence has no passage of rank {rank}.", remedy=remedy)
    return NotFound(
        f"The evidence has no passage of rank {rank}: none was found.",
        remedy="Leave out the rank to see where the search began.",
    )


def _explain(rank: int, hit: Hit, chunk: Chunk, graph: EvidenceGraph) -> ExplainedChunk:
    return ExplainedChunk(
        id=chunk.id,
        document_id=chunk.document_id,
        title=chunk.title,
        text=chunk.text,
        rank=rank,
        score=hit.score,
        reason=hit.reason,
        supporting_hits=tuple(grounds_of_chunk(chunk.id, graph)),
        chains=chains_to_chunk(chunk.id, graph),
    )


async def read_evidence_graph(evidence: Evidence, view: ReadView) -> EvidenceGraph:
    """Return what a view holds of evidence; ids that the view does not have are left out."""
    matches = [scored.id for seed in evidence.seeds for scored in seed.matches]
    relation_ids = _unique([hit.id for hit in evidence.relations], matches)
    relations = {relation.id: relation for relation in await view.relations(relation_ids)}
    ends = [end for relation in relations for end in relation_ends(relation)]
    keys = _unique([hit.id for hit in evidence.entities], matches, ends)
    entities = {entity.key: entity for entity in await view.entities(keys)}
    chunks_of_relation = await view.occurrences(OccurrenceKind.RELATION, list(relations))
    reports = await view.cluster_reports(_unique([hit.id for hit in evidence.reports], matches))
    names = {relation.id: f"{relation.source_name} – {relation.target_name}" for relation in relations.values()}
    names |= {report.cluster: report.title for report in reports if report.title}
    return EvidenceGraph(
        evidence=evidence,
        entities=entities,
        relations=relations,
        n_by_chunk_of_entity=await view.occurrences(OccurrenceKind.ENTITY, list(entities)),
        chunks_of_relation={relation: frozenset(chunks) for relation, chunks in chunks_of_relation.items()},
        claims={claim.id: claim for claim in await view.claims([hit.id for hit in evidence.claims])},
        reports={report.cluster: (report.title, frozenset(report.chunks)) for report in reports},
        names={**names, **{entity.key: entity.name for entity in entities.values()}},
    )


def _unique(*lists: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(identifier for ids in lists for identifier in ids))


def grounds_of_chunk(chunk: str, graph: EvidenceGraph) -> Iterator[SupportingHit]:
    """Yield the evidence that leads to a chunk, by kind; within a kind the best ranked first."""
    evidence = graph.evidence
    n_named = {key: n_by_chunk[chunk] for key, n_by_chunk in graph.n_by_chunk_of_entity.items() if chunk in n_by_chunk}
    stated = {relation for relation, chunks in graph.chunks_of_relation.items() if chunk in chunks}
    title_by_report = {report: title for report, (title, chunks) in graph.reports.items() if chunk in chunks}
    claimed = {claim.id: claim.description for claim in graph.claims.values() if claim.chunk_id == chunk}
    for rank, hit in islice(_ranked(evidence.entities, n_named), MAX_GROUNDS):
        yield _ground("entity", rank, hit, graph, f"mentioned {format_times(n_named[hit.id])}")
    for rank, hit in islice(_ranked(evidence.relations, stated), MAX_GROUNDS):
        yield _ground("relation", rank, hit, graph, "stated here")
    for rank, hit in islice(_ranked(evidence.claims, claimed), MAX_GROUNDS):
        yield _ground("claim", rank, hit, graph, "claimed here", name=claimed[hit.id])
    for rank, hit in _ranked(evidence.reports, title_by_report):
        yield _ground("report", rank, hit, graph, "cites this passage", name=title_by_report[hit.id])
    for rank, point in enumerate(evidence.points, 1):
        if chunk in point.chunks or not title_by_report.keys().isdisjoint(point.reports):
            how = "drawn from this passage" if chunk in point.chunks else "drawn from a report that cites this passage"
            yield SupportingHit(
                kind="point", id=str(rank), name=point.text, rank=rank, score=point.score, reason="", connection=how
            )


def points_and_reports(graph: EvidenceGraph) -> Iterator[SupportingHit]:
    """Yield the first points, then the first reports of the evidence, each with what it was drawn from."""
    for rank, point in enumerate(graph.evidence.points[:MAX_GROUNDS], 1):
        n, noun = (len(point.reports), "report") if point.reports else (len(point.chunks), "passage")
        how = f"drawn from {format_count(n, noun)}"
        yield SupportingHit(
            kind="point", id=str(rank), name=point.text, rank=rank, score=point.score, reason="", connection=how
        )
    for rank, hit in enumerate(graph.evidence.reports[:MAX_GROUNDS], 1):
        title, chunks = graph.reports.get(hit.id, ("", frozenset()))
        yield _ground("report", rank, hit, graph, f"cites {format_count(len(chunks), 'passage')}", name=title)


def _ranked(hits: Sequence[Hit], ids: Mapping[str, object] | set[str]) -> Iterator[tuple[int, Hit]]:
    return ((rank, hit) for rank, hit in enumerate(hits, 1) if hit.id in ids)


def _ground(kind: str, rank: int, hit: Hit, graph: EvidenceGraph, how: str, *, name: str = "") -> SupportingHit:
    return SupportingHit(
        kind=kind,
        id=hit.id,
        name=name or graph.names.get(hit.id, hit.id),
        rank=rank,
        score=hit.score,
        reason=hit.reason,
        connection=how,
    )


def chains_to_chunk(chunk: str, graph: EvidenceGraph) -> tuple[Chain, ...]:
    """Return the shortest chains of relations of the evidence that lead from a seed to a chunk.

    Seeds that matched the chunk itself come first, then chains by their number of steps, then by score.
    """
    targets = {key for key, n_by_chunk in graph.n_by_chunk_of_entity.items() if chunk in n_by_chunk}
    for relation, chunks in graph.chunks_of_relation.items():
        targets.update(relation_ends(relation) if chunk in chunks else ())
    relations_by_entity = _relations_by_entity(graph)
    direct: list[Chain] = []
    indirect: list[Chain] = []
    for seed in graph.evidence.seeds:
        score = next((scored.score for scored in seed.matches if scored.id.partition("#")[0] == chunk), None)
        if score is not None:  # the seed matched the chunk or one of its sentences
            direct.append(Chain(seed=seed.text, kind=seed.kind, score=score))
        else:
            indirect += _shortest_chain(seed, targets, relations_by_entity, graph)
    indirect.sort(key=lambda chain: (len(chain.steps), -chain.score))
    return (*direct, *indirect)[:MAX_CHAINS]


def _relations_by_entity(graph: EvidenceGraph) -> dict[str, list[tuple[str, str]]]:
    """Return, for each entity, its neighbours over relations of the evidence, with the relation, best first."""
    neighbours: dict[str, list[tuple[str, str]]] = {}
    for relation in graph.relations:
        source, target = relation_ends(relation)
        neighbours.setdefault(source, []).append((target, relation))
        neighbours.setdefault(target, []).append((source, relation))
    return neighbours


def _shortest_chain(
    seed: Seed, targets: set[str], neighbours: Mapping[str, Sequence[tuple[str, str]]], graph: EvidenceGraph
) -> list[Chain]:
    """Return the shortest chain from a match of the seed to a target, by breadth-first search; [] where none exists."""
    previous: dict[str, tuple[str, str] | None] = {}
    score_by_start: dict[str, float] = {}
    for scored in seed.matches:
        for key in relation_ends(scored.id) if scored.id in graph.relations else (scored.id,):
            if key in graph.entities and key not in previous:
                previous[key], score_by_start[key] = None, scored.score
    queue = deque(previous)
    while queue:
        key = queue.popleft()
        if key in targets:
            start, steps = _steps_to(key, previous, graph)
            name = graph.names.get(start, start)
            return [Chain(seed=seed.text, kind=seed.kind, score=score_by_start[start], start=name, steps=steps)]
        for neighbour, relation in neighbours.get(key, ()):
            if neighbour not in previous:
                previous[neighbour] = (key, relation)
                queue.append(neighbour)
    return []


def _steps_to(
    key: str, previous: Mapping[str, tuple[str, str] | None], graph: EvidenceGraph
) -> tuple[str, tuple[Step, ...]]:
    """Return the entity where the search began and the steps from there to `key`."""
    steps: list[Step] = []
    while (before := previous[key]) is not None:
        source, relation = before
        steps.append(
            Step(
                source=graph.names.get(source, source),
                relation=relation,
                target=graph.names.get(key, key),
                description=graph.relations[relation].description,
            )
        )
        key = source
    return key, tuple(reversed(steps))
