"""The LLM extractor: a language model reads each chunk, and what it says is checked against the text."""

from quipu.ingest.llm.extractor import LlmExtractor
from quipu.ingest.llm.options import ExtractionOptions

__all__ = ["ExtractionOptions", "LlmExtractor"]
