"""Settings of cutting: the default chunker, and the [[chunking]] tables of a file."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from quipu.model.chunking import TAKES, Chunking, ChunkingRule
from quipu.settings.complaints import allowed
from quipu.settings.tables import lines_of_tables, parse_table, saying_where, values_given
from quipu.settings.values import AutoOverlap, AutoPercentile, AutoTokens, ChunkerName, Separator, refuse_flag

RULES = "[[chunking]] tables in quipu.toml, each with match and chunker"

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

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    _no_flag = field_validator("*", mode="before")(classmethod(refuse_flag))

    match: str = Field(min_length=1)
    chunker: ChunkerName
    chunk_tokens: AutoTokens = None
    chunk_overlap: AutoOverlap = None
    chunk_separator: Separator = None
    chunk_percentile: AutoPercentile = None


def fields_of_tables() -> Mapping[str, Mapping[str, str]]:
    """Return the fields of a [[chunking]] table, and what they allow, in words."""
    return {"[[chunking]]": allowed(_RuleTable)}


def chunking_rules(tables: Sequence[object], file: str, text: str) -> tuple[ChunkingRule, ...]:
    """Return the rules of the [[chunking]] tables of a file."""
    lines = lines_of_tables("chunking", text)
    return tuple(_rule(table, f"{file}:{line}") for table, line in zip(tables, lines, strict=False))


def default_chunking(values: Mapping[str, Any], origins: Mapping[str, str]) -> Chunking:
    """Return what the settings say of cutting, as far as the chunker takes it: the rest may serve another."""
    taken = ("method", "max_tokens", *TAKES[values["chunker"]])
    by_field = {CHUNKING_SETTINGS[name]: value for name, value in values.items()}
    said = ", ".join(f"{name}: {origins[name]}" for name in values if name in origins)
    return saying_where(lambda: Chunking(**{name: by_field[name] for name in taken}), said)


def _rule(table: object, origin: str) -> ChunkingRule:
    rule = parse_table(table, _RuleTable, what="chunking rule", usage=RULES, origin=origin)
    values = values_given(rule, without={"match"})
    chunking = saying_where(
        lambda: Chunking(**{CHUNKING_SETTINGS[name]: value for name, value in values.items()}), origin
    )
    return ChunkingRule(match=rule.match, chunking=chunking)
