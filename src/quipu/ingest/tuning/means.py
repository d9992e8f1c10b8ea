"""Means: what tuning is worked out with, and who works it out."""

from dataclasses import dataclass

from quipu.ingest.documents import IngestConfig
from quipu.ingest.llm import ExtractionOptions, LlmExtractor
from quipu.model.graph import Chunk
from quipu.model.usage import Price
from quipu.ports.providers import LLM


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What reads documents now, and the model that makes suggestions; without one, rules count.

    `model` is its name, `concurrency` how many calls it answers at a time. `live` are the documents of the sample that
    are in the index: replies about them go when they go.
    """

    ingest_config: IngestConfig
    llm: LLM | None = None
    model: str = ""
    price: Price | None = None
    concurrency: int = 1
    live: frozenset[str] = frozenset()

    @property
    def reader(self) -> LlmExtractor | None:
        """What reads chunks with a model, None where none is asked."""
        extractor = self.ingest_config.extractor
        return extractor if self.llm is not None and isinstance(extractor, LlmExtractor) else None

    @property
    def options(self) -> ExtractionOptions:
        """How a model is asked to read now, or would be."""
        reader = self.reader
        return reader.options if reader else ExtractionOptions()

    @property
    def by(self) -> str:
        """Who works it out."""
        return f"the language model {self.model or self.llm.identity}" if self.llm else RULES

    def documents(self, chunk: Chunk) -> tuple[str, ...]:
        """Return for which document a reply is kept: none where it is not in the index, which `purge` ends."""
        return (chunk.document_id,) if chunk.document_id in self.live else ()


RULES = "local rules"
