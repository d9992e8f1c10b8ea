"""Where settings come from: arguments, environment and quipu.toml; and keys from the environment or secrets.toml."""

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic_settings import BaseSettings, EnvSettingsSource

from quipu.errors import InvalidInput
from quipu.settings.tables import chunking_rules, line_of, model_prices, role_settings
from quipu.settings.validation import unknown
from quipu.settings.values import SettingValue, SourcedValue

ENVIRONMENT_PREFIX = "QUIPU_"
CONFIG_NAME = "quipu.toml"
_FILES = ("index", "ontology", "glossary", "secrets", "record")  # settings that are paths


def gather_values(kind: type[BaseSettings], arguments: Mapping[str, SettingValue]) -> dict[str, SourcedValue]:
    """Return each value that is set, with its origin; arguments win over the environment, which wins over the file."""
    values = {
        name: SourcedValue(value=value, origin="argument") for name, value in arguments.items() if value is not None
    }
    for name, value in EnvSettingsSource(kind)().items():
        values.setdefault(name, SourcedValue(value=value, origin=f"environment {ENVIRONMENT_PREFIX}{name.upper()}"))
    file = _config_file(kind, values)
    if file is not None:
        for name, sourced in _read(file, list(kind.model_fields)).items():
            values.setdefault(name, sourced)
    return values


def find_config(index: Path) -> Path | None:
    """Return the settings file in the current directory or beside the index; None if there is none."""
    return next((file for folder in (Path(), index.parent) if (file := folder / CONFIG_NAME).is_file()), None)


def _config_file(kind: type[BaseSettings], values: Mapping[str, SourcedValue]) -> Path | None:
    if config := values.get("config"):
        file = Path(str(config.value)).expanduser()
        if not file.is_file():
            raise InvalidInput(
                f"config = {str(config.value)!r} ({config.origin}) is not a file.", remedy="Name a file in TOML."
            )
        return file
    index = values["index"].value if "index" in values else kind.model_fields["index"].default
    return find_config(Path(str(index)).expanduser())


def _read(file: Path, known: list[str]) -> dict[str, SourcedValue]:
    """Return the settings of a file; paths in it are relative to its own folder."""
    try:
        text = file.read_text(encoding="utf-8")
        values = tomllib.loads(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"{file} cannot be read: {error}.", remedy="Fix it, or name another file.") from None
    sourced = {}
    for name, value in values.items():
        origin = f"{file}:{line_of(name, text)}"
        if name not in known:
            raise unknown(name, origin, known, "setting")
        if name == "config":
            raise InvalidInput(f"config cannot be set in a settings file ({origin}).", remedy="Remove the line.")
        sourced[name] = SourcedValue(value=_from_file(name, value, file, text), origin=origin)
    return sourced


def _from_file(name: str, value: object, file: Path, text: str) -> object:
    """Return a value of the file as its setting takes it: tables are parsed, and paths are relative to the file."""
    if name == "chunking" and isinstance(value, list):
        return chunking_rules(value, str(file), text)
    if name == "role" and isinstance(value, dict):
        return role_settings(value, str(file), text)
    if name == "price" and isinstance(value, list):
        return model_prices(value, str(file), text)
    if name in _FILES and isinstance(value, str):
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


def find_secrets(named: Path | None, index: Path) -> Path | None:
    """Return the file of secrets: `named`, or secrets.toml in the current directory or beside the index."""
    if named is not None:
        if not named.is_file():
            raise InvalidInput(f"secrets = {str(named)!r} is not a file.", remedy="Name a file in TOML.")
        return named
    return next((file for folder in (Path(), index.parent) if (file := folder / SECRETS_NAME).is_file()), None)
