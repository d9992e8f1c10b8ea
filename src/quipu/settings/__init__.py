"""Settings: arguments, then the environment, then quipu.toml, then defaults; nothing else reads any of them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, InstanceOf, PrivateAttr, ValidationError
from pydantic_settings import NoDecode

from quipu.model.chat import PromptText, Role
from quipu.model.chunking import Chunking, ChunkingRule
from quipu.model.query import Options, OptionValue, Query, build_from_settings, options_in
from quipu.model.usage import USD, SpendingLimit
from quipu.retrieve import strategies_by_options
from quipu.settings.sources import (
    CONFIG_NAME,
    ENVIRONMENT_PREFIX,
    KEY_VARIABLES,
    SourcedSettings,
    default_cache,
    gather_values,
    other_variables,
    parse_strategy_settings,
    settings_of,
    strategy_settings,
)
from quipu.settings.tables import (
    CHUNKING_SETTINGS,
    PRICES,
    PROMPT_TEXTS,
    ROLES,
    RULES,
    Address,
    AutoConcurrency,
    AutoDimension,
    AutoOverlap,
    AutoPercentile,
    AutoTokens,
    ChunkerName,
    CurrencyName,
    FilePath,
    IndexPlace,
    LanguageNames,
    ModelName,
    ModelPrice,
    RoleSettings,
    Seconds,
    Separator,
    SpendingText,
    SuffixList,
    Words,
    default_chunking,
    parse_spending,
)
from quipu.settings.validation import SettingValue, allowed, as_invalid_input, closest, without_secrets

__all__ = [
    "CONFIG_NAME",
    "ENVIRONMENT_PREFIX",
    "KEY_VARIABLES",
    "EffectiveSetting",
    "SettingValue",
    "Settings",
    "effective",
    "unknown_variables",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveSetting:
    """The effective value of one setting, and its origin. `group` is "" if the setting is no option of a question.

    Else it is "question", or the strategies that have the option.
    """

    name: str
    group: str
    value: SettingValue
    origin: str  # "argument", "environment QUIPU_TOP_K", "quipu.toml:3", "default"
    description: str
    default: SettingValue
    allowed: str


if TYPE_CHECKING:
    QuerySettings = SourcedSettings
else:
    QuerySettings = settings_of("QuerySettings", options_in(Query))


class Settings(QuerySettings):
    """All settings of an index, with the options of a query. docs/reference/settings.md describes every field.

    The options of single strategies are settings, too. Their modules are imported only where one of them is set.

    An argument of None counts as not set. Raises InvalidInput with the setting, the value, its origin and what is
    allowed.
    """

    index: IndexPlace = Field(
        Path(".quipu"),
        description="Directory of the index, or its address in PostgreSQL: docs/scaling.md.",
        json_schema_extra={"allowed": "a path, or postgresql://USER@HOST/DATABASE?workspace=NAME"},
    )
    config: FilePath | None = Field(
        None, description="Settings file; by default quipu.toml in the current directory, else beside the index."
    )
    llm: ModelName = Field(
        None, description='Language model, as in "openai/gpt-4.1-mini" or "ollama/qwen3:8b": docs/providers.'
    )
    llm_base_url: Address = Field(None, repr=False, description="Address of its server; by default the provider's.")
    llm_api_version: Words = Field(None, description="Version of the API (Azure).")
    llm_concurrency: AutoConcurrency = Field(
        None, description="Maximum concurrent calls; auto: what the provider usually allows."
    )
    llm_timeout_s: Seconds = Field(300.0, description="Seconds a call of a model may take.")
    role: Annotated[tuple[InstanceOf[RoleSettings], ...], NoDecode] = Field(
        (),
        description="Other models for single roles; pictures go only to the model of vision.",
        json_schema_extra={"allowed": ROLES},
    )
    price: Annotated[tuple[InstanceOf[ModelPrice], ...], NoDecode] = Field(
        (), description="Prices of models; they override the built-in table.", json_schema_extra={"allowed": PRICES}
    )
    currency: CurrencyName = Field(
        USD,
        description="Currency of money: of prices, costs and the budget. Built-in prices are in USD and are used only "
        "with it; with another, give prices in [[price]] tables.",
    )
    prompts: Annotated[tuple[InstanceOf[PromptText], ...], NoDecode] = Field(
        (),
        description="Prompts whose instructions are yours; `quipu config --prompt NAME` prints the default text.",
        json_schema_extra={"allowed": PROMPT_TEXTS},
    )
    secrets: FilePath | None = Field(
        None, description="File of keys; by default secrets.toml in the current directory, else beside the index."
    )
    engine: Literal["local", "ray"] = Field(
        "local",
        description="What reads and embeds documents; local: this process; ray: a Ray cluster (quipu-rag[ray]), by "
        "local rules and models only: docs/scaling.md.",
    )
    keep_originals: bool = Field(
        True, description="Keep the files that documents were read from, compressed; texts are always kept."
    )
    history: bool = Field(
        False,
        description="Keep what replaced and removed documents said until `quipu purge`, for questions about the past.",
    )
    merge_duplicates_above: float = Field(
        0.0,
        ge=0,
        le=1,
        description="After `add`, merge entities that look like one with at least this score, as `quipu resolve` shows "
        "it; 0: never. The result then depends on the order in which documents came.",
    )
    parser: Literal["local", "docling", "mineru"] = Field(
        "local",
        description="What reads files of parser_suffixes; local: this process; others: your server: docs/parsers.md.",
    )
    parser_url: Address = Field(None, repr=False, description="Address of the server of `parser`.")
    parser_suffixes: SuffixList = Field(
        "pdf", description="Files that go to the server, also pictures of pages; all others are read by this process."
    )
    parser_timeout_s: Seconds = Field(600.0, description="Seconds that the server may take for a file.")
    ocr_languages: LanguageNames = Field(
        None,
        description="Languages of scanned pages of PDFs by Tesseract's names; by default detected among those "
        "installed; off: scanned pages are not read.",
    )
    vision_pages: Literal["never", "scans", "all"] = Field(
        "scans",
        description="Pages of PDFs that a model in [role.vision] reads: none, those that are scans, or all.",
    )
    extractor: Literal["auto", "local", "llm"] = Field(
        "auto",
        description="What reads chunks; local: rules, no language model; auto: the language model if set.",
    )
    extraction_format: Literal["lines", "json"] = Field("lines", description="Output format of extraction by a model.")
    max_gleaning: int = Field(1, ge=0, le=10, description="Maximum follow-up calls for what a model missed in a chunk.")
    always_glean: bool = Field(False, description="Make follow-up calls even if the first reply looks complete.")
    language: Words = Field(
        None,
        description="Language of descriptions and answers; by default that of the text and the question.",
    )
    claims: bool = Field(
        False,
        description="Whether a model also extracts claims: who is said to have done what, and when.",
    )
    ontology: FilePath | None = Field(
        None,
        description="File of entity types and relations (YAML, TOML or JSON): docs/extraction.md. "
        "After a change, `quipu add --reread` applies it to documents in the index.",
    )
    ontology_mode: Literal["soft", "strict"] = Field(
        "soft", description="Entities and relations outside the ontology; soft: kept, strict: left out."
    )
    glossary: FilePath | None = Field(
        None, description="File of terms with definitions for the model; after a change, `quipu add --reread`."
    )
    embedder: Literal["wordllama", "minilm", "sentence-transformers", "fastembed", "openai"] = Field(
        "wordllama",
        description="What computes vectors; openai: any OpenAI-compatible server. The others but wordllama are extras: "
        "docs/embedders.md.",
    )
    embedder_model: ModelName = Field(
        None,
        description="Model of the embedder: a folder, a name of sentence-transformers or fastembed, or "
        'with openai a name as in "openai/text-embedding-3-small".',
    )
    embedder_base_url: Address = Field(None, repr=False, description="Address of the embedder's server (openai).")
    embedder_dimension: AutoDimension = Field(None, description="Length of vectors (openai); auto: the model's.")
    reranker: ModelName = Field(
        None, description='Model that reranks passages, as in "jina/…" or "fastembed/…": docs/providers/rerankers.md.'
    )
    reranker_base_url: Address = Field(None, repr=False, description="Address of the reranker's server.")
    segmenter: Literal["pairs", "jieba"] = Field(
        "pairs",
        description="Full-text terms of Chinese; pairs: pairs of characters; jieba: also words (quipu-rag[zh]).",
    )
    tokenizer: str = Field(
        "bytes",
        min_length=1,
        description="What counts the tokens of contexts; bytes: four bytes a token; or the path of a tokenizer.json, "
        'or "tiktoken/NAME" (quipu-rag[tiktoken]). Chunks are always measured in bytes.',
    )
    chunker: ChunkerName = Field("structure", description="How documents are cut into chunks.")
    chunk_tokens: AutoTokens = Field(
        None,
        description="Maximum tokens of a chunk; auto: 1200 (structure and semantic: 600 in documents over 100 KB; "
        "separator: no limit).",
    )
    chunk_overlap: AutoOverlap = Field(
        None, description="Tokens repeated from the previous chunk (fixed); auto: a twelfth of chunk_tokens."
    )
    chunk_separator: Separator = Field(None, description="Text at which documents are cut (separator).")
    chunk_percentile: AutoPercentile = Field(
        None, description="Percentage of sentence boundaries without a cut (semantic); auto: 95."
    )
    chunking: Annotated[tuple[InstanceOf[ChunkingRule], ...], NoDecode] = Field(
        (),
        description="Other chunkers for some documents, by a pattern of ids; the first match counts.",
        json_schema_extra={"allowed": RULES},
    )
    strategy: str = Field("weave", min_length=1, description="Default retrieval strategy.")
    hierarchy_grouping: Literal["nearest", "mixture"] = Field(
        "nearest",
        description="How the hierarchy clusters entities; nearest: nearest centres; mixture: Gaussian mixtures, as in "
        "LeanRAG (quipu-rag[mixture]).",
    )
    budget: SpendingText = Field(
        None,
        description="Spending limit of one command or open index; at the limit, work stops and is kept.",
    )
    record: FilePath | None = Field(
        None,
        description="Folder that records requests to chat models and replies, for replay: docs/testing.md.",
    )
    cache: FilePath | None = Field(
        None, description="Folder for local files of indexes in a database; by default ~/.cache/quipu."
    )
    vector_search: Literal["local", "qdrant", "pgvector"] = Field(
        "local", description="What finds near vectors; others than local are approximate: docs/scaling.md."
    )
    qdrant_url: Address = Field(None, repr=False, description="Address of the Qdrant server.")
    exact_below: int = Field(
        8_000,
        ge=0,
        le=100_000_000,
        description="Number of vectors up to which search is exact; above, it uses sketches.",
    )
    busy_timeout_s: float = Field(
        30.0, ge=0.0, le=86_400.0, description="Seconds to wait while another process writes."
    )
    max_waiting_questions: int = Field(
        64, ge=0, le=100_000, description="Questions that may wait while others search; more are refused at once."
    )
    lease_s: float = Field(
        60.0, ge=1.0, le=86_400.0, description="Seconds after which work of a process on another host is free again."
    )

    _origins: dict[str, str] = PrivateAttr(default_factory=dict)
    _default_chunking: Chunking = PrivateAttr(default_factory=Chunking)

    _strategy_values: Mapping[str, OptionValue] = PrivateAttr(default_factory=dict)
    _strategy_options: tuple[Options, ...] = PrivateAttr(default=())

    def __init__(self, **arguments: SettingValue) -> None:
        known = type(self).model_fields
        values = gather_values(type(self), arguments)
        of_strategies = {name: sourced for name, sourced in values.items() if name not in known}
        strategy_values = parse_strategy_settings(of_strategies, list(known)) if of_strategies else {}
        try:
            super().__init__(**{name: sourced.value for name, sourced in values.items() if name in known})
        except ValidationError as error:
            raise as_invalid_input(error, values, type(self), what="setting") from None
        self._strategy_values = strategy_values
        self._strategy_options = tuple(
            build_from_settings(kind, strategy_values)
            for kind in (strategies_by_options() if strategy_values else ())
            if any(option.name in strategy_values for option in options_in(kind))
        )
        self._origins.update((name, sourced.origin) for name, sourced in values.items())
        self._default_chunking = default_chunking(
            {name: getattr(self, name) for name in CHUNKING_SETTINGS}, self._origins
        )

    @property
    def folder(self) -> Path | None:
        """The folder of the index, None for an index in a database."""
        return self.index.absolute() if isinstance(self.index, Path) else None

    @property
    def outer_folder(self) -> Path:
        """The folder that holds the index; the current directory for an index in a database."""
        return self.index.parent if isinstance(self.index, Path) else Path()

    @property
    def cache_folder(self) -> Path:
        """The folder for local files of indexes in a database, each in a folder of its own."""
        return (self.cache or default_cache()).absolute()

    @property
    def default_chunking(self) -> Chunking:
        """The chunking of documents that no rule matches."""
        return self._default_chunking

    @property
    def spending(self) -> SpendingLimit:
        """The spending limit on models."""
        return replace(parse_spending(self.budget) if self.budget else SpendingLimit(), currency=self.currency)

    @property
    def names_model(self) -> bool:
        """Whether a language model, for any role, or a reranker is set."""
        return bool(self.llm or any(role.llm for role in self.role) or self.reranker)

    def model_of(self, role: Role) -> str | None:
        """Return the language model for a role, or None. Only a table [role.vision] names one that sees pictures."""
        default = None if role is Role.VISION else self.llm
        return next((settings.llm for settings in self.role if settings.role == role and settings.llm), default)

    def without_models(self) -> Self:
        """Return these settings without language model and reranker. The embedder stays: it belongs to the index."""
        return self.model_copy(update={"llm": None, "role": (), "reranker": None, "extractor": "local"})

    def query(self, text: str) -> Query:
        """Return a query for `text` with these settings as its options."""
        values = {option.name: getattr(self, option.name) for option in options_in(Query)}
        return build_from_settings(
            Query,
            values,
            text=text,
            strategy=self.strategy,
            language=self.language or "",
            options=self._strategy_options,
            prompts=self.prompts,
        )


def effective(settings: Settings) -> list[EffectiveSetting]:
    """Return every setting with its effective value and origin: general ones, then options of questions."""
    fields = Settings.model_fields | strategy_settings().model_fields
    allowed_by_name = allowed(Settings) | allowed(strategy_settings())
    group_by_name = {option.name: "question" for option in options_in(Query)}
    for kind, strategies in strategies_by_options().items():
        group_by_name |= {option.name: strategies for option in options_in(kind)}
    value_by_name = {name: getattr(settings, name, field.default) for name, field in fields.items()}
    value_by_name |= settings._strategy_values
    return [
        EffectiveSetting(
            name=name,
            group=group_by_name.get(name, ""),
            value=_display_value(name, value_by_name[name]),
            origin=settings._origins.get(name, "default"),
            description=fields[name].description or "",
            default=_display_value(name, fields[name].default),
            allowed=allowed_by_name[name],
        )
        for name in sorted(fields, key=lambda name: name in group_by_name)
    ]


def _display_value(name: str, value: SettingValue | tuple[Any, ...]) -> SettingValue:
    if name.endswith("base_url") and isinstance(value, str):
        return without_secrets(value)
    return ", ".join(map(str, value)) or None if isinstance(value, tuple) else value


def unknown_variables() -> list[tuple[str, str]]:
    """Return the QUIPU_* variables that are no setting, each with the closest setting, or ""."""
    known = [name for kind in (Settings, strategy_settings()) for name in kind.model_fields]
    variables = [*KEY_VARIABLES, *(ENVIRONMENT_PREFIX + name.upper() for name in known)]
    return [(name, closest(name, variables)) for name in other_variables(known)]
