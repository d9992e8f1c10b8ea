"""Files of imported graphs: JSON Lines, read whole and checked before anything is added."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from quipu.errors import InvalidInput, NotFound
from quipu.ingest.graph_import.custom_graph import CustomGraph, imported_graph, read_custom_graph
from quipu.ingest.graph_import.descriptions import with_descriptions
from quipu.ingest.graph_import.graphrag import output_folder, read_output_folder
from quipu.ingest.graph_import.lightrag import is_working_directory, read_working_directory
from quipu.ingest.graph_import.lines import (
    CommunityLine,
    CovariateLine,
    GraphLine,
    PassageLine,
    ReportLine,
    first_fault,
    line_kind,
    text_fault,
)
from quipu.ingest.graph_import.spelling import restore_case
from quipu.ingest.graph_import.triples import READERS, TextlessGraph
from quipu.ingest.sources import checked_id
from quipu.model.document import SourceDocument
from quipu.model.ids import digest, stable_repr
from quipu.model.imported_graph import (
    ImportedChunk,
    ImportedClaim,
    ImportedCommunity,
    ImportedExtraction,
    ImportedGraph,
    ImportedReport,
)
from quipu.text.formatting import format_count
from quipu.text.names import MAX_NAME_CHARS
from quipu.text.unicode import find_text_with_surrogate

SUFFIXES = (".jsonl", ".ndjson")
CUSTOM_SUFFIX = ".json"


def read_graph(sources: Sequence[Path | CustomGraph], name: str = "graph") -> ImportedGraph:
    """Return the graph in these files and folders: those of LightRAG and GraphRAG, GraphML, triples, JSON, JSON Lines.

    A graph that is given as data has this `name`.

    Of other folders, the JSON Lines files are read. The text of a document and its records may be in different lines.
    Lines of an unknown kind are ignored in the files of a folder, and are an error in a file that is given itself.
    Raises NotFound for a path that does not exist, and InvalidInput, naming file and place, for what cannot be read and
    for records of a document without text.
    """
    builder = _GraphBuilder()
    for source in sources:
        if isinstance(source, CustomGraph):
            builder.add_graph(name, imported_graph(source, name))
        else:
            _read_path(source, builder)
    graph = builder.graph()
    if not graph.documents and not graph.communities:
        paths = [source for source in sources if isinstance(source, Path)]
        folders = [path for path in paths if path.is_dir()]
        workspaces = [inner for folder in folders for inner in folder.iterdir() if is_working_directory(inner)]
        raise InvalidInput(
            f"No graph was found in {', '.join(map(str, paths)) or name}{''.join(f'; {o}' for o in graph.omissions)}.",
            remedy=f"Give a workspace of LightRAG, such as {min(workspaces)}."
            if workspaces
            else "Give files or folders as docs/importing.md shows them.",
        )
    return graph


def _read_path(path: Path, builder: "_GraphBuilder") -> None:
    """Add what is in a file or folder, whose kind its name or its content shows."""
    if is_working_directory(path):
        builder.add_graph(str(path), read_working_directory(path))
    elif tables := output_folder(path):
        graph, lines = read_output_folder(tables)
        builder.add_graph(str(path), graph)
        for where, line in lines:
            builder.add(where, line)
    elif path.is_file() and path.suffix in READERS:
        builder.add_textless(path, READERS[path.suffix](path))
    elif path.is_file() and path.suffix == CUSTOM_SUFFIX:
        builder.add_graph(str(path), imported_graph(read_custom_graph(path), path.name))
    else:
        for file, is_given in _files(path):
            for where, json_line in _lines(file, is_given=is_given):
                builder.add(where, json_line)


def read_recordings(file: Path) -> dict[str, ImportedExtraction] | None:
    """Return the recorded extraction of each passage in a file, by id; None if its first line has no known kind.

    The texts of the passages may be in another file. Raises InvalidInput naming a later line that cannot be read, or
    that repeats a record.
    """
    builder = _GraphBuilder()
    try:
        for where, line in _lines(file, is_given=True):
            builder.add(where, line)
    except InvalidInput:
        if not builder.line_digests:
            return None
        raise
    return builder.all_recordings()


@dataclass(slots=True)
class _GraphBuilder:
    """The content of the lines so far, and the file and line of each part."""

    documents: dict[str, SourceDocument] = field(default_factory=dict)
    recordings: dict[str, ImportedExtraction] = field(default_factory=dict)
    claims: dict[str, dict[ImportedClaim, None]] = field(default_factory=dict)  # in order, without duplicates
    communities: dict[str, ImportedCommunity] = field(default_factory=dict)
    reports: dict[str, ImportedReport] = field(default_factory=dict)
    place_of_recording: dict[str, str] = field(default_factory=dict)
    place_of_report: dict[str, str] = field(default_factory=dict)
    line_digests: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    textless: dict[str, ImportedChunk] = field(default_factory=dict)  # by the name of their graph

    def add(self, where: str, line: GraphLine) -> None:
        """Add a line. Raises InvalidInput if it repeats something other than a claim."""
        self.line_digests.append(line.model_dump_json())
        if isinstance(line, ReportLine):
            _add_once(self.reports, str(line.community), line.imported(), where)
            self.place_of_report[str(line.community)] = where
        elif isinstance(line, CommunityLine):
            _add_once(self.communities, str(line.community), replace(line.imported(), location=where), where)
        else:
            self._add_passage(where, line)

    def add_graph(self, where: str, graph: ImportedGraph) -> None:
        """Add the graph of another system. Raises InvalidInput if it repeats a document."""
        self.line_digests.append(graph.identity)
        for document in graph.documents:
            if fault := text_fault(document.content.decode()):
                raise InvalidInput(f"{where}: document {document.id[:80]!r} {fault}.", remedy="Leave it out.")
            _add_once(self.documents, checked_id(document.id), document, where)
        for name, recording in graph.extractions.items():
            _add_once(self.recordings, name, recording, where)
        for name, textless in graph.textless.items():
            _add_once(self.textless, name, textless, where)
        self.left_out += graph.omissions

    def add_textless(self, file: Path, graph: TextlessGraph) -> None:
        """Add entities and relations without text. Raises InvalidInput for a second file of that name."""
        self.line_digests.append(stable_repr(graph.content))
        _add_once(self.textless, file.name, graph.content, str(file))
        self.left_out += graph.omissions

    def _add_passage(self, where: str, line: PassageLine) -> None:
        name = str(line.id)
        if line.text is not None:
            source = SourceDocument(
                id=name, title=line.title or name, content=line.text.encode(), media_type="text/markdown", source=name
            )
            _add_once(self.documents, name, source, where)
        if not (line.entities or line.relations or line.triples or line.claims):
            return
        recording, left_out = line.imported()
        self.place_of_recording.setdefault(name, where)
        self.left_out += (f"{where}: {reason}" for reason in left_out)
        if line.entities or line.relations or line.triples:
            _add_once(self.recordings, name, replace(recording, claims=()), where)
        if line.claims:
            self.claims.setdefault(name, {}).update(dict.fromkeys(recording.claims))

    def all_recordings(self) -> dict[str, ImportedExtraction]:
        """Return the recording of each document with its claims, which may be in lines of their own."""
        names = [*self.recordings, *(name for name in self.claims if name not in self.recordings)]
        return {
            name: replace(
                self.recordings.get(name, ImportedExtraction(document=name)), claims=tuple(self.claims.get(name, ()))
            )
            for name in names
        }

    def graph(self) -> ImportedGraph:
        """Return the graph. Raises InvalidInput for records of documents and communities that no line contains."""
        recordings = self.all_recordings()
        for name in recordings.keys() - self.documents.keys():
            raise InvalidInput(
                f"{self.place_of_recording[name]}: there are records of {name!r}, but not its text.",
                remedy='Also give the file with its text: {"id": …, "title": …, "text": …}.',
            )
        for community in self.communities.values():
            self._check_parent(community)
        for name in sorted(self.reports.keys() - self.communities.keys()):
            raise InvalidInput(
                f"{self.place_of_report[name]}: the report is on community {name}, which is missing.",
                remedy="Also give the file with the communities.",
            )
        graph = ImportedGraph(
            identity=f"recorded/1 {digest('recorded', *sorted(self.line_digests))[:12]}",
            documents=tuple(self.documents.values()),
            extractions=recordings,
            communities=tuple(self.communities.values()),
            reports=tuple(self.reports.values()),
            omissions=tuple(self.left_out),
            textless=self.textless,
        )
        return with_descriptions(restore_case(_without_long_names(graph)))

    def _check_parent(self, community: ImportedCommunity) -> None:
        if not community.parent:
            return
        parent = self.communities.get(community.parent)
        if parent is None:
            raise InvalidInput(
                f"{community.location}: community {community.id} has the parent {community.parent}, which is missing.",
                remedy="Give all communities, or leave `parent` out.",
            )
        if parent.level >= community.level:
            raise InvalidInput(
                f"{community.location}: community {community.id} of level {community.level} has the parent {parent.id} "
                f"of level {parent.level} ({parent.location}).",
                remedy="Level 0 is the coarsest: the parent of a community must have a lower level.",
            )


def _without_long_names(graph: ImportedGraph) -> ImportedGraph:
    """Leave out what has a name that is too long, as edits refuse it, and say so."""
    long: list[str] = []

    def is_short(*names: str) -> bool:
        too_long = [name for name in names if len(name) > MAX_NAME_CHARS]
        long.extend(too_long[:1])
        return not too_long

    def shortened(part: Part) -> Part:
        return replace(
            part,
            entities=tuple(entity for entity in part.entities if is_short(entity.name)),
            relations=tuple(relation for relation in part.relations if is_short(relation.source, relation.target)),
            claims=tuple(one for one in part.claims if is_short(one.claim.subject, one.claim.object)),
        )

    extractions = {
        name: replace(shortened(recording), chunks=tuple(map(shortened, recording.chunks)))
        for name, recording in graph.extractions.items()
    }
    textless = {name: shortened(content) for name, content in graph.textless.items()}
    if not long:
        return graph
    omission = f"{format_count(len(long), 'record')} with a name longer than {MAX_NAME_CHARS} characters, such as "
    omissions = (*graph.omissions, f"{omission}{long[0][:40]!r}…")
    return replace(graph, extractions=extractions, textless=textless, omissions=omissions)


Part = TypeVar("Part", ImportedExtraction, ImportedChunk)
T = TypeVar("T")


def _add_once(value_by_name: dict[str, T], name: str, value: T, where: str) -> None:
    if name in value_by_name:
        raise InvalidInput(f"{where}: {name!r} is recorded a second time.", remedy="Remove one of the two.")
    value_by_name[name] = value


def _files(path: Path) -> Iterator[tuple[Path, bool]]:
    """Yield each file, and whether it was given itself, not in a folder."""
    if path.is_dir():
        yield from ((file, False) for file in sorted(path.iterdir()) if file.suffix in SUFFIXES)
    elif path.is_file():
        yield path, True
    else:
        raise NotFound(f"There is no file or folder {path}.", remedy="Check the path.")


def _lines(file: Path, *, is_given: bool) -> Iterator[tuple[str, GraphLine]]:
    """Yield the lines of a known kind, each with its place."""
    with file.open(encoding="utf-8-sig", errors="surrogateescape") as text:
        for number, line_text in enumerate(text, 1):
            if not line_text.strip():
                continue
            where = f"{file}, line {number}"
            value = _value(where, line_text)
            line = _line(where, value) if isinstance(value, dict) else None
            if line is not None:
                yield where, line
            elif is_given:
                raise InvalidInput(
                    f"{where} is not a passage, record, community or report.",
                    remedy="docs/importing.md shows the fields of each.",
                )


def _value(where: str, line_text: str) -> object:
    """Return the JSON value of a line. Raises InvalidInput if it is not JSON in UTF-8."""
    if find_text_with_surrogate([line_text]):
        raise InvalidInput(f"{where} is not valid UTF-8.", remedy="Convert the file to UTF-8.")
    try:
        return json.loads(line_text.rstrip())
    except json.JSONDecodeError as error:
        fault = f"column {error.pos + 1}: {error.msg}"
    except (ValueError, RecursionError):
        fault = "a number of too many digits, or too many brackets"
    raise InvalidInput(f"{where} is not a JSON object ({fault}).", remedy="Correct the line.")


def _line(where: str, fields: dict[str, object]) -> GraphLine | None:
    """Return the line with these fields, None if its kind is unknown. Raises InvalidInput for an invalid field."""
    kind = line_kind(fields)
    try:
        line = kind.model_validate(fields) if kind else None
    except ValidationError as error:
        remedy = "Correct the line; docs/importing.md shows its fields."
        raise InvalidInput(f"{where}: {first_fault(error)}.", remedy=remedy) from None
    return line.as_passage() if isinstance(line, CovariateLine) else line
