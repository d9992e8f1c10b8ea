"""Graph import: graphs that another system has extracted from documents, instead of extracting them again."""

from quipu.ingest.graph_import.extractor import ImportedExtractor
from quipu.ingest.graph_import.files import read_graph, read_recordings

__all__ = ["ImportedExtractor", "read_graph", "read_recordings"]
