"""Values of settings, and the tables of a settings file: [[chunking]], [role.NAME], [[price]] and [prompts]."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import repeat
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypeVar, get_args
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from quipu.errors import InvalidInput
from quipu.model.chat import PromptText, Role
from quipu.model.chunking import MAX_CHUNK_TOKENS, MAX_SEPARATOR, TAKES, Chunking, ChunkingRule
from quipu.model.usage import MICRO, Price, SpendingLimit
from quipu.settings.validation import SourcedValue, allowed, as_invalid_input, closest, unknown

SPENDING = (
    'money in the setting currency, tokens or calls, as in "5.00", "2M tokens" or "5.00, 300 calls"; no comma within '
    "a number"
)

_PART = re.compile(r"[$€£]?\s*(\d[\d_]*(?:\.\d+)?)\s*([km]?)\s*(tokens?|calls?|)", re.IGNORECASE)
_COMMA_IN_NUMBER = re.compile(r"\d,\d")
_THOUSANDS = {"": 1, "k": 1_000, "m": 1_000_000}


def parse_spending(text: str) -> SpendingLimit:
    """Return the spending limits in `text`. Raises ValueError for an empty text, or a limit given twice.

    A comma between digits is refused, because "1,5M tokens" may mean one limit or two.
    """
    if _COMMA_IN_NUMBER.search(text):
        raise ValueError("a comma separates two limits and is followed by a space; write 1.5M or 1000")
    limits: dict[str, int] = {}
    for part in text.split(","):
        match = _PART.fullmatch(part.strip())
        if match is None:
            raise ValueError(f"{part.strip()!r} is not an amount")
        number, scale, unit = float(match[1].replace("_", "")), _THOUSANDS[match[2].lower()], match[3].lower()
        kind = unit.rstrip("s") + "s" if unit else "cost"
        if kind in limits:
            raise ValueError(f"{kind} are given twice")
        limits[kind] = round(number * scale * (MICRO if kind == "cost" else 1))
    return SpendingLimit(cost=limits.get("cost"), tokens=limits.get("tokens"), calls=limits.get("calls"))


def _expand_home(value: object) -> object:
    if value == "":
        raise ValueError("an empty path, as from a shell variable that is not set")
    return Path(value).expanduser() if isinstance(value, str | Path) else value


_SCHEMES = ("postgresql://", "postgres://")


def is_database_address(place: str | Path) -> bool:
    """Say whether a place is meant as the address of a database, not as a folder.

    Raises InvalidInput for a path made of an address, which has lost a part of it.
    """
    if isinstance(place, Path) and place.parts[:1] in (("postgresql:",), ("postgres:",)):
        raise InvalidInput(f"{place} is an address made a path.", remedy="Give the address of the index as a text.")
    return isinstance(place, str) and place.lower().startswith(_SCHEMES)


def _index_place(value: object) -> object:
    is_address = isinstance(value, str | Path) and is_database_address(value)
    return value if is_address else _expand_home(value)


def _auto_as_none(value: object) -> object:
    return None if value == "auto" else value


def _check_spending(value: str) -> str:
    parse_spending(value)
    return value


def _check_address(value: str) -> str:
    _ = urlsplit(value).port  # raises ValueError for an invalid port or IPv6 address
    return value


def refuse_flag(kind: type[BaseModel], value: object, info: ValidationInfo) -> object:
    """Return the value. Raises ValueError for true or false where the setting is a number."""
    if isinstance(value, bool) and info.field_name:
        annotation = kind.model_fields[info.field_name].annotation
        if bool not in (annotation, *get_args(annotation)):
            raise ValueError("true or false, not a number")
    return value


_AUTO = BeforeValidator(_auto_as_none)
FilePath = Annotated[Path, BeforeValidator(_expand_home)]
IndexPlace = Annotated[Path | str, BeforeValidator(_index_place)]
AutoTokens = Annotated[Annotated[int, Field(ge=32, le=MAX_CHUNK_TOKENS)] | None, _AUTO]
AutoOverlap = Annotated[Annotated[int, Field(ge=0, le=MAX_CHUNK_TOKENS)] | None, _AUTO]
AutoPercentile = Annotated[Annotated[int, Field(ge=1, le=99)] | None, _AUTO]
AutoConcurrency = Annotated[Annotated[int, Field(ge=1, le=1_024)] | None, _AUTO]
AutoDimension = Annotated[Annotated[int, Field(ge=8, le=16_384)] | None, _AUTO]
AutoSeconds = Annotated[Annotated[float, Field(ge=1.0, le=86_400.0)] | None, _AUTO]
AutoTemperature = Annotated[Annotated[float, Field(ge=0.0, le=2.0)] | None, _AUTO]
AutoLength = Annotated[Annotated[int, Field(ge=16, le=1_000_000)] | None, _AUTO]
Money = Annotated[float, Field(ge=0.0, le=1_000_000.0)]
AutoMoney = Annotated[Money | None, _AUTO]
Seconds = Annotated[float, Field(ge=1.0, le=86_400.0)]
ChunkerName = Literal["structure", "fixed", "separator", "semantic"]
Separator = Annotated[str, Field(min_length=1, max_length=MAX_SEPARATOR)] | None
CurrencyName = Annotated[
    str, Field(pattern=r"^[A-Z]{3}$", json_schema_extra={"allowed": 'a code of three letters, as in "EUR"'})
]
ModelName = Annotated[str, Field(min_length=1)] | None
Address = Annotated[str, Field(pattern=r"^https?://[^\s/]+\S*$"), AfterValidator(_check_address)] | None
Words = Annotated[str, Field(min_length=1)] | None
LanguageNames = (
    Annotated[
        str, Field(pattern=r"^\w+(\+\w+)*$", json_schema_extra={"allowed": 'names joined by "+", as in "deu+eng"; off'})
    ]
    | None
)
SuffixList = Annotated[
    str, Field(pattern=r"^\w+( \w+)*$", json_schema_extra={"allowed": 'suffixes, as in "pdf docx png"'})
]
SpendingText = Annotated[
    Annotated[str, AfterValidator(_check_spending), Field(json_schema_extra={"allowed": SPENDING})] | None, _AUTO
]


Model = TypeVar("Model", bound=BaseModel)
T = TypeVar("T")


def parse_table(table: object, kind: type[Model], *, what: str, usage: str, origin: str) -> Model:
    """Return a table as its model. Raises InvalidInput with the fault and its place."""
    if not isinstance(table, dict):
        raise InvalidInput(f"{table!r} ({origin}) is not a {what}.", remedy=f"Use {usage}.")
    try:
        return kind(**table)
    except ValidationError as error:
        values = {str(name): SourcedValue(value=value, origin=origin) for name, value in table.items()}
        raise as_invalid_input(error, values, kind, what=what, origin=origin) from None


def lines_of_tables(name: str, text: str) -> Iterator[int]:
    """Yield the first line of each [[name]] table, and then that of the first one for tables written inline."""
    pattern = re.compile(rf"\s*\[\[\s*[\"']?{name}[\"']?\s*\]\]")
    yield from (number for number, line in enumerate(text.splitlines(), 1) if pattern.match(line))
    yield from repeat(line_of(name, text))


def line_of(name: str, text: str) -> int:
    """Return the line where a name is set, 1 if it is not found."""
    pattern = re.compile(rf"""\s*(\[\s*){{0,2}}["']?{re.escape(name)}["']?\s*[.=\]]""")
    return next((number for number, line in enumerate(text.splitlines(), 1) if pattern.match(line)), 1)


def with_origin(work: Callable[[], T], origin: str) -> T:
    """Return what `work` returns; an InvalidInput it raises gets the origin of the values in its message."""
    try:
        return work()
    except InvalidInput as error:
        raise InvalidInput(f"{error.message.rstrip('.')} ({origin}).", remedy=error.remedy) from None


def set_fields(model: BaseModel, *, without: set[str]) -> Mapping[str, Any]:
    """Return the fields of a table that are set, except those in `without`."""
    return {name: value for name, value in model.model_dump(exclude=without).items() if value is not None}


RULES = "[[chunking]] tables in quipu.toml, each with match and chunker"

# The settings of a Chunking, and the field of each.
CHUNKING_SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        "chunker": "method",
        "chunk_tokens": "max_tokens",
        "chunk_overlap": "overlap",
        "chunk_separator": "separator",
        "chunk_percentile": "percentile",
    }
)


class _ChunkingFields(BaseModel):
    """A [[chunking]] table of a settings file."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    _no_flag = field_validator("*", mode="before")(classmethod(refuse_flag))

    match: str = Field(min_length=1)
    chunker: ChunkerName
    chunk_tokens: AutoTokens = None
    chunk_overlap: AutoOverlap = None
    chunk_separator: Separator = None
    chunk_percentile: AutoPercentile = None


def chunking_rules(tables: Sequence[object], file: str, text: str) -> tuple[ChunkingRule, ...]:
    """Return the rules of the [[chunking]] tables of a file."""
    lines = lines_of_tables("chunking", text)
    return tuple(_rule(table, f"{file}:{line}") for table, line in zip(tables, lines, strict=False))


def default_chunking(values: Mapping[str, Any], origins: Mapping[str, str]) -> Chunking:
    """Return the chunking of the settings, with the fields that its chunker uses."""
    fields = ("method", "max_tokens", *TAKES[values["chunker"]])
    by_field = {CHUNKING_SETTINGS[name]: value for name, value in values.items()}
    sources = ", ".join(f"{name}: {origins[name]}" for name in values if name in origins)
    return with_origin(lambda: Chunking(**{name: by_field[name] for name in fields}), sources)


def _rule(table: object, origin: str) -> ChunkingRule:
    rule = parse_table(table, _ChunkingFields, what="chunking rule", usage=RULES, origin=origin)
    values = set_fields(rule, without={"match"})
    chunking = with_origin(
        lambda: Chunking(**{CHUNKING_SETTINGS[name]: value for name, value in values.items()}), origin
    )
    return ChunkingRule(match=rule.match, chunking=chunking)


ROLES = "[role.NAME] tables in quipu.toml, as in [role.extract]"
PROMPT_TEXTS = "the [prompts] table in quipu.toml, with a text for each name"
PRICES = "[[price]] tables in quipu.toml, each with model, input and output: money for a million tokens"


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleSettings:
    """The settings of one role; None stands for the general setting. `extra` is a JSON object."""

    role: Role
    llm: str | None = None
    llm_base_url: str | None = field(default=None, repr=False)
    llm_api_version: str | None = None
    concurrency: int | None = None
    timeout_s: float | None = None
    temperature: float | None = None
    max_output_tokens: int | None = None
    fallback: str | None = None
    extra: str = field(default="{}", repr=False)

    def __str__(self) -> str:
        return f"{self.role}: {self.llm or 'as llm'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPrice:
    """The price of the models whose name matches a pattern."""

    model: str
    price: Price

    def __str__(self) -> str:
        return f"{self.model}: {self.price.input:g} in, {self.price.output:g} out"


class _RoleFields(BaseModel):
    """A [role.NAME] table of a settings file."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    _no_flag = field_validator("*", mode="before")(classmethod(refuse_flag))

    llm: ModelName = None
    llm_base_url: Address = None
    llm_api_version: Words = None
    concurrency: AutoConcurrency = None
    timeout_s: AutoSeconds = None
    temperature: AutoTemperature = None
    max_output_tokens: AutoLength = None
    fallback: ModelName = None
    extra: dict[str, Any] = Field(
        default_factory=dict, json_schema_extra={"allowed": "a table of further fields that the server takes"}
    )


class _PriceFields(BaseModel):
    """A [[price]] table of a settings file."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    _no_flag = field_validator("*", mode="before")(classmethod(refuse_flag))

    model: str = Field(min_length=1)
    input: Money
    output: Money
    cached: AutoMoney = None


def fields_of_tables() -> Mapping[str, Mapping[str, str]]:
    """Return the fields of each kind of table, and in words which values they take."""
    fields: dict[str, type[BaseModel]] = {
        "[[chunking]]": _ChunkingFields,
        "[role.NAME]": _RoleFields,
        "[[price]]": _PriceFields,
    }
    return {table: allowed(model) for table, model in fields.items()} | {
        "[prompts]": {"NAME": "text", "NAME.file": "the path of a file of text in UTF-8"}
    }


def role_settings(tables: Mapping[str, object], file: str, text: str) -> tuple[RoleSettings, ...]:
    """Return the [role.NAME] tables of a file. Raises InvalidInput for an unknown role."""
    roles: list[RoleSettings] = []
    for name, table in tables.items():
        origin = f"{file}:{_line_of_role(name, text)}"
        if name not in list(Role):
            raise unknown(name, origin, list(Role), "role")
        fields = parse_table(table, _RoleFields, what="role", usage=ROLES, origin=origin)
        values = fields.model_dump(exclude={"extra"})
        try:
            extra = json.dumps(fields.extra, sort_keys=True)
        except TypeError:
            raise InvalidInput(
                f"extra of role {name} ({origin}) has a value that is not JSON.", remedy="Use text, numbers and lists."
            ) from None
        roles.append(RoleSettings(role=Role(name), extra=extra, **values))
    return tuple(roles)


def model_prices(tables: Sequence[object], file: str, text: str) -> tuple[ModelPrice, ...]:
    """Return the [[price]] tables of a file."""
    lines = lines_of_tables("price", text)
    return tuple(_price(table, f"{file}:{line}") for table, line in zip(tables, lines, strict=False))


def _price(table: object, origin: str) -> ModelPrice:
    fields = parse_table(table, _PriceFields, what="price", usage=PRICES, origin=origin)
    return ModelPrice(model=fields.model, price=Price(input=fields.input, output=fields.output, cached=fields.cached))


def prompt_texts(table: Mapping[str, object], file: Path, text: str) -> tuple[PromptText, ...]:
    """Return the [prompts] table of a file, whose paths are relative to it.

    Raises InvalidInput for an unknown prompt, a file that cannot be read, and a text that lacks a placeholder.
    """
    from quipu.prompts.catalog import PROMPTS

    texts: list[PromptText] = []
    for name, value in table.items():
        origin = f"{file}:{line_of(name, text)}"
        if name not in PROMPTS:
            near = closest(name, list(PROMPTS))
            remedy = f"Did you mean {near}?" if near else f"There are: {', '.join(PROMPTS)}."
            raise InvalidInput(f"There is no prompt {name} ({origin}).", remedy=remedy)
        own = PromptText(prompt=name, text=_text_or_file(name, value, file.parent, origin).strip())
        with_origin(partial(PROMPTS[name].check, own.text), origin)
        texts.append(own)
    return tuple(texts)


def _text_or_file(name: str, value: object, folder: Path, origin: str) -> str:
    if isinstance(value, str):
        return value
    if not isinstance(value, dict) or list(value) != ["file"] or not isinstance(value["file"], str):
        raise InvalidInput(
            f"{name} = {value!r} ({origin}) is not a text.", remedy=f'Use text, or {name}.file = "PATH".'
        )
    path = folder / Path(value["file"]).expanduser()
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InvalidInput(f"{path}, the text of the prompt {name} ({origin}), cannot be read: {reason}.") from None


def _line_of_role(name: str, text: str) -> int:
    line = line_of(f"role.{name}", text)
    return line if line > 1 else line_of("role", text)
