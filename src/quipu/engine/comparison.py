"""Comparison: several strategies answer one question; their evidence, costs and answers are compared."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from itertools import combinations

from quipu.engine.components import Components
from quipu.engine.status import DerivationStates
from quipu.errors import QuipuError
from quipu.model.answer import Answer, Comparison, Overlap, RankedChunk, StrategyResult
from quipu.model.chat import Role
from quipu.model.evidence import Evidence
from quipu.model.query import Query
from quipu.ports.providers import Tokenizer
from quipu.ports.store import ReadView
from quipu.retrieve import STRATEGIES, strategy_named
from quipu.retrieve.strategy import Strategy

MAX_LISTED = 10  # passages, entities and reports of each strategy

Answerer = Callable[[Query], Awaitable[Answer]]


async def compare_strategies(
    query: Query, names: Sequence[str], answer: Answerer, components: Components, states: DerivationStates
) -> Comparison:
    """Ask a question of each named strategy, or of each strategy that can run, and return the results.

    Where services are asked, all strategies run at the same time, since most of it is waiting. Otherwise they run one
    after the other, so that the times can be compared. A strategy that fails becomes a row with its error. Raises
    NotFound for an unknown name.
    """
    left_out: dict[str, str] = {}
    strategies = [strategy_named(name) for name in dict.fromkeys(names)]
    if not strategies:
        for strategy in STRATEGIES.values():
            if reason := await _why_not_runnable(strategy, components, states, may_make=query.auto_refresh):
                left_out[strategy.name] = reason
            else:
                strategies.append(strategy)
    queries = [replace(query, strategy=strategy.name) for strategy in strategies]
    tokenizer = components.context_tokenizer
    if components.models.asks_services:
        rows = list(await asyncio.gather(*(_row(strategy_query, answer, tokenizer) for strategy_query in queries)))
    else:
        for strategy_query in queries:  # a first run, not counted, loads everything that is loaded lazily
            await _row(strategy_query, answer, tokenizer)
        rows = [await _row(strategy_query, answer, tokenizer) for strategy_query in queries]
    async with components.store.view(query.filter) as view:
        rows = [await _with_names(row, view) for row in rows]
    return Comparison(
        question=query.text, results=tuple(rows), overlaps=overlaps(rows), skipped=tuple(left_out.items())
    )


async def _why_not_runnable(
    strategy: Strategy, components: Components, states: DerivationStates, *, may_make: bool
) -> str:
    """Return why a strategy cannot run, "" if it can. With `may_make`, missing derivations do not count."""
    if not strategy.searches_index and components.models.llm(Role.ANSWER) is None:
        return "It retrieves nothing, and there is no language model to answer."
    missing = () if may_make else await states.missing(strategy)
    return str(states.missing_error(strategy, missing)) if missing else ""


async def _row(query: Query, answer: Answerer, tokenizer: Tokenizer) -> StrategyResult:
    try:
        answered = await answer(query)
    except QuipuError as error:
        return StrategyResult(strategy=query.strategy, error=str(error))
    evidence = answered.trace.evidence
    return StrategyResult(
        strategy=query.strategy,
        answer=answered,
        n_chunks=len(evidence.chunks),
        n_entities=len(evidence.entities),
        n_relations=len(evidence.relations),
        n_claims=len(evidence.claims),
        n_reports=len(evidence.reports),
        n_context_tokens=tokenizer.count(answered.context),
        n_calls=answered.trace.n_calls,
        ms=round(sum(timing.ms for timing in answered.trace.timings), 1),
    )


async def _with_names(row: StrategyResult, view: ReadView) -> StrategyResult:
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
    """Return, for each two strategies that rank passages, how many passages both found and their Jaccard index."""
    ids_by_strategy = {
        row.strategy: {hit.id for hit in row.answer.trace.evidence.chunks}
        for row in rows
        if row.answer is not None and row.answer.trace.evidence.ranks_passages
    }
    return tuple(
        _overlap(first, second, ids_by_strategy[first], ids_by_strategy[second])
        for first, second in combinations(ids_by_strategy, 2)
    )


def _overlap(first: str, second: str, first_ids: set[str], second_ids: set[str]) -> Overlap:
    n_both, n_either = len(first_ids & second_ids), len(first_ids | second_ids)
    return Overlap(first=first, second=second, jaccard=round(n_both / n_either, 6) if n_either else 0.0, n_both=n_both)


async def _first_chunks(evidence: Evidence, view: ReadView) -> tuple[RankedChunk, ...]:
    hits = evidence.chunks[:MAX_LISTED]
    chunk_by_id = {chunk.id: chunk for chunk in await view.chunks([hit.id for hit in hits])}
    return tuple(
        RankedChunk(
            id=hit.id,
            document_id=chunk_by_id[hit.id].document_id,
            title=chunk_by_id[hit.id].title,
            score=hit.score,
            reason=hit.reason,
        )
        for hit in hits
        if hit.id in chunk_by_id
    )
