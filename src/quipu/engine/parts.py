"""Parts: everything an engine is made of."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from quipu.derive.summarising import SummaryOptions
from quipu.engine.models import Models
from quipu.ingest.reading import Recipe
from quipu.model.query import Query
from quipu.ports.embedder import Embedder
from quipu.ports.store import Store
from quipu.ports.vectors import Vectors


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Everything an engine is made of; `quipu.wiring` puts it together from settings."""

    path: Path
    store: Store
    vectors: Vectors
    embedder: Embedder
    recipe: Recipe
    ask: Callable[[str], Query]
    models: Models = field(default_factory=Models)
    summaries: SummaryOptions = field(default_factory=SummaryOptions)
