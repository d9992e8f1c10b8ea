"""The values a setting takes: names, paths, numbers within bounds, and spending limits; and a value with its origin."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, ValidationInfo

from quipu.model.chunking import MAX_CHUNK_TOKENS, MAX_SEPARATOR
from quipu.model.usage import MICRO, SpendingLimit

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


SettingValue = str | int | float | Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcedValue:
    """A value that is not validated yet, and its origin."""

    value: Any
    origin: str  # "argument", "environment QUIPU_TOP_K", "quipu.toml:3"


def without_secrets(address: str) -> str:
    """Return an address, valid or not, without user name, password and query."""
    masked = re.sub(r"^(\w+://)?.*@", r"\1***@", address, flags=re.DOTALL)
    return re.sub(r"[?#].*", "?***", masked, flags=re.DOTALL)


def _expand_home(value: object) -> object:
    if value == "":
        raise ValueError("an empty path, as from a shell variable that is not set")
    return Path(value).expanduser() if isinstance(value, str | Path) else value


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
SpendingText = Annotated[
    Annotated[str, AfterValidator(_check_spending), Field(json_schema_extra={"allowed": SPENDING})] | None, _AUTO
]
