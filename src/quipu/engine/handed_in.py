"""What is handed in to be added: documents as they are, then files."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from quipu.engine.components import Components
from quipu.errors import InvalidInput
from quipu.ingest.sources import FoundSource, checked_metadata, find_sources
from quipu.model.document import Metadata, SourceDocument

Source = str | Path | SourceDocument


def handed_in(
    sources: Sequence[Source], parts: Components, root: Path | None, metadata: Metadata | None
) -> Iterator[FoundSource]:
    """Return documents as they are, then what is found in files and folders; ids are paths below `root`.

    A list in place of several is taken for what it holds. Raises InvalidInput for what is no source, and no metadata.
    """
    sources = _each(sources)
    checked_metadata(metadata)
    files = find_sources(
        [Path(source) for source in sources if not isinstance(source, SourceDocument)],
        root=Path(root) if root else parts.path.parent,
        media_types=parts.ingest_config.media_types,
        metadata=metadata,
        is_index=parts.is_index,
    )
    given = (_with_metadata(source, metadata) for source in sources if isinstance(source, SourceDocument))
    return chain(given, files)


def _each(sources: Sequence[object]) -> list[Source]:
    """Return the sources, with those of lists among them in their place."""
    found: list[Source] = []
    for source in sources:
        if isinstance(source, (str, Path, SourceDocument)):
            found.append(source)
        elif isinstance(source, (list, tuple)):
            found += _each(source)
        else:
            raise InvalidInput(
                f"{repr(source)[:80]} is no document.",
                remedy="Give paths, lists of paths or a SourceDocument; a text goes to add_text.",
            )
    return found


def _with_metadata(source: SourceDocument, metadata: Metadata | None) -> SourceDocument:
    return replace(source, metadata={**source.metadata, **metadata}) if metadata else source
