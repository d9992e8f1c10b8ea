"""Description documents: texts for entities and relations that an imported graph has no text for.

Each entity gets a document of its own words, so that it can be found, cited and removed like any other: "Linear B
(Script): A script.", and a line for each relation that begins at it.
"""

from collections.abc import Iterator
from dataclasses import replace

from quipu.model.document import SourceDocument
from quipu.model.extraction import ExtractedEntity, ExtractedRelation
from quipu.model.graph import OTHER_TYPE, UNKNOWN_TYPE
from quipu.model.ids import digest
from quipu.model.imported_graph import ImportedChunk, ImportedExtraction, ImportedGraph
from quipu.text.names import entity_key

_MAX_NAME = 200  # characters of the name of an entity in the id of its document


def with_descriptions(graph: ImportedGraph) -> ImportedGraph:
    """Return the graph with a document for each entity without text that is given or at which a relation begins.

    The id of a document is `graph#entity`, its title the name of the entity. A relation is in the document of its
    source. Names of one entity, such as "Linear B" and "the Linear B", share a document.
    """
    documents: list[SourceDocument] = []
    recordings: dict[str, ImportedExtraction] = {}
    for graph_name, textless in graph.textless.items():
        for document, recording in _description_documents(graph_name, textless):
            documents.append(document)
            recordings[document.id] = recording
    return replace(
        graph,
        documents=(*graph.documents, *documents),
        extractions={**graph.extractions, **recordings},
        textless={},
    )


def _description_documents(
    graph_name: str, textless: ImportedChunk
) -> Iterator[tuple[SourceDocument, ImportedExtraction]]:
    """Yield the documents, each with what it says."""
    name_by_key: dict[str, str] = {}
    entities_by_key: dict[str, dict[ExtractedEntity, None]] = {}
    relations_by_key: dict[str, dict[ExtractedRelation, None]] = {}
    for entity in textless.entities:
        key = entity_key(entity.name)
        name_by_key.setdefault(key, entity.name)
        entities_by_key.setdefault(key, {})[entity] = None
    for relation in textless.relations:
        key = entity_key(relation.source)
        name_by_key.setdefault(key, relation.source)
        relations_by_key.setdefault(key, {})[relation] = None
    for key, name in name_by_key.items():
        own_entities, own_relations = tuple(entities_by_key.get(key, ())), tuple(relations_by_key.get(key, ()))
        lines = dict.fromkeys([*map(_entity_line, own_entities), *map(_relation_line, own_relations)])
        text, document_id = "\n\n".join(lines), _document_id(graph_name, name)
        content = text.replace("\0", "").encode("utf-8", "replace")
        document = SourceDocument(id=document_id, title=name, content=content, source=graph_name)
        yield document, ImportedExtraction(document=document_id, entities=own_entities, relations=own_relations)


def _document_id(graph_name: str, name: str) -> str:
    """Return an id of limited length, without NUL."""
    short = name if len(name) <= _MAX_NAME else f"{name[:_MAX_NAME]}…{digest(name)[:8]}"
    return f"{graph_name}#{short}".replace("\0", "")


def _entity_line(entity: ExtractedEntity) -> str:
    type_ = "" if entity.type in (OTHER_TYPE, UNKNOWN_TYPE, "") else f" ({entity.type})"
    return f"{entity.name}{type_}: {entity.description}" if entity.description else f"{entity.name}{type_}"


def _relation_line(relation: ExtractedRelation) -> str:
    """Return the description if it names both ends, else the names, the keywords and the description."""
    folded = relation.description.casefold()
    if relation.source.casefold() in folded and relation.target.casefold() in folded:
        return relation.description
    keywords = f" ({', '.join(relation.keywords)})" if relation.keywords else ""
    description = f": {relation.description}" if relation.description else ""
    return f"{relation.source} – {relation.target}{keywords}{description}"
