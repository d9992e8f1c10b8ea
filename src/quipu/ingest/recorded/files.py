"""Files of recorded graphs: JSON Lines, read whole and checked before anything is added."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from quipu.errors import InvalidInput, NotFound
from quipu.ingest.recorded.faults import fault_in_words
from quipu.ingest.recorded.lines import CommunityLine, CovariateLine, Line, PassageLine, ReportLine, kind_of
from quipu.ingest.recorded.written import as_written
from quipu.model.document import SourceDocument
from quipu.model.ids import digest
from quipu.model.imported_graph import (
    ImportedClaim,
    ImportedCommunity,
    ImportedExtraction,
    ImportedGraph,
    ImportedReport,
)
from quipu.text.unicode import find_text_with_surrogate

T = TypeVar("T")

SUFFIXES = (".jsonl", ".ndjson")


def read_graph(paths: Sequence[Path]) -> ImportedGraph:
    """Return the graph recorded in these files, and in the JSON Lines files of these folders.

    A document's text and what is recorded of it may stand in different lines. Lines of other kinds in a folder's files
    are passed over; in a file that is named they are not. Raises NotFound for a path that does not exist, InvalidInput
    naming file and line for what cannot be read, and for records of documents whose text is nowhere.
    """
    found = _Found()
    for file, is_named in _files(paths):
        for where, line in _lines(file, is_named=is_named):
            found.take(where, line)
    graph = found.graph()
    if not graph.documents and not graph.communities:
        raise InvalidInput(
            f"Nothing recorded was found in {', '.join(str(path) for path in paths)}.",
            remedy="Give JSON Lines files as docs/importing.md shows them.",
        )
    return graph


def read_recordings(file: Path) -> dict[str, ImportedExtraction] | None:
    """Return what a file records of passages, by id; None where its first line is nothing of the kind.

    Their texts may be elsewhere. Raises InvalidInput naming the line that is no record, or records something again.
    """
    found = _Found()
    try:
        for where, line in _lines(file, is_named=True):
            found.take(where, line)
    except InvalidInput:
        if not found.digests:
            return None
        raise
    return found.recorded()


@dataclass(slots=True)
class _Found:
    """What has been read so far, and where each part of it stood."""

    documents: dict[str, SourceDocument] = field(default_factory=dict)
    recordings: dict[str, ImportedExtraction] = field(default_factory=dict)
    claims: dict[str, dict[ImportedClaim, None]] = field(default_factory=dict)  # in order, each once
    communities: dict[str, ImportedCommunity] = field(default_factory=dict)
    reports: dict[str, ImportedReport] = field(default_factory=dict)
    where: dict[str, str] = field(default_factory=dict)
    where_of_report: dict[str, str] = field(default_factory=dict)
    digests: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def take(self, where: str, line: Line) -> None:
        """Note a line. Raises InvalidInput where something but a claim is recorded twice."""
        self.digests.append(line.model_dump_json())
        if isinstance(line, ReportLine):
            _once(self.reports, str(line.community), line.recorded(), where)
            self.where_of_report[str(line.community)] = where
        elif isinstance(line, CommunityLine):
            _once(self.communities, str(line.community), replace(line.recorded(), where=where), where)
        else:
            self._take_passage(where, line)

    def _take_passage(self, where: str, line: PassageLine) -> None:
        name = str(line.id)
        if line.text is not None:
            source = SourceDocument(
                id=name, title=line.title or name, data=line.text.encode(), media_type="text/markdown", source=name
            )
            _once(self.documents, name, source, where)
        if not (line.entities or line.relations or line.triples or line.claims):
            return
        recording, left_out = line.recorded()
        self.where.setdefault(name, where)
        self.left_out += (f"{where}: {each}" for each in left_out)
        if line.entities or line.relations or line.triples:
            _once(self.recordings, name, replace(recording, claims=()), where)
        if line.claims:
            self.claims.setdefault(name, {}).update(dict.fromkeys(recording.claims))

    def recorded(self) -> dict[str, ImportedExtraction]:
        """Return what is recorded of each document with its claims, which may stand in lines of their own."""
        names = [*self.recordings, *(name for name in self.claims if name not in self.recordings)]
        recorded = (self.recordings.get(name, ImportedExtraction(document=name)) for name in names)
        return {each.document: replace(each, claims=tuple(self.claims.get(each.document, ()))) for each in recorded}

    def graph(self) -> ImportedGraph:
        """Return all of it. Raises InvalidInput for records of documents and communities that are nowhere."""
        recordings = self.recorded()
        for name in recordings.keys() - self.documents.keys():
            raise InvalidInput(
                f"{self.where[name]}: something is recorded of {name!r}, but its text is nowhere.",
                remedy='Give the file with its text, too: {"id": …, "title": …, "text": …}.',
            )
        for community in self.communities.values():
            self._check_parent(community)
        for name in sorted(self.reports.keys() - self.communities.keys()):
            raise InvalidInput(
                f"{self.where_of_report[name]}: there is a report of community {name}, which is recorded nowhere.",
                remedy="Give the file with the communities, too.",
            )
        identity = f"recorded/1 {digest('recorded', *sorted(self.digests))[:12]}"
        return as_written(
            ImportedGraph(
                identity=identity,
                documents=tuple(self.documents.values()),
                recordings=recordings,
                communities=tuple(self.communities.values()),
                reports=tuple(self.reports.values()),
                left_out=tuple(self.left_out),
            )
        )

    def _check_parent(self, community: ImportedCommunity) -> None:
        if not community.parent:
            return
        parent = self.communities.get(community.parent)
        if parent is None:
            raise InvalidInput(
                f"{community.where}: community {community.id} lies in community {community.parent}, "
                "which is recorded nowhere.",
                remedy="Give all communities, or leave `parent` out.",
            )
        if parent.level >= community.level:
            raise InvalidInput(
                f"{community.where}: community {community.id} of level {community.level} lies in community {parent.id} "
                f"of level {parent.level} ({parent.where}).",
                remedy="Level 0 is the coarsest: a community lies in one of a lower level.",
            )


def _once(known: dict[str, T], name: str, value: T, where: str) -> None:
    if name in known:
        raise InvalidInput(f"{where}: {name!r} is recorded a second time.", remedy="Leave one of the two out.")
    known[name] = value


def _files(paths: Iterable[Path]) -> Iterator[tuple[Path, bool]]:
    """Yield each file, and whether it was named itself."""
    for path in paths:
        if path.is_dir():
            yield from ((file, False) for file in sorted(path.iterdir()) if file.suffix in SUFFIXES)
        elif path.is_file():
            yield path, True
        else:
            raise NotFound(f"There is no file or folder {path}.", remedy="Check the path.")


def _lines(file: Path, *, is_named: bool) -> Iterator[tuple[str, Line]]:
    """Yield the lines of a file that are known, each with its place."""
    with file.open(encoding="utf-8-sig", errors="surrogateescape") as text:
        for number, written in enumerate(text, 1):
            if not written.strip():
                continue
            where = f"{file}, line {number}"
            value = _value(where, written)
            line = _line(where, value) if isinstance(value, dict) else None
            if line is not None:
                yield where, line
            elif is_named:
                raise InvalidInput(
                    f"{where} is no passage, record, community or report.",
                    remedy="docs/importing.md shows the fields of each.",
                )


def _value(where: str, written: str) -> object:
    """Return what a line holds. Raises InvalidInput where it is no JSON in UTF-8."""
    if find_text_with_surrogate(written):
        raise InvalidInput(f"{where} is not valid UTF-8.", remedy="Convert the file to UTF-8.")
    try:
        return json.loads(written.rstrip())
    except json.JSONDecodeError as error:
        fault = f"column {error.pos + 1}: {error.msg}"
    except (ValueError, RecursionError):
        fault = "a number of too many digits, or too many brackets"
    raise InvalidInput(f"{where} is no JSON object ({fault}).", remedy="Mend the line.")


def _line(where: str, fields: dict[str, object]) -> Line | None:
    """Return the line with these fields, None for one of another kind. Raises InvalidInput for what cannot be meant."""
    kind = kind_of(fields)
    try:
        line = kind.model_validate(fields) if kind else None
    except ValidationError as error:
        remedy = "Mend the line; docs/importing.md shows its fields."
        raise InvalidInput(f"{where}: {fault_in_words(error)}.", remedy=remedy) from None
    return line.listed() if isinstance(line, CovariateLine) else line
