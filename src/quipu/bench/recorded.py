"""Recorded: a language model's extraction of a data set, as it was published, in place of the model."""

from pathlib import Path

from quipu.ingest.graph_import import ImportedExtractor, read_recordings

FILE = "extraction.jsonl"


def read_recorded(folder: Path) -> ImportedExtractor | None:
    """Return the extractor of a data set's folder, None where none is recorded.

    Raises InvalidInput naming the line that is no record.
    """
    path = folder / FILE
    recordings = read_recordings(path) if path.is_file() else None
    return ImportedExtractor(recordings) if recordings else None
