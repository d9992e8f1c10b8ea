"""Hierarchy: layers of aggregates over entities with similar meaning, a report on each, and relations between them.

Source: Y. Zhang et al., "LeanRAG: Knowledge-Graph-Based Generation with Semantic Aggregation and Hierarchical
Retrieval" (2025), and its code. Deviations: ids are digests of content, never names; the shape depends on the vectors
of entities alone, never on texts of a model; the relations between the aggregates of a layer are found in one pass.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

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
from quipu.derive.derivation import Derivation, DerivationContext, RebuildEstimate
from quipu.derive.embedding import embed_stale
from quipu.derive.generation import GenerationSteps, ModelCalls, generate_all
from quipu.errors import OverBudget, QuipuError, Refused, Unavailable
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
from quipu.ports.providers import LLM
from quipu.ports.store import ReadView
from quipu.text.formatting import format_count

MAX_ATTEMPTS = 3  # while other processes change facts
_ROW_BYTES = 1_500  # of an aggregate with its report, its relations and its members
_INPUT_TOKENS, _OUTPUT_TOKENS = 2_500, 600  # of one call, approximately

TextInputs = AggregateInputs | ClusterRelationInputs


def make_derivation(
    grouping: Grouping = nearest_centres, check_installed: Callable[[], None] = lambda: None
) -> Derivation:
    """Return the derivation whose layers are clustered by `grouping` (see `quipu.algo.vector_clusters`).

    `check_installed` raises Unavailable if the library of the grouping is missing.
    """
    return Derivation(
        name=HIERARCHY,
        summary="layers of aggregates over similar entities, with a report on each (LeanRAG)",
        read_state=partial(read_state, grouping=grouping),
        refresh=partial(refresh, grouping=grouping),
        needs=("vectors", "topology"),
        asks_model=True,
        estimate_rebuild=estimate_rebuild,
        check_installed=check_installed,
    )


async def read_state(
    view: ReadView, context: DerivationContext, grouping: Grouping = nearest_centres
) -> DerivationState:
    """Return how many aggregates there are, and how many have changed or have no report.

    With a model, relations between aggregates that the model has yet to summarise count as stale too.
    """
    record = (await view.derivations()).get(HIERARCHY)
    counts = await view.cluster_counts(Hierarchy.AGGREGATES)
    n, n_layers = sum(count.n_clusters for count in counts), len(counts)
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
    # Entities without a vector would be left out.
    await embed_stale(context.store, context.embedder, context.on_event, context.on_embedded)
    async with context.store.view() as view:
        state = await read_state(view, context, grouping)
    if state.freshness is Freshness.FRESH and not rebuild:
        return DerivationResult(name=HIERARCHY, n_unchanged=state.n_items)
    for _ in range(MAX_ATTEMPTS):
        async with context.store.view() as view:
            plan = await plan_hierarchy(view, context, rebuild=rebuild, grouping=grouping)
        run = _HierarchyRun(context=context, plan=plan, is_rebuild=rebuild)
        await run.run()
        rebuild = False
        if not run.n_outdated:
            break
    return run.result()


@dataclass(frozen=True, slots=True)
class _FailedText:
    """A text that could not be written, and why; the next refresh tries again."""

    inputs: TextInputs
    error: str


@dataclass(frozen=True, slots=True)
class _TextTask:
    """A text for a model to write; `lower` is None if a report it builds on is missing."""

    inputs: TextInputs
    lower: LowerReports | None


_TextOutcome = ClusterReport | ClusterRelation | _FailedText


@dataclass(slots=True, kw_only=True)
class _HierarchyRun:
    """Carries out one plan; the store rejected `n_outdated` texts, because their facts had changed."""

    context: DerivationContext
    plan: HierarchyPlan
    is_rebuild: bool = False
    n_outdated: int = 0
    failed: list[_FailedText] = field(default_factory=list)
    reported: set[str] = field(default_factory=set)
    n_refused: int = 0
    calls: ModelCalls | None = None

    async def run(self) -> None:
        """Commit the partition with all texts that need no model, then the model's texts, layer by layer."""
        plan, llm = self.plan, self.context.llm
        report_inputs = [inputs for inputs in plan.reports if self._is_outdated(inputs)]
        relations = [self._relation_without_model(inputs) for inputs in plan.relations]
        reports = [] if llm else list(map(extract_aggregate_report, report_inputs))
        recited = self._reports_with_new_chunks({inputs.cluster.id for inputs in report_inputs})
        revision = plan.partition.revision
        await self._commit(
            Delta(
                partition=plan.partition,
                reports=[*reports, *recited],
                cluster_relations=ClusterRelationUpdate(
                    relations=relations, removed=plan.obsolete_ends, revision=revision
                ),
                derivations=[DerivationRecord(name=HIERARCHY, identity=plan.identity, revision=revision)],
            )
        )
        self.reported |= {report.cluster for report in reports}
        if llm is not None:
            pairs = zip(plan.relations, relations, strict=True)
            cut = [inputs for inputs, relation in pairs if relation.model == EXTRACTIVE_CUT]
            await self._write_with_model(llm, report_inputs, cut)

    def result(self) -> DerivationResult:
        """Return what the run did."""
        calls, n_made = self.calls, len(self.reported)
        n_failed_reports = sum(isinstance(failure.inputs, AggregateInputs) for failure in self.failed)
        note = (
            f"{self.n_refused:,} aggregates or relations between them are described by sentences of the documents,"
            " because no reply of the model was valid"
        )
        return DerivationResult(
            name=HIERARCHY,
            n_built=n_made,
            n_unchanged=len(self.plan.partition.clusters) - n_made - n_failed_reports,
            n_calls=calls.n_calls if calls else 0,
            n_reused=calls.n_reused if calls else 0,
            failed=tuple(sorted((_text_name(failure.inputs), failure.error) for failure in self.failed)),
            stopped=str(calls.stop_error) if calls and calls.stop_error else "",
            notes=(note,) if self.n_refused else (),
        )

    def _is_outdated(self, inputs: AggregateInputs) -> bool:
        """Return whether a report must be written; a model's report with the same input hash stays."""
        report = self.plan.stored_reports.get(inputs.cluster.id)
        if report is None or report.inputs_hash != inputs.cluster.inputs_hash or report.model == EXTRACTIVE:
            return True
        return self.is_rebuild and self.context.llm is not None

    def _relation_without_model(self, inputs: ClusterRelationInputs) -> ClusterRelation:
        """Return the stored relation if a model wrote it from the same inputs, else an extractive one."""
        stored = self.plan.stored_relations.get((inputs.relation.source, inputs.relation.target))
        is_same = stored is not None and stored.inputs_hash == inputs.relation.inputs_hash and not self.is_rebuild
        if stored is not None and is_same and stored.model not in (EXTRACTIVE, EXTRACTIVE_CUT):
            return replace(inputs.relation, description=stored.description, model=stored.model)
        return extract_cluster_relation(inputs, self.context.tokenizer)

    def _reports_with_new_chunks(self, rewritten: set[str]) -> list[ClusterReport]:
        """Return the current reports that now cite other chunks, without those that are rewritten anyway."""
        plan = self.plan
        hash_by_id = {cluster.id: cluster.inputs_hash for cluster in plan.partition.clusters}
        return [
            replace(report, chunks=plan.chunks[cluster_id])
            for cluster_id, report in sorted(plan.stored_reports.items())
            if cluster_id not in rewritten
            and report.inputs_hash == hash_by_id.get(cluster_id)
            and report.chunks != plan.chunks[cluster_id]
        ]

    async def _write_with_model(
        self, llm: LLM, reports: Sequence[AggregateInputs], relations: Sequence[ClusterRelationInputs]
    ) -> None:
        """Write the reports on aggregates, the lowest layer first, and then the relations between them."""
        n_concurrent = 2 * self.context.n_ahead
        calls = self.calls = ModelCalls(llm, n_concurrent)
        writer = AggregateWriter(
            ask=calls.ask,
            tokenizer=self.context.tokenizer,
            revision=self.plan.partition.revision,
            language=self.context.language,
        )
        steps: GenerationSteps[TextInputs, _TextTask, _TextOutcome] = GenerationSteps(
            read=self._read, write=partial(_write_text, writer, llm.identity), store=self._store
        )
        levels = sorted({inputs.cluster.level for inputs in reports})
        layers: list[list[TextInputs]] = [
            [inputs for inputs in reports if inputs.cluster.level == level] for level in levels
        ]
        layers.append(list(relations))
        n_total, n_before = sum(map(len, layers)), 0
        for layer in layers:
            if calls.stop_error is not None:
                return

            def on_done(n_done: int, n_before: int = n_before) -> None:
                self.context.on_event(Progress(stage="aggregate", n_done=n_before + n_done, n_total=n_total))

            await generate_all(layer, steps, n_concurrent=n_concurrent, on_done=on_done)
            n_before += len(layer)

    async def _read(self, batch: Sequence[TextInputs]) -> Sequence[_TextTask] | None:
        """Read the reports that texts build on, and the documents of their aggregates; None after a stop error."""
        if self.calls is None or self.calls.stop_error is not None:
            return None
        lower_ids = sorted({cluster_id for inputs in batch for cluster_id in _lower_ids(inputs)})
        covered_ids = sorted({cluster_id for inputs in batch for cluster_id in _covered_ids(inputs)})
        async with self.context.store.view() as view:
            reports = await view.cluster_reports(lower_ids)
            documents_by_id = await view.cluster_documents(covered_ids)
        hash_by_id = {cluster.id: cluster.inputs_hash for cluster in self.plan.partition.clusters}
        current = {report.cluster: report for report in reports if report.inputs_hash == hash_by_id[report.cluster]}
        tasks = []
        for inputs in batch:
            lower = None
            if current.keys() >= set(_lower_ids(inputs)):
                covered = _covered_ids(inputs)
                documents = {document for cluster_id in covered for document in documents_by_id.get(cluster_id, ())}
                lower = LowerReports(
                    reports=[current[cluster_id] for cluster_id in _lower_ids(inputs)], documents=sorted(documents)
                )
            tasks.append(_TextTask(inputs, lower))
        return tasks

    async def _store(self, outcomes: Sequence[_TextOutcome]) -> None:
        reports = [outcome for outcome in outcomes if isinstance(outcome, ClusterReport)]
        relations = [outcome for outcome in outcomes if isinstance(outcome, ClusterRelation)]
        self.failed += [outcome for outcome in outcomes if isinstance(outcome, _FailedText)]
        self.reported |= {report.cluster for report in reports}
        models = [*(report.model for report in reports), *(relation.model for relation in relations)]
        self.n_refused += sum(model.startswith(EXTRACTIVE_AFTER_REFUSAL) for model in models)
        if reports or relations:
            revision = self.plan.partition.revision
            update = ClusterRelationUpdate(relations=relations, revision=revision) if relations else None
            await self._commit(Delta(reports=reports, cluster_relations=update))

    async def _commit(self, delta: Delta) -> None:
        self.n_outdated += (await self.context.store.commit(delta)).n_outdated


async def _write_text(writer: AggregateWriter, model: str, task: _TextTask) -> _TextOutcome | None:
    """Return the text, or why it could not be written; None once no request can succeed any more.

    If the model refuses, the text is extractive: so reports of higher layers can be written, and the model is not asked
    again.
    """
    inputs = task.inputs
    is_relation = isinstance(inputs, ClusterRelationInputs)
    if task.lower is None:
        missing = "one of its ends" if is_relation else "an aggregate in it"
        return _FailedText(inputs, f"the report on {missing} is missing")
    try:
        if isinstance(inputs, ClusterRelationInputs):
            return await writer.write_relation(inputs, task.lower)
        return await writer.write_report(inputs, task.lower)
    except (Unavailable, OverBudget):
        return None
    except Refused:
        label = f"{EXTRACTIVE_AFTER_REFUSAL} {model}"
        if isinstance(inputs, ClusterRelationInputs):
            return replace(extract_cluster_relation(inputs, writer.tokenizer), model=label)
        return replace(extract_aggregate_report(inputs), model=label)
    except QuipuError as error:
        return _FailedText(inputs, str(error))


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


DERIVATION = make_derivation()
