"""Wiring of extraction: what the settings say of how a model reads, with the files they name."""

from quipu.ingest.llm import ExtractionOptions, LlmExtractor
from quipu.ingest.llm.ontology_file import load_ontology
from quipu.ports.llm import LLM
from quipu.providers.local import ByteTokenizer
from quipu.settings import Settings


def make_llm_extractor(llm: LLM, settings: Settings, concurrency: int) -> LlmExtractor:
    """Return the extractor that asks `llm`, as many chunks at once as it takes calls."""
    return LlmExtractor(llm, ByteTokenizer(), extraction_options(settings), concurrency=concurrency)


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
