"""Settings: arguments, then the environment, then quipu.toml, then defaults; nothing else reads any of them."""

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PrivateAttr, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from quipu.errors import InvalidInput
from quipu.model.query import Budget, Query

ENVIRONMENT_PREFIX = "QUIPU_"
CONFIG_NAME = "quipu.toml"

SettingValue = str | int | float | Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveSetting:
    """One setting as it is in force, and where its value came from."""

    name: str
    value: SettingValue
    origin: str  # "argument", "environment QUIPU_TOP_K", "quipu.toml:3", "default"
    description: str
    default: SettingValue
    allowed: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Given:
    """A value, not yet validated, and where it was given."""

    value: Any
    origin: str


def _expand_home(value: object) -> object:
    if value == "":
        raise ValueError("an empty path, as from a shell variable that is not set")
    return Path(value).expanduser() if isinstance(value, str | Path) else value


def _auto_as_none(value: object) -> object:
    return None if value == "auto" else value


FilePath = Annotated[Path, BeforeValidator(_expand_home)]
AutoTokens = Annotated[Annotated[int, Field(ge=32, le=32_000)] | None, BeforeValidator(_auto_as_none)]


class Settings(BaseSettings):
    """How an index is opened, filled and asked. Every field is described in docs/reference/settings.md.

    An argument that is None counts as not given. Raises InvalidInput naming the setting, the value, where it came from
    and what is allowed.
    """

    model_config = SettingsConfigDict(env_prefix=ENVIRONMENT_PREFIX, env_ignore_empty=True, frozen=True, extra="forbid")

    index: FilePath = Field(Path(".quipu"), description="Directory of the index.")
    config: FilePath | None = Field(
        None, description="Settings file; by default quipu.toml in the current directory, else beside the index."
    )
    extractor: Literal["local"] = Field("local", description="What reads chunks; local: rules, no language model.")
    embedder: Literal["wordllama"] = Field("wordllama", description="What turns texts into vectors.")
    segmenter: Literal["pairs", "jieba"] = Field(
        "pairs", description="What full text makes of Chinese: pairs of characters; jieba: words too (quipu-rag[zh])."
    )
    chunk_tokens: AutoTokens = Field(
        None, description="Most tokens a chunk; auto: 1200, and 600 in documents over 100 KB."
    )
    strategy: str = Field("mix", min_length=1, description="Retrieval strategy of a question that names none.")
    top_k: int = Field(40, ge=1, le=1_000, description="Entities or relations searched.")
    chunk_top_k: int = Field(20, ge=1, le=1_000, description="Passages kept.")
    min_similarity: float = Field(0.2, ge=-1.0, le=1.0, description="Least cosine of a vector hit.")
    related_chunks: int = Field(5, ge=0, le=1_000, description="Passages taken for each entity or relation found.")
    entity_tokens: int = Field(6_000, ge=0, le=2_000_000, description="Most tokens of entities in the context.")
    relation_tokens: int = Field(8_000, ge=0, le=2_000_000, description="Most tokens of relations in the context.")
    total_tokens: int = Field(30_000, ge=1, le=2_000_000, description="Most tokens of prompt and context together.")
    response_type: str = Field("Multiple Paragraphs", min_length=1, description="Form of the answer asked of a model.")
    exact_below: int = Field(
        20_000, ge=0, le=100_000_000, description="Vectors below which search is exact, without sketches."
    )
    busy_timeout_s: float = Field(
        30.0, ge=0.0, le=86_400.0, description="Seconds to wait for another process that writes."
    )
    lease_s: float = Field(60.0, ge=1.0, le=86_400.0, description="Seconds a remote process may hold work unrenewed.")

    _origins: dict[str, str] = PrivateAttr(default_factory=dict)

    def __init__(self, **arguments: SettingValue) -> None:
        given = _gather(type(self), arguments)
        try:
            super().__init__(**{name: each.value for name, each in given.items()})
        except ValidationError as error:
            raise _as_invalid_input(error, given) from None
        self._origins.update((name, each.origin) for name, each in given.items())

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take values as `__init__` has gathered them, so that the origin of each is known."""
        return (init_settings,)

    def query(self, text: str) -> Query:
        """Return a query for `text` with these settings as its options."""
        budget = Budget(entities=self.entity_tokens, relations=self.relation_tokens, total=self.total_tokens)
        return Query(
            text=text,
            strategy=self.strategy,
            top_k=self.top_k,
            chunk_top_k=self.chunk_top_k,
            min_similarity=self.min_similarity,
            related_chunks=self.related_chunks,
            budget=budget,
            response_type=self.response_type,
        )


def effective(settings: Settings) -> list[EffectiveSetting]:
    """Return every setting as it is in force, in order of declaration, with where it came from."""
    allowed = _allowed()
    return [
        EffectiveSetting(
            name=name,
            value=getattr(settings, name),
            origin=settings._origins.get(name, "default"),
            description=field.description or "",
            default=field.default,
            allowed=allowed[name],
        )
        for name, field in Settings.model_fields.items()
    ]


def unknown_variables() -> list[tuple[str, str]]:
    """Return the QUIPU_* variables that name no setting, each with the closest that does (or "")."""
    known = [ENVIRONMENT_PREFIX + name.upper() for name in Settings.model_fields]
    unknown = sorted(name for name in os.environ if name.startswith(ENVIRONMENT_PREFIX) and name not in known)
    return [(name, _closest(name, known)) for name in unknown]


def _gather(kind: type[Settings], arguments: Mapping[str, SettingValue]) -> dict[str, _Given]:
    """Return each given value with its origin: arguments over environment over file."""
    given = {name: _Given(value=value, origin="argument") for name, value in arguments.items() if value is not None}
    for name, value in EnvSettingsSource(kind)().items():
        given.setdefault(name, _Given(value=value, origin=f"environment {ENVIRONMENT_PREFIX}{name.upper()}"))
    file = _config_file(kind, given)
    if file is not None:
        for name, each in _read(file).items():
            given.setdefault(name, each)
    return given


def _config_file(kind: type[Settings], given: Mapping[str, _Given]) -> Path | None:
    if named := given.get("config"):
        file = Path(str(named.value)).expanduser()
        if not file.is_file():
            raise InvalidInput(
                f"config = {str(named.value)!r} ({named.origin}) is not a file.", remedy="Name a file in TOML."
            )
        return file
    index = given["index"].value if "index" in given else kind.model_fields["index"].default
    beside = Path(str(index)).expanduser().parent
    return next((file for folder in (Path(), beside) if (file := folder / CONFIG_NAME).is_file()), None)


def _read(file: Path) -> dict[str, _Given]:
    """Return the settings of a file; paths in it are relative to its own folder."""
    try:
        text = file.read_text(encoding="utf-8")
        values = tomllib.loads(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"{file} cannot be read: {error}.", remedy="Mend it, or name another file.") from None
    given = {}
    for name, value in values.items():
        origin = f"{file}:{_line_of(name, text)}"
        if name not in Settings.model_fields:
            raise _unknown(name, origin)
        if name == "config":
            raise InvalidInput(f"config cannot be set in a settings file ({origin}).", remedy="Take the line out.")
        is_path = name == "index" and isinstance(value, str)
        given[name] = _Given(value=file.parent / Path(value).expanduser() if is_path else value, origin=origin)
    return given


def _line_of(name: str, text: str) -> int:
    pattern = re.compile(rf"""\s*(\[\s*)?["']?{re.escape(name)}["']?\s*[.=\]]""")
    return next((number for number, line in enumerate(text.splitlines(), 1) if pattern.match(line)), 1)


def _unknown(name: str, origin: str) -> InvalidInput:
    near = _closest(name, list(Settings.model_fields))
    remedy = f"Did you mean {near}?" if near else "`quipu config` lists every setting."
    return InvalidInput(f"There is no setting {name} ({origin}).", remedy=remedy)


def _closest(name: str, known: list[str]) -> str:
    return next(iter(get_close_matches(name.replace("-", "_"), known, n=1)), "")


def _as_invalid_input(error: ValidationError, given: Mapping[str, _Given]) -> InvalidInput:
    """Turn pydantic's first complaint into one line: setting, value, origin, what is allowed."""
    complaint: ErrorDetails = error.errors(include_url=False)[0]
    name = str(complaint["loc"][0])
    each = given[name]
    if name not in Settings.model_fields:
        return _unknown(name, each.origin)
    value = str(each.value) if isinstance(each.value, Path) else each.value
    return InvalidInput(f"{name} = {value!r} ({each.origin}) is not allowed.", remedy=f"Use {_allowed()[name]}.")


def _allowed() -> dict[str, str]:
    """Say in words which values each setting takes."""
    properties = Settings.model_json_schema()["properties"]
    return {name: _in_words(**schema) for name, schema in properties.items()}


def _in_words(**schema: Any) -> str:
    """Say in words what a JSON schema of one value allows."""
    kinds = schema.get("anyOf", [schema])
    first = kinds[0]
    if literal := first.get("enum", [first["const"]] if "const" in first else []):
        return " or ".join(literal)
    if first["type"] == "string":
        return "a path" if first.get("format") == "path" else "text that is not empty"
    noun = "a whole number" if first["type"] == "integer" else "a number"
    return f"{noun} from {first['minimum']:,} to {first['maximum']:,}" + (", or auto" if len(kinds) > 1 else "")
