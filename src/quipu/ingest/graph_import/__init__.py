"""Graph import: graphs that another system has extracted from documents, instead of extracting them again."""

from quipu.ingest.graph_import.custom_graph import CustomGraph, custom_graph_from
from quipu.ingest.graph_import.extractor import ImportedExtractor
from quipu.ingest.graph_import.files import read_graph, read_recordings

__all__ = ["CustomGraph", "ImportedExtractor", "custom_graph_from", "read_graph", "read_recordings"]
