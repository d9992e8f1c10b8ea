"""Graphs without texts: GraphML, and triples as tables (CSV, TSV) or N-Triples, as entities and relations."""

import csv
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

from pydantic import ValidationError

from quipu.errors import InvalidInput
from quipu.ingest.graph_import.graphml import read_graphml
from quipu.ingest.graph_import.lines import RelationLine, entity_type, first_fault
from quipu.model.extraction import ExtractedEntity, ExtractedRelation
from quipu.model.graph import UNKNOWN_TYPE
from quipu.model.imported_graph import ImportedChunk
from quipu.text.formatting import format_count
from quipu.text.names import entity_key

# Names of attributes in GraphML files of several programs; the first that an element has counts.
_NAMES = ("entity_id", "name", "title", "label", "nodegraphics")
_TYPES = ("entity_type", "type", "category", "kind")
_DESCRIPTIONS = ("description", "desc", "summary")
_KEYWORDS = ("keywords", "predicate", "relation", "relationship", "label", "type", "name", "edgegraphics")
_HEADINGS = frozenset(
    ["subject", "source", "head", "s", "from", "predicate", "relation", "p", "object", "target", "tail", "o"]
)

_LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
_COMMENT = "http://www.w3.org/2000/01/rdf-schema#comment"
_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
_NODE = r"<[^<>\"{}|^`\\\x00-\x20]+>|_:[^\s<>\"]+"
_LITERAL = r'"(?:[^"\\\n\r]|\\.)*"(?:@[A-Za-z]+(?:-[A-Za-z0-9]+)*|\^\^<[^<>\s]+>)?'
_STATEMENT = re.compile(rf"\s*({_NODE})\s*(<[^<>\s]+>)\s*({_NODE}|{_LITERAL})\s*\.\s*(?:#.*)?")
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))")
_SIMPLE_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "b": "\b", "f": "\f"}
_WORD_START = re.compile(r"(?<=[a-z])(?=[A-Z])")


@dataclass(slots=True)
class TextlessGraph:
    """Entities and relations of a file, and messages about what of it is left out."""

    entities: list[ExtractedEntity] = field(default_factory=list)
    relations: list[ExtractedRelation] = field(default_factory=list)
    omissions: list[str] = field(default_factory=list)

    @property
    def content(self) -> ImportedChunk:
        """The entities and relations."""
        return ImportedChunk(text="", entities=tuple(self.entities), relations=tuple(self.relations))

    def add_triple(self, where: str, triple: Sequence[str]) -> None:
        """Add a triple as a relation; the middle is the keyword, the whole the description."""
        source, keyword, target = (part.strip() for part in triple)
        if not (entity_key(source) and keyword and entity_key(target)):
            self.omissions.append(f"{where}: a part of the triple has no letter or digit")
        elif entity_key(source) == entity_key(target):
            self.omissions.append(f'{where}: "{source}" is related to itself')
        else:
            description = f"{source} {keyword} {target}"
            relation = ExtractedRelation(source=source, target=target, keywords=(keyword,), description=description)
            self.relations.append(relation)


def read_graphml_entities(file: Path) -> TextlessGraph:
    """Return nodes as entities and edges as relations. Attributes without a meaning here are counted as omissions."""
    graph, content = read_graphml(file), TextlessGraph()
    n_by_unused: Counter[str] = Counter()
    name_by_id: dict[str, str] = {}
    for node in graph.nodes.values():
        where = f"{file}, line {node.line}"
        used = _Attributes(node.attributes)
        name = used.first(_NAMES) or node.id.strip()
        name_by_id[node.id] = name
        if not entity_key(name):
            content.omissions.append(f"{where}: an entity whose name has no letter or digit")
            continue
        type_, description = used.first(_TYPES), used.first(_DESCRIPTIONS)
        content.entities.append(ExtractedEntity(name=name, type=entity_type(type_), description=description))
        n_by_unused.update(used.unused)
    for edge in graph.edges:
        where = f"{file}, line {edge.line}"
        source, target, used = name_by_id[edge.source], name_by_id[edge.target], _Attributes(edge.attributes)
        if entity_key(source) == entity_key(target) or not (entity_key(source) and entity_key(target)):
            content.omissions.append(f'{where}: "{source}" is related to itself, or an end has no name')
            continue
        fields = {"source": source, "target": target, "weight": used.first(("weight",)) or 1.0}
        keywords, description = used.all(_KEYWORDS), used.first(_DESCRIPTIONS)
        try:
            line = RelationLine.model_validate({**fields, "keywords": keywords, "description": description})
        except ValidationError as error:
            raise InvalidInput(f"{where}: {first_fault(error)}.", remedy="Correct the file.") from None
        content.relations.append(line.relation())
        n_by_unused.update(used.unused)
    content.omissions += (
        f"{file}: the attribute {name!r}, {format_count(n, 'time')}" for name, n in sorted(n_by_unused.items())
    )
    return content


def read_table_of_triples(file: Path) -> TextlessGraph:
    """Return the rows of a CSV or TSV file as relations; the first row may name the columns.

    Raises InvalidInput, with the line, for a row that has not three cells and for bytes that are not UTF-8.
    """
    content = TextlessGraph()
    delimiter = "\t" if file.suffix == ".tsv" else ","
    try:
        with file.open(encoding="utf-8-sig", newline="") as text:
            rows = csv.reader(text, delimiter=delimiter, strict=True)
            for number, row in enumerate(rows, 1):
                where = f"{file}, line {rows.line_num}"
                if not any(cell.strip() for cell in row):
                    continue
                if len(row) != 3:
                    raise InvalidInput(
                        f"{where}: {format_count(len(row), 'cell')}, where a triple has 3.",
                        remedy="Give three columns: subject, predicate, object; commas in .csv, tabs in .tsv.",
                    )
                if number > 1 or not _HEADINGS.issuperset(cell.strip().casefold() for cell in row):
                    content.add_triple(where, row)
    except (csv.Error, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"{file} cannot be read as a table in UTF-8 ({error}).", remedy="Correct the file."
        ) from None
    return content


def read_n_triples(file: Path) -> TextlessGraph:
    """Return the statements of an N-Triples file (RDF 1.1) as entities and relations.

    A resource is named by its `rdfs:label`, else by the last part of its IRI; `rdf:type` is its type. Other literals
    become its description, with the name of the predicate before all but comments. Raises InvalidInput with the line.
    """
    reader = _StatementReader()
    try:
        with file.open(encoding="utf-8-sig") as text:
            for number, line in enumerate(text, 1):
                where = f"{file}, line {number}"
                if line.strip() and not line.lstrip().startswith("#"):
                    reader.add(where, line)
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{file} is not valid UTF-8 ({error}).", remedy="Convert the file to UTF-8.") from None
    return reader.graph()


READERS: Mapping[str, Callable[[Path], TextlessGraph]] = {
    ".graphml": read_graphml_entities,
    ".csv": read_table_of_triples,
    ".tsv": read_table_of_triples,
    ".nt": read_n_triples,
}


class _Attributes:
    """The attributes of a node or edge, of which those that are not asked for are `unused`."""

    def __init__(self, attributes: Mapping[str, str]) -> None:
        self._values = {name.casefold(): value.strip() for name, value in attributes.items() if value.strip()}
        self.unused = set(self._values)

    def first(self, names: Sequence[str]) -> str:
        """Return the first of these attributes that is there, "" if none is."""
        name = next((name for name in names if name in self.unused), "")
        self.unused.discard(name)
        return self._values.get(name, "")

    def all(self, names: Sequence[str]) -> str:
        """Return those of these attributes that are there, with commas between them."""
        return ",".join(dict.fromkeys(value for name in names if (value := self.first((name,)))))


@dataclass(slots=True)
class _StatementReader:
    """Labels, types and literals by resource, and relations between resources."""

    labels: dict[str, str] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    literals: dict[str, dict[str, None]] = field(default_factory=lambda: defaultdict(dict))
    relations: list[tuple[str, str, str, str]] = field(default_factory=list)

    def add(self, where: str, line: str) -> None:
        """Add a statement. Raises InvalidInput if the line is none."""
        match = _STATEMENT.fullmatch(line.rstrip("\r\n"))
        if match is None:
            raise InvalidInput(
                f"{where} is not a statement of N-Triples.", remedy="Write: <subject> <predicate> <object> ."
            )
        subject, predicate, object_ = match.groups()
        predicate = _unescaped(predicate[1:-1])
        if object_.startswith('"'):
            self._add_literal(subject, predicate, _unescaped(object_[1 : object_.rindex('"')]))
        elif predicate == _TYPE:
            self.types.setdefault(subject, _local_name(object_))
        else:
            self.relations.append((where, subject, _words(_local_name(predicate)), object_))

    def _add_literal(self, subject: str, predicate: str, text: str) -> None:
        text = " ".join(text.split())
        if predicate == _LABEL and subject not in self.labels and entity_key(text):
            self.labels[subject] = text
        elif text:
            is_prose = predicate == _COMMENT or _local_name(predicate) == "description"
            self.literals[subject][text if is_prose else f"{_words(_local_name(predicate))}: {text}"] = None

    def graph(self) -> TextlessGraph:
        """Return the entities that something is said about, and the relations."""
        content = TextlessGraph()
        for resource in dict.fromkeys([*self.labels, *self.types, *self.literals]):
            written = self.types.get(resource, "")
            type_ = entity_type(_words(written).capitalize()) if written else UNKNOWN_TYPE
            for description in self.literals.get(resource) or ("",):
                entity = ExtractedEntity(name=self._name(resource), type=type_, description=description)
                content.entities.append(entity)
        for where, subject, predicate, object_ in self.relations:
            content.add_triple(where, (self._name(subject), predicate, self._name(object_)))
        return content

    def _name(self, resource: str) -> str:
        return self.labels.get(resource) or _local_name(resource).replace("_", " ").strip() or resource


def _local_name(resource: str) -> str:
    """Return the last part of an IRI, or the label of a blank node."""
    if resource.startswith("_:"):
        return resource[2:]
    iri = _unescaped(resource.strip("<>")).rstrip("/#")
    return unquote(re.split(r"[/#:]", iri)[-1])


def _words(name: str) -> str:
    """Return a name of a predicate or type as words: "taughtAt" is "taught at"."""
    return _WORD_START.sub(" ", name.replace("_", " ")).lower()


def _unescaped(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        code = match[1] or match[2]
        if not code:
            return _SIMPLE_ESCAPES.get(match[3], match[3])
        return chr(int(code, 16)) if int(code, 16) < 0x110000 else "\ufffd"

    return _ESCAPE.sub(character, text) if "\\" in text else text
