"""As written: names in capitals become what the documents write, or they would be other entities than these name."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from quipu.model.extraction import ExtractedEntity, ExtractedRelation
from quipu.model.imported_graph import ImportedClaim, ImportedExtraction, ImportedGraph

MIN_SHARE = 0.9  # of all names: systems that fold case write every name in capitals


def as_written(graph: ImportedGraph) -> ImportedGraph:
    """Return the graph with each name as its documents write it, where the record has all names in capitals.

    A name that stands nowhere gets a capital for each of its words.
    """
    names = list(_names(graph))
    if sum(name.isupper() for name in names) < MIN_SHARE * len(names) or not names:
        return graph
    written = _written(graph)

    def wording(name: str) -> str:
        return written.get(name) or _capitalised(name)

    return replace(
        graph,
        recordings={name: _reworded(recording, wording) for name, recording in graph.recordings.items()},
        communities=tuple(
            replace(each, entities=tuple(wording(name) for name in each.entities)) for each in graph.communities
        ),
    )


def _names(graph: ImportedGraph) -> Iterator[str]:
    for recording in graph.recordings.values():
        yield from (entity.name for entity in recording.entities)
        yield from (name for relation in recording.relations for name in (relation.source, relation.target))
        yield from _claimed(recording)


def _claimed(recording: ImportedExtraction) -> Iterator[str]:
    """Yield the names in claims."""
    for each in recording.claims:
        yield from (name for name in (each.claim.subject, each.claim.object) if name)


def _written(graph: ImportedGraph) -> dict[str, str]:
    """Return each name as the first document with a record of it writes it, in other than capitals if it ever does."""
    texts = {source.id: source.data.decode() for source in graph.documents}
    found: dict[str, str] = {}
    for document, recording in graph.recordings.items():
        entities = {entity.name for entity in recording.entities}
        ends = {name for relation in recording.relations for name in (relation.source, relation.target)}
        for name in sorted({*entities, *ends, *_claimed(recording)}):
            if name.isupper() and not _is_settled(found.get(name)):
                match = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", texts.get(document, ""), re.IGNORECASE)
                if match:
                    found[name] = match.group()
    return found


def _is_settled(written: str | None) -> bool:
    return written is not None and not written.isupper()


def _reworded(recording: ImportedExtraction, wording: Callable[[str], str]) -> ImportedExtraction:
    return replace(
        recording,
        entities=tuple(_entity(entity, wording) for entity in recording.entities),
        relations=tuple(_relation(relation, wording) for relation in recording.relations),
        claims=tuple(_claim(each, wording) for each in recording.claims),
    )


def _entity(entity: ExtractedEntity, wording: Callable[[str], str]) -> ExtractedEntity:
    return replace(entity, name=wording(entity.name))


def _relation(relation: ExtractedRelation, wording: Callable[[str], str]) -> ExtractedRelation:
    return replace(relation, source=wording(relation.source), target=wording(relation.target))


def _claim(recorded: ImportedClaim, wording: Callable[[str], str]) -> ImportedClaim:
    claim = recorded.claim
    reworded = replace(claim, subject=wording(claim.subject), object=wording(claim.object) if claim.object else "")
    return replace(recorded, claim=reworded)


def _capitalised(name: str) -> str:
    return " ".join(word.capitalize() for word in name.split()) if name.isupper() else name
