"""Where settings come from: arguments, environment and quipu.toml; and keys from the environment or secrets.toml."""

import os
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, create_model, field_validator
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from quipu.errors import InvalidInput
from quipu.model.query import Option, OptionValue, options_in
from quipu.retrieve import strategies_by_options
from quipu.settings.tables import (
    chunking_rules,
    is_database_address,
    line_of,
    model_prices,
    prompt_texts,
    refuse_flag,
    role_settings,
)
from quipu.settings.validation import SettingValue, SourcedValue, as_invalid_input, unknown

ENVIRONMENT_PREFIX = "QUIPU_"
CONFIG_NAME = "quipu.toml"
_FILES = ("index", "ontology", "glossary", "secrets", "record", "cache")  # settings that are paths


# Variables that hold keys, and so are no settings.
KEY_VARIABLES = ("QUIPU_LLM_KEY", "QUIPU_EMBEDDER_KEY", "QUIPU_RERANKER_KEY", "QUIPU_PARSER_KEY", "QUIPU_QDRANT_KEY")
_DATA = "QUIPU_DATA"  # where benchmarks and tests find data sets


class SourcedSettings(BaseSettings):
    """Settings with the values that `gather_values` returns, so that each has a known origin; no others are read."""

    model_config = SettingsConfigDict(
        env_prefix=ENVIRONMENT_PREFIX, env_ignore_empty=True, frozen=True, extra="forbid", defer_build=True
    )

    _no_flag = field_validator("*", mode="before")(classmethod(refuse_flag))

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Use only the values passed to the constructor."""
        return (init_settings,)


def settings_of(name: str, options: Iterable[Option]) -> type[SourcedSettings]:
    """Return a class of settings with a field for each option."""
    fields: dict[str, Any] = {option.name: (option.annotation, _field(option)) for option in options}
    return create_model(name, __base__=SourcedSettings, **fields)


def _field(option: Option) -> Any:
    low, high = option.between or (None, None)
    return Field(
        option.default,
        ge=low,
        le=high,
        min_length=1 if option.annotation is str else None,
        description=option.description,
        json_schema_extra={"allowed": option.allowed},
    )


def strategy_settings() -> type[SourcedSettings]:
    """Return the settings that are options of single strategies; this imports every strategy."""
    return settings_of("StrategySettings", chain.from_iterable(map(options_in, strategies_by_options())))


def parse_strategy_settings(values: Mapping[str, SourcedValue], others: Sequence[str]) -> dict[str, OptionValue]:
    """Return the values as the options of strategies take them. `others` are the names of all other settings.

    Raises InvalidInput for a value that is not allowed, and for a name that is no setting.
    """
    kind = strategy_settings()
    for name, sourced in values.items():
        if name not in kind.model_fields:
            raise _unknown_setting(name, sourced.origin, [*others, *kind.model_fields])
    try:
        settings = kind(**{name: sourced.value for name, sourced in values.items()})
    except ValidationError as error:
        raise as_invalid_input(error, values, kind, what="setting") from None
    return {name: getattr(settings, name) for name in values}


def _unknown_setting(name: str, origin: str, known: Sequence[str]) -> InvalidInput:
    """Return the error for a name that is no setting; the options in a group, as `mix_weights`, are settings each."""
    options = chain.from_iterable(map(options_in, strategies_by_options()))
    parts = [option.name for option in options if option.path[:-1] == (name.replace("-", "_"),)]
    error = unknown(name, origin, known, "setting")
    return InvalidInput(error.message, remedy=f"Set {', '.join(parts[:-1])} and {parts[-1]}.") if parts else error


def gather_values(kind: type[BaseSettings], arguments: Mapping[str, SettingValue]) -> dict[str, SourcedValue]:
    """Return each value that is set, with its origin; arguments win over the environment, which wins over the file."""
    values = {name: _sourced(name, value, "argument") for name, value in arguments.items() if value is not None}
    for name, value in _read_environment(kind, _variables()).items():
        values.setdefault(name, _sourced(name, value, f"environment {ENVIRONMENT_PREFIX}{name.upper()}"))
    file = _config_file(kind, values)
    if file is not None:
        for name, sourced in _read(file).items():
            values.setdefault(name, sourced)
    return values


def _sourced(name: str, value: Any, origin: str) -> SourcedValue:
    """Return a value with its origin. Raises InvalidInput for a wrong address of an index, or one with a password."""
    if name == "index" and isinstance(value, str | Path) and is_database_address(value):
        from quipu.model.index_address import parse_database_address

        value = str(parse_database_address(str(value)))
    return SourcedValue(value=value, origin=origin)


def _variables() -> frozenset[tuple[str, str]]:
    """Return the QUIPU_* variables with their values."""
    return frozenset(part for part in os.environ.items() if part[0].upper().startswith(ENVIRONMENT_PREFIX))


def environment_of(names: Iterable[str]) -> dict[str, str]:
    """Return those of the variables that are set, for a process that should see no others."""
    return {name: os.environ[name] for name in names if name in os.environ}


@lru_cache(maxsize=8)
def _read_environment(kind: type[BaseSettings], _variables: frozenset[tuple[str, str]]) -> Mapping[str, Any]:
    """Return the variables that are settings, of `kind` or of a strategy; a server that opens many indexes reads once.

    The variables are given because the settings follow from them.
    """
    of_strategies = EnvSettingsSource(strategy_settings())() if other_variables(list(kind.model_fields)) else {}
    return EnvSettingsSource(kind)() | of_strategies


def other_variables(names: Sequence[str]) -> list[str]:
    """Return the QUIPU_* variables that are neither keys nor settings of these names."""
    known = {*KEY_VARIABLES, _DATA, *(ENVIRONMENT_PREFIX + name.upper() for name in names)}
    return sorted(
        name for name in os.environ if name.upper().startswith(ENVIRONMENT_PREFIX) and name.upper() not in known
    )


def find_config(outer_folder: Path) -> Path | None:
    """Return the settings file in the current directory or beside the index; None if there is none."""
    return next((file for folder in (Path(), outer_folder) if (file := folder / CONFIG_NAME).is_file()), None)


def set_default_variable(name: str, value: str) -> None:
    """Set a variable of the environment for a library that reads nothing else, unless the user has set it."""
    os.environ.setdefault(name, value)


def default_cache() -> Path:
    """Return the folder for files that can be made again, as the XDG Base Directory Specification has it."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(cache) if Path(cache).is_absolute() else Path.home() / ".cache") / "quipu"


def _config_file(kind: type[BaseSettings], values: Mapping[str, SourcedValue]) -> Path | None:
    if config := values.get("config"):
        file = Path(str(config.value)).expanduser()
        if not file.is_file():
            raise InvalidInput(
                f"config = {str(config.value)!r} ({config.origin}) is not a file.", remedy="Name a file in TOML."
            )
        return file
    index = values["index"].value if "index" in values else kind.model_fields["index"].default
    return find_config(Path() if is_database_address(index) else Path(index).expanduser().parent)


def _read(file: Path) -> dict[str, SourcedValue]:
    """Return the settings of a file; paths in it are relative to its own folder."""
    try:
        text = file.read_text(encoding="utf-8")
        values = tomllib.loads(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"{file} cannot be read: {error}.", remedy="Fix it, or name another file.") from None
    sourced = {}
    for name, value in values.items():
        origin = f"{file}:{line_of(name, text)}"
        if name == "config":
            raise InvalidInput(f"config cannot be set in a settings file ({origin}).", remedy="Remove the line.")
        sourced[name] = _sourced(name, _from_file(name, value, file, text), origin)
    return sourced


def _from_file(name: str, value: object, file: Path, text: str) -> object:
    """Return a value of the file as its setting takes it: tables are parsed, and paths are relative to the file."""
    if name == "chunking" and isinstance(value, list):
        return chunking_rules(value, str(file), text)
    if name == "role" and isinstance(value, dict):
        return role_settings(value, str(file), text)
    if name == "price" and isinstance(value, list):
        return model_prices(value, str(file), text)
    if name == "prompts" and isinstance(value, dict):
        return prompt_texts(value, file, text)
    if name in _FILES and isinstance(value, str) and not (name == "index" and is_database_address(value)):
        return file.parent / Path(value).expanduser()
    if name == "embedder_model" and isinstance(value, str):  # a folder or a name
        path = file.parent / Path(value).expanduser()
        return str(path) if path.is_dir() else value
    return value


SECRETS_NAME = "secrets.toml"


@dataclass(frozen=True, slots=True)
class FoundKey:
    """A key and its origin; its repr shows only the origin."""

    value: str
    origin: str

    def __repr__(self) -> str:
        return f"FoundKey({self.origin!r})"


def find_key(variables: Sequence[str], lines: Sequence[str], secrets: Path | None) -> FoundKey | None:
    """Return the key of the first of the environment `variables` that is set, else of the first of `lines`.

    A file of secrets is TOML, with a line for each provider (`openai = "sk-…"`), host (`"gpu.example:8000" = "…"`) or
    variable. Raises InvalidInput if it cannot be read; the message never repeats its content.
    """
    for name in variables:
        if value := os.environ.get(name, "").strip():
            return FoundKey(value, f"environment {name}")
    if secrets is None:
        return None
    try:
        keys = tomllib.loads(secrets.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not TOML in UTF-8"
        raise InvalidInput(f"The secrets in {secrets} cannot be read ({reason}).", remedy="Fix the file.") from None
    for name in lines:
        key = keys.get(name)
        if isinstance(key, str) and key.strip():
            return FoundKey(key.strip(), f"{secrets} ({name})")
    return None


def find_secrets(named: Path | None, outer_folder: Path) -> Path | None:
    """Return the file of secrets: `named`, or secrets.toml in the current directory or beside the index."""
    if named is not None:
        if not named.is_file():
            raise InvalidInput(f"secrets = {str(named)!r} is not a file.", remedy="Name a file in TOML.")
        return named
    return next((file for folder in (Path(), outer_folder) if (file := folder / SECRETS_NAME).is_file()), None)
