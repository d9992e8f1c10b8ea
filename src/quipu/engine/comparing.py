"""Comparing: one question put to several strategies, each told by what it found, what it took and what it said."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from quipu.engine.answering import Asker
from quipu.errors import QuipuError
from quipu.model.answer import Answer, Comparison, Overlap, RankedChunk, StrategyResult
from quipu.model.chat import Role
from quipu.model.evidence import Evidence
from quipu.model.query import Query
from quipu.ports.store import ReadView
from quipu.retrieve import STRATEGIES, strategy_named
from quipu.retrieve.strategy import Strategy

MAX_LISTED = 10  # passages and entities of each
Ask = Callable[[Query], Awaitable[Answer]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparer:
    """Puts one question to several strategies by `ask`, as `asker` would answer it."""

    ask: Ask
    asker: Asker

    async def compare(self, query: Query, names: Sequence[str] = ()) -> Comparison:
        """Return what these strategies, by default all that can be run, make of the question, in their order.

        Where services are asked all are run at once, as most of the time is waiting; else one after the other, so that
        the time of each is its own. Raises NotFound for a name there is no strategy of.
        """
        left_out: list[tuple[str, str]] = []
        chosen = [strategy_named(name) for name in dict.fromkeys(names)]
        for strategy in () if chosen else STRATEGIES.values():
            why = await self._why_not(strategy, may_make=query.auto_refresh)
            left_out += [(strategy.name, why)] if why else []
        chosen = chosen or [each for each in STRATEGIES.values() if each.name not in dict(left_out)]
        rows = await self._asked([replace(query, strategy=each.name) for each in chosen])
        async with self.asker.store.view(query.filter) as view:
            rows = [await self._told(row, view) for row in rows]
        return Comparison(question=query.text, compared=tuple(rows), overlaps=overlaps(rows), left_out=tuple(left_out))

    async def _why_not(self, strategy: Strategy, *, may_make: bool) -> str:
        """Return why a strategy cannot be run as things stand, "" where it can or what it lacks may be made first."""
        if not strategy.looks_up and self.asker.models.llm(Role.ANSWER) is None:
            return "It looks nothing up, and there is no language model to answer."
        missing = () if may_make else await self.asker.needs.missing(strategy)
        return str(self.asker.needs.error(strategy, missing)) if missing else ""

    async def _asked(self, queries: Sequence[Query]) -> list[StrategyResult]:
        if self.asker.models.asks_services:
            return list(await asyncio.gather(*map(self._row, queries)))
        for query in queries:  # once unheeded: what is loaded when it is first used is nobody's time
            await self._row(query)
        return [await self._row(query) for query in queries]

    async def _row(self, query: Query) -> StrategyResult:
        try:
            answer = await self.ask(query)
        except QuipuError as error:
            return StrategyResult(strategy=query.strategy, error=str(error))
        evidence = answer.trace.evidence
        return StrategyResult(
            strategy=query.strategy,
            answer=answer,
            n_chunks=len(evidence.chunks),
            n_entities=len(evidence.entities),
            n_relations=len(evidence.relations),
            n_claims=len(evidence.claims),
            n_reports=len(evidence.reports),
            n_context_tokens=self.asker.tokenizer.count(answer.context),
            n_calls=answer.trace.n_calls,
            ms=round(sum(timing.ms for timing in answer.trace.timings), 1),
        )

    async def _told(self, row: StrategyResult, view: ReadView) -> StrategyResult:
        """Return the row with its first passages, entities and reports by name."""
        if row.answer is None:
            return row
        evidence = row.answer.trace.evidence
        entities = await view.entities([hit.id for hit in evidence.entities[:MAX_LISTED]])
        reports = await view.cluster_reports([hit.id for hit in evidence.reports[:MAX_LISTED]])
        return replace(
            row,
            chunks=await _first_chunks(evidence, view),
            entities=tuple(entity.name for entity in entities),
            reports=tuple((report.cluster, report.title) for report in reports),
        )


def overlaps(rows: Sequence[StrategyResult]) -> tuple[Overlap, ...]:
    """Return how much each two of those that rank passages found the same."""
    found = {
        row.strategy: {hit.id for hit in row.answer.trace.evidence.chunks}
        for row in rows
        if row.answer is not None and row.answer.trace.evidence.ranks_passages
    }
    return tuple(_overlap(first, second, found[first], found[second]) for first, second in combinations(found, 2))


def _overlap(first: str, second: str, ours: set[str], theirs: set[str]) -> Overlap:
    both, either = len(ours & theirs), len(ours | theirs)
    return Overlap(first=first, second=second, jaccard=round(both / either, 6) if either else 0.0, n_both=both)


async def _first_chunks(evidence: Evidence, view: ReadView) -> tuple[RankedChunk, ...]:
    hits = evidence.chunks[:MAX_LISTED]
    chunks = {chunk.id: chunk for chunk in await view.chunks([hit.id for hit in hits])}
    return tuple(
        RankedChunk(
            id=hit.id,
            document_id=chunks[hit.id].document_id,
            title=chunks[hit.id].title,
            score=hit.score,
            reason=hit.reason,
        )
        for hit in hits
        if hit.id in chunks
    )
