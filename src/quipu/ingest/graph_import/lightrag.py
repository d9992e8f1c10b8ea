"""LightRAG: the files of a working directory with its default stores, as an imported graph.

LightRAG 1.5 keeps documents and chunks in `kv_store_*.json` (by id), and entities and relations in GraphML: the parts
of descriptions and the ids of chunks stand in one text, with `<SEP>` between them. Of a long list of ids the GraphML
holds only some, the files `kv_store_entity_chunks.json` and `kv_store_relation_chunks.json` all.
"""

import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from quipu.errors import InvalidInput
from quipu.ingest.graph_import.graphml import GraphmlEdge, GraphmlNode, read_graphml
from quipu.ingest.graph_import.lines import entity_type, read_whole
from quipu.model.document import SourceDocument
from quipu.model.extraction import ExtractedEntity, ExtractedRelation
from quipu.model.graph import MAX_WEIGHT
from quipu.model.ids import digest
from quipu.model.imported_graph import ImportedChunk, ImportedExtraction, ImportedGraph
from quipu.text.formatting import format_count
from quipu.text.names import entity_key

GRAPH_FILE = "graph_chunk_entity_relation.graphml"
CHUNKS_FILE = "kv_store_text_chunks.json"
_NO_CHUNKS = ("UNKNOWN", "manual_creation")  # what LightRAG writes for an entity that a person added
_DOCUMENTS_FILE, _STATUS_FILE = "kv_store_full_docs.json", "kv_store_doc_status.json"
_SOURCE_FILES = ("kv_store_entity_chunks.json", "kv_store_relation_chunks.json")
_CACHE_FILE = "kv_store_llm_response_cache.json"
_REPEATING_FILES = ("kv_store_full_entities.json", "kv_store_full_relations.json")  # they say what the graph says
_STORES = {CHUNKS_FILE, _DOCUMENTS_FILE, _STATUS_FILE, *_SOURCE_FILES, _CACHE_FILE, *_REPEATING_FILES}
SEPARATOR = "<SEP>"
_NO_DESCRIPTION = "UNKNOWN"  # of the end of a relation that no entity was given for
_PARSED_PREFIX = "{{LRdoc}}"  # before the text of a document that LightRAG's own parsers have read
_NO_FILE = ("", "unknown_source", "no-file-path", "custom_kg", "manual_creation")
_NO_TEXT = BeforeValidator(lambda value: "" if value is None else value)
_MAX_CACHE_BYTES = 1 << 30

_OptionalText = Annotated[str, _NO_TEXT]


class _Row(BaseModel):
    model_config = ConfigDict(extra="ignore")


class _DocumentRow(_Row):
    content: _OptionalText = ""
    file_path: _OptionalText = ""
    parse_format: _OptionalText = ""


class _ChunkRow(_Row):
    content: str
    full_doc_id: str
    chunk_order_index: int = 0
    file_path: _OptionalText = ""
    llm_cache_list: list[str] = []


class _StatusRow(_Row):
    status: str
    error_msg: _OptionalText = ""


class _SourcesRow(_Row):
    chunk_ids: list[str]


class _ReplyRow(_Row):
    reply: _OptionalText = Field(default="", alias="return")


RowType = TypeVar("RowType", bound=_Row)


def is_working_directory(folder: Path) -> bool:
    """Return whether a folder holds the chunks or the graph of LightRAG's default stores."""
    return (folder / GRAPH_FILE).is_file() or (folder / CHUNKS_FILE).is_file()


def read_working_directory(folder: Path) -> ImportedGraph:
    """Return documents, entities and relations of a LightRAG working directory.

    An entity and its descriptions belong to the chunks that LightRAG names as its sources. A part of a description
    belongs to those whose cached reply contains it; one that no reply contains, such as a summary, belongs to all. The
    weight of a relation is divided among its chunks. What has no chunk is without text.

    Raises InvalidInput, with file and place, for a file that is missing, damaged, or not LightRAG's.
    """
    for name in (GRAPH_FILE, CHUNKS_FILE):
        if not (folder / name).is_file():
            raise InvalidInput(
                f"{folder / name} is missing from the LightRAG working directory.",
                remedy="Only LightRAG's default file stores can be read, with all their files.",
            )
    graph = read_graphml(folder / GRAPH_FILE)
    chunks = {name: row for name, row in _rows(folder / CHUNKS_FILE, _ChunkRow).items() if row.content.strip()}
    sources = _SourceReader(folder, chunks)
    for node in graph.nodes.values():
        sources.add_entity(node)
    for edge in graph.edges:
        sources.add_relation(edge, graph.nodes)
    documents, omissions = _documents(folder, chunks)
    names_by_document = _names_by_document(chunks)
    recordings = {document.id: _recording(document.id, names_by_document, sources) for document in documents}
    return ImportedGraph(
        identity=f"lightrag/1 {digest('lightrag', *sorted(recordings))[:12]}",
        documents=tuple(documents),
        extractions=recordings,
        textless={folder.resolve().name: sources.textless},
        omissions=(*omissions, *sources.omissions(), *_left_files(folder)),
    )


@dataclass(slots=True)
class _SourceReader:
    """Entities and relations by the id of the chunk they come from, "" for those without a chunk."""

    folder: Path
    chunks: Mapping[str, _ChunkRow]
    entities: dict[str, list[ExtractedEntity]] = field(default_factory=lambda: defaultdict(list))
    relations: dict[str, list[ExtractedRelation]] = field(default_factory=lambda: defaultdict(list))
    _self_relations: list[str] = field(default_factory=list)
    _nameless: list[str] = field(default_factory=list)
    _missing_chunks: set[str] = field(default_factory=set)
    _chunks_by_owner: dict[str, _SourcesRow] = field(init=False)
    _replies_by_chunk: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        entities, relations = (_rows(self.folder / name, _SourcesRow) for name in _SOURCE_FILES)
        self._chunks_by_owner = {**entities, **relations}
        cache = self.folder / _CACHE_FILE
        is_small = cache.is_file() and cache.stat().st_size <= _MAX_CACHE_BYTES
        replies = _rows(cache, _ReplyRow) if is_small else {}
        self._replies_by_chunk = {
            name: "\n".join(replies[key].reply for key in chunk.llm_cache_list if key in replies)
            for name, chunk in self.chunks.items()
        }

    def add_entity(self, node: GraphmlNode) -> None:
        """Add an entity to each of its chunks, with the parts of its description that come from there."""
        name = _name_of(node)
        if not entity_key(name):
            self._nameless.append(name)
            return
        written = _unquoted(node.attributes.get("entity_type", ""))
        type_ = entity_type(written.capitalize() if written.islower() else written)
        for chunk, description in self._sources(node.id, node.attributes):
            self.entities[chunk].append(ExtractedEntity(name=name, type=type_, description=description))

    def add_relation(self, edge: GraphmlEdge, nodes: Mapping[str, GraphmlNode]) -> None:
        """Add a relation to each of its chunks, with a part of its weight."""
        source, target = _name_of(nodes[edge.source]), _name_of(nodes[edge.target])
        keys = {entity_key(source), entity_key(target)}
        if len(keys) < 2 or "" in keys:
            (self._nameless if "" in keys else self._self_relations).append(source)
            return
        parts = _parts(edge.attributes.get("keywords", ""))
        keywords = dict.fromkeys(word.strip() for part in parts for word in part.split(",") if word.strip())
        sources = self._sources(SEPARATOR.join(sorted((edge.source, edge.target))), edge.attributes)
        weight = self._weight(edge) / len(sources)
        for chunk, description in sources:
            relation = ExtractedRelation(
                source=source,
                target=target,
                keywords=tuple(keywords),
                description=description,
                weight=weight,
            )
            self.relations[chunk].append(relation)

    @property
    def textless(self) -> ImportedChunk:
        """What has no chunk."""
        return ImportedChunk(text="", entities=tuple(self.entities[""]), relations=tuple(self.relations[""]))

    def omissions(self) -> Iterator[str]:
        """Yield what was left out of the graph, and why."""
        where = self.folder / GRAPH_FILE
        for name in self._self_relations:
            yield f'{where}: "{name}" is related to itself'
        if self._nameless:
            count = format_count(len(self._nameless), "entity")
            yield f"{where}: {count} without letter or digit in the name, or relations of these"
        if self._missing_chunks:
            count = format_count(len(self._missing_chunks), "source")
            yield f"{where}: {count} of entities or relations, because {CHUNKS_FILE} has no such chunks"

    def _sources(self, owner: str, attributes: Mapping[str, str]) -> list[tuple[str, str]]:
        """Return (chunk, part of the description) pairs; each chunk occurs, with "" if no part comes from there."""
        parts = [part for part in _parts(attributes.get("description", "")) if part != _NO_DESCRIPTION]
        row = self._chunks_by_owner.get(owner)
        names = dict.fromkeys([*(row.chunk_ids if row else ()), *_parts(attributes.get("source_id", ""))])
        chunks = [name for name in names if name in self.chunks]
        self._missing_chunks.update(name for name in names if name not in self.chunks and name not in _NO_CHUNKS)
        if not chunks:
            return [("", part) for part in parts or ("",)]
        pairs = [
            (chunk, part)
            for part in parts
            for chunk in [name for name in chunks if part in self._replies_by_chunk[name]] or chunks
        ]
        with_parts = {chunk for chunk, _ in pairs}
        return [*pairs, *((chunk, "") for chunk in chunks if chunk not in with_parts)]

    def _weight(self, edge: GraphmlEdge) -> float:
        text = edge.attributes.get("weight", "") or "1"
        try:
            weight = float(text)
        except ValueError:
            weight = -1.0
        if not 0 < weight <= MAX_WEIGHT:
            raise InvalidInput(
                f"{self.folder / GRAPH_FILE}, line {edge.line}: the weight {text[:40]!r} is not a number "
                f"above 0, and at most {MAX_WEIGHT:,.0f}.",
                remedy="Correct the file.",
            )
        return weight


def _name_of(node: GraphmlNode) -> str:
    return _unquoted(node.attributes.get("entity_id") or node.id)


def _parts(text: str) -> list[str]:
    return list(dict.fromkeys(bare for part in text.split(SEPARATOR) if (bare := _unquoted(part))))


def _unquoted(text: str) -> str:
    """Return a text without the quotation marks that early versions put around every value."""
    text = text.strip()
    return text[1:-1].strip() if len(text) > 1 and text[0] == text[-1] == '"' else text


def _documents(folder: Path, chunks: Mapping[str, _ChunkRow]) -> tuple[list[SourceDocument], list[str]]:
    """Return the documents with chunks, and messages about those without.

    The text of a document that LightRAG has only the chunks of is these chunks, one after the other.
    """
    rows_file, statuses_file = folder / _DOCUMENTS_FILE, folder / _STATUS_FILE
    rows, statuses = _rows(rows_file, _DocumentRow), _rows(statuses_file, _StatusRow)
    documents: list[SourceDocument] = []
    names_by_document = _names_by_document(chunks)
    for document, names in names_by_document.items():
        row = rows.get(document)
        text = _full_text(row) if row else ""
        text = text if text.strip() else "\n\n".join(_text_of(chunks[name]) for name in names)
        files = (row.file_path if row else "", chunks[names[0]].file_path)
        file = next((file for file in files if file not in _NO_FILE), "")
        title = file.replace("\\", "/").rpartition("/")[2] or document
        documents.append(SourceDocument(id=document, title=title, content=text.encode(), source=file or document))
    omissions = []
    for name in dict.fromkeys([*rows, *statuses]):
        status = statuses.get(name)
        reason = f"{status.status} {status.error_msg}".strip() if status else "no status"
        place = statuses_file if status else rows_file
        if name not in names_by_document:
            omissions.append(f"{place}: document {name!r}, of which LightRAG has no chunks ({reason[:200]})")
        elif status and status.status != "processed":
            what = "what LightRAG has not yet extracted of document"
            omissions.append(f"{place}: {what} {name!r} ({reason[:200]})")
    return documents, omissions


def _names_by_document(chunks: Mapping[str, _ChunkRow]) -> dict[str, list[str]]:
    """Return the names of the chunks of each document in order."""
    names_by_document: dict[str, list[str]] = {}
    for name in sorted(chunks, key=lambda name: chunks[name].chunk_order_index):
        names_by_document.setdefault(chunks[name].full_doc_id, []).append(name)
    return dict(sorted(names_by_document.items()))


def _full_text(row: _DocumentRow) -> str:
    is_parsed = row.parse_format not in ("", "raw")
    return _normal(row.content.removeprefix(_PARSED_PREFIX) if is_parsed else row.content)


def _text_of(chunk: _ChunkRow) -> str:
    """Return the text of a chunk without the halves of characters that its ends may have cut."""
    return _normal(chunk.content).strip("\ufffd").strip()


def _normal(text: str) -> str:
    return unicodedata.normalize("NFC", text.replace("\0", "").replace("\r\n", "\n").replace("\r", "\n"))


def _recording(
    document: str, names_by_document: Mapping[str, Sequence[str]], sources: _SourceReader
) -> ImportedExtraction:
    chunks = (
        ImportedChunk(
            text=_text_of(sources.chunks[name]),
            entities=tuple(sources.entities[name]),
            relations=tuple(sources.relations[name]),
        )
        for name in names_by_document[document]
    )
    return ImportedExtraction(document=document, chunks=tuple(chunks))


def _left_files(folder: Path) -> Iterator[str]:
    """Yield the files that are not needed or cannot be used, and why."""
    for file in sorted(folder.glob("kv_store_*.json")):
        if file.name not in _STORES:
            yield f"{file}: a store that LightRAG does not have by default"
    reasons = {
        "vdb_*.json": "vectors, which Quipu computes with its own embedder",
        _CACHE_FILE: "cached replies; they only showed which chunk a description comes from",
    }
    for pattern, reason in reasons.items():
        if files := sorted(folder.glob(pattern)):
            n_bytes = sum(file.stat().st_size for file in files)
            yield f"{folder / pattern}: {n_bytes / 1e6:,.1f} MB of {reason}"


def _rows(file: Path, row_type: type[RowType]) -> dict[str, RowType]:
    """Return the rows of a store by id, nothing if the file is missing. Raises InvalidInput for an invalid row."""
    if not file.is_file():
        return {}
    try:
        return TypeAdapter(dict[str, row_type]).validate_json(read_whole(file))  # type: ignore[valid-type]
    except ValidationError as error:
        first = error.errors()[0]
        record = f", record {first['loc'][0]!r}" if first["loc"] else ""
        field_name = "".join(f"`{step}` " for step in first["loc"][1:])
        remedy = "Copy the file again while LightRAG is not running."
        raise InvalidInput(f"{file}{record}: {field_name}{first['msg']}.", remedy=remedy) from None
