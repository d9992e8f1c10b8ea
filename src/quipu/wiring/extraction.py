"""Wiring of extraction: what the settings say of how a model reads, with the files they name."""

from collections.abc import Callable

from quipu.engine.components import Models
from quipu.ingest.llm import ExtractionOptions, LlmExtractor
from quipu.ingest.llm.ontology_file import load_ontology
from quipu.model.chat import Role
from quipu.model.chunking import AUTO_TOKENS
from quipu.ports.ingest import Extractor
from quipu.ports.providers import LLM
from quipu.prompts.extraction import render_system
from quipu.providers.local import ByteTokenizer
from quipu.settings import Settings
from quipu.wrap.meter import Meter

MIN_REPLY = 512  # tokens


def make_llm_extractor(llm: LLM, settings: Settings, concurrency: int) -> LlmExtractor:
    """Return the extractor that asks `llm`, as many chunks at once as it takes calls."""
    return LlmExtractor(llm, ByteTokenizer(), extraction_options(settings), concurrency=concurrency)


def counted_reader(reader: Extractor, models: Models) -> Callable[[Meter], Extractor] | None:
    """Return what gives the extractor counted by a meter; None where it asks no model of these."""
    chain = models.chains.get(Role.EXTRACT)
    if chain is None or not isinstance(reader, LlmExtractor):
        return None
    return lambda meter: reader.with_llm(chain.llm(meter))


def tokens_needed(settings: Settings) -> int:
    """Return the least context window in which chunks can be read: instructions, the largest chunk, a usual reply."""
    cuts = (settings.default_chunking, *(rule.chunking for rule in settings.chunking))
    chunk = max(each.max_tokens or AUTO_TOKENS for each in cuts)
    return (
        ByteTokenizer().count(render_system(extraction_options(settings).guidance)) + chunk + max(chunk // 2, MIN_REPLY)
    )


def extraction_options(settings: Settings) -> ExtractionOptions:
    """Return how a model is asked to read. Raises InvalidInput naming the line or field of a file that is wrong."""
    ontology = load_ontology(settings.ontology, settings.glossary, is_strict=settings.ontology_mode == "strict")
    return ExtractionOptions(
        format=settings.extraction_format,
        language=settings.language or "",
        max_gleaning=settings.max_gleaning,
        always_glean=settings.always_glean,
        with_claims=settings.claims,
        ontology=ontology,
    )
