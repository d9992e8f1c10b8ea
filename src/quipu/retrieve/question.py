"""Question: what is checked about a question, and what a model makes of it, before any view is open."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from math import inf
from typing import Any

from quipu.errors import InvalidInput, QuipuError
from quipu.model.chat import ChatRequest, ReplyLifetime, Role
from quipu.model.query import Keywords, Query, Turn
from quipu.ports.providers import LLM
from quipu.prompts import question as prompt
from quipu.retrieve import strategy_named
from quipu.text.lenient_json import parse_lenient_json
from quipu.text.unicode import find_text_with_surrogate

MAX_QUESTION_LENGTH = 10_000  # characters, as are all lengths here
MIN_BY_OPTION = {"top_k": 1, "chunk_top_k": 1, "related_chunks": 0, "community_level": 0, "drift_follow_ups": 0}
MAX_HISTORY_TURNS = 6  # a question refers to what was said last
MAX_TURN_LENGTH = 2_000
MAX_REWRITTEN_LENGTH = 2_000
MAX_KEYWORDS = 20  # of each level
MAX_KEYWORD_LENGTH = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class UnderstoodQuestion:
    """A query ready to be searched for, and what the trace says about how it became so."""

    query: Query
    notes: tuple[str, ...] = ()


def build_query(make_query: Callable[[str], Query], query: str | Query, options: Mapping[str, Any]) -> Query:
    """Return the checked query for a question; `make_query` makes one from a text, by the settings.

    `options` replace fields of it. Raises InvalidInput for an unknown option, and as `check_query` does.
    """
    if not isinstance(query, (str, Query)):
        raise InvalidInput(f"{query!r} is no question.", remedy="Ask with a text, or with a quipu.Query.")
    names = [field.name for field in fields(Query)]
    for name in options:
        if name not in names:
            near = get_close_matches(name, names, n=1)
            hint = f"Did you mean {near[0]}? " if near else ""
            raise InvalidInput(f"A question has no option {name!r}.", remedy=f"{hint}It takes: {', '.join(names)}.")
    query = replace(make_query(query) if isinstance(query, str) else query, **options)
    check_query(query)
    return query


def check_query(query: Query) -> None:
    """Raise InvalidInput for a question that is empty, too long or not text, and for options that are too small."""
    if not query.text.strip():
        raise InvalidInput("The question is empty.", remedy="Ask something.")
    if len(query.text) > MAX_QUESTION_LENGTH:
        raise InvalidInput(
            f"The question has {len(query.text):,} characters; at most {MAX_QUESTION_LENGTH:,} are read.",
            remedy="Shorten it, or add the text as a document and ask about it.",
        )
    if text := find_text_with_surrogate(query):
        raise InvalidInput(
            f"{text[:80]!r} holds a lone surrogate: bytes that are not UTF-8 text.", remedy="Write it as UTF-8."
        )
    for name, minimum in MIN_BY_OPTION.items():
        if getattr(query, name) < minimum:
            raise InvalidInput(f"{name} = {getattr(query, name)} is too small.", remedy=f"Use {minimum} or more.")
    weights = (query.mix_weights.entity, query.mix_weights.relation, query.mix_weights.vector)
    if not all(0 <= weight < inf for weight in weights) or not any(weights):
        raise InvalidInput(
            f"The arms of mix cannot weigh {', '.join(f'{weight:g}' for weight in weights)}.",
            remedy="Give each 0 or more, and one of them more than 0.",
        )


async def understand_question(query: Query, llm: LLM | None) -> UnderstoodQuestion:
    """Return the query with `search_text` and `model_keywords`, where the strategy uses them and there is a model.

    At most two short calls are made. They never make a question fail: where a model gives nothing, the search goes on
    without it and a note says why.
    """
    strategy = strategy_named(query.strategy)
    if llm is None or not strategy.searches_index:
        return UnderstoodQuestion(query=query)
    rewritten = await _rewrite(query, llm)
    if not strategy.wants_keywords or query.low_level_keywords or query.high_level_keywords:
        return rewritten
    with_keywords = await _add_keywords(rewritten.query, llm)
    return UnderstoodQuestion(query=with_keywords.query, notes=rewritten.notes + with_keywords.notes)


async def _rewrite(query: Query, llm: LLM) -> UnderstoodQuestion:
    if not query.history or not query.rewrite_question or query.search_text:
        return UnderstoodQuestion(query=query)
    try:
        question = await rewrite_question(query.text, query.history, llm)
    except QuipuError as error:
        return _unchanged(query, f"the question was not rewritten: {error.message}")
    if not question:
        return _unchanged(query, "the question was not rewritten: the model's reply holds no question")
    if question.casefold() == query.text.strip().casefold():
        return _unchanged(query, "the model found that the question stands alone")
    return UnderstoodQuestion(query=replace(query, search_text=question), notes=(f"searched for: {question}",))


async def _add_keywords(query: Query, llm: LLM) -> UnderstoodQuestion:
    try:
        keywords = await find_keywords(query, llm)
    except QuipuError as error:
        return _unchanged(query, f"no keywords from a model, names in the question are used: {error.message}")
    if not keywords.low_level and not keywords.high_level:
        return _unchanged(query, "no keywords from a model, names in the question are used: its reply holds none")
    names, themes = (", ".join(words) or "none" for words in (keywords.low_level, keywords.high_level))
    note = f"keywords of the model: {names}; themes: {themes}"
    return UnderstoodQuestion(query=replace(query, model_keywords=keywords), notes=(note,))


def _unchanged(query: Query, note: str) -> UnderstoodQuestion:
    return UnderstoodQuestion(query=query, notes=(note,))


async def rewrite_question(question: str, history: Sequence[Turn], llm: LLM) -> str:
    """Return the question as it reads without the conversation before it, "" where the reply holds none.

    Raises as `LLM.complete` does.
    """
    recent = [Turn(role=turn.role, text=_shortened(turn.text)) for turn in history[-MAX_HISTORY_TURNS:]]
    request = ChatRequest(
        messages=prompt.render_rewrite(question, recent),
        role=Role.KEYWORDS,
        max_output_tokens=prompt.MAX_OUTPUT_TOKENS,
        schema=prompt.REWRITE_SCHEMA,
        lifetime=ReplyLifetime.REVISION,  # earlier answers may quote documents that have been removed since
        subject=question,
    )
    return read_rewritten((await llm.complete(request)).text)


def read_rewritten(reply: str) -> str:
    """Return the question in a reply, on one line; "" where there is none or it is too long."""
    parsed = parse_lenient_json(reply)
    text = parsed.get("question") if isinstance(parsed, dict) else None
    line = " ".join(text.split()) if isinstance(text, str) else ""
    return line if len(line) <= MAX_REWRITTEN_LENGTH else ""


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_TURN_LENGTH else f"{text[:MAX_TURN_LENGTH]} …"


async def find_keywords(query: Query, llm: LLM) -> Keywords:
    """Return the keywords a model finds in the text that is searched for; empty where its reply holds none.

    Raises as `LLM.complete` does.
    """
    request = ChatRequest(
        messages=prompt.render_keywords(query.as_searched().text),
        role=Role.KEYWORDS,
        max_output_tokens=prompt.MAX_OUTPUT_TOKENS,
        schema=prompt.KEYWORDS_SCHEMA,
        lifetime=ReplyLifetime.REVISION
        if query.search_text
        else ReplyLifetime.FREE,  # as long as the rewritten question
        subject=query.text,
    )
    return read_keywords((await llm.complete(request)).text)


def read_keywords(reply: str) -> Keywords:
    """Return the keywords in a reply, each once; values that cannot be keywords are left out."""
    parsed = parse_lenient_json(reply)
    if not isinstance(parsed, dict):
        return Keywords()
    low, high = (tuple(dict.fromkeys(_keywords(parsed.get(f"{level}_level_keywords")))) for level in ("low", "high"))
    return Keywords(low_level=low[:MAX_KEYWORDS], high_level=high[:MAX_KEYWORDS])


def _keywords(field: object) -> Iterator[str]:
    values = field.split(",") if isinstance(field, str) else field if isinstance(field, list) else []
    for value in values:
        keyword = " ".join(str(value).split()) if isinstance(value, str | int | float) else ""
        if keyword and len(keyword) <= MAX_KEYWORD_LENGTH:
            yield keyword
