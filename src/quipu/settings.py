"""Settings: arguments, then the environment, then quipu.toml, then defaults; nothing else reads any of them."""

import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import repeat
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, InstanceOf, PrivateAttr, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from quipu.errors import InvalidInput
from quipu.model.chunking import MAX_CHUNK_TOKENS, MAX_SEPARATOR, TAKES, Chunking, ChunkingRule
from quipu.model.query import Budget, Query

ENVIRONMENT_PREFIX = "QUIPU_"
CONFIG_NAME = "quipu.toml"
_RULES = "[[chunking]] tables in quipu.toml, each with match and chunker"

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
AutoTokens = Annotated[Annotated[int, Field(ge=32, le=MAX_CHUNK_TOKENS)] | None, BeforeValidator(_auto_as_none)]
AutoOverlap = Annotated[Annotated[int, Field(ge=0, le=MAX_CHUNK_TOKENS)] | None, BeforeValidator(_auto_as_none)]
ModelName = Annotated[str, Field(min_length=1)] | None
ChunkerName = Literal["structure", "fixed", "separator", "semantic"]
Separator = Annotated[str, Field(min_length=1, max_length=MAX_SEPARATOR)] | None
AutoPercentile = Annotated[Annotated[int, Field(ge=1, le=99)] | None, BeforeValidator(_auto_as_none)]


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
    embedder: Literal["wordllama", "minilm", "sentence-transformers", "fastembed"] = Field(
        "wordllama", description="What turns texts into vectors; all but the first are extras: docs/embedders.md."
    )
    embedder_model: ModelName = Field(
        None, description="Model of the embedder: a folder, or a name that sentence-transformers or fastembed knows."
    )
    segmenter: Literal["pairs", "jieba"] = Field(
        "pairs", description="What full text makes of Chinese: pairs of characters; jieba: words too (quipu-rag[zh])."
    )
    chunker: ChunkerName = Field("structure", description="How documents are cut.")
    chunk_tokens: AutoTokens = Field(
        None,
        description="Most tokens a chunk; auto: 1200, with structure and semantic 600 in documents over 100 KB; "
        "with separator the pieces as they are.",
    )
    chunk_overlap: AutoOverlap = Field(
        None, description="Tokens a chunk repeats of the one before (fixed); auto: a twelfth of chunk_tokens."
    )
    chunk_separator: Separator = Field(None, description="Text at which documents are cut (separator).")
    chunk_percentile: AutoPercentile = Field(
        None, description="Percentage of places between sentences that are no break (semantic); auto: 95."
    )
    chunking: Annotated[tuple[InstanceOf[ChunkingRule], ...], NoDecode] = Field(
        (), description="Other chunkers for some documents, by a pattern of their ids; the first that matches counts."
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
        8_000, ge=0, le=100_000_000, description="Vectors below which search is exact, without sketches."
    )
    busy_timeout_s: float = Field(
        30.0, ge=0.0, le=86_400.0, description="Seconds to wait for another process that writes."
    )
    lease_s: float = Field(60.0, ge=1.0, le=86_400.0, description="Seconds a remote process may hold work unrenewed.")

    _origins: dict[str, str] = PrivateAttr(default_factory=dict)
    _default_chunking: Chunking = PrivateAttr(default_factory=Chunking)

    def __init__(self, **arguments: SettingValue) -> None:
        given = _gather(type(self), arguments)
        try:
            super().__init__(**{name: each.value for name, each in given.items()})
        except ValidationError as error:
            raise _as_invalid_input(error, given, type(self)) from None
        self._origins.update((name, each.origin) for name, each in given.items())
        self._default_chunking = _chunking({name: getattr(self, name) for name in CHUNKING_SETTINGS}, self._origins)

    @property
    def default_chunking(self) -> Chunking:
        """How documents are cut that no rule is about."""
        return self._default_chunking

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


# Settings that make a Chunking, and its field for each.
CHUNKING_SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        "chunker": "method",
        "chunk_tokens": "max_tokens",
        "chunk_overlap": "overlap",
        "chunk_separator": "separator",
        "chunk_percentile": "percentile",
    }
)


class _RuleTable(BaseModel):
    """A [[chunking]] table of a settings file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    match: str = Field(min_length=1)
    chunker: ChunkerName
    chunk_tokens: AutoTokens = None
    chunk_overlap: AutoOverlap = None
    chunk_separator: Separator = None
    chunk_percentile: AutoPercentile = None


def effective(settings: Settings) -> list[EffectiveSetting]:
    """Return every setting as it is in force, in order of declaration, with where it came from."""
    allowed = _allowed(Settings)
    return [
        EffectiveSetting(
            name=name,
            value=_shown(getattr(settings, name)),
            origin=settings._origins.get(name, "default"),
            description=field.description or "",
            default=_shown(field.default),
            allowed=allowed[name],
        )
        for name, field in Settings.model_fields.items()
    ]


def _shown(value: SettingValue | tuple[ChunkingRule, ...]) -> SettingValue:
    return ", ".join(map(str, value)) or None if isinstance(value, tuple) else value


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
            raise _unknown(name, origin, Settings)
        if name == "config":
            raise InvalidInput(f"config cannot be set in a settings file ({origin}).", remedy="Take the line out.")
        if name == "chunking" and isinstance(value, list):
            given[name] = _Given(value=_rules(value, file, text), origin=origin)
            continue
        given[name] = _Given(value=_beside(file, name, value), origin=origin)
    return given


def _beside(file: Path, name: str, value: object) -> object:
    """Return a path relative to the folder of its file; of a model, which may be a name, if there is such a folder."""
    if name not in ("index", "embedder_model") or not isinstance(value, str):
        return value
    path = file.parent / Path(value).expanduser()
    return path if name == "index" else str(path) if path.is_dir() else value


def _rules(tables: Sequence[object], file: Path, text: str) -> tuple[ChunkingRule, ...]:
    """Return the rules of the [[chunking]] tables of a file."""
    return tuple(_rule(table, f"{file}:{line}") for table, line in zip(tables, _rule_lines(text), strict=False))


def _rule(table: object, origin: str) -> ChunkingRule:
    """Return the rule of a [[chunking]] table. Raises InvalidInput naming what is wrong, and where."""
    if not isinstance(table, dict):
        raise InvalidInput(f"chunking = {table!r} ({origin}) is not a rule.", remedy=f"Use {_RULES}.")
    try:
        rule = _RuleTable(**table)
    except ValidationError as error:
        given = {str(name): _Given(value=value, origin=origin) for name, value in table.items()}
        raise _as_invalid_input(error, given, _RuleTable, origin) from None
    values = {name: value for name, value in rule.model_dump(exclude={"match"}).items() if value is not None}
    try:
        chunking = Chunking(**{CHUNKING_SETTINGS[name]: value for name, value in values.items()})
    except InvalidInput as error:
        raise InvalidInput(f"{error.message.rstrip('.')} ({origin}).", remedy=error.remedy) from None
    return ChunkingRule(match=rule.match, chunking=chunking)


def _chunking(values: Mapping[str, Any], origins: Mapping[str, str]) -> Chunking:
    """Return what the settings say of cutting, as far as the chunker takes it: the rest may serve another."""
    taken = ("method", "max_tokens", *TAKES[values["chunker"]])
    by_field = {CHUNKING_SETTINGS[name]: value for name, value in values.items()}
    try:
        return Chunking(**{name: by_field[name] for name in taken})
    except InvalidInput as error:
        said = ", ".join(f"{name}: {origins[name]}" for name in values if name in origins)
        raise InvalidInput(f"{error.message.rstrip('.')} ({said}).", remedy=error.remedy) from None


def _rule_lines(text: str) -> Iterator[int]:
    """Yield the line each [[chunking]] table begins on, then that of the first for ever: written inline."""
    pattern = re.compile(r"\s*\[\[\s*[\"']?chunking[\"']?\s*\]\]")
    yield from (number for number, line in enumerate(text.splitlines(), 1) if pattern.match(line))
    yield from repeat(_line_of("chunking", text))


def _line_of(name: str, text: str) -> int:
    pattern = re.compile(rf"""\s*(\[\s*){{0,2}}["']?{re.escape(name)}["']?\s*[.=\]]""")
    return next((number for number, line in enumerate(text.splitlines(), 1) if pattern.match(line)), 1)


def _unknown(name: str, origin: str, kind: type[BaseModel]) -> InvalidInput:
    near = _closest(name, list(kind.model_fields))
    remedy = f"Did you mean {near}?" if near else "`quipu config` lists every setting."
    what = "setting" if kind is Settings else "chunking setting"
    return InvalidInput(f"There is no {what} {name} ({origin}).", remedy=remedy)


def _closest(name: str, known: list[str]) -> str:
    return next(iter(get_close_matches(name.replace("-", "_"), known, n=1)), "")


def _as_invalid_input(
    error: ValidationError, given: Mapping[str, _Given], kind: type[BaseModel], origin: str = ""
) -> InvalidInput:
    """Turn pydantic's first complaint into one line: setting, value, origin, what is allowed."""
    complaint: ErrorDetails = error.errors(include_url=False)[0]
    name = str(complaint["loc"][0])
    if name not in given:
        return InvalidInput(f"A chunking rule needs {name} ({origin}).", remedy=f"Give {_allowed(kind)[name]}.")
    each = given[name]
    if name not in kind.model_fields:
        return _unknown(name, each.origin, kind)
    value = str(each.value) if isinstance(each.value, Path) else each.value
    return InvalidInput(f"{name} = {value!r} ({each.origin}) is not allowed.", remedy=f"Use {_allowed(kind)[name]}.")


def _allowed(kind: type[BaseModel]) -> dict[str, str]:
    """Say in words which values each setting takes."""
    properties = kind.model_json_schema()["properties"]
    return {name: _in_words(**schema) for name, schema in properties.items()}


def _in_words(**schema: Any) -> str:
    """Say in words what a JSON schema of one value allows."""
    kinds = schema.get("anyOf", [schema])
    first = kinds[0]
    if literal := first.get("enum", [first["const"]] if "const" in first else []):
        return " or ".join(literal)
    if first["type"] == "array":
        return _RULES
    if first["type"] == "string":
        return "a path" if first.get("format") == "path" else "text that is not empty"
    noun = "a whole number" if first["type"] == "integer" else "a number"
    return f"{noun} from {first['minimum']:,} to {first['maximum']:,}" + (", or auto" if len(kinds) > 1 else "")
