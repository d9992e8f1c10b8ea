"""Query: a question, how to answer it, its token budgets, and the documents it may use.

An option is a dataclass field that declares its default, range and meaning. Settings, flags and checks follow from it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache, reduce
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, get_args, get_origin, get_type_hints

from quipu.errors import InvalidInput
from quipu.model.chat import PromptText
from quipu.model.validity import as_moment

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

OptionValue = str | int | float | bool
T = TypeVar("T")
Holder = TypeVar("Holder", bound="DataclassInstance")

_DECLARATION, _SETTING = "option", "setting"  # the keys of a field's metadata
_MAX_SHOWN_CHARS = 80
_TYPE_NAMES: Mapping[object, str] = {str: "a string", int: "a whole number", float: "a number", bool: "True or False"}


def option(
    default: T,
    description: str,
    *,
    between: tuple[float, float] | None = None,
    setting: str = "",
    faithful: T | None = None,
) -> T:
    """Return a dataclass field that is an option.

    `description` is one sentence for the help and reference pages. `between` are the smallest and the largest number
    allowed; every option that is a number has them. `setting` is its name as a setting and flag, by default the name of
    the field. `faithful` is the value of the method's paper or of its authors' code, where the default is another.
    """
    declaration = {"default": default, "description": description, "between": between, "faithful": faithful}
    declared: T = field(default=default, metadata={_DECLARATION: declaration, _SETTING: setting})
    return declared


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option. `name` is its name as a setting; `path` leads from the dataclass that holds it to the value.

    The first name of `path` is the Python keyword: `entity_weight` is a part of `mix_weights`. `faithful` is the value
    of the method's source, None where it is the default.
    """

    name: str
    path: tuple[str, ...]
    annotation: Any
    default: OptionValue
    description: str
    between: tuple[float, float] | None
    faithful: OptionValue | None = None

    @property
    def allowed(self) -> str:
        """What is allowed, in words."""
        if get_origin(self.annotation) is Literal:
            return " or ".join(get_args(self.annotation))
        if self.between:
            noun = "a whole number" if self.annotation is int else "a number"
            return f"{noun} from {self.between[0]:,} to {self.between[1]:,}"
        return "true or false" if self.annotation is bool else "text that is not empty"

    def allows(self, value: OptionValue) -> bool:
        """Return whether a value of the right type is in the range."""
        if self.between and not isinstance(value, str):
            return self.between[0] <= value <= self.between[1]
        return value != ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of a strategy: the fields of a subclass, or of dataclasses in its fields.

    Raises InvalidInput for a value of the wrong type or outside its range.
    """

    def __post_init__(self) -> None:
        """Check every field."""
        check_types(self)
        check_ranges(self)


def options_in(kind: "type[DataclassInstance]") -> tuple[Option, ...]:
    """Return the options of a dataclass, in order of declaration, with those of the dataclasses in its fields."""
    options: list[Option] = []
    for field_ in fields(kind):
        annotation = _annotations(kind)[field_.name]
        if isinstance(annotation, type) and is_dataclass(annotation):
            nested = options_in(annotation)
            options += (replace(option, path=(field_.name, *option.path)) for option in nested)
        elif _DECLARATION in field_.metadata:
            name = field_.metadata[_SETTING] or field_.name
            declaration = field_.metadata[_DECLARATION]
            options.append(Option(name=name, path=(field_.name,), annotation=annotation, **declaration))
    return tuple(options)


def build_from_settings(kind: type[Holder], values: Mapping[str, OptionValue], **others: object) -> Holder:
    """Return a dataclass of options with `values` by the names of their settings; `others` are its other fields."""
    options = options_in(kind)
    groups = {
        option_.path[0]: build_from_settings(_annotations(kind)[option_.path[0]], values)
        for option_ in options
        if len(option_.path) > 1
    }
    own = {
        option_.path[0]: values[option_.name]
        for option_ in options
        if len(option_.path) == 1 and option_.name in values
    }
    return kind(**groups, **own, **others)


def replace_defaults(holder: Holder, values: Mapping[str, OptionValue]) -> Holder:
    """Return a copy in which options that have their default get `values`, by the names of their settings."""
    changes: dict[str, Any] = {}
    for option_ in options_in(type(holder)):
        name = option_.path[0]
        if len(option_.path) > 1:
            changes[name] = replace_defaults(getattr(holder, name), values)
        elif option_.name in values and getattr(holder, name) == option_.default:
            changes[name] = values[option_.name]
    return replace(holder, **changes)


def check_ranges(holder: "DataclassInstance") -> None:
    """Raise InvalidInput, with name, value and what is allowed, for the first option that is out of its range."""
    for option_ in options_in(type(holder)):
        value = reduce(getattr, option_.path, holder)
        if not option_.allows(value):  # type: ignore[arg-type] # `check_types` has seen it
            name = ".".join(option_.path)
            raise InvalidInput(
                f"{name} = {repr(value)[:_MAX_SHOWN_CHARS]} is not allowed.", remedy=f"Use {option_.allowed}."
            )


def check_types(instance: "DataclassInstance") -> None:
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
def _annotations(kind: "type[DataclassInstance]") -> Mapping[str, Any]:
    hints = get_type_hints(kind)
    return {field_.name: hints[field_.name] for field_ in fields(kind)}


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


Owned = TypeVar("Owned", bound=Options)
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
    metadata field `date` (ISO 8601, inclusive). If either is set, documents without a date are excluded. `as_of` allows
    what held at the end of that year, month or day, or at that time (UTC), see `model.validity`. Lists are accepted and
    stored as tuples. Raises InvalidInput for a single string in place of a list, for wrong types and for an `as_of`
    that is no date.
    """

    documents: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    where: tuple[Condition, ...] = ()
    after: str = ""
    before: str = ""
    as_of: str = ""

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
        check_types(self)
        if self.as_of:
            object.__setattr__(self, "as_of", as_moment(self.as_of))

    def is_empty(self) -> bool:
        """Return whether the filter allows every document."""
        return not (self.documents or self.exclude or self.where or self.after or self.before or self.as_of)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Context budgets in tokens. `total` covers the whole prompt: instructions, history, reports, graph, passages.

    `relations` covers relations, and claims in the space that relations leave. `reports` covers reports and key points
    drawn from them; without passages they may use the rest of `total`. Of what the prompt leaves of `total`, passages
    keep the share `min_passage_share`, as far as they need it. `answer` is the limit on the model's answer. It is not
    part of `total`, so the model's context window must hold the sum of both.
    """

    entities: int = option(
        6_000, "Maximum tokens of entities in the context.", between=(0, 2_000_000), setting="entity_tokens"
    )
    relations: int = option(
        8_000,
        "Maximum tokens of relations and claims in the context.",
        between=(0, 2_000_000),
        setting="relation_tokens",
    )
    reports: int = option(
        8_000,
        "Maximum tokens of reports and key points in a context that has passages, too.",
        between=(0, 2_000_000),
        setting="report_tokens",
    )
    total: int = option(
        30_000, "Maximum tokens of prompt and context together.", between=(1, 2_000_000), setting="total_tokens"
    )
    min_passage_share: float = option(
        0.5, "Share of the context that is kept for passages, as far as there are any.", between=(0.0, 1.0)
    )
    answer: int = option(2_048, "Maximum tokens of a model's answer.", between=(16, 1_000_000), setting="answer_tokens")

    def __post_init__(self) -> None:
        """Raise InvalidInput for a value of the wrong type."""
        check_types(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Keywords:
    """The keywords of a question: `low_level` are names, `high_level` are themes (LightRAG)."""

    low_level: tuple[str, ...] = ()
    high_level: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raise InvalidInput for a value of the wrong type."""
        check_types(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One earlier message of the conversation."""

    role: Literal["user", "assistant"]
    text: str

    def __post_init__(self) -> None:
        """Raise InvalidInput for a value of the wrong type."""
        check_types(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A question and how to answer it.

    Retrieval: the options below belong to several strategies; `options` holds those of single strategies, each declared
    beside its strategy. With the preset "faithful", options that have their default get the values of the strategy's
    source when the search begins. Keywords, if given, replace those that a model would extract from the question.

    Answering with a model: `language` is the language of the answer ("": the language of the question). `system_prompt`
    replaces the instructions on role and style, but never the instructions on evidence and citations. `user_prompt`
    adds instructions. `history` is the earlier conversation. `may_fall_back` allows an extractive answer if the model
    is unavailable. If not `with_answer`, there is no answer, neither written nor quoted, for callers that need only the
    context or the prompt.

    Without `auto_refresh`, a query whose strategy needs a missing derivation raises Stale.

    `prompts`, the user's own instructions, come from the settings. The engine sets `search_text` (the rewritten
    question), `model_keywords`, and `names_documents`: whether the pieces of the answer name the documents it rests on.
    """

    text: str
    strategy: str = "weave"
    preset: Literal["default", "faithful"] = option(
        "default", "Options that are not set; faithful: as in the strategy's paper or its authors' code."
    )
    top_k: int = option(40, "Maximum entities or relations searched; many strategies take fewer.", between=(1, 1_000))
    chunk_top_k: int = option(20, "Maximum passages.", between=(1, 1_000))
    min_similarity: float = option(0.2, "Minimum cosine of a vector match.", between=(-1.0, 1.0))
    related_chunks: int = option(
        5, "Passages for each matching entity or relation, in local, global, hybrid and mix.", between=(0, 1_000)
    )
    community_level: int = option(
        2, "Finest community level whose reports are read; 0 is the coarsest.", between=(0, 100)
    )
    options: tuple[Options, ...] = ()
    budget: Budget = field(default_factory=Budget)
    filter: Filter = field(default_factory=Filter)
    low_level_keywords: tuple[str, ...] = ()
    high_level_keywords: tuple[str, ...] = ()
    response_type: str = option("Multiple Paragraphs", 'Form of a model\'s answer, as in "Bullet Points".')
    passages_per_call: int = option(
        0,
        "Passages that a model reads at once: it answers from the first ones, then refines the answer with the next; "
        "0: all in one call.",
        between=(0, 1_000),
    )
    language: str = ""
    system_prompt: str = ""
    user_prompt: str = ""
    history: tuple[Turn, ...] = ()
    rewrite_question: bool = option(
        True, "Let a model rewrite a follow-up question so that it stands alone, before the search."
    )
    rerank: bool = option(True, "Let the reranker order the passages, if one is set.")
    min_rerank_score: float = option(
        0.0, "Passages that the reranker scores lower are left out; 0 keeps all.", between=(0.0, 1_000.0)
    )
    may_fall_back: bool = True
    with_answer: bool = True
    auto_refresh: bool = option(
        False, "First compute the derivations that the strategy needs; this may cost calls of a model."
    )
    max_cost: float = option(
        0.0, "Maximum money for models, within the budget; 0: no limit of its own.", between=(0.0, 1_000_000.0)
    )
    prompts: tuple[PromptText, ...] = ()
    search_text: str = ""
    model_keywords: Keywords = field(default_factory=Keywords)
    names_documents: bool = False

    def __post_init__(self) -> None:
        """Raise InvalidInput for a value of the wrong type."""
        check_types(self)

    def options_of(self, kind: type[Owned]) -> Owned:
        """Return the options of a strategy: the instance of its class in `options`, else the defaults."""
        return next((options for options in self.options if isinstance(options, kind)), None) or kind()

    def with_options(self, options: Options) -> Self:
        """Return the query with these options of a strategy in place of those of the same class."""
        others = (other for other in self.options if type(other) is not type(options))
        return replace(self, options=(*others, options))

    def as_searched(self) -> Self:
        """Return the query for a strategy: its text is the rewritten question if there is one."""
        return replace(self, text=self.search_text) if self.search_text else self
