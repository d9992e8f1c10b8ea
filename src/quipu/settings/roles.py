"""Settings of models: the [role.NAME] tables that give a piece of work a model of its own, and [[price]] tables."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from quipu.errors import InvalidInput
from quipu.model.chat import Role
from quipu.model.usage import Price
from quipu.settings.complaints import allowed, unknown
from quipu.settings.tables import line_of, lines_of_tables, parse_table
from quipu.settings.values import (
    Address,
    AutoConcurrency,
    AutoLength,
    AutoMoney,
    AutoSeconds,
    AutoTemperature,
    ModelName,
    Money,
    Words,
    refuse_flag,
)

ROLES = "[role.NAME] tables in quipu.toml, as in [role.extract]"
PRICES = "[[price]] tables in quipu.toml, each with model, input and output: money for a million tokens"


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleSettings:
    """What differs for one role from the settings of all; None: nothing. `extra` is a JSON object."""

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
    """The price of the models whose name fits a pattern."""

    model: str
    price: Price

    def __str__(self) -> str:
        return f"{self.model}: {self.price.input:g} in, {self.price.output:g} out"


class _RoleTable(BaseModel):
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
        default_factory=dict, json_schema_extra={"allowed": "a table of what the server takes besides"}
    )


class _PriceTable(BaseModel):
    """A [[price]] table of a settings file."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    _no_flag = field_validator("*", mode="before")(classmethod(refuse_flag))

    model: str = Field(min_length=1)
    input: Money
    output: Money
    cached: AutoMoney = None


def fields_of_tables() -> Mapping[str, Mapping[str, str]]:
    """Return the fields of each kind of table, and what they allow, in words."""
    return {"[role.NAME]": allowed(_RoleTable), "[[price]]": allowed(_PriceTable)}


def role_settings(tables: Mapping[str, object], file: str, text: str) -> tuple[RoleSettings, ...]:
    """Return the [role.NAME] tables of a file. Raises InvalidInput for a role there is none of."""
    found: list[RoleSettings] = []
    for name, table in tables.items():
        origin = f"{file}:{_line_of_role(name, text)}"
        if name not in list(Role):
            raise unknown(name, origin, list(Role), "role")
        given = parse_table(table, _RoleTable, what="role", usage=ROLES, origin=origin)
        values = given.model_dump(exclude={"extra"})
        try:
            extra = json.dumps(given.extra, sort_keys=True)
        except TypeError:
            raise InvalidInput(
                f"extra of role {name} ({origin}) holds what no server takes.", remedy="Use text, numbers and lists."
            ) from None
        found.append(RoleSettings(role=Role(name), extra=extra, **values))
    return tuple(found)


def model_prices(tables: Sequence[object], file: str, text: str) -> tuple[ModelPrice, ...]:
    """Return the [[price]] tables of a file."""
    lines = lines_of_tables("price", text)
    return tuple(_price(table, f"{file}:{line}") for table, line in zip(tables, lines, strict=False))


def _price(table: object, origin: str) -> ModelPrice:
    given = parse_table(table, _PriceTable, what="price", usage=PRICES, origin=origin)
    return ModelPrice(model=given.model, price=Price(input=given.input, output=given.output, cached=given.cached))


def _line_of_role(name: str, text: str) -> int:
    line = line_of(f"role.{name}", text)
    return line if line > 1 else line_of("role", text)
