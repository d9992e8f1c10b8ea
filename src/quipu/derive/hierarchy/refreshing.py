"""Refreshing: what a plan says is to be told is told, layer by layer, and committed as it comes."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from quipu.derive.derivation import DerivationContext
from quipu.derive.hierarchy.asking import Basis, Teller
from quipu.derive.hierarchy.planning import CUT, EXTRACTIVE, NAME, REFUSED, Between, Material, Plan
from quipu.derive.hierarchy.telling import told, told_between
from quipu.derive.writing import Calls, Work, write_all
from quipu.errors import OverBudget, QuipuError, Refused, Unavailable
from quipu.model.cluster import ClusterRelation, ClusterRelationUpdate, ClusterReport
from quipu.model.delta import Delta
from quipu.model.derivation import DerivationRecord, DerivationResult
from quipu.model.event import Progress
from quipu.ports.providers import LLM


@dataclass(frozen=True, slots=True)
class Failure:
    """What could not be told, and why."""

    of: Material | Between
    why: str


@dataclass(frozen=True, slots=True)
class _Task:
    """Something to be told by a model: from what; `basis` is None where something in it is not told yet."""

    of: Material | Between
    basis: Basis | None


_Written = ClusterReport | ClusterRelation | Failure
_Steps = Work[Material | Between, _Task, _Written]


@dataclass(slots=True, kw_only=True)
class Refresh:
    """One run over one plan; `n_outdated` texts were of facts that have changed meanwhile."""

    context: DerivationContext
    plan: Plan
    is_rebuild: bool = False
    n_outdated: int = 0
    failed: list[Failure] = field(default_factory=list)
    told: set[str] = field(default_factory=set)
    n_refused: int = 0
    calls: Calls | None = None

    async def run(self) -> None:
        """Write everything that is not as it should be; what is told by rules goes with the partition."""
        plan, llm = self.plan, self.context.llm
        materials = [each for each in plan.materials if self._is_to_be_told(each)]
        relations = [self._told_by_rule(each) for each in plan.betweens]
        reports = [] if llm else [told(each) for each in materials]
        made = DerivationRecord(name=NAME, identity=plan.identity, revision=plan.partition.revision)
        await self._commit(
            Delta(
                partition=plan.partition,
                reports=[*reports, *self._readdressed({each.cluster.id for each in materials})],
                cluster_relations=ClusterRelationUpdate(
                    relations=relations, removed=plan.gone, revision=plan.partition.revision
                ),
                derivations=[made],
            )
        )
        self.told |= {each.cluster for each in reports}
        if llm is not None:
            cut = [each for each, by_rule in zip(plan.betweens, relations, strict=True) if by_rule.model == CUT]
            await self._ask(llm, materials, cut)

    def report(self) -> DerivationResult:
        """Return what was done."""
        calls, n_made = self.calls, len(self.told)
        n_untold = sum(isinstance(each.of, Material) for each in self.failed)
        note = (
            f"{self.n_refused:,} aggregates or relations between them are told in sentences of the documents:"
            " no reply on them was of use"
        )
        return DerivationResult(
            name=NAME,
            n_built=n_made,
            n_unchanged=len(self.plan.partition.clusters) - n_made - n_untold,
            n_calls=calls.n_asked if calls else 0,
            n_reused=calls.n_reused if calls else 0,
            failed=tuple(sorted((_named(each.of), each.why) for each in self.failed)),
            stopped=str(calls.end) if calls and calls.end else "",
            notes=(note,) if self.n_refused else (),
        )

    def _is_to_be_told(self, material: Material) -> bool:
        """Say whether an aggregate is to be told anew: what a model wrote of the same words stands."""
        kept, llm = self.plan.kept.get(material.cluster.id), self.context.llm
        if kept is None or kept.inputs_hash != material.cluster.inputs_hash or kept.model == EXTRACTIVE:
            return True
        return self.is_rebuild and llm is not None

    def _told_by_rule(self, between: Between) -> ClusterRelation:
        """Return a relation without a model's help, or what a model wrote of the same words."""
        kept = self.plan.kept_relations.get((between.relation.source, between.relation.target))
        is_same = kept is not None and kept.inputs_hash == between.relation.inputs_hash and not self.is_rebuild
        if kept is not None and is_same and kept.model not in (EXTRACTIVE, CUT):
            return replace(between.relation, description=kept.description, model=kept.model)
        return told_between(between, self.context.tokenizer)

    def _readdressed(self, anew: set[str]) -> list[ClusterReport]:
        """Return the reports that stand and lead to other chunks than they did."""
        plan = self.plan
        hashes = {each.id: each.inputs_hash for each in plan.partition.clusters if each.id not in anew}
        standing = (each for _, each in sorted(plan.kept.items()) if each.inputs_hash == hashes.get(each.cluster))
        return [
            replace(each, chunks=plan.chunks[each.cluster])
            for each in standing
            if each.chunks != plan.chunks[each.cluster]
        ]

    async def _ask(self, llm: LLM, materials: Sequence[Material], betweens: Sequence[Between]) -> None:
        """Have the model tell of aggregates, the lowest layer first, then of what connects them."""
        calls = self.calls = Calls(llm, 2 * self.context.n_ahead)
        teller = Teller(
            ask=calls.ask,
            tokenizer=self.context.tokenizer,
            revision=self.plan.partition.revision,
            language=self.context.language,
        )
        levels = sorted({each.cluster.level for each in materials})
        layers: list[list[Material | Between]] = [[m for m in materials if m.cluster.level == at] for at in levels]
        layers.append(list(betweens))
        total, done = sum(map(len, layers)), 0
        for layer in layers:
            if calls.end is not None:
                return
            steps: _Steps = Work(read=self._read, write=_Writing(teller, llm.identity).write, keep=self._keep)

            def on_done(n: int, before: int = done) -> None:
                self.context.on_event(Progress(stage="aggregate", n_done=before + n, n_total=total))

            await write_all(layer, steps, n_at_once=2 * self.context.n_ahead, on_done=on_done)
            done += len(layer)

    async def _read(self, some: Sequence[Material | Between]) -> Sequence[_Task] | None:
        """Read what is told below, or at both ends, and whose words it is; None once no call is made any more."""
        if self.calls is None or self.calls.end is not None:
            return None
        about = [_about(each) for each in some]
        holding = [_clusters(each) for each in some]
        async with self.context.store.view() as view:
            ids = sorted({name for names in about for name in names})
            reports = {each.cluster: each for each in await view.cluster_reports(ids)}
            documents = await view.cluster_documents(sorted({name for names in holding for name in names}))
        hashes = {each.id: each.inputs_hash for each in self.plan.partition.clusters}
        current = {name: each for name, each in reports.items() if each.inputs_hash == hashes[name]}
        return [
            _Task(
                each,
                Basis(
                    below=[current[name] for name in names],
                    documents=sorted({document for name in held for document in documents.get(name, ())}),
                )
                if current.keys() >= set(names)
                else None,
            )
            for each, names, held in zip(some, about, holding, strict=True)
        ]

    async def _keep(self, arrived: Sequence[_Written]) -> None:
        """Commit what has been written."""
        reports = [each for each in arrived if isinstance(each, ClusterReport)]
        relations = [each for each in arrived if isinstance(each, ClusterRelation)]
        self.failed += [each for each in arrived if isinstance(each, Failure)]
        self.told |= {each.cluster for each in reports}
        authors = [*(each.model for each in reports), *(each.model for each in relations)]
        self.n_refused += sum(each.startswith(REFUSED) for each in authors)
        if reports or relations:
            crossings = (
                ClusterRelationUpdate(relations=relations, revision=self.plan.partition.revision) if relations else None
            )
            await self._commit(Delta(reports=reports, cluster_relations=crossings))

    async def _commit(self, delta: Delta) -> None:
        self.n_outdated += (await self.context.store.commit(delta)).n_outdated


@dataclass(frozen=True, slots=True)
class _Writing:
    """Writes one text with a model."""

    teller: Teller
    model: str

    async def write(self, task: _Task) -> _Written | None:
        """Return what was written, or why it was not; None where nothing is asked any more.

        What no reply on is of use is told by rule: so those above an aggregate can be told, and none is asked again.
        """
        of = task.of
        try:
            if task.basis is None:
                what = "one of its ends" if isinstance(of, Between) else "something in it"
                return Failure(of, f"{what} could not be told")
            if isinstance(of, Between):
                return await self.teller.relation(of, task.basis)
            return await self.teller.report(of, task.basis)
        except (Unavailable, OverBudget):
            return None
        except Refused:
            author = f"{REFUSED} {self.model}"
            if isinstance(of, Between):
                return replace(told_between(of, self.teller.tokenizer), model=author)
            return replace(told(of), model=author)
        except QuipuError as error:
            return Failure(of, str(error))


def _about(each: Material | Between) -> tuple[str, ...]:
    """Return the aggregates that have to be told before."""
    return each.groups if isinstance(each, Material) else (each.relation.source, each.relation.target)


def _clusters(each: Material | Between) -> tuple[str, ...]:
    """Return the aggregates whose documents' words it may hold."""
    return (each.cluster.id,) if isinstance(each, Material) else (each.relation.source, each.relation.target)


def _named(each: Material | Between) -> str:
    if isinstance(each, Between):
        return f"relation of {each.relation.source} and {each.relation.target}"
    return f"aggregate of {', '.join(entity.name for entity in each.tops[:3])}"
