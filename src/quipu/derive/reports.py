"""Reports: what each community is about, in a few paragraphs; written by a model, or quoted where there is none.

From the finest communities up, so that the reports on parts can stand in for them. One is written again only where
something in its community changed.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from quipu.derive.communities import NAME as COMMUNITIES
from quipu.derive.derivation import Derivation, DerivationContext, RebuildEstimate
from quipu.derive.imported import find_reports, standing_reports
from quipu.derive.quoting import QUOTED, QUOTED_ALONE, quoted
from quipu.derive.report_material import Material, Tree, read_material
from quipu.derive.report_notes import MAX_TOKENS
from quipu.derive.reporting import MAX_OUTPUT_TOKENS, Written, write_report
from quipu.derive.writing import Calls, Work, write_all
from quipu.errors import OverBudget, QuipuError, Unavailable
from quipu.model.cluster import Cluster, ClusterReport, Hierarchy
from quipu.model.delta import Delta
from quipu.model.derivation import DerivationRecord, DerivationResult, DerivationState, Freshness, RefreshCost
from quipu.model.event import Progress
from quipu.ports.store import ReadView
from quipu.prompts.report import VERSION
from quipu.text.formatting import format_count

NAME = "reports"
IDENTITY = f"reports/1 prompt {VERSION} {QUOTED}"

# For estimates: what a request has beside its notes, and notes for each entity, in tokens; the share of communities.
_RULES_TOKENS, _ENTITY_TOKENS = 600, 150
_ENTITIES_EACH = 3  # with communities of all levels: 608 entities came to 176 reports, 128 to 48
_REPORT_BYTES = 2_000


@dataclass(frozen=True, slots=True)
class _Failed:
    """A report that could not be written, and why; it will be tried again."""

    cluster: str
    error: str


async def read_state(view: ReadView, context: DerivationContext) -> DerivationState:
    """Return how many reports there are, how many are missing or outdated, and what writing them would cost."""
    made, counts = (await view.derivations()).get(NAME), await view.cluster_counts(Hierarchy.COMMUNITIES)
    is_anew = made is not None and made.identity != IDENTITY
    waiting = await _to_write_anew(view) if is_anew else await _unreported(view, context)
    clusters = await view.clusters(Hierarchy.COMMUNITIES, waiting)
    sizes = [each.n_entities for each in clusters if each.n_entities > 1]
    if not counts:  # no communities yet
        sizes = [_ENTITIES_EACH] * ((await view.counts()).entities // _ENTITIES_EACH)
    freshness = Freshness.STALE if clusters else Freshness.FRESH
    n_reports = sum(each.n_reports for each in counts)
    return DerivationState(
        name=NAME,
        freshness=Freshness.MISSING if made is None else freshness,
        contents=format_count(n_reports, "report") if made is not None else "",
        n_items=n_reports,
        n_stale=len(clusters),
        n_bytes=_REPORT_BYTES * n_reports,
        cost=_cost(sizes, len(clusters) or len(sizes), is_asking=context.llm is not None),
    )


async def estimate_rebuild(view: ReadView, context: DerivationContext) -> RebuildEstimate:
    """Return about what writing all reports would cost: on the communities there are, before these are made anew.

    Replies that are known from before cost nothing.
    """
    clusters = await view.clusters(Hierarchy.COMMUNITIES, with_members=False)
    stay = {each.cluster for each in await standing_reports(view, clusters)}
    sizes = [each.n_entities for each in clusters if each.id not in stay]
    cost = _cost([size for size in sizes if size > 1], len(sizes), is_asking=context.llm is not None)
    return RebuildEstimate(cost=cost, note=f"{len(stay):,} imported stay" if stay else "")


def _cost(sizes: Sequence[int], n_texts: int, *, is_asking: bool) -> RefreshCost:
    if not is_asking:
        return RefreshCost(n_texts=n_texts)
    return RefreshCost(
        n_calls=len(sizes),
        input_tokens=sum(_RULES_TOKENS + min(MAX_TOKENS, _ENTITY_TOKENS * size) for size in sizes),
        output_tokens=len(sizes) * MAX_OUTPUT_TOKENS // 2,
        n_texts=n_texts,
    )


async def refresh(context: DerivationContext, rebuild: bool) -> DerivationResult:
    """Write the reports that are missing or outdated, or all, and commit them as they come."""
    async with context.store.view() as view:
        made, revision = (await view.derivations()).get(NAME), view.revision
        tree = Tree(await view.clusters(Hierarchy.COMMUNITIES))
        is_anew = rebuild or (made is not None and made.identity != IDENTITY)
        wanted = await _to_write_anew(view) if is_anew else await _unreported(view, context)
    note = Delta(derivations=[DerivationRecord(name=NAME, identity=IDENTITY, revision=revision)])
    if made is None:
        await context.store.commit(note)
    imported = await find_reports([tree.by_id[each] for each in wanted], context.store)
    run = _Run(context, tree, len(wanted), Calls(context.llm, 2 * context.n_ahead) if context.llm else None, imported)
    for level in sorted({tree.by_id[each].level for each in wanted}, reverse=True):
        await run.write_level([each for each in wanted if tree.by_id[each].level == level])
    if made is not None and made.identity != IDENTITY and not run.missing:
        await context.store.commit(note)
    n_kept = len(tree.by_id) - len(wanted)
    return run.report(n_kept=n_kept, n_imported=n_kept if is_anew else 0)


async def _unreported(view: ReadView, context: DerivationContext) -> list[str]:
    """Return what waits for a report; where there is a model, also what was quoted for want of one."""
    return await view.pending(NAME, not_by=QUOTED if context.llm is not None else "")


async def _to_write_anew(view: ReadView) -> list[str]:
    """Return what a report is written on where all are: not those that were imported, while nothing of them changes."""
    clusters = await view.clusters(Hierarchy.COMMUNITIES, with_members=False)
    stay = {each.cluster for each in await standing_reports(view, clusters)}
    return sorted(each.id for each in clusters if each.id not in stay)


@dataclass(slots=True)
class _Run:
    """One pass over all that waits. `missing` are those without a report at its end: none above them can be written."""

    context: DerivationContext
    tree: Tree
    total: int
    calls: Calls | None
    imported: Mapping[str, ClusterReport] = field(default_factory=dict)  # by the hash of what each is on
    missing: set[str] = field(default_factory=set)
    failed: list[tuple[str, str]] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)

    async def write_level(self, ids: Sequence[str]) -> None:
        """Write the reports of communities of one level, of which none holds another."""
        ready = [each for each in ids if not self.missing.intersection(self.tree.below(each))]
        self.missing.update(ids)
        before = self.done["reported"]

        def on_done(n: int) -> None:
            self.done["reported"] = before + n
            self.context.on_event(Progress(stage=NAME, n_done=before + n, n_total=self.total))

        work: Work[str, Material, Written | _Failed] = Work(read=self._read, write=self._write, keep=self._keep)
        await write_all(ready, work, n_at_once=2 * self.context.n_ahead, on_done=on_done)

    def report(self, *, n_kept: int, n_imported: int) -> DerivationResult:
        """Return what was done."""
        calls = self.calls
        stay = f"{n_imported:,} imported stay as they came" if n_imported else ""
        back = f"{self.done['back']:,} imported fit again, and are back" if self.done["back"] else ""
        notes = () if calls else ("written without a language model: names and sentences of the documents",)
        return DerivationResult(
            name=NAME,
            n_built=self.done["made"],
            n_unchanged=n_kept,
            n_calls=calls.n_asked if calls else 0,
            n_reused=calls.n_reused if calls else 0,
            failed=tuple(sorted(self.failed)),
            stopped=str(calls.end) if calls and calls.end else "",
            notes=(*filter(None, (stay, back)), *(notes if self.done["made"] > self.done["back"] else ())),
        )

    async def _read(self, ids: Sequence[str]) -> Sequence[Material] | None:
        """Return what some reports are made from; what has changed meanwhile would be outdated when it is written."""
        if self.calls is not None and self.calls.end is not None:
            return None
        async with self.context.store.view() as view:
            now = {each.id: each.inputs_hash for each in await view.clusters(Hierarchy.COMMUNITIES, ids)}
            same = [each for each in ids if now.get(each) and now[each] == self.tree.by_id[each].inputs_hash]
            topology = await self.context.topology.open(view)
            return await read_material(same, self.tree, view, topology, self.context.tokenizer)

    async def _write(self, material: Material) -> Written | _Failed | None:
        if came := self.imported.get(material.cluster.inputs_hash):
            return Written(report=replace(came, cluster=material.cluster.id))
        if self.calls is None or _is_alone(material.cluster):
            return Written(report=quoted(material, QUOTED_ALONE if _is_alone(material.cluster) else QUOTED))
        try:
            return await write_report(material, self.calls.ask, self.context.language)
        except (Unavailable, OverBudget):
            return None
        except QuipuError as error:
            return _Failed(material.cluster.id, str(error))

    async def _keep(self, arrived: Sequence[Written | _Failed]) -> None:
        written = [each for each in arrived if isinstance(each, Written)]
        self.failed += [(each.cluster, each.error) for each in arrived if isinstance(each, _Failed)]
        self.failed += [(each.report.cluster, each.failure) for each in written if each.failure]
        if not written:
            return
        committed = await self.context.store.commit(Delta(reports=[each.report for each in written]))
        self.done["made"] += len(written) - committed.n_outdated
        self.done["back"] += sum(each.report.inputs_hash in self.imported for each in written)
        self.missing.difference_update(each.report.cluster for each in written)


def _is_alone(cluster: Cluster) -> bool:
    return cluster.n_entities == 1


DERIVATION = Derivation(
    name=NAME,
    summary="what each community is about, by a language model, or in sentences of the documents",
    read_state=read_state,
    refresh=refresh,
    needs=(COMMUNITIES,),
    asks_model=True,
    estimate_rebuild=estimate_rebuild,
)
