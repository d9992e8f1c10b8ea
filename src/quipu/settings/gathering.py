"""Gathering: each given value with its origin, arguments over environment over file."""

import tomllib
from collections.abc import Mapping
from pathlib import Path

from pydantic_settings import BaseSettings, EnvSettingsSource

from quipu.errors import InvalidInput
from quipu.settings.chunking import chunking_rules
from quipu.settings.complaints import unknown
from quipu.settings.roles import model_prices, role_settings
from quipu.settings.tables import line_of
from quipu.settings.values import Given, SettingValue

ENVIRONMENT_PREFIX = "QUIPU_"
CONFIG_NAME = "quipu.toml"
_FILES = ("index", "ontology", "glossary", "secrets", "record")  # settings that are paths


def gather(kind: type[BaseSettings], arguments: Mapping[str, SettingValue]) -> dict[str, Given]:
    """Return each given value with its origin."""
    given = {name: Given(value=value, origin="argument") for name, value in arguments.items() if value is not None}
    for name, value in EnvSettingsSource(kind)().items():
        given.setdefault(name, Given(value=value, origin=f"environment {ENVIRONMENT_PREFIX}{name.upper()}"))
    file = _config_file(kind, given)
    if file is not None:
        for name, each in _read(file, list(kind.model_fields)).items():
            given.setdefault(name, each)
    return given


def find_config(index: Path) -> Path | None:
    """Return the settings file here, or beside the index; None where there is none."""
    return next((file for folder in (Path(), index.parent) if (file := folder / CONFIG_NAME).is_file()), None)


def _config_file(kind: type[BaseSettings], given: Mapping[str, Given]) -> Path | None:
    if named := given.get("config"):
        file = Path(str(named.value)).expanduser()
        if not file.is_file():
            raise InvalidInput(
                f"config = {str(named.value)!r} ({named.origin}) is not a file.", remedy="Name a file in TOML."
            )
        return file
    index = given["index"].value if "index" in given else kind.model_fields["index"].default
    return find_config(Path(str(index)).expanduser())


def _read(file: Path, known: list[str]) -> dict[str, Given]:
    """Return the settings of a file; paths in it are relative to its own folder."""
    try:
        text = file.read_text(encoding="utf-8")
        values = tomllib.loads(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"{file} cannot be read: {error}.", remedy="Mend it, or name another file.") from None
    given = {}
    for name, value in values.items():
        origin = f"{file}:{line_of(name, text)}"
        if name not in known:
            raise unknown(name, origin, known, "setting")
        if name == "config":
            raise InvalidInput(f"config cannot be set in a settings file ({origin}).", remedy="Take the line out.")
        given[name] = Given(value=_from_file(name, value, file, text), origin=origin)
    return given


def _from_file(name: str, value: object, file: Path, text: str) -> object:
    """Return a value of a file as its setting takes it: tables as what they stand for, paths from its folder on."""
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
