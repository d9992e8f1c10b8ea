"""Custom graphs: entities, relations and chunks given as data, in the shape of LightRAG's `insert_custom_kg`."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from quipu.errors import InvalidInput
from quipu.ingest.graph_import.lines import RelationLine, entity_type, first_fault, read_whole
from quipu.model.document import SourceDocument
from quipu.model.extraction import ExtractedEntity, ExtractedRelation
from quipu.model.graph import MAX_WEIGHT, UNKNOWN_TYPE
from quipu.model.ids import digest
from quipu.model.imported_graph import ImportedChunk, ImportedExtraction, ImportedGraph
from quipu.text.formatting import format_count
from quipu.text.names import entity_key

_SEPARATOR = "<SEP>"  # between several sources
_NO_SOURCE = ("", "UNKNOWN", "manual_creation")
_REMEDY = "docs/importing.md shows the fields of a custom graph."

_FilledText = Annotated[str, Field(min_length=1)]


class _Record(BaseModel):
    """Unknown fields are ignored: LightRAG's records have more than is needed here."""

    model_config = ConfigDict(extra="ignore", strict=True, str_strip_whitespace=True)


class CustomChunk(_Record):
    """A passage. Those of one `source_id` are one document, in the order of `chunk_order_index`."""

    content: _FilledText
    source_id: _FilledText | int
    chunk_order_index: int = 0
    file_path: str | None = None


class CustomEntity(_Record):
    """An entity. `source_id` is that of the chunks that state it; without one it gets a text of its own words."""

    entity_name: _FilledText
    entity_type: str | None = None
    description: str | None = None
    source_id: str | int | None = None


class CustomRelation(_Record):
    """A relation of two entities, which need not be among the entities."""

    src_id: _FilledText
    tgt_id: _FilledText
    description: str | None = None
    keywords: list[str] | str = ""
    weight: float = Field(default=1.0, gt=0, le=MAX_WEIGHT)
    source_id: str | int | None = None


class CustomGraph(_Record):
    """Chunks, entities and relations; each list may be empty."""

    chunks: list[CustomChunk] = []
    entities: list[CustomEntity] = []
    relationships: list[CustomRelation] = []


def custom_graph_from(value: object, where: str) -> CustomGraph:
    """Return a custom graph given as data. Raises InvalidInput, with the place, for data that is none."""
    try:
        return CustomGraph.model_validate(value)
    except ValidationError as error:
        raise InvalidInput(f"{where}: {first_fault(error)}.", remedy=_REMEDY) from None


def read_custom_graph(file: Path) -> CustomGraph:
    """Return the custom graph in a JSON file. Raises InvalidInput, with the place, for a file that holds none."""
    try:
        return CustomGraph.model_validate_json(read_whole(file))
    except ValidationError as error:
        raise InvalidInput(f"{file}: {first_fault(error).strip()}.", remedy=_REMEDY) from None


def imported_graph(graph: CustomGraph, name: str) -> ImportedGraph:
    """Return a custom graph as an imported graph; `name` begins the ids of documents for what has no chunk.

    An entity or relation belongs to the document that the chunks of its source are, and there to the chunks that name
    it. Raises InvalidInput, with the place, for a name without letter or digit and for an id that occurs twice.
    """
    documents = list(_documents(graph.chunks))
    sources = _Sources({document.id for document in documents})
    for number, entity in enumerate(graph.entities, 1):
        _check_name(entity.entity_name, f"{name}: `entity_name` of item {number} of `entities`")
        sources.add_entity(entity)
    for number, relation in enumerate(graph.relationships, 1):
        place = f"{name}: item {number} of `relationships`"
        _check_name(relation.src_id, f"`src_id` of {place}")
        _check_name(relation.tgt_id, f"`tgt_id` of {place}")
        sources.add_relation(relation, place)
    return ImportedGraph(
        identity=f"custom/1 {digest('custom', graph.model_dump_json())[:12]}",
        documents=tuple(documents),
        extractions={document.id: sources.recording(document.id) for document in documents},
        omissions=tuple(sources.omissions(name)),
        textless={name: sources.textless},
    )


@dataclass(slots=True)
class _Sources:
    """Entities and relations by the document they come from, "" for none of these documents."""

    documents: set[str]
    _entities: dict[str, list[ExtractedEntity]] = field(default_factory=lambda: defaultdict(list))
    _relations: dict[str, list[ExtractedRelation]] = field(default_factory=lambda: defaultdict(list))
    _self_relations: list[str] = field(default_factory=list)
    _unknown: dict[str, None] = field(default_factory=dict)

    def add_entity(self, record: CustomEntity) -> None:
        """Add an entity to the documents of its source."""
        type_ = entity_type(record.entity_type) if record.entity_type else UNKNOWN_TYPE
        entity = ExtractedEntity(name=record.entity_name, type=type_, description=record.description or "")
        for document in self._documents_of(record.source_id):
            self._entities[document].append(entity)

    def add_relation(self, record: CustomRelation, place: str) -> None:
        """Add a relation to the documents of its source, with a part of its weight."""
        if entity_key(record.src_id) == entity_key(record.tgt_id):
            self._self_relations.append(f'{place}: "{record.src_id}" is related to itself')
            return
        documents = self._documents_of(record.source_id)
        line = RelationLine(
            source=record.src_id,
            target=record.tgt_id,
            description=record.description or "",
            keywords=record.keywords,
            weight=record.weight / len(documents),
        )
        for document in documents:
            self._relations[document].append(line.relation())

    def recording(self, document: str) -> ImportedExtraction:
        """Return what a document states."""
        entities, relations = tuple(self._entities[document]), tuple(self._relations[document])
        return ImportedExtraction(document=document, entities=entities, relations=relations)

    @property
    def textless(self) -> ImportedChunk:
        """What no document states."""
        return ImportedChunk(text="", entities=tuple(self._entities[""]), relations=tuple(self._relations[""]))

    def omissions(self, name: str) -> Iterator[str]:
        """Yield what was left out, and why."""
        yield from self._self_relations
        if self._unknown:
            count, first = format_count(len(self._unknown), "source"), next(iter(self._unknown))
            yield f"{name}: {count} without a chunk, such as {first[:80]!r}; what names them gets texts of its own"

    def _documents_of(self, source: str | int | None) -> Sequence[str]:
        text = "" if source is None else str(source)
        names = dict.fromkeys(name.strip() for name in text.split(_SEPARATOR))
        unknown = (name for name in names if name not in self.documents and name not in _NO_SOURCE)
        self._unknown.update(dict.fromkeys(unknown))
        return [name for name in names if name in self.documents] or [""]


def _documents(chunks: Sequence[CustomChunk]) -> Iterator[SourceDocument]:
    """Yield a document for each source, made of its chunks in order."""
    chunks_by_source: dict[str, list[CustomChunk]] = {}
    for chunk in sorted(chunks, key=lambda chunk: chunk.chunk_order_index):
        chunks_by_source.setdefault(str(chunk.source_id), []).append(chunk)
    for source, own in sorted(chunks_by_source.items()):
        text = "\n\n".join(dict.fromkeys(chunk.content for chunk in own))
        file = own[0].file_path or ""
        title = file.replace("\\", "/").rpartition("/")[2] or source
        content = text.encode("utf-8", "replace")
        yield SourceDocument(id=source, title=title, content=content, source=file or source)


def _check_name(name: str, place: str) -> None:
    if not entity_key(name):
        raise InvalidInput(f"{place} is {name[:80]!r}, without a letter or digit.", remedy="Give the entity a name.")
