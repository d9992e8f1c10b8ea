"""A vault for Obsidian: a folder of Markdown with a note for each entity and each document, and links between them."""

import json
import re
import unicodedata
from array import array
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from quipu.engine.graph_export.part import ExportedDocument, FilePiece, GraphPart
from quipu.model.graph import Entity, Relation
from quipu.model.ids import digest, relation_id
from quipu.model.markdown import escape_markdown

_ENTITIES_FOLDER, _DOCUMENTS_FOLDER = "Entities", "Documents"
_ENTITIES_PER_READ = 200
_MAX_NAME_BYTES = 150  # of a file without folder and suffix; most systems allow 255
_N_DIGITS = 8  # of the digest that tells files of one name apart
# What Windows, macOS, Linux or Obsidian do not allow in the name of a file, or read as part of a link.
_UNSAFE = re.compile(r'[\x00-\x1f\x7f<>:"/\\|?*#^\[\]]+')
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)", re.IGNORECASE)


async def write_vault(part: GraphPart) -> AsyncIterator[FilePiece]:
    """Yield the notes: first those of documents, then those of entities, which link to documents and each other."""
    names = await _note_names(part)
    n_documents_by_key: dict[str, array[int]] = defaultdict(lambda: array("l"))
    documents_by_number: list[str] = []
    async with aclosing(part.read_documents(with_relations=False)) as documents:
        async for document in documents:
            for key in document.mentions:
                n_documents_by_key[key].append(len(documents_by_number))
            documents_by_number.append(document.document.id)
            yield _document_note(document, names)
    keys = [part.keys[place] for place in part.entities.tolist()]
    for start in range(0, len(keys), _ENTITIES_PER_READ):
        entities = await part.view.entities(keys[start : start + _ENTITIES_PER_READ])
        relations_by_key = await _relations_by_key(part, [entity.key for entity in entities])
        for entity in entities:
            mentioned = [documents_by_number[number] for number in n_documents_by_key.get(entity.key, ())]
            yield _entity_note(entity, relations_by_key[entity.key], mentioned, names)


@dataclass(frozen=True, slots=True, kw_only=True)
class _NoteNames:
    """The names of notes without folder and suffix: of entities by key, and of documents by id."""

    entities: Mapping[str, str]
    documents: Mapping[str, str]
    labels: Mapping[str, str]  # the name of each entity, and the title of each document

    def entity_link(self, key: str) -> str:
        """Return a link to the note of an entity."""
        return f"[[{_ENTITIES_FOLDER}/{self.entities[key]}|{_label(self.labels[key])}]]"

    def document_link(self, document_id: str) -> str:
        """Return a link to the note of a document."""
        return f"[[{_DOCUMENTS_FOLDER}/{self.documents[document_id]}|{_label(self.labels[document_id])}]]"


async def _note_names(part: GraphPart) -> _NoteNames:
    entity_labels: dict[str, str] = {}
    async with aclosing(part.read_entities()) as blocks:
        async for entities in blocks:
            entity_labels |= {entity.key: entity.name for _, entity in entities}
    documents = {document.id: document.title or document.id for document in await part.view.documents()}
    return _NoteNames(
        entities=file_names(entity_labels), documents=file_names(documents), labels=entity_labels | documents
    )


def file_names(label_by_id: Mapping[str, str]) -> dict[str, str]:
    """Return a safe name of a file for each label, by id.

    Names that are equal on some system, because it ignores letter case or how accents are written, get a digest of
    their ids. So a name does not depend on the order of the ids.
    """
    names = {identifier: _safe_name(label) for identifier, label in label_by_id.items()}
    counts = Counter(_folded(name) for name in names.values())
    return {
        identifier: name if counts[_folded(name)] == 1 else f"{name} {digest(identifier)[:_N_DIGITS]}"
        for identifier, name in names.items()
    }


def _safe_name(label: str) -> str:
    name = unicodedata.normalize("NFC", " ".join(_UNSAFE.sub(" ", label).split()))
    name = name.encode("utf-8", "ignore")[:_MAX_NAME_BYTES].decode("utf-8", "ignore").strip(". ")
    return f"{name}_" if _RESERVED.match(name) else name or "Unnamed"


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFKC", name).casefold())


def _label(text: str) -> str:
    """Return a text that ends no link and no cell of a table."""
    return " ".join(re.sub(r"[\[\]|]+", " ", text).split()) or "unnamed"


def _document_note(part: ExportedDocument, names: _NoteNames) -> FilePiece:
    document, text = part.document, "\n\n".join(chunk.text for chunk in part.chunks)
    properties = {"id": document.id, "title": document.title, "source": document.source, **_plain(document.metadata)}
    links = [f"- {names.entity_link(key)}" for key in part.mentions]
    lines = [_front_matter(properties), text, *(["", "## Entities", "", *links] if links else [])]
    return FilePiece(file=f"{_DOCUMENTS_FOLDER}/{names.documents[document.id]}.md", text="\n".join(lines) + "\n")


def _entity_note(
    entity: Entity, relations: Sequence[Relation], documents: Sequence[str], names: _NoteNames
) -> FilePiece:
    properties = {"id": entity.key, "aliases": list(dict.fromkeys([entity.name, *entity.aliases])), "type": entity.type}
    lines = [_front_matter(properties), f"# {escape_markdown(entity.name)}", ""]
    lines += [escape_markdown(entity.description), ""] if entity.description else []
    if relations:
        lines += ["## Relations", "", *(_relation_line(entity.key, relation, names) for relation in relations), ""]
    if documents:
        lines += ["## Documents", "", *(f"- {names.document_link(document)}" for document in documents), ""]
    return FilePiece(file=f"{_ENTITIES_FOLDER}/{names.entities[entity.key]}.md", text="\n".join(lines))


def _relation_line(key: str, relation: Relation, names: _NoteNames) -> str:
    other = relation.target if relation.source == key else relation.source
    keywords = f" ({escape_markdown(', '.join(relation.keywords))})" if relation.keywords else ""
    description = f": {escape_markdown(relation.description)}" if relation.description else ""
    return f"- {names.entity_link(other)}{keywords}{description}"


def _front_matter(properties: Mapping[str, object]) -> str:
    """Return properties as YAML, in which JSON is valid."""
    lines = [f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=True)}" for name, value in properties.items()]
    return "\n".join(["---", *lines, "---", ""])


def _plain(metadata: Mapping[str, object]) -> dict[str, object]:
    """Return metadata without names that the note itself uses."""
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in metadata.items()
        if name not in ("id", "title", "source")
    }


async def _relations_by_key(part: GraphPart, keys: Sequence[str]) -> Mapping[str, Sequence[Relation]]:
    """Return the relations of each of these entities to exported ones, the heaviest first."""
    relations_by_key: dict[str, list[Relation]] = {key: [] for key in keys}
    for relation in _exported(await part.view.relations(entities=keys), part.exported_keys):
        for key in {relation.source, relation.target} & relations_by_key.keys():
            relations_by_key[key].append(relation)
    return {
        key: sorted(own, key=lambda r: (-r.weight, relation_id(r.source, r.target)))
        for key, own in relations_by_key.items()
    }


def _exported(relations: Iterable[Relation], keys: frozenset[str]) -> Iterable[Relation]:
    return (relation for relation in relations if relation.source in keys and relation.target in keys)
