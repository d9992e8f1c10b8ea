"""Reports: what each community is about, in a few paragraphs, by a model or from sentences of the documents.

Source: D. Edge et al., "From Local to Global: A Graph RAG Approach" (2024). Reports are written from the finest
communities up, so that reports on sub-communities can replace their notes. A report is written again only if facts
about its community changed.

Differences from Microsoft GraphRAG's code:
- 2,000 words and 5 to 10 findings are asked for → `MAX_WORDS` words and `MAX_FINDINGS` findings at most, because more
  reports fit a context and a batch.
- Claims about the entities are among the notes → they are not, because a report then changes only with entities and
  relations.
- Relations are ordered by the degrees of their ends in the whole graph → within the community, because nothing outside
  may change a report.
- Notes are cut to 8,000 tokens before reports on sub-communities could replace them → these replace them over
  `MAX_NOTE_TOKENS`, because the paper describes it so.
- Only entities of the largest component have communities → those of all components have, because the others would be
  invisible.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from quipu.derive.derivation import Derivation, DerivationContext, RebuildEstimate
from quipu.derive.generation import ModelCalls, TextGeneration
from quipu.derive.imported_communities import load_reports, read_imported_reports
from quipu.derive.report_inputs import MAX_NOTE_TOKENS, CommunityTree, ReportInputs, read_report_inputs
from quipu.derive.report_writer import (
    EXTRACTIVE_AFTER_FAILURE,
    EXTRACTIVE_REPORT,
    EXTRACTIVE_SINGLE_ENTITY,
    MAX_OUTPUT_TOKENS,
    REPORTS_IDENTITY,
    extract_report,
    write_report,
)
from quipu.errors import Refused, TooLong
from quipu.model.cluster import ClusterReport, Hierarchy
from quipu.model.delta import Delta
from quipu.model.derivation import (
    COMMUNITIES,
    REPORTS,
    DerivationRecord,
    DerivationResult,
    DerivationState,
    Freshness,
    RefreshCost,
)
from quipu.model.event import Progress
from quipu.ports.store import ReadView
from quipu.text.formatting import format_count

# For estimates.
_RULES_TOKENS, _ENTITY_TOKENS = 600, 150  # of a request: its rules, and the notes on each entity
_ENTITIES_PER_REPORT = 3  # measured with all levels: 608 entities gave 176 reports, 128 gave 48
_REPORT_BYTES = 2_000


async def read_state(view: ReadView, context: DerivationContext) -> DerivationState:
    """Return how many reports there are, how many are missing or outdated, and what it would cost to write these."""
    record, counts = (await view.derivations()).get(REPORTS), await view.derivation_counts(COMMUNITIES)
    is_rebuild = record is not None and record.identity != REPORTS_IDENTITY
    stale_ids = await _not_imported(view) if is_rebuild else await _unreported(view, context)
    stale = await view.clusters(Hierarchy.COMMUNITIES, stale_ids)
    sizes = [cluster.n_entities for cluster in stale if cluster.n_entities > 1]
    if not counts.n_items:  # no communities yet
        sizes = [_ENTITIES_PER_REPORT] * ((await view.counts()).entities // _ENTITIES_PER_REPORT)
    freshness = Freshness.STALE if stale else Freshness.FRESH
    n_reports = sum(level.n_reports for level in counts.levels)
    return DerivationState(
        name=REPORTS,
        freshness=Freshness.MISSING if record is None else freshness,
        contents=format_count(n_reports, "report") if record is not None else "",
        n_items=n_reports,
        n_stale=len(stale),
        n_bytes=_REPORT_BYTES * n_reports,
        cost=_cost(sizes, len(stale) or len(sizes), has_model=context.llm is not None),
    )


async def estimate_rebuild(view: ReadView, context: DerivationContext) -> RebuildEstimate:
    """Return the approximate cost of all reports on the present communities; cached replies make it cheaper."""
    clusters = await view.clusters(Hierarchy.COMMUNITIES, with_members=False)
    imported_ids = {report.cluster for report in await read_imported_reports(view, clusters)}
    sizes = [cluster.n_entities for cluster in clusters if cluster.id not in imported_ids]
    cost = _cost([size for size in sizes if size > 1], len(sizes), has_model=context.llm is not None)
    return RebuildEstimate(
        cost=cost, note=f"{format_count(len(imported_ids), 'imported report')} kept" if imported_ids else ""
    )


def _cost(sizes: Sequence[int], n_texts: int, *, has_model: bool) -> RefreshCost:
    if not has_model:
        return RefreshCost(n_texts=n_texts)
    return RefreshCost(
        n_calls=len(sizes),
        input_tokens=sum(_RULES_TOKENS + min(MAX_NOTE_TOKENS, _ENTITY_TOKENS * size) for size in sizes),
        output_tokens=len(sizes) * MAX_OUTPUT_TOKENS // 2,
        n_texts=n_texts,
    )


async def refresh(context: DerivationContext, rebuild: bool) -> DerivationResult:
    """Write the reports that are missing or outdated, or all but imported ones, and commit them as they are written."""
    async with context.store.view() as view:
        old_record, revision = (await view.derivations()).get(REPORTS), view.revision
        tree = CommunityTree(await view.clusters(Hierarchy.COMMUNITIES))
        is_other_identity = old_record is not None and old_record.identity != REPORTS_IDENTITY
        is_rebuild = rebuild or is_other_identity
        stale_ids = await _not_imported(view) if is_rebuild else await _unreported(view, context)
    record = Delta(derivations=[DerivationRecord(name=REPORTS, identity=REPORTS_IDENTITY, revision=revision)])
    if old_record is None:
        await context.store.commit(record)
    calls = ModelCalls(context.llm, 2 * context.n_ahead) if context.llm is not None else None
    generation: TextGeneration[str, ReportInputs, ClusterReport] = TextGeneration(
        context.store.commit, calls, context.on_event, Progress(stage=REPORTS, n_done=0, n_total=len(stale_ids))
    )
    maker = _ReportMaker(
        context=context,
        tree=tree,
        calls=calls,
        imported_by_hash=await load_reports([tree.by_id[cluster_id] for cluster_id in stale_ids], context.store),
        unreported=set(stale_ids),
    )
    for level in sorted({tree.by_id[cluster_id].level for cluster_id in stale_ids}, reverse=True):
        await generation.generate(maker.ready_ids(level), maker)
    if is_other_identity and not maker.unreported:
        await context.store.commit(record)
    n_unchanged = len(tree.by_id) - len(stale_ids)
    return replace(
        generation.result(REPORTS),
        n_built=generation.n_stored,
        n_unchanged=n_unchanged,
        failed=tuple(sorted([*generation.failed, *maker.failed])),
        notes=tuple(maker.notes(generation.n_stored, n_imported=n_unchanged if is_rebuild else 0)),
    )


async def _unreported(view: ReadView, context: DerivationContext) -> list[str]:
    """Return the communities without a current report; an extractive one does not count if there is a model."""
    return await view.pending(REPORTS, not_by=EXTRACTIVE_REPORT if context.llm is not None else "")


async def _not_imported(view: ReadView) -> list[str]:
    """Return the communities whose reports a rebuild writes: all without a current imported report."""
    clusters = await view.clusters(Hierarchy.COMMUNITIES, with_members=False)
    imported_ids = {report.cluster for report in await read_imported_reports(view, clusters)}
    return sorted(cluster.id for cluster in clusters if cluster.id not in imported_ids)


@dataclass(slots=True, kw_only=True)
class _ReportMaker:
    """Makes the reports of one refresh.

    `unreported` are communities without a current report so far; a parent of one is not attempted. `failed` are those
    with an extractive report because the model did not write a valid one.
    """

    context: DerivationContext
    tree: CommunityTree
    calls: ModelCalls | None
    imported_by_hash: Mapping[str, ClusterReport]
    unreported: set[str]
    failed: list[tuple[str, str]] = field(default_factory=list)
    n_restored: int = 0

    def ready_ids(self, level: int) -> list[str]:
        """Return the communities of a level that can be reported on, because all below them are."""
        return [
            cluster_id
            for cluster_id in sorted(self.unreported)
            if self.tree.by_id[cluster_id].level == level and self.unreported.isdisjoint(self.tree.children(cluster_id))
        ]

    async def read(self, ids: Sequence[str]) -> Sequence[tuple[str, ReportInputs]]:
        """Return the inputs of reports; communities that changed since the run began are left to the next refresh."""
        async with self.context.store.view() as view:
            clusters = await view.clusters(Hierarchy.COMMUNITIES, ids)
            hash_by_id = {cluster.id: cluster.inputs_hash for cluster in clusters if cluster.inputs_hash}
            unchanged = [
                cluster_id
                for cluster_id in ids
                if hash_by_id.get(cluster_id) == self.tree.by_id[cluster_id].inputs_hash
            ]
            topology = await self.context.topology.open(view)
            all_inputs = await read_report_inputs(unchanged, self.tree, view, topology, self.context.tokenizer)
        return list(zip(unchanged, all_inputs, strict=True))

    async def write(self, cluster_id: str, inputs: ReportInputs) -> ClusterReport:
        """Return an imported report, the model's, or an extractive one where neither is possible."""
        if imported := self.imported_by_hash.get(inputs.cluster.inputs_hash):
            self.n_restored += 1
            return replace(imported, cluster=cluster_id)
        if inputs.cluster.n_entities == 1:
            return extract_report(inputs, EXTRACTIVE_SINGLE_ENTITY)
        if self.calls is None:
            return extract_report(inputs)
        try:
            return await write_report(inputs, self.calls.ask, self.context.language, self.context.prompts)
        except (Refused, TooLong) as error:
            self.failed.append((cluster_id, str(error)))
            return extract_report(inputs, EXTRACTIVE_AFTER_FAILURE)

    def to_delta(self, reports: Sequence[ClusterReport]) -> Delta:
        """Return the change that records reports, which count as written from then on."""
        self.unreported.difference_update(report.cluster for report in reports)
        return Delta(reports=reports)

    def notes(self, n_built: int, *, n_imported: int) -> Iterator[str]:
        """Yield what the result should say about imported and extractive reports."""
        if n_imported:
            yield f"{format_count(n_imported, 'imported report')} kept"
        if self.n_restored:
            yield (f"{format_count(self.n_restored, 'imported report')} restored: facts are as they were at the import")
        if self.calls is None and n_built > self.n_restored:
            yield "written without a language model: names and sentences of the documents"


DERIVATION = Derivation(
    name=REPORTS,
    summary="a report on each community, by a language model or from sentences of the documents",
    read_state=read_state,
    refresh=refresh,
    needs=(COMMUNITIES,),
    asks_model=True,
    estimate_rebuild=estimate_rebuild,
)
