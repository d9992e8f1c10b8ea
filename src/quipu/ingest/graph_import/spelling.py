"""Spelling: names that another system wrote in capitals get the spelling that the documents have."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from quipu.model.imported_graph import ImportedChunk, ImportedClaim, ImportedExtraction, ImportedGraph

MIN_CAPITALS_SHARE = 0.9  # of all names: above it, the system that wrote the file folds case to capitals
Part = TypeVar("Part", ImportedExtraction, ImportedChunk)


def restore_case(graph: ImportedGraph) -> ImportedGraph:
    """Return the graph with the spelling of names in its documents, if nearly all names are in capitals.

    Otherwise they would be other entities than those the documents name. A name that no document contains gets a
    capital letter for each of its words.
    """
    parts = (part for recording in graph.extractions.values() for part in recording.parts)
    names = [name for part in (*parts, *graph.textless.values()) for name in _names(part)]
    if sum(name.isupper() for name in names) < MIN_CAPITALS_SHARE * len(names) or not names:
        return graph
    spelling_by_name = _spellings(graph)

    def spelling(name: str) -> str:
        return spelling_by_name.get(name) or _capitalised(name)

    return replace(
        graph,
        extractions={name: _respelled(recording, spelling) for name, recording in graph.extractions.items()},
        textless={name: _respelled_part(part, spelling) for name, part in graph.textless.items()},
        communities=tuple(
            replace(community, entities=tuple(map(spelling, community.entities))) for community in graph.communities
        ),
    )


def _names(part: ImportedExtraction | ImportedChunk) -> Iterator[str]:
    """Yield every name in a part of a recording, as often as it occurs."""
    yield from (entity.name for entity in part.entities)
    yield from (name for relation in part.relations for name in (relation.source, relation.target))
    yield from (name for claim in part.claims for name in (claim.claim.subject, claim.claim.object) if name)


def _spellings(graph: ImportedGraph) -> dict[str, str]:
    """Return the spelling of each name in the first document with a record of it, preferring one not in capitals."""
    text_by_document = {source.id: source.content.decode() for source in graph.documents}
    spelling_by_name: dict[str, str] = {}
    for document, recording in graph.extractions.items():
        for name in sorted({name for part in recording.parts for name in _names(part)}):
            if name.isupper() and spelling_by_name.get(name, name).isupper():
                text = text_by_document.get(document, "")
                match = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE)
                if match:
                    spelling_by_name[name] = match.group()
    return spelling_by_name


def _respelled(recording: ImportedExtraction, spelling: Callable[[str], str]) -> ImportedExtraction:
    chunks = tuple(_respelled_part(chunk, spelling) for chunk in recording.chunks)
    return replace(_respelled_part(recording, spelling), chunks=chunks)


def _respelled_part(part: Part, spelling: Callable[[str], str]) -> Part:
    return replace(
        part,
        entities=tuple(replace(entity, name=spelling(entity.name)) for entity in part.entities),
        relations=tuple(
            replace(relation, source=spelling(relation.source), target=spelling(relation.target))
            for relation in part.relations
        ),
        claims=tuple(_respelled_claim(claim, spelling) for claim in part.claims),
    )


def _respelled_claim(imported: ImportedClaim, spelling: Callable[[str], str]) -> ImportedClaim:
    claim = imported.claim
    object_ = spelling(claim.object) if claim.object else ""
    return replace(imported, claim=replace(claim, subject=spelling(claim.subject), object=object_))


def _capitalised(name: str) -> str:
    return " ".join(word.capitalize() for word in name.split()) if name.isupper() else name
