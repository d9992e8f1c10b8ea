"""What is handed in to be added: documents as they are, then files."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from quipu.engine.parts import Parts
from quipu.ingest.sources import FoundSource, find_sources
from quipu.model.document import Metadata, SourceDocument


def handed_in(
    sources: Sequence[str | Path | SourceDocument], parts: Parts, root: Path | None, metadata: Metadata | None
) -> Iterator[FoundSource]:
    """Return documents as they are, then what is found in files and folders; ids are paths below `root`."""
    files = find_sources(
        [Path(source) for source in sources if not isinstance(source, SourceDocument)],
        root=Path(root) if root else parts.path.parent,
        media_types=parts.recipe.media_types,
        metadata=metadata,
        is_index=parts.is_index,
    )
    given = (_with_metadata(source, metadata) for source in sources if isinstance(source, SourceDocument))
    return chain(given, files)


def _with_metadata(source: SourceDocument, metadata: Metadata | None) -> SourceDocument:
    return replace(source, metadata={**source.metadata, **metadata}) if metadata else source
