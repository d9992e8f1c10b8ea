"""Questions: what to ask, how, within which budgets and over which documents."""

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
    """One comparison on document metadata, as in `region = Asia` or `date >= 1500-01-01`."""

    field: str
    comparison: ComparisonOperator
    value: str = ""

    def __post_init__(self) -> None:
        """Raise InvalidInput for a value that is no text."""
        if not isinstance(self.value, str):
            raise InvalidInput(
                f"The value of a condition is a text, not {self.value!r}.",
                remedy="Write value='1500', or with `in` value='Asia, Europe'.",
            )


_EXAMPLES = {str: "'letters/1', 'notes/*'", Condition: "Condition(field='year', comparison='>=', value='1500')"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which documents a query may see; all parts must hold. Applied before any search or expansion.

    `documents` and `exclude` take ids or shell patterns (`letters/*`). `after` and `before` compare the metadata field
    `date` (ISO 8601; both inclusive); a document without one is left out when either is given. Lists are taken, and
    kept as tuples. Raises InvalidInput for a text in the place of several, and for what is no id or no condition.
    """

    documents: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    where: tuple[Condition, ...] = ()
    after: str = ""
    before: str = ""

    def __post_init__(self) -> None:
        """Make tuples of what was given: a filter is a key to what is remembered of it."""
        for part, kind in (("documents", str), ("exclude", str), ("where", Condition)):
            given: object = getattr(self, part)
            taken: tuple[object, ...] | None = None
            if isinstance(given, Iterable) and not isinstance(given, str):
                taken = tuple(given)
            if taken is None or not all(isinstance(each, kind) for each in taken):
                raise InvalidInput(
                    f"`{part}` of a filter takes a list of {kind.__name__}, not {given!r}.",
                    remedy=f"Write {part}=[{_EXAMPLES[kind]}].",
                )
            object.__setattr__(self, part, taken)
        check_fields(self)

    def is_empty(self) -> bool:
        """Say whether the filter lets every document through."""
        return not (self.documents or self.exclude or self.where or self.after or self.before)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Token budgets. `total` is what a model is sent: prompt, history, reports, entities, relations and passages.

    `relations` is for relations, and for claims where these leave room.
    `reports` is for reports and for points drawn from them; where no passage stands beside them they have the rest of
    `total`. `answer` is what a model may write beside that: a context window must hold both.
    """

    entities: int = 6_000
    relations: int = 8_000
    reports: int = 8_000
    total: int = 30_000
    answer: int = 2_048

    def __post_init__(self) -> None:
        """Raise InvalidInput for what is no value of a field."""
        check_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class MixWeights:
    """How much each arm of `mix` weighs: what is found through entities, through relations, and by vector.

    The passage at place r of an arm with weight w comes at r / w: equal weights take the arms in turn, 0 leaves one
    out, and only their ratios matter.
    """

    entity: float = 1.0
    relation: float = 1.0
    vector: float = 1.0

    def __post_init__(self) -> None:
        """Raise InvalidInput for what is no value of a field."""
        check_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Keywords:
    """What a question names (`low_level`) and what it is about (`high_level`)."""

    low_level: tuple[str, ...] = ()
    high_level: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raise InvalidInput for what is no value of a field."""
        check_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One earlier turn of the conversation."""

    role: Literal["user", "assistant"]
    text: str

    def __post_init__(self) -> None:
        """Raise InvalidInput for what is no value of a field."""
        check_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A question and how to answer it.

    `top_k` entities or relations are searched, `chunk_top_k` passages kept; `min_similarity` is a cosine.
    `low_level_keywords` name things, `high_level_keywords` themes; given, they are used as they are.

    `community_level` is the finest level of communities whose reports are read, 0 the coarsest; a model chooses among
    them from the top down with `dynamic_selection`. A round of `drift` follows up at most `drift_follow_ups` questions.
    With `from_aggregates` `lca` begins with the aggregates nearest to the question, too.

    The next fields are about a model that answers. `response_type` is the form of the answer, `language` its language
    ("": that of the question), `system_prompt` takes the place of our words on role and style, never that of the rules
    about evidence and citations, and `user_prompt` holds further wishes. `history` is the conversation so far: with
    `rewrite_question` a model makes of it and the question one that stands alone, to search with. `may_fall_back` says
    that quotes will do where the model cannot be had. Without `with_answer` no model is asked for one: quotes stand in,
    for callers who want context or prompt alone.

    `mix_weights` are those of the arms of `mix`. With `auto_refresh` a derivation that the strategy needs and that has
    not been made yet is made first, at its cost, instead of telling how.

    `search_text` and `model_keywords` are what models made of the question before it was searched for (see
    `quipu.retrieve.question`); "" and empty where there was nothing to make.
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
        """Raise InvalidInput for what is no value of a field, and for what no cosine can be."""
        check_fields(self)
        if not -1 <= self.min_similarity <= 1:
            raise InvalidInput(
                f"min_similarity = {self.min_similarity} is no cosine.", remedy="Use a number from -1 to 1."
            )

    def as_searched(self) -> Self:
        """Return the query a strategy gets: its text is what is searched for."""
        return replace(self, text=self.search_text) if self.search_text else self


_WORDS: Mapping[object, str] = {str: "a text", int: "a whole number", float: "a number", bool: "True or False"}
_MAX_SHOWN = 80  # characters of a value


def check_fields(made: "DataclassInstance") -> None:
    """Raise InvalidInput, with the name, the value and what is allowed, for the first field that is something else.

    Annotations may be of texts, numbers, truth values, classes, literals and tuples of one of these; a list will do for
    a tuple, a whole number for any, and no truth value for a number.
    """
    for name, kind in _kinds(type(made)).items():
        value = getattr(made, name)
        if type(value) is not kind and not _is(value, kind):
            raise InvalidInput(
                f"{name} = {repr(value)[:_MAX_SHOWN]} cannot be used.", remedy=f"It takes {_in_words(kind)}."
            )


@cache
def _kinds(cls: type["DataclassInstance"]) -> Mapping[str, Any]:
    hints = get_type_hints(cls)
    return {each.name: hints[each.name] for each in fields(cls)}


def _is(value: object, kind: Any) -> bool:
    if value == ():
        return get_origin(kind) is tuple
    if get_origin(kind) is tuple:
        return isinstance(value, (tuple, list)) and all(_is(each, get_args(kind)[0]) for each in value)
    if get_origin(kind) is Literal:
        return isinstance(value, str) and value in get_args(kind)
    if kind is int or kind is float:
        return isinstance(value, (int, kind)) and not isinstance(value, bool)
    return isinstance(value, kind)


def _in_words(kind: Any) -> str:
    if get_origin(kind) is tuple:
        return f"a list, of which each is {_in_words(get_args(kind)[0])}"
    if get_origin(kind) is Literal:
        return "one of: " + ", ".join(map(repr, get_args(kind)))
    return _WORDS.get(kind) or f"a quipu.{kind.__name__}"
