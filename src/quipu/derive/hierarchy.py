"""Hierarchy: layers of aggregates over entities with similar meaning, a report on each, and relations between them.

Source: Y. Zhang et al., "LeanRAG: Knowledge-Graph-Based Generation with Semantic Aggregation and Hierarchical
Retrieval" (2025), and its code.

Differences from the paper and its code:
- UMAP to two dimensions, then Gaussian mixtures → nearest centres, `CLUSTER_SIZE` members on average; mixtures without
  UMAP as an option, because one more document then changes few aggregates.
- A higher layer embeds the descriptions that a model wrote → it takes the mean of the members' vectors, because the
  shape must not depend on a model's words.
- A model writes a relation between aggregates with more than τ relations → if their notes exceed `TOKENS_PER_LAYER`
  tokens for each layer from its own up, because the authors' code does so.
- Aggregates are known by name → by a digest of their content, because two may get the same name.
- Relations of each pair of aggregates are searched for → those of a layer are found in one pass, because the number of
  pairs grows with the square.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from quipu.algo.vector_clusters import CLUSTER_SIZE, Grouping, nearest_centres
from quipu.derive.aggregate_inputs import (
    EXTRACTIVE,
    EXTRACTIVE_AFTER_REFUSAL,
    EXTRACTIVE_CUT,
    AggregateInputs,
    ClusterRelationInputs,
    HierarchyPlan,
    has_same_method,
    plan_hierarchy,
)
from quipu.derive.aggregate_writer import (
    AggregateWriter,
    LowerReports,
    extract_aggregate_report,
    extract_cluster_relation,
)
from quipu.derive.derivation import Derivation, DerivationContext, RebuildEstimate, embed_stale
from quipu.derive.generation import ModelCalls, TextGeneration
from quipu.errors import NotFound, Refused
from quipu.model.cluster import ClusterRelation, ClusterRelationUpdate, ClusterReport, Hierarchy
from quipu.model.delta import Delta
from quipu.model.derivation import (
    HIERARCHY,
    DerivationRecord,
    DerivationResult,
    DerivationState,
    Freshness,
    RefreshCost,
)
from quipu.model.event import Progress
from quipu.ports.providers import Tokenizer
from quipu.ports.store import ReadView
from quipu.text.formatting import format_count

MAX_ATTEMPTS = 3  # while other processes change facts
MAX_VIEWS = 10  # while they add facts that have no vectors yet
_ROW_BYTES = 1_500  # of an aggregate with its report, its relations and its members
_INPUT_TOKENS, _OUTPUT_TOKENS = 2_500, 600  # of one call, approximately

TextInputs = AggregateInputs | ClusterRelationInputs


async def read_state(
    view: ReadView, context: DerivationContext, grouping: Grouping = nearest_centres
) -> DerivationState:
    """Return how many aggregates there are, and how many have changed or have no report.

    With a model, relations between aggregates that the model has yet to summarise count as stale too.
    """
    record = (await view.derivations()).get(HIERARCHY)
    counts = await view.derivation_counts(HIERARCHY)
    n, n_layers = counts.n_items, len(counts.levels)
    if record is None:
        cost = _cost(await _n_expected(view), context)
        return DerivationState(name=HIERARCHY, freshness=Freshness.MISSING, cost=cost)
    holds = f"{format_count(n, 'aggregate')} in {format_count(n_layers, 'layer')}"
    if not has_same_method(record.identity, context.embedder.identity, grouping):
        return DerivationState(
            name=HIERARCHY,
            freshness=Freshness.STALE,
            contents=f"{holds}, made with another method",
            n_items=n,
            n_stale=n,
            n_bytes=n * _ROW_BYTES,
            cost=_cost(await _n_expected(view), context),
        )
    unreported = await view.pending(HIERARCHY, not_by=EXTRACTIVE if context.llm else "")
    n_cut = len(await view.cluster_relations(by=EXTRACTIVE_CUT)) if context.llm else 0
    is_stale = bool(unreported) or n_cut > 0 or await _has_changed(view, record)
    return DerivationState(
        name=HIERARCHY,
        freshness=Freshness.STALE if is_stale else Freshness.FRESH,
        contents=holds,
        n_items=n + n_cut,
        n_stale=len(unreported) + n_cut,
        n_bytes=n * _ROW_BYTES,
        cost=_cost(len(unreported), context, n_relations=n_cut),
    )


async def estimate_rebuild(view: ReadView, context: DerivationContext) -> RebuildEstimate:
    """Return the approximate cost of all texts on the present aggregates; cached replies make it cheaper."""
    ids = [cluster.id for cluster in await view.clusters(Hierarchy.AGGREGATES, with_members=False)]
    relations = await view.cluster_relations(ids) if context.llm else []
    n_cut = sum(relation.model != EXTRACTIVE for relation in relations)
    return RebuildEstimate(cost=_cost(len(ids), context, n_relations=n_cut))


async def _has_changed(view: ReadView, record: DerivationRecord) -> bool:
    changes = await view.changes_since(record.revision)
    return changes is None or len(changes.chunks) > 0


async def _n_expected(view: ReadView) -> int:
    """Return approximately how many aggregates a hierarchy of all entities has."""
    return -(-(await view.counts()).entities // (CLUSTER_SIZE - 1))


def _cost(n_reports: int, context: DerivationContext, *, n_relations: int = 0) -> RefreshCost:
    """Return the cost of reports, and of relations too long to be listed without a model."""
    if context.llm is None:
        return RefreshCost(n_texts=n_reports)
    n_calls = n_reports + n_relations
    return RefreshCost(
        n_calls=n_calls,
        input_tokens=n_calls * _INPUT_TOKENS,
        output_tokens=n_calls * _OUTPUT_TOKENS,
        n_texts=n_reports,
    )


async def refresh(context: DerivationContext, rebuild: bool, grouping: Grouping = nearest_centres) -> DerivationResult:
    """Bring the hierarchy up to date, or write all of it again. If facts change meanwhile, it is planned again."""
    async with _view_with_vectors(context) as view:
        state = await read_state(view, context, grouping)
    if state.freshness is Freshness.FRESH and not rebuild:
        return DerivationResult(name=HIERARCHY, n_unchanged=state.n_items)
    for _ in range(MAX_ATTEMPTS):
        async with _view_with_vectors(context) as view:
            plan = await plan_hierarchy(view, context, rebuild=rebuild, grouping=grouping)
        result, n_outdated = await _carry_out(plan, context, rebuild)
        rebuild = False
        if not n_outdated:
            break
    return result


@asynccontextmanager
async def _view_with_vectors(context: DerivationContext) -> AsyncIterator[ReadView]:
    """Open a view in which every entity has its vector: one without would be left out of the aggregates.

    Others may add facts after the last vector was computed. Then the view is opened again, up to `MAX_VIEWS` times.
    """
    for attempt in reversed(range(MAX_VIEWS)):
        async with context.store.view() as view:
            before = view.revision
        n_embedded = await embed_stale(context.store, context.embedder, context.on_event, context.on_embedded)
        async with context.store.view() as view:
            if attempt == 0 or (n_embedded == 0 and view.revision == before):
                yield view
                return


async def _carry_out(plan: HierarchyPlan, context: DerivationContext, is_rebuild: bool) -> tuple[DerivationResult, int]:
    """Commit the partition with all texts that need no model, then the model's texts, layer by layer.

    Returns the result, and how many texts the store rejected because their facts had changed.
    """
    revision = plan.partition.revision
    reports = [inputs for inputs in plan.reports if _must_write(plan, inputs, is_rebuild and context.llm is not None)]
    extractive = list(map(extract_aggregate_report, reports)) if context.llm is None else []
    relations = [_relation_without_model(plan, inputs, context.tokenizer, is_rebuild) for inputs in plan.relations]
    cut = [
        inputs for inputs, relation in zip(plan.relations, relations, strict=True) if relation.model == EXTRACTIVE_CUT
    ]
    calls = ModelCalls(context.llm, 2 * context.n_ahead) if context.llm is not None else None
    generation: TextGeneration[TextInputs, LowerReports | None, ClusterReport | ClusterRelation] = TextGeneration(
        context.store.commit,
        calls,
        context.on_event,
        Progress(stage="aggregate", n_done=0, n_total=len(reports) + len(cut)),
    )
    await generation.commit(
        Delta(
            partition=plan.partition,
            reports=[*extractive, *_reports_with_new_chunks(plan, {inputs.cluster.id for inputs in reports})],
            cluster_relations=ClusterRelationUpdate(relations=relations, removed=plan.obsolete_ends, revision=revision),
            derivations=[DerivationRecord(name=HIERARCHY, identity=plan.identity, revision=revision)],
        )
    )
    n_built, n_refused = len(extractive), 0
    if calls is not None and context.llm is not None:
        writer = _make_writer(calls, context, revision)
        maker = _AggregateMaker(plan=plan, context=context, writer=writer, llm_identity=context.llm.identity)
        for level in sorted({inputs.cluster.level for inputs in reports}):
            await generation.generate([inputs for inputs in reports if inputs.cluster.level == level], maker)
        await generation.generate(cut, maker)
        n_built, n_refused = maker.n_reports, maker.n_refused
    n_failed_reports = sum(isinstance(inputs, AggregateInputs) for inputs, _ in generation.failed)
    note = (
        f"{n_refused:,} aggregates or relations between them are described by sentences of the documents,"
        " because no reply of the model was valid"
    )
    result = replace(
        generation.result(HIERARCHY),
        n_built=n_built,
        n_unchanged=len(plan.partition.clusters) - n_built - n_failed_reports,
        failed=tuple(sorted((_text_name(inputs), error) for inputs, error in generation.failed)),
        notes=(note,) if n_refused else (),
    )
    return result, generation.n_outdated


def _make_writer(calls: ModelCalls, context: DerivationContext, revision: int) -> AggregateWriter:
    return AggregateWriter(
        ask=calls.ask,
        tokenizer=context.tokenizer,
        revision=revision,
        language=context.language,
        prompts=context.prompts,
    )


def _must_write(plan: HierarchyPlan, inputs: AggregateInputs, is_rebuild: bool) -> bool:
    """Return whether a report must be written; a model's report with the same input hash stays."""
    report = plan.stored_reports.get(inputs.cluster.id)
    if report is None or report.inputs_hash != inputs.cluster.inputs_hash or report.model == EXTRACTIVE:
        return True
    return is_rebuild


def _relation_without_model(
    plan: HierarchyPlan, inputs: ClusterRelationInputs, tokenizer: Tokenizer, is_rebuild: bool
) -> ClusterRelation:
    """Return the stored relation if a model wrote it from the same inputs, else an extractive one."""
    stored = plan.stored_relations.get((inputs.relation.source, inputs.relation.target))
    is_same = stored is not None and stored.inputs_hash == inputs.relation.inputs_hash and not is_rebuild
    if stored is not None and is_same and stored.model not in (EXTRACTIVE, EXTRACTIVE_CUT):
        return replace(inputs.relation, description=stored.description, model=stored.model)
    return extract_cluster_relation(inputs, tokenizer)


def _reports_with_new_chunks(plan: HierarchyPlan, rewritten: set[str]) -> list[ClusterReport]:
    """Return the current reports that now cite other chunks, without those that are rewritten anyway."""
    hash_by_id = {cluster.id: cluster.inputs_hash for cluster in plan.partition.clusters}
    return [
        replace(report, chunks=plan.chunks[cluster_id])
        for cluster_id, report in sorted(plan.stored_reports.items())
        if cluster_id not in rewritten
        and report.inputs_hash == hash_by_id.get(cluster_id)
        and report.chunks != plan.chunks[cluster_id]
    ]


@dataclass(slots=True, kw_only=True)
class _AggregateMaker:
    """Makes the reports on aggregates and the relations between them, with a model; `n_refused` are extractive."""

    plan: HierarchyPlan
    context: DerivationContext
    writer: AggregateWriter
    llm_identity: str
    n_reports: int = 0
    n_refused: int = 0

    async def read(self, batch: Sequence[TextInputs]) -> Sequence[tuple[TextInputs, LowerReports | None]]:
        """Read the reports that texts build on, and the documents of their aggregates; None if a report is missing."""
        lower_ids = sorted({cluster_id for inputs in batch for cluster_id in _lower_ids(inputs)})
        covered_ids = sorted({cluster_id for inputs in batch for cluster_id in _covered_ids(inputs)})
        async with self.context.store.view() as view:
            reports = await view.cluster_reports(lower_ids)
            documents_by_id = await view.cluster_documents(covered_ids)
        hash_by_id = {cluster.id: cluster.inputs_hash for cluster in self.plan.partition.clusters}
        current = {report.cluster: report for report in reports if report.inputs_hash == hash_by_id[report.cluster]}

        def lower(inputs: TextInputs) -> LowerReports | None:
            if not current.keys() >= set(_lower_ids(inputs)):
                return None
            documents = {
                document for cluster_id in _covered_ids(inputs) for document in documents_by_id.get(cluster_id, ())
            }
            return LowerReports(
                reports=[current[cluster_id] for cluster_id in _lower_ids(inputs)], documents=sorted(documents)
            )

        return [(inputs, lower(inputs)) for inputs in batch]

    async def write(self, inputs: TextInputs, lower: LowerReports | None) -> ClusterReport | ClusterRelation:
        """Return the text; it is extractive if the model refuses.

        So reports of higher layers can be written, and the model is not asked again.
        """
        is_relation = isinstance(inputs, ClusterRelationInputs)
        if lower is None:
            raise NotFound(f"the report on {'one of its ends' if is_relation else 'an aggregate in it'} is missing")
        try:
            if isinstance(inputs, ClusterRelationInputs):
                return await self.writer.write_relation(inputs, lower)
            return await self.writer.write_report(inputs, lower)
        except Refused:
            self.n_refused += 1
            label = f"{EXTRACTIVE_AFTER_REFUSAL} {self.llm_identity}"
            if isinstance(inputs, ClusterRelationInputs):
                return replace(extract_cluster_relation(inputs, self.writer.tokenizer), model=label)
            return replace(extract_aggregate_report(inputs), model=label)

    def to_delta(self, texts: Sequence[ClusterReport | ClusterRelation]) -> Delta:
        """Return the change that records reports and relations."""
        reports = [text for text in texts if isinstance(text, ClusterReport)]
        relations = [text for text in texts if isinstance(text, ClusterRelation)]
        self.n_reports += len(reports)
        revision = self.plan.partition.revision
        update = ClusterRelationUpdate(relations=relations, revision=revision) if relations else None
        return Delta(reports=reports, cluster_relations=update)


def _lower_ids(inputs: TextInputs) -> tuple[str, ...]:
    """Return the aggregates whose reports a text builds on."""
    return inputs.children if isinstance(inputs, AggregateInputs) else (inputs.relation.source, inputs.relation.target)


def _covered_ids(inputs: TextInputs) -> tuple[str, ...]:
    """Return the aggregates a text is about."""
    if isinstance(inputs, AggregateInputs):
        return (inputs.cluster.id,)
    return inputs.relation.source, inputs.relation.target


def _text_name(inputs: TextInputs) -> str:
    if isinstance(inputs, ClusterRelationInputs):
        return f"relation of {inputs.relation.source} and {inputs.relation.target}"
    return f"aggregate of {', '.join(entity.name for entity in inputs.top_entities[:3])}"


DERIVATION = Derivation(
    name=HIERARCHY,
    summary="layers of aggregates over similar entities, with a report on each (LeanRAG)",
    read_state=read_state,
    refresh=refresh,
    needs=("vectors", "topology"),
    asks_model=True,
    estimate_rebuild=estimate_rebuild,
)
