"""Recorded extractions: published extractions of a data set by a language model, used in place of the model."""

from pathlib import Path

from quipu.ingest.graph_import import ImportedExtractor, read_recordings

FILE = "extraction.jsonl"


def read_recorded(folder: Path) -> ImportedExtractor | None:
    """Return an extractor that replays the extractions recorded in a data set's folder, None if there are none.

    Raises InvalidInput, which names the line, for an invalid record.
    """
    path = folder / FILE
    recordings = read_recordings(path) if path.is_file() else None
    return ImportedExtractor(recordings) if recordings else None
