"""The LLM extractor: a language model reads each chunk, and its records are checked against the text."""

from quipu.ingest.llm.conversation import ExtractionOptions
from quipu.ingest.llm.extractor import LlmExtractor

__all__ = ["ExtractionOptions", "LlmExtractor"]
