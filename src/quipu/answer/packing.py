"""Packing: as much of the evidence as the token budgets hold, best first; what does not fit is listed."""

from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, TypeVar

from quipu.algo.similarity import n_fitting, round_robin
from quipu.answer.context import (
    ContextSections,
    PackedEvidence,
    Passage,
    SecondarySource,
    entity_line,
    join_messages,
    relation_line,
)
from quipu.model.cluster import ClusterReport, report_text
from quipu.model.evidence import DroppedHits, Evidence, Hit, KeyPoint
from quipu.model.graph import Chunk, Claim, Entity, Relation
from quipu.model.ids import relation_ends, relation_id
from quipu.model.query import Query
from quipu.ports.providers import Tokenizer
from quipu.ports.store import ReadView
from quipu.prompts import answer as prompt
from quipu.prompts.instructions import make_boundary

T = TypeVar("T")

BATCH = 200  # rows read at once, so that a section far over its budget is not read to its end
REPORT_BATCH = 50
MAX_SOURCE_CHUNKS = 20  # chunks that a secondary source rests on, the most telling: enough to find a sentence to cite
_ANY_BOUNDARY = make_boundary("")  # all boundaries have the same length


async def pack_evidence(query: Query, evidence: Evidence, view: ReadView, tokenizer: Tokenizer) -> PackedEvidence:
    """Return what fits the budgets: points, reports, entities, relations, claims, then passages in the rest.

    The total budget includes rules, question and history. Claims share the budget of relations. Where there are no
    passages, points and reports may take all of the total. Otherwise passages keep their share of it, or what the first
    of them needs; what they leave of that goes to the other sections. Each section ends at the first text that does not
    fit, so nothing is shown before something that was ranked above it.
    """
    available = query.budget.total - tokenizer.count(_empty_prompt(query, evidence))
    n_kept = await _n_kept_for_passages(evidence.chunks, available, query.budget.min_passage_share, view, tokenizer)
    remaining = available - n_kept
    budget = min(query.budget.reports, remaining) if evidence.chunks else remaining
    points, n_point_tokens, dropped_points = await _pack_points(evidence.points, view, budget, tokenizer)
    reports = await _pack_reports(
        evidence.reports, view, budget - n_point_tokens, tokenizer, first_number=1 + len(points)
    )
    remaining -= n_point_tokens + reports.n_tokens
    entities = await _fill(_entity_section(view), evidence.entities, min(query.budget.entities, remaining), tokenizer)
    remaining -= entities.n_tokens
    relations = await _fill(
        _relation_section(view), evidence.relations, min(query.budget.relations, remaining), tokenizer
    )
    remaining -= relations.n_tokens
    number = 1 + len(points) + len(reports.rows)
    claim_budget = min(query.budget.relations - relations.n_tokens, remaining)
    claims = await _fill(_claim_section(view), evidence.claims, claim_budget, tokenizer, first_number=number)
    remaining -= claims.n_tokens
    first = number + len(claims.rows)
    chunks = await _fill(_passage_section(view), evidence.chunks, remaining + n_kept, tokenizer, first_number=first)
    dropped = [dropped_points, *(part.dropped for part in (reports, entities, relations, claims, chunks))]
    return PackedEvidence(
        points=points,
        reports=reports.rows,
        entities=entities.rows,
        relations=relations.rows,
        claims=tuple(SecondarySource.of_claim(place, claim) for place, claim in enumerate(claims.rows, number)),
        passages=tuple(Passage(number=place, chunk=chunk) for place, chunk in enumerate(chunks.rows, first)),
        dropped=tuple(hits for hits in dropped if hits.ids),
    )


async def _n_kept_for_passages(
    hits: Sequence[Hit], available: int, share: float, view: ReadView, tokenizer: Tokenizer
) -> int:
    """Return how many tokens no other section may use: those of the passages that fit the share, or of the first."""
    if not hits or available <= 0 or not share:
        return 0
    limit = int(share * available)
    within = await _fill(_passage_section(view), hits, limit, tokenizer)
    if within.rows:
        return limit if within.dropped.ids else within.n_tokens
    return (await _fill(_passage_section(view), hits[:1], available, tokenizer)).n_tokens


def _empty_prompt(query: Query, evidence: Evidence) -> str:
    """Return the prompt without the evidence: rules, headings, history, question."""
    blank = [" "]
    headings = ContextSections(
        points=blank if evidence.points else (),
        reports=blank if evidence.reports else (),
        entities=blank,
        relations=blank,
        claims=blank if evidence.claims else (),
        passages=blank,
    ).text(_ANY_BOUNDARY)
    return join_messages(prompt.render(query, headings, boundary=_ANY_BOUNDARY))


async def _pack_points(
    points: Sequence[KeyPoint], view: ReadView, budget: int, tokenizer: Tokenizer
) -> tuple[tuple[SecondarySource, ...], int, DroppedHits]:
    """Return the points that fit, their tokens, and the others.

    A point is shown only if the view has all reports and chunks it rests on: text about a removed document is therefore
    not shown.
    """
    report_ids = sorted({report for point in points for report in point.reports})
    report_by_cluster = (
        {report.cluster: report for report in await view.cluster_reports(report_ids)} if report_ids else {}
    )
    chunk_ids = sorted({chunk for point in points for chunk in point.chunks})
    present = {chunk.id for chunk in await view.chunks(chunk_ids)} if chunk_ids else set[str]()
    complete = [
        point for point in points if report_by_cluster.keys() >= set(point.reports) and present.issuperset(point.chunks)
    ]
    sources = [_source_of_point(number, point, report_by_cluster) for number, point in enumerate(complete, 1)]
    costs = [_cost(source, tokenizer) for source in sources]
    n_points = n_fitting(costs, budget)
    ids = tuple(f"point {source.number}" for source in sources[n_points:])
    dropped = DroppedHits(section="points", budget=max(budget, 0), ids=ids)
    return tuple(sources[:n_points]), sum(costs[:n_points]), dropped


def _source_of_point(number: int, point: KeyPoint, report_by_cluster: Mapping[str, ClusterReport]) -> SecondarySource:
    report_chunks = round_robin([report_by_cluster[cluster].chunks for cluster in point.reports], lambda chunk: chunk)
    return SecondarySource(
        number=number,
        text=point.text,
        score=point.score,
        chunks=tuple(dict.fromkeys((*point.chunks, *report_chunks)))[:MAX_SOURCE_CHUNKS],
    )


@dataclass(frozen=True, slots=True)
class _FilledSection(Generic[T]):
    rows: tuple[T, ...]
    n_tokens: int
    dropped: DroppedHits


async def _pack_reports(
    hits: Sequence[Hit], view: ReadView, budget: int, tokenizer: Tokenizer, *, first_number: int
) -> _FilledSection[SecondarySource]:
    """Return the reports that fit. The first that does not fit is shown without its last findings, if that helps."""
    sources: list[SecondarySource] = []
    packed_ids: set[str] = set()
    n_tokens = 0
    for start in range(0, len(hits), REPORT_BATCH):
        reports = await view.cluster_reports([hit.id for hit in hits[start : start + REPORT_BATCH]])
        whole = [
            _source_of_report(number, report) for number, report in enumerate(reports, first_number + len(sources))
        ]
        costs = [_cost(source, tokenizer) for source in whole]
        n_whole = n_fitting(costs, budget - n_tokens)
        sources += whole[:n_whole]
        packed_ids.update(report.cluster for report in reports[:n_whole])
        n_tokens += sum(costs[:n_whole])
        if n_whole < len(reports):
            report = reports[n_whole]
            if shorter := _shortened(first_number + len(sources), report, budget - n_tokens, tokenizer):
                sources.append(shorter)
                packed_ids.add(report.cluster)
                n_tokens += _cost(shorter, tokenizer)
            break
    ids = tuple(hit.id for hit in hits if hit.id not in packed_ids)
    return _FilledSection(tuple(sources), n_tokens, DroppedHits(section="reports", budget=max(budget, 0), ids=ids))


def _source_of_report(number: int, report: ClusterReport) -> SecondarySource:
    return SecondarySource(
        number=number,
        text=report_text(replace(report, title="")),
        title=report.title or report.cluster,
        chunks=report.chunks[:MAX_SOURCE_CHUNKS],
    )


def _shortened(number: int, report: ClusterReport, budget: int, tokenizer: Tokenizer) -> SecondarySource | None:
    """Return the report with as many findings as fit, None where not even its summary does."""
    for n_findings in reversed(range(len(report.findings))):
        source = _source_of_report(number, replace(report, findings=report.findings[:n_findings]))
        if _cost(source, tokenizer) <= budget:
            return source
    return None


def _cost(source: SecondarySource, tokenizer: Tokenizer) -> int:
    return tokenizer.count(f"{source.block(_ANY_BOUNDARY)}\n\n")


@dataclass(frozen=True, slots=True)
class _Section(Generic[T]):
    """A kind of evidence: its name, how rows are read by id, the id of a row, and how it is shown under a number.

    Of rows with the same `content`, only the first is shown, as of the passages of a document and of its copies.
    """

    name: str
    read: Callable[[Sequence[str]], Awaitable[list[T]]]
    identity: Callable[[T], str]
    render: Callable[[int, T], str]
    content: Callable[[T], Hashable]


def _entity_section(view: ReadView) -> _Section[Entity]:
    def line(_: int, entity: Entity) -> str:
        return entity_line(entity)

    return _Section("entities", view.entities, lambda entity: entity.key, line, lambda entity: entity.key)


def _relation_section(view: ReadView) -> _Section[Relation]:
    def line(_: int, relation: Relation) -> str:
        return relation_line(relation)

    return _Section("relations", partial(read_relations, view), _relation_id, line, _relation_id)


def _relation_id(relation: Relation) -> str:
    return relation.id


def _claim_section(view: ReadView) -> _Section[Claim]:
    def block(number: int, claim: Claim) -> str:
        return SecondarySource.of_claim(number, claim).block(_ANY_BOUNDARY)

    return _Section("claims", view.claims, lambda claim: claim.id, block, lambda claim: claim.id)


def _passage_section(view: ReadView) -> _Section[Chunk]:
    def block(number: int, chunk: Chunk) -> str:
        return Passage(number=number, chunk=chunk).block(_ANY_BOUNDARY)

    def content(chunk: Chunk) -> Hashable:
        return chunk.text_hash, chunk.title, chunk.headings, chunk.header

    return _Section("chunks", view.chunks, lambda chunk: chunk.id, block, content)


async def _fill(
    section: _Section[T], hits: Sequence[Hit], budget: int, tokenizer: Tokenizer, *, first_number: int = 1
) -> _FilledSection[T]:
    packed: list[T] = []
    n_tokens = 0
    id_by_content: dict[Hashable, str] = {}
    repeated: set[str] = set()
    for start in range(0, len(hits), BATCH):
        read = await section.read([hit.id for hit in hits[start : start + BATCH]])
        rows = [
            row
            for row in read
            if id_by_content.setdefault(section.content(row), section.identity(row)) == section.identity(row)
        ]
        repeated.update({section.identity(row) for row in read} - {section.identity(row) for row in rows})
        texts = [section.render(number, row) for number, row in enumerate(rows, first_number + len(packed))]
        costs = [tokenizer.count(f"{text}\n\n") for text in texts]
        n_rows = n_fitting(costs, budget - n_tokens)
        packed += rows[:n_rows]
        n_tokens += sum(costs[:n_rows])
        if n_rows < len(rows):
            break
    packed_ids = repeated.union(map(section.identity, packed))
    ids = tuple(hit.id for hit in hits if hit.id not in packed_ids)
    return _FilledSection(tuple(packed), n_tokens, DroppedHits(section=section.name, budget=max(budget, 0), ids=ids))


async def read_relations(view: ReadView, ids: Sequence[str]) -> list[Relation]:
    """Return these relations in their order: of two entities, or of two aggregates whose reports the view has.

    A relation of aggregates is named after their reports.
    """
    relation_by_id = {relation.id: relation for relation in await view.relations(ids)}
    missing = [identifier for identifier in ids if identifier not in relation_by_id and identifier.count(" -- ") == 1]
    ends = sorted({end for identifier in missing for end in relation_ends(identifier)})
    if ends:
        title_by_cluster = {report.cluster: report.title for report in await view.cluster_reports(ends)}
        for relation in await view.cluster_relations(sorted(title_by_cluster)):
            identifier = relation_id(relation.source, relation.target)
            relation_by_id[identifier] = Relation(
                id=identifier,
                source=relation.source,
                target=relation.target,
                source_name=title_by_cluster[relation.source],
                target_name=title_by_cluster[relation.target],
                keywords=(),
                description=relation.description,
                weight=relation.weight,
                n_mentions=relation.n_relations,
                n_chunks=0,
            )
    return [relation_by_id[identifier] for identifier in dict.fromkeys(ids) if identifier in relation_by_id]
