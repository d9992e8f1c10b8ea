"""Options: dataclass fields that declare default, range and meaning, from which settings, flags and checks are made."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache, reduce
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from quipu.errors import InvalidInput

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

OptionValue = str | int | float
T = TypeVar("T")
Holder = TypeVar("Holder", bound="DataclassInstance")

_DECLARATION = "option"  # the key of a field's metadata
_MAX_SHOWN_CHARS = 80
_TYPE_NAMES: Mapping[object, str] = {str: "a string", int: "a whole number", float: "a number", bool: "True or False"}


def option(default: T, description: str, *, between: tuple[float, float] | None = None, setting: str = "") -> T:
    """Return a dataclass field that is an option.

    `description` is one sentence for the help and reference pages. `between` are the smallest and the largest number
    allowed; every option that is a number has them. `setting` is its name as a setting and flag, by default the name of
    the field.
    """
    declared: T = field(default=default, metadata={_DECLARATION: (default, description, between, setting)})
    return declared


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option. `name` is its name as a setting; `path` leads from the dataclass that holds it to the value.

    The first name of `path` is the Python keyword: `entity_weight` is a part of `mix_weights`.
    """

    name: str
    path: tuple[str, ...]
    annotation: Any
    default: OptionValue
    description: str
    between: tuple[float, float] | None

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
            default, description, between, setting = field_.metadata[_DECLARATION]
            options.append(
                Option(
                    name=setting or field_.name,
                    path=(field_.name,),
                    annotation=annotation,
                    default=default,
                    description=description,
                    between=between,
                )
            )
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
