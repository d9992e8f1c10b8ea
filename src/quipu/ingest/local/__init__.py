"""The local extractor: reads chunks by rules, with no model and no network."""

from quipu.ingest.local.extractor import LocalExtractor, extract_chunk

__all__ = ["LocalExtractor", "extract_chunk"]
