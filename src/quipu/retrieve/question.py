"""Question: what is checked about a question, and what a model makes of it, before any view is open."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from quipu.errors import InvalidInput, QuipuError
from quipu.model.chat import ChatRequest, ReplyLifetime, Role
from quipu.model.query import Budget, Filter, Keywords, Query, Turn, check_ranges, options_in, replace_defaults
from quipu.ports.providers import LLM
from quipu.prompts import question as prompt
from quipu.retrieve import strategies_by_options, strategy_named
from quipu.text.model_text import parse_lenient_json
from quipu.text.unicode import find_text_with_surrogate

if TYPE_CHECKING:
    from quipu.retrieve.mix import MixWeights

MAX_QUESTION_LENGTH = 10_000  # characters, as are all lengths here
MAX_HISTORY_TURNS = 6  # a question refers to what was said last
MAX_TURN_LENGTH = 2_000
MAX_REWRITTEN_LENGTH = 2_000
MAX_KEYWORDS_PER_LEVEL = 20
MAX_KEYWORD_LENGTH = 200
# Fields of Query that no caller sets by name.
NO_OPTIONS = frozenset(("text", "options", "prompts", "search_text", "model_keywords", "names_documents"))


@dataclass(frozen=True, slots=True, kw_only=True)
class UnderstoodQuestion:
    """A query ready to be searched for, and what the trace says about how it became so."""

    query: Query
    notes: tuple[str, ...] = ()


class QueryOptions(TypedDict, total=False):
    """What a caller may set for one question: fields of Query, and below them the options of single strategies."""

    strategy: str
    preset: Literal["default", "faithful"]
    top_k: int
    chunk_top_k: int
    min_similarity: float
    related_chunks: int
    community_level: int
    budget: Budget
    filter: Filter
    as_of: str
    low_level_keywords: tuple[str, ...]
    high_level_keywords: tuple[str, ...]
    response_type: str
    passages_per_call: int
    language: str
    system_prompt: str
    user_prompt: str
    history: tuple[Turn, ...]
    rewrite_question: bool
    rerank: bool
    min_rerank_score: float
    may_fall_back: bool
    with_answer: bool
    auto_refresh: bool
    max_cost: float

    match_names: bool
    max_name_share: float
    relations_per_entity: int
    chunk_choice: Literal["vector", "weight"]
    separate_chunks: bool
    mix_weights: "MixWeights"
    dynamic_selection: bool
    drift_follow_ups: int
    community_entities: int
    community_all_levels: bool
    community_claims: int
    bridge_communities: int
    bridge_keys: int
    bridge_relations: int
    bridge_hub_lengths: bool
    bridge_paths_first: bool
    from_aggregates: bool
    lca_passages: Literal["scores", "seeds", "paths"]
    lca_crossings: int
    hippo_scaled_facts: int
    hippo_fact_weight: float
    hippo_synonym_weight: float
    hippo_passage_weight: float
    hippo_damping: float
    linear_min_activation: float
    linear_sums: bool
    linear_steps: int
    linear_sentences: int
    linear_passages: int
    linear_expanded: int
    linear_passage_weight: float
    linear_similarity_weight: float
    linear_damping: float
    path_length: int
    path_links: int
    path_hops: int
    context_seeds: int
    context_max_shared: int
    context_link_weight: float
    ppr_damping: float
    ppr_min_rank: float
    ppr_parallel_edges: bool
    ppr_identity_edges: bool
    ppr_fallback: bool


def build_query(make_query: Callable[[str], Query], query: str | Query, options: Mapping[str, Any]) -> Query:
    """Return the checked query for a question; `make_query` makes one from a text, by the settings.

    A Query gets the prompts of the settings, too. `options` replace fields of it, or options of single strategies.
    `as_of` replaces that of the filter. Raises InvalidInput for an unknown option, and as `check_query` does.
    """
    if not isinstance(query, (str, Query)):
        raise InvalidInput(f"{query!r} is no question.", remedy="Ask with a text, or with a quipu.Query.")
    query = make_query(query) if isinstance(query, str) else replace(query, prompts=make_query(query.text).prompts)
    as_of, options = options.get("as_of"), {name: value for name, value in options.items() if name != "as_of"}
    names = [field.name for field in fields(Query) if field.name not in NO_OPTIONS]
    query = replace(query, **{name: value for name, value in options.items() if name in names})
    query = replace(query, filter=replace(query.filter, as_of=as_of)) if as_of else query
    if not options.keys() <= set(names):
        query = _with_strategy_options(query, {name: options[name] for name in options if name not in names}, names)
    check_query(query)
    return query


def _with_strategy_options(query: Query, values: Mapping[str, Any], others: Sequence[str]) -> Query:
    """Return the query with options of single strategies.

    Raises InvalidInput for an option that no strategy has; the remedy lists all, and the `others` of every question.
    """
    names_by_kind = {kind: [field.name for field in fields(kind)] for kind in strategies_by_options()}
    names = [*others, *chain.from_iterable(names_by_kind.values())]
    for name in values:
        if name not in names:
            near = get_close_matches(name, names, n=1)
            hint = f"Did you mean {near[0]}? " if near else ""
            raise InvalidInput(f"A question has no option {name!r}.", remedy=f"{hint}It takes: {', '.join(names)}.")
    for kind, own in names_by_kind.items():
        if own_values := {name: values[name] for name in own if name in values}:
            query = query.with_options(replace(query.options_of(kind), **own_values))
    return query


def apply_preset(query: Query) -> Query:
    """Return the query as its strategy runs it: with the preset "faithful", defaults become the values of its source.

    An option that has another value than its default keeps it.
    """
    if query.preset != "faithful":
        return query
    strategy = strategy_named(query.strategy)
    query = replace_defaults(query, strategy.faithful)
    for kind in strategy.options:
        faithful = {option.name: option.faithful for option in options_in(kind) if option.faithful is not None}
        query = query.with_options(replace_defaults(query.options_of(kind), faithful))
    return query


def preset_notes(query: Query) -> tuple[str, ...]:
    """Return what the trace says about the preset of a query; nothing about the default."""
    if query.preset != "faithful":
        return ()
    strategy = strategy_named(query.strategy)
    own = (option.faithful for kind in strategy.options for option in options_in(kind))
    if strategy.faithful or any(value is not None for value in own):
        return (f"the preset 'faithful': options that are not set have the values of {strategy.after}",)
    return (f"the preset 'faithful' changes no option of {strategy.name}",)


def check_query(query: Query) -> None:
    """Raise InvalidInput for a question that is empty, too long or not text, and for options out of their range."""
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
    check_ranges(query)


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
        question = await rewrite_question(query, llm)
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


async def rewrite_question(query: Query, llm: LLM) -> str:
    """Return the question as it reads without the conversation before it, "" where the reply holds none.

    Raises as `LLM.complete` does.
    """
    recent = [Turn(role=turn.role, text=_shortened(turn.text)) for turn in query.history[-MAX_HISTORY_TURNS:]]
    request = ChatRequest(
        messages=prompt.render_rewrite(query.text, recent, query.prompts),
        role=Role.KEYWORDS,
        max_output_tokens=prompt.MAX_OUTPUT_TOKENS,
        schema=prompt.REWRITE_SCHEMA,
        lifetime=ReplyLifetime.REVISION,  # earlier answers may quote documents that have been removed since
        subject=query.text,
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
        messages=prompt.render_keywords(query.as_searched().text, query.prompts),
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
    return Keywords(low_level=low[:MAX_KEYWORDS_PER_LEVEL], high_level=high[:MAX_KEYWORDS_PER_LEVEL])


def _keywords(field: object) -> Iterator[str]:
    values = field.split(",") if isinstance(field, str) else field if isinstance(field, list) else []
    for value in values:
        keyword = " ".join(str(value).split()) if isinstance(value, str | int | float) else ""
        if keyword and len(keyword) <= MAX_KEYWORD_LENGTH:
            yield keyword
