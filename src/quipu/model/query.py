"""Query: a question, how to answer it, its token budgets, and the documents it may use."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, Self, get_args, get_origin, get_type_hints

from quipu.errors import InvalidInput

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

ComparisonOperator = Literal["=", "!=", "<", "<=", ">", ">=", "in", "contains", "exists"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One comparison on document metadata, for example `region = Asia` or `date >= 1500-01-01`."""

    field: str
    operator: ComparisonOperator
    value: str = ""

    def __post_init__(self) -> None:
        """Raise InvalidInput if the value is not a string."""
        if not isinstance(self.value, str):
            raise InvalidInput(
                f"The value of a condition must be a string, not {self.value!r}.",
                remedy="Write value='1500', or for the operator `in` value='Asia, Europe'.",
            )


_EXAMPLES = {str: "'letters/1', 'notes/*'", Condition: "Condition(field='year', operator='>=', value='1500')"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """The documents a query may use; all parts must match. It is applied before any search or graph expansion.

    `documents` and `exclude` are document ids or shell patterns (`letters/*`). `after` and `before` compare the
    metadata field `date` (ISO 8601, inclusive). If either is set, documents without a date are excluded. Lists are
    accepted and stored as tuples. Raises InvalidInput for a single string in place of a list, and for wrong types.
    """

    documents: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    where: tuple[Condition, ...] = ()
    after: str = ""
    before: str = ""

    def __post_init__(self) -> None:
        """Store sequences as tuples, because a filter is used as a cache key, and check all types."""
        for name, element_type in (("documents", str), ("exclude", str), ("where", Condition)):
            value: object = getattr(self, name)
            is_sequence = isinstance(value, Iterable) and not isinstance(value, str)
            elements: tuple[object, ...] = tuple(value) if is_sequence else ()  # type: ignore[arg-type]
            if not is_sequence or not all(isinstance(element, element_type) for element in elements):
                raise InvalidInput(
                    f"`{name}` of a filter must be a list of {element_type.__name__}, not {value!r}.",
                    remedy=f"Write {name}=[{_EXAMPLES[element_type]}].",
                )
            object.__setattr__(self, name, elements)
        _check_fields(self)

    def is_empty(self) -> bool:
        """Return whether the filter allows every document."""
        return not (self.documents or self.exclude or self.where or self.after or self.before)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Context budgets in tokens. `total` covers the whole prompt: instructions, history, reports, graph, passages.

    `relations` covers relations, and claims in the space that relations leave. `reports` covers reports and key points
    drawn from them; without passages they may use the rest of `total`. `answer` is the limit on the model's answer. It
    is not part of `total`, so the model's context window must hold the sum of both.
    """

    entities: int = 6_000
    relations: int = 8_000
    reports: int = 8_000
    total: int = 30_000
    answer: int = 2_048

    def __post_init__(self) -> None:
        """Raise InvalidInput for a value of the wrong type."""
        _check_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class MixWeights:
    """The weights of the three rankings that `mix` merges: through entities, through relations, and by vector.

    The passage at rank r of a ranking with weight w gets the position r / w. Equal weights therefore alternate the
    rankings, and a weight of 0 disables one. Only the ratios of the weights matter.
    """

    entity: float = 1.0
    relation: float = 1.0
    vector: float = 1.0

    def __post_init__(self) -> None:
        """Raise InvalidInput for a value of the wrong type."""
        _check_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Keywords:
    """The keywords of a question: `low_level` are names, `high_level` are themes (LightRAG)."""

    low_level: tuple[str, ...] = ()
    high_level: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raise InvalidInput for a value of the wrong type."""
        _check_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One earlier message of the conversation."""

    role: Literal["user", "assistant"]
    text: str

    def __post_init__(self) -> None:
        """Raise InvalidInput for a value of the wrong type."""
        _check_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A question and how to answer it.

    Retrieval: `top_k` is the number of entities or relations to search for, `chunk_top_k` the number of passages to
    keep, `min_similarity` a cosine. Keywords, if given, replace those that a model would extract from the question.

    Single strategies: `community_level` is the finest level of communities to read, 0 being the coarsest. With
    `dynamic_selection` a model selects communities from the top down. `drift_follow_ups` limits the follow-up
    questions per round of `drift`. With `from_aggregates`, `lca` also starts from the aggregates nearest to the
    question. `mix_weights` belong to `mix`.

    Answering with a model: `response_type` is the form of the answer and `language` its language ("": the language of
    the question). `system_prompt` replaces the instructions on role and style, but never the instructions on evidence
    and citations. `user_prompt` adds instructions. `history` is the earlier conversation; with `rewrite_question` a
    model uses it to make the question self-contained before the search. `may_fall_back` allows an extractive answer if
    the model is unavailable. If not `with_answer`, no model writes an answer, for callers that need only the context or
    the prompt.

    With `auto_refresh`, a missing derivation that the strategy needs is built first, which may cost model calls;
    otherwise the query raises Stale.

    `search_text` and `model_keywords` are set by the engine: the rewritten question, and keywords from a model.
    """

    text: str
    strategy: str = "mix"
    top_k: int = 40
    chunk_top_k: int = 20
    min_similarity: float = 0.2
    related_chunks: int = 5
    community_level: int = 2
    dynamic_selection: bool = False
    drift_follow_ups: int = 4
    from_aggregates: bool = False
    budget: Budget = field(default_factory=Budget)
    filter: Filter = field(default_factory=Filter)
    low_level_keywords: tuple[str, ...] = ()
    high_level_keywords: tuple[str, ...] = ()
    response_type: str = "Multiple Paragraphs"
    language: str = ""
    system_prompt: str = ""
    user_prompt: str = ""
    history: tuple[Turn, ...] = ()
    rewrite_question: bool = True
    may_fall_back: bool = True
    with_answer: bool = True
    mix_weights: MixWeights = field(default_factory=MixWeights)
    auto_refresh: bool = False
    search_text: str = ""
    model_keywords: Keywords = field(default_factory=Keywords)

    def __post_init__(self) -> None:
        """Raise InvalidInput for a value of the wrong type, and for a similarity outside [-1, 1]."""
        _check_fields(self)
        if not -1 <= self.min_similarity <= 1:
            raise InvalidInput(
                f"min_similarity = {self.min_similarity} is not a cosine.", remedy="Use a number from -1 to 1."
            )

    def as_searched(self) -> Self:
        """Return the query for a strategy: its text is the rewritten question if there is one."""
        return replace(self, text=self.search_text) if self.search_text else self


_TYPE_NAMES: Mapping[object, str] = {str: "a string", int: "a whole number", float: "a number", bool: "True or False"}
_MAX_SHOWN_CHARS = 80


def _check_fields(instance: "DataclassInstance") -> None:
    """Raise InvalidInput, with name, value and allowed type, for the first field that does not match its annotation.

    Supported annotations: str, int, float, bool, classes, Literal of strings, and tuples of one of these. A list is
    accepted for a tuple and an int for a float, but a bool is not accepted for a number.
    """
    for name, annotation in _annotations(type(instance)).items():
        value = getattr(instance, name)
        if type(value) is not annotation and not _matches(value, annotation):
            raise InvalidInput(
                f"{name} = {repr(value)[:_MAX_SHOWN_CHARS]} is not valid.", remedy=f"Use {_type_name(annotation)}."
            )


@cache
def _annotations(cls: type["DataclassInstance"]) -> Mapping[str, Any]:
    hints = get_type_hints(cls)
    return {field_.name: hints[field_.name] for field_ in fields(cls)}


def _matches(value: object, annotation: Any) -> bool:
    if value == ():
        return get_origin(annotation) is tuple
    if get_origin(annotation) is tuple:
        return isinstance(value, (tuple, list)) and all(_matches(element, get_args(annotation)[0]) for element in value)
    if get_origin(annotation) is Literal:
        return isinstance(value, str) and value in get_args(annotation)
    if annotation is int or annotation is float:
        return isinstance(value, (int, annotation)) and not isinstance(value, bool)
    return isinstance(value, annotation)


def _type_name(annotation: Any) -> str:
    if get_origin(annotation) is tuple:
        return f"a list; each element must be {_type_name(get_args(annotation)[0])}"
    if get_origin(annotation) is Literal:
        return "one of: " + ", ".join(map(repr, get_args(annotation)))
    return _TYPE_NAMES.get(annotation) or f"a quipu.{annotation.__name__}"
