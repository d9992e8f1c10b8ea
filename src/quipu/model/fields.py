"""Fields: whether what a caller puts into a dataclass is what its annotations say; said in words where it is not."""

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

from quipu.errors import InvalidInput

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

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
