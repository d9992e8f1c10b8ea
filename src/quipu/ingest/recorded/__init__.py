"""Recorded: graphs that another system has read out of documents, in place of reading these again."""

from quipu.ingest.recorded.extractor import RecordedExtractor
from quipu.ingest.recorded.files import read_graph, read_recordings

__all__ = ["RecordedExtractor", "read_graph", "read_recordings"]
