"""Resolving: what a model makes of a question before anything is searched for it.

It happens before a view is opened, costs at most two short calls, and never fails a question: what a model cannot be
had for is done as without one, and the trace says so.
"""

from dataclasses import dataclass, replace

from quipu.errors import QuipuError
from quipu.model.query import Query
from quipu.ports.providers import LLM
from quipu.retrieve import strategy_named
from quipu.retrieve.keywording import find_keywords
from quipu.retrieve.rewriting import stand_alone


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """A query ready to be searched for, and what the trace should say of how it became so."""

    query: Query
    notes: tuple[str, ...] = ()


async def resolve(query: Query, llm: LLM | None) -> Resolved:
    """Return the query with `search_text` and `model_keywords` where it gains from them and there is a model."""
    strategy = strategy_named(query.strategy)
    if llm is None or not strategy.looks_up:
        return Resolved(query=query)
    rewritten = await _rewritten(query, llm)
    if not strategy.wants_keywords or query.low_level_keywords or query.high_level_keywords:
        return rewritten
    worded = await _with_keywords(rewritten.query, llm)
    return Resolved(query=worded.query, notes=rewritten.notes + worded.notes)


async def _rewritten(query: Query, llm: LLM) -> Resolved:
    if not query.history or not query.rewrite_question or query.search_text:
        return Resolved(query=query)
    try:
        question = await stand_alone(query.text, query.history, llm)
    except QuipuError as error:
        return _as_it_is(query, f"the question was not rewritten: {error.message}")
    if not question:
        return _as_it_is(query, "the question was not rewritten: the model's reply holds no question")
    if question.casefold() == query.text.strip().casefold():
        return _as_it_is(query, "the model found that the question stands alone")
    return Resolved(query=replace(query, search_text=question), notes=(f"searched for: {question}",))


async def _with_keywords(query: Query, llm: LLM) -> Resolved:
    try:
        found = await find_keywords(query, llm)
    except QuipuError as error:
        return _as_it_is(query, f"no keywords from a model, the question's own names stand in: {error.message}")
    if not found.low_level and not found.high_level:
        return _as_it_is(query, "no keywords from a model, the question's own names stand in: its reply holds none")
    names, themes = (", ".join(words) or "none" for words in (found.low_level, found.high_level))
    note = f"keywords of the model: {names}; themes: {themes}"
    return Resolved(query=replace(query, model_keywords=found), notes=(note,))


def _as_it_is(query: Query, note: str) -> Resolved:
    return Resolved(query=query, notes=(note,))
