"""Parts: everything an engine is made of."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from quipu.derive.summarising import SummaryOptions
from quipu.engine.models import Models
from quipu.ingest.reading import Recipe
from quipu.model.query import Query
from quipu.ports.embedder import Embedder
from quipu.ports.store import Store
from quipu.ports.vectors import Vectors
from quipu.wrap.meter import Meter


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

    def counted_by(self, meter: Meter) -> "Parts":
        """Return the same with all that models are asked for documents counted by a meter of its own."""
        models, recipe = replace(self.models, meter=meter), self.recipe
        extractor = models.reader(meter) if models.reader else recipe.extractor
        recipe = replace(recipe, extractor=extractor, embedder=models.embedder(recipe.embedder, meter))
        return replace(self, models=models, recipe=recipe, embedder=models.embedder(self.embedder, meter))
