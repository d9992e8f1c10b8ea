"""Settings: arguments, then the environment, then quipu.toml, then defaults; nothing else reads any of them."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, InstanceOf, PrivateAttr, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from quipu.model.chat import Role
from quipu.model.chunking import Chunking, ChunkingRule
from quipu.model.query import Budget, MixWeights, Query
from quipu.model.usage import SpendingLimit
from quipu.settings.sources import CONFIG_NAME, ENVIRONMENT_PREFIX, gather_values
from quipu.settings.tables import CHUNKING_SETTINGS, PRICES, ROLES, RULES, ModelPrice, RoleSettings, default_chunking
from quipu.settings.validation import allowed, as_invalid_input, closest
from quipu.settings.values import (
    Address,
    AutoConcurrency,
    AutoDimension,
    AutoOverlap,
    AutoPercentile,
    AutoTokens,
    ChunkerName,
    FilePath,
    ModelName,
    Seconds,
    Separator,
    SettingValue,
    SpendingText,
    Words,
    parse_spending,
    refuse_flag,
    without_secrets,
)

__all__ = [
    "CONFIG_NAME",
    "ENVIRONMENT_PREFIX",
    "EffectiveSetting",
    "SettingValue",
    "Settings",
    "effective",
    "unknown_variables",
]

# Variables that hold keys, and so are no settings.
KEY_VARIABLES = ("QUIPU_LLM_KEY", "QUIPU_EMBEDDER_KEY", "QUIPU_RERANKER_KEY")
_DATA = "QUIPU_DATA"  # where benchmarks and tests find data sets


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveSetting:
    """The effective value of one setting, and its origin."""

    name: str
    value: SettingValue
    origin: str  # "argument", "environment QUIPU_TOP_K", "quipu.toml:3", "default"
    description: str
    default: SettingValue
    allowed: str


class Settings(BaseSettings):
    """All settings of an index. docs/reference/settings.md describes every field.

    An argument of None counts as not set. Raises InvalidInput with the setting, the value, its origin and what is
    allowed.
    """

    model_config = SettingsConfigDict(env_prefix=ENVIRONMENT_PREFIX, env_ignore_empty=True, frozen=True, extra="forbid")

    _no_flag = field_validator("*", mode="before")(classmethod(refuse_flag))

    index: FilePath = Field(Path(".quipu"), description="Directory of the index.")
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
        description="Other models for single roles; no work uses judge yet.",
        json_schema_extra={"allowed": ROLES},
    )
    price: Annotated[tuple[InstanceOf[ModelPrice], ...], NoDecode] = Field(
        (), description="Prices of models; they override the built-in table.", json_schema_extra={"allowed": PRICES}
    )
    secrets: FilePath | None = Field(
        None, description="File of keys; by default secrets.toml in the current directory, else beside the index."
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
        None, description='Model that reranks passages before they are packed, as in "jina/…": docs/providers.'
    )
    reranker_base_url: Address = Field(None, repr=False, description="Address of the reranker's server.")
    segmenter: Literal["pairs", "jieba"] = Field(
        "pairs",
        description="Full-text terms of Chinese; pairs: pairs of characters; jieba: also words (quipu-rag[zh]).",
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
    strategy: str = Field("mix", min_length=1, description="Default retrieval strategy.")
    top_k: int = Field(40, ge=1, le=1_000, description="Maximum entities or relations searched.")
    chunk_top_k: int = Field(20, ge=1, le=1_000, description="Maximum passages.")
    min_similarity: float = Field(0.2, ge=-1.0, le=1.0, description="Minimum cosine of a vector match.")
    related_chunks: int = Field(5, ge=0, le=1_000, description="Passages for each matching entity or relation.")
    community_level: int = Field(
        2, ge=0, le=100, description="Finest community level whose reports are read; 0 is the coarsest."
    )
    dynamic_selection: bool = Field(
        False, description="Let a model select the reports of community_global from the top down, with a call for each."
    )
    drift_follow_ups: int = Field(
        4, ge=0, le=100, description="Maximum follow-up questions in each of the three rounds of drift."
    )
    from_aggregates: bool = Field(
        False, description="Whether lca also uses the aggregates nearest to the question as seeds."
    )
    hierarchy_grouping: Literal["nearest", "mixture"] = Field(
        "nearest",
        description="How the hierarchy clusters entities; nearest: nearest centres; mixture: Gaussian mixtures, as in "
        "LeanRAG (quipu-rag[mixture]).",
    )
    entity_tokens: int = Field(6_000, ge=0, le=2_000_000, description="Maximum tokens of entities in the context.")
    relation_tokens: int = Field(
        8_000, ge=0, le=2_000_000, description="Maximum tokens of relations and claims in the context."
    )
    report_tokens: int = Field(
        8_000,
        ge=0,
        le=2_000_000,
        description="Maximum tokens of reports and key points in a context that has passages, too.",
    )
    total_tokens: int = Field(30_000, ge=1, le=2_000_000, description="Maximum tokens of prompt and context together.")
    response_type: str = Field("Multiple Paragraphs", min_length=1, description="Form of a model's answer.")
    answer_tokens: int = Field(2_048, ge=16, le=1_000_000, description="Maximum tokens of a model's answer.")
    rewrite_question: bool = Field(
        True, description="Let a model rewrite a follow-up question so that it stands alone, before the search."
    )
    entity_weight: float = Field(1.0, ge=0.0, le=1_000.0, description="Weight of entities in mix.")
    relation_weight: float = Field(1.0, ge=0.0, le=1_000.0, description="Weight of relations in mix.")
    vector_weight: float = Field(
        1.0, ge=0.0, le=1_000.0, description="Weight of the nearest passages by vector in mix."
    )
    auto_refresh: bool = Field(
        False,
        description="Whether a question first computes the derivations that its strategy needs.",
    )
    budget: SpendingText = Field(
        None,
        description="Spending limit of one command or open index; at the limit, work stops and is kept.",
    )
    record: FilePath | None = Field(
        None,
        description="Folder that records requests to chat models and replies, for replay: docs/testing.md.",
    )
    exact_below: int = Field(
        8_000,
        ge=0,
        le=100_000_000,
        description="Number of vectors up to which search is exact; above, it uses sketches.",
    )
    busy_timeout_s: float = Field(
        30.0, ge=0.0, le=86_400.0, description="Seconds to wait while another process writes."
    )
    lease_s: float = Field(
        60.0, ge=1.0, le=86_400.0, description="Seconds after which work of a process on another host is free again."
    )

    _origins: dict[str, str] = PrivateAttr(default_factory=dict)
    _default_chunking: Chunking = PrivateAttr(default_factory=Chunking)

    def __init__(self, **arguments: SettingValue) -> None:
        values = gather_values(type(self), arguments)
        try:
            super().__init__(**{name: sourced.value for name, sourced in values.items()})
        except ValidationError as error:
            raise as_invalid_input(error, values, type(self), what="setting") from None
        self._origins.update((name, sourced.origin) for name, sourced in values.items())
        self._default_chunking = default_chunking(
            {name: getattr(self, name) for name in CHUNKING_SETTINGS}, self._origins
        )

    @property
    def default_chunking(self) -> Chunking:
        """The chunking of documents that no rule matches."""
        return self._default_chunking

    @property
    def spending(self) -> SpendingLimit:
        """The spending limit on models."""
        return parse_spending(self.budget) if self.budget else SpendingLimit()

    @property
    def names_model(self) -> bool:
        """Whether a language model, for any role, or a reranker is set."""
        return bool(self.llm or any(role.llm for role in self.role) or self.reranker)

    def model_of(self, role: Role) -> str | None:
        """Return the language model for a role, or None."""
        return next((settings.llm for settings in self.role if settings.role == role and settings.llm), self.llm)

    def without_models(self) -> Self:
        """Return these settings without language model and reranker. The embedder stays: it belongs to the index."""
        return self.model_copy(update={"llm": None, "role": (), "reranker": None, "extractor": "local"})

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Use only the values that `__init__` has gathered, so that each has a known origin."""
        return (init_settings,)

    def query(self, text: str) -> Query:
        """Return a query for `text` with these settings as its options."""
        budget = Budget(
            entities=self.entity_tokens,
            relations=self.relation_tokens,
            reports=self.report_tokens,
            total=self.total_tokens,
            answer=self.answer_tokens,
        )
        return Query(
            text=text,
            strategy=self.strategy,
            top_k=self.top_k,
            chunk_top_k=self.chunk_top_k,
            min_similarity=self.min_similarity,
            related_chunks=self.related_chunks,
            community_level=self.community_level,
            dynamic_selection=self.dynamic_selection,
            drift_follow_ups=self.drift_follow_ups,
            from_aggregates=self.from_aggregates,
            budget=budget,
            response_type=self.response_type,
            language=self.language or "",
            rewrite_question=self.rewrite_question,
            mix_weights=MixWeights(entity=self.entity_weight, relation=self.relation_weight, vector=self.vector_weight),
            auto_refresh=self.auto_refresh,
        )


def effective(settings: Settings) -> list[EffectiveSetting]:
    """Return every setting with its effective value and origin, in order of declaration."""
    allowed_by_name = allowed(Settings)
    return [
        EffectiveSetting(
            name=name,
            value=_display_value(name, getattr(settings, name)),
            origin=settings._origins.get(name, "default"),
            description=field.description or "",
            default=_display_value(name, field.default),
            allowed=allowed_by_name[name],
        )
        for name, field in Settings.model_fields.items()
    ]


def _display_value(name: str, value: SettingValue | tuple[Any, ...]) -> SettingValue:
    if name.endswith("base_url") and isinstance(value, str):
        return without_secrets(value)
    return ", ".join(map(str, value)) or None if isinstance(value, tuple) else value


def unknown_variables() -> list[tuple[str, str]]:
    """Return the QUIPU_* variables that are no setting, each with the closest setting, or ""."""
    known = [*KEY_VARIABLES, _DATA, *(ENVIRONMENT_PREFIX + name.upper() for name in Settings.model_fields)]
    unknown = sorted(name for name in os.environ if name.startswith(ENVIRONMENT_PREFIX) and name not in known)
    return [(name, closest(name, known)) for name in unknown]
