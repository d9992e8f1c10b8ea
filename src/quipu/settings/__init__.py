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
from quipu.settings.chunking import CHUNKING_SETTINGS, RULES, default_chunking
from quipu.settings.complaints import allowed, as_invalid_input, closest
from quipu.settings.gathering import CONFIG_NAME, ENVIRONMENT_PREFIX, gather
from quipu.settings.roles import PRICES, ROLES, ModelPrice, RoleSettings
from quipu.settings.spending import parse_spending
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

# Variables that are no settings: they hold keys.
KEY_VARIABLES = ("QUIPU_LLM_KEY", "QUIPU_EMBEDDER_KEY", "QUIPU_RERANKER_KEY")
_DATA = "QUIPU_DATA"  # where benchmarks and tests find data sets


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveSetting:
    """One setting as it is in force, and where its value came from."""

    name: str
    value: SettingValue
    origin: str  # "argument", "environment QUIPU_TOP_K", "quipu.toml:3", "default"
    description: str
    default: SettingValue
    allowed: str


class Settings(BaseSettings):
    """How an index is opened, filled and asked. Every field is described in docs/reference/settings.md.

    An argument that is None counts as not given. Raises InvalidInput naming the setting, the value, where it came from
    and what is allowed.
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
    llm_base_url: Address = Field(
        None, repr=False, description="Address of its server; by default that of the provider."
    )
    llm_api_version: Words = Field(None, description="Version of the API (Azure).")
    llm_concurrency: AutoConcurrency = Field(
        None, description="Most calls at a time; auto: what the provider usually bears."
    )
    llm_timeout_s: Seconds = Field(300.0, description="Seconds a call of a model may take.")
    role: Annotated[tuple[InstanceOf[RoleSettings], ...], NoDecode] = Field(
        (),
        description="Other models for some work; nothing asks that of judge yet.",
        json_schema_extra={"allowed": ROLES},
    )
    price: Annotated[tuple[InstanceOf[ModelPrice], ...], NoDecode] = Field(
        (), description="What models cost, over the table that comes along.", json_schema_extra={"allowed": PRICES}
    )
    secrets: FilePath | None = Field(
        None, description="File of keys; by default secrets.toml in the current directory, else beside the index."
    )
    extractor: Literal["auto", "local", "llm"] = Field(
        "auto",
        description="What reads chunks; local: rules, no language model; auto: the language model if one is set.",
    )
    extraction_format: Literal["lines", "json"] = Field("lines", description="Form a model gives what it read in.")
    max_gleaning: int = Field(1, ge=0, le=10, description="Times a model is asked what it has missed in a chunk.")
    always_glean: bool = Field(False, description="Ask also where the first reply looks complete.")
    language: Words = Field(
        None, description="Language of descriptions and answers; by default that of the text and of the question."
    )
    claims: bool = Field(
        False,
        description="Whether a model also notes claims: who is said to have done what, whether it is true, and when.",
    )
    ontology: FilePath | None = Field(
        None,
        description="File of entity types and relations (YAML, TOML or JSON): docs/extraction.md. "
        "Changed, it counts for documents that are there with `quipu add --reread`.",
    )
    ontology_mode: Literal["soft", "strict"] = Field(
        "soft", description="What becomes of things outside the ontology; strict: they are left out."
    )
    glossary: FilePath | None = Field(
        None, description="File of terms and what they mean, told to the model; once changed, `quipu add --reread`."
    )
    embedder: Literal["wordllama", "minilm", "sentence-transformers", "fastembed", "openai"] = Field(
        "wordllama",
        description="What turns texts into vectors; openai: any server of that kind. Besides the first and the last "
        "they are extras: docs/embedders.md.",
    )
    embedder_model: ModelName = Field(
        None,
        description="Model of the embedder: a folder, or a name that sentence-transformers or fastembed knows, or "
        'with openai as in "openai/text-embedding-3-small".',
    )
    embedder_base_url: Address = Field(None, repr=False, description="Address of the embedder's server (openai).")
    embedder_dimension: AutoDimension = Field(None, description="Length of vectors (openai); auto: as the model has.")
    reranker: ModelName = Field(
        None, description='Model that puts passages in order before they are packed, as in "jina/…": docs/providers.'
    )
    reranker_base_url: Address = Field(None, repr=False, description="Address of the reranker's server.")
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
        (),
        description="Other chunkers for some documents, by a pattern of their ids; the first that matches counts.",
        json_schema_extra={"allowed": RULES},
    )
    strategy: str = Field("mix", min_length=1, description="Retrieval strategy of a question that names none.")
    top_k: int = Field(40, ge=1, le=1_000, description="Entities or relations searched.")
    chunk_top_k: int = Field(20, ge=1, le=1_000, description="Passages kept.")
    min_similarity: float = Field(0.2, ge=-1.0, le=1.0, description="Least cosine of a vector hit.")
    related_chunks: int = Field(5, ge=0, le=1_000, description="Passages taken for each entity or relation found.")
    community_level: int = Field(
        2, ge=0, le=100, description="Finest level of communities whose reports are read; 0: the coarsest."
    )
    dynamic_selection: bool = Field(
        False, description="Let a model choose the reports of community_global from the top down, a call for each."
    )
    drift_follow_ups: int = Field(
        4, ge=0, le=100, description="Most questions that a round of drift follows up; there are three rounds."
    )
    from_aggregates: bool = Field(
        False, description="Whether lca begins with the aggregates nearest to the question, too."
    )
    hierarchy_grouping: Literal["nearest", "mixture"] = Field(
        "nearest",
        description="What the hierarchy groups entities by; mixture: Gaussian mixtures, as LeanRAG has them "
        "(quipu-rag[mixture]).",
    )
    entity_tokens: int = Field(6_000, ge=0, le=2_000_000, description="Most tokens of entities in the context.")
    relation_tokens: int = Field(
        8_000, ge=0, le=2_000_000, description="Most tokens of relations and claims in the context."
    )
    report_tokens: int = Field(
        8_000,
        ge=0,
        le=2_000_000,
        description="Most tokens of reports and of points drawn from them, where passages stand beside them.",
    )
    total_tokens: int = Field(30_000, ge=1, le=2_000_000, description="Most tokens of prompt and context together.")
    response_type: str = Field("Multiple Paragraphs", min_length=1, description="Form of the answer asked of a model.")
    answer_tokens: int = Field(2_048, ge=16, le=1_000_000, description="Most tokens of an answer of a model.")
    rewrite_question: bool = Field(
        True, description="Let a model make a question that follows others stand alone, before it is searched for."
    )
    entity_weight: float = Field(1.0, ge=0.0, le=1_000.0, description="Weight in mix of what entities lead to.")
    relation_weight: float = Field(1.0, ge=0.0, le=1_000.0, description="Weight in mix of what relations lead to.")
    vector_weight: float = Field(1.0, ge=0.0, le=1_000.0, description="Weight in mix of the nearest passages.")
    auto_refresh: bool = Field(
        False,
        description="Whether a question makes what its strategy needs and lacks, at its cost, before it is asked.",
    )
    budget: SpendingText = Field(
        None, description="Most that one command, or an open index, spends on models; then it stops and keeps all."
    )
    record: FilePath | None = Field(
        None,
        description="Folder where what chat models are asked and reply is kept, to be replayed: docs/testing.md.",
    )
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
        given = gather(type(self), arguments)
        try:
            super().__init__(**{name: each.value for name, each in given.items()})
        except ValidationError as error:
            raise as_invalid_input(error, given, type(self), what="setting") from None
        self._origins.update((name, each.origin) for name, each in given.items())
        self._default_chunking = default_chunking(
            {name: getattr(self, name) for name in CHUNKING_SETTINGS}, self._origins
        )

    @property
    def default_chunking(self) -> Chunking:
        """How documents are cut that no rule is about."""
        return self._default_chunking

    @property
    def spending(self) -> SpendingLimit:
        """What may be spent on models."""
        return parse_spending(self.budget) if self.budget else SpendingLimit()

    @property
    def names_model(self) -> bool:
        """Whether a language model, for whatever work, or a reranker is named."""
        return bool(self.llm or any(each.llm for each in self.role) or self.reranker)

    def model_of(self, role: Role) -> str | None:
        """Return the language model for some work, None where there is none."""
        return next((each.llm for each in self.role if each.role == role and each.llm), self.llm)

    def without_models(self) -> Self:
        """Return these settings with no language model and no reranker; the embedder is the index's, and stays."""
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
        """Take values as `__init__` has gathered them, so that the origin of each is known."""
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
    """Return every setting as it is in force, in order of declaration, with where it came from."""
    allowed_by_name = allowed(Settings)
    return [
        EffectiveSetting(
            name=name,
            value=_shown(name, getattr(settings, name)),
            origin=settings._origins.get(name, "default"),
            description=field.description or "",
            default=_shown(name, field.default),
            allowed=allowed_by_name[name],
        )
        for name, field in Settings.model_fields.items()
    ]


def _shown(name: str, value: SettingValue | tuple[Any, ...]) -> SettingValue:
    if name.endswith("base_url") and isinstance(value, str):
        return without_secrets(value)
    return ", ".join(map(str, value)) or None if isinstance(value, tuple) else value


def unknown_variables() -> list[tuple[str, str]]:
    """Return the QUIPU_* variables that name no setting, each with the closest that does (or "")."""
    known = [*KEY_VARIABLES, _DATA, *(ENVIRONMENT_PREFIX + name.upper() for name in Settings.model_fields)]
    unknown = sorted(name for name in os.environ if name.startswith(ENVIRONMENT_PREFIX) and name not in known)
    return [(name, closest(name, known)) for name in unknown]
