"""Parts: everything an engine is made of."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from quipu.derive.catalog import CATALOG
from quipu.derive.derivation import Bench, Derivation
from quipu.derive.summarising import SummaryOptions
from quipu.engine.models import Models
from quipu.ingest.reading import Recipe
from quipu.model.chat import Role
from quipu.model.query import Query
from quipu.ports.embedder import Embedder
from quipu.ports.sink import Sink, no_sink
from quipu.ports.store import Store
from quipu.ports.topology import Topologies
from quipu.ports.vectors import Vectors
from quipu.wrap.meter import Meter


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Everything an engine is made of; `quipu.wiring` puts it together from settings.

    `is_index` says whether a file is the database of an index, which is no document where a folder is added.
    """

    path: Path
    store: Store
    vectors: Vectors
    topology: Topologies
    embedder: Embedder
    recipe: Recipe
    ask: Callable[[str], Query]
    models: Models = field(default_factory=Models)
    summaries: SummaryOptions = field(default_factory=SummaryOptions)
    catalog: tuple[Derivation, ...] = CATALOG
    is_index: Callable[[Path], bool] = lambda _: False

    def bench(self, on_event: Sink = no_sink) -> Bench:
        """Return what derivations are made with."""
        return Bench(
            store=self.store,
            vectors=self.vectors,
            embedder=self.embedder,
            topology=self.topology,
            tokenizer=self.recipe.tokenizer,
            llm=self.models.llm(Role.REPORT),
            language=self.summaries.language,
            n_ahead=self.models.n_ahead,
            on_event=on_event,
        )

    def counted_by(self, meter: Meter) -> "Parts":
        """Return the same with all that models are asked for documents counted by a meter of its own."""
        models, recipe = replace(self.models, meter=meter), self.recipe
        extractor = models.reader(meter) if models.reader else recipe.extractor
        recipe = replace(recipe, extractor=extractor, embedder=models.embedder(recipe.embedder, meter))
        return replace(self, models=models, recipe=recipe, embedder=models.embedder(self.embedder, meter))
