"""`quipu show`: print a document, chunk, entity, relation or report, or a part of the graph."""

import re
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click
from rich.console import Console

from quipu.cli.commands.show_graph import GRAPH_COMMANDS
from quipu.cli.document_ids import typed_id
from quipu.cli.options import QuipuGroup, as_of_option, command_line, with_engine
from quipu.cli.output import emit, named, one_line, print_table, styled, table
from quipu.model.cluster import ClusterReport, Hierarchy
from quipu.model.delta import ChunkFacts
from quipu.model.document import QuotePlace
from quipu.model.graph import Chunk, Claim, ClaimMention, DatedStatement, Relation
from quipu.model.results import DocumentDetails, EntityDetails, RelationDetails, ReportDetails
from quipu.text.formatting import format_count

if TYPE_CHECKING:
    from quipu.engine import Quipu

T = TypeVar("T")

_EXCERPT_CELLS = 200
_MAX_ROWS = 20


@click.group(
    "show",
    cls=QuipuGroup,
    examples=(
        'quipu show entity "Alice Kober"',
        'quipu show relation "Bi Sheng" "Shen Kuo"',
        "quipu show document a.md",
        "quipu show chunk b1383db28d0459dc",
        "quipu show report 639804ee",
        'quipu show path "Alice Kober" "Michael Ventris"',
    ),
)
def command() -> None:
    """Show a document, chunk, entity, relation or report, or a part of the graph."""


@command.command("document", examples=("quipu show document a.md",))
@click.argument("identifier", metavar="ID")
@as_of_option
def document(identifier: str, as_of: str) -> None:
    """Show a document and its chunks. ID is its id, or a path from the current folder."""
    emit(
        with_engine(lambda engine: _of_document(engine, identifier, partial(engine.document, as_of=as_of))),
        _render_document,
    )


async def _of_document(engine: "Quipu", typed: str, read: Callable[[str], Awaitable[T]]) -> T:
    return await read(await typed_id(engine, typed))


@command.command("text", examples=("quipu show text a.md",))
@click.argument("identifier", metavar="ID")
@as_of_option
def text(identifier: str, as_of: str) -> None:
    """Print the whole text of a document, in which chunks and citations have their offsets."""
    emit(
        with_engine(lambda engine: _of_document(engine, identifier, partial(engine.text, as_of=as_of))),
        lambda console, text: console.print(styled(text), soft_wrap=True),
    )


@command.command("original", examples=("quipu show original a.pdf --output copy.pdf",))
@click.argument("identifier", metavar="ID")
@click.option(
    "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write to this file instead of to stdout."
)
def original(identifier: str, output: Path | None) -> None:
    """Write the file that a document was read from."""
    if output is None and sys.stdout.isatty():
        raise click.UsageError("A file may hold anything: name a file with --output, or redirect the output.")
    with_engine(lambda engine: _write_original(engine, identifier, output))


async def _write_original(engine: "Quipu", identifier: str, output: Path | None) -> None:
    """Write an original part by part; the output is opened when the first part is there."""
    parts = engine.original(await typed_id(engine, identifier))
    first = await anext(parts)
    with click.open_file("-" if output is None else str(output), "wb") as file:
        file.write(first)
        async for part in parts:
            file.write(part)


@command.command("page", examples=('quipu show page report.pdf 3 --quote "net income rose" --output page.png',))
@click.argument("identifier", metavar="ID")
@click.argument("page", type=click.IntRange(min=1))
@click.option("--quote", default="", help="Mark this text of the page, as in a citation.")
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="Write the page to this file, as PNG.")
def page_(identifier: str, page: int, quote: str, output: Path | None) -> None:
    """Show where a quote stands on a page of a PDF, and write the page as a picture in which the quote is marked."""
    picture = with_engine(
        lambda engine: _of_document(engine, identifier, lambda name: engine.page_picture(name, page, quote))
    )
    if output is not None:
        output.write_bytes(picture.png)
    emit(picture.place, partial(_render_place, output))


@command.command("chunk", examples=("quipu show chunk b1383db28d0459dc",))
@click.argument("identifier", metavar="ID")
def chunk(identifier: str) -> None:
    """Show a chunk's text and the facts it states."""
    emit(with_engine(lambda engine: engine.chunk(identifier)), _render_chunk)


@command.command("entity", examples=('quipu show entity "Alice Kober"',))
@click.argument("name")
@as_of_option
def entity(name: str, as_of: str) -> None:
    """Show an entity, its relations and the chunks that name it."""
    emit(with_engine(lambda engine: engine.entity(name, as_of=as_of)), _render_entity)


@command.command("relation", examples=('quipu show relation "Bi Sheng" "Shen Kuo"',))
@click.argument("source")
@click.argument("target")
@as_of_option
def relation(source: str, target: str, as_of: str) -> None:
    """Show the relation of two entities and the chunks that state it."""
    emit(with_engine(lambda engine: engine.relation(source, target, as_of=as_of)), _render_relation)


@command.command("report", examples=("quipu show report 639804ee",))
@click.argument("identifier", metavar="ID")
def report(identifier: str) -> None:
    """Show a report on a community or aggregate.

    Also shows its entities, its source passages, and the clusters above, below and related to it. ID is the id that
    `ask --trace` and `explain` print for a report, or the beginning of it.
    """
    emit(with_engine(lambda engine: engine.report(identifier)), render_report)


for _graph_command in GRAPH_COMMANDS:
    command.add_command(_graph_command)


def _render_place(output: Path | None, console: Console, place: QuotePlace) -> None:
    console.print(f"Page {place.page} of {place.n_pages}, {place.width:g} × {place.height:g} points.")
    for left, top, right, bottom in place.boxes:
        console.print(f"  from the left {left:.1%} to {right:.1%}, from the top {top:.1%} to {bottom:.1%}")
    if output is not None:
        console.print(styled(f"Written: {output}"))


def _render_document(console: Console, details: DocumentDetails) -> None:
    document = details.document
    console.print(styled(document.title or document.id, "bold"))
    facts = {"id": document.id, "source": document.source, "type": document.media_type, "status": document.status}
    facts |= {name: str(value) for name, value in sorted(document.metadata.items())}
    facts |= {"same text as": ", ".join(details.copies)}
    until = f" until {document.holds_until}" if document.holds_until else ""
    facts |= {"version": str(document.version), "updated": document.updated_at, "error": document.error}
    since = re.sub(r"\.\d+", "", document.holds_from)  # a moment to the second, as the others
    facts |= {"holds": f"since {since}{until}"} if since else {}
    for name, value in facts.items():
        if value:
            console.print(styled(f"  {name}: {value}"), soft_wrap=name in ("id", "source", "same text as"))
    listing = table("chunk", "chars", "tokens", "heading", "text", right=["tokens"], ids=["chunk"])
    for chunk_facts in details.chunks:
        listing.add_row(
            chunk_facts.id,
            f"{chunk_facts.start}-{chunk_facts.end}",
            f"{chunk_facts.n_tokens:,}",
            styled(" > ".join(chunk_facts.headings)),
            styled(one_line(chunk_facts.text, _EXCERPT_CELLS)),
        )
    print_table(console, listing)


def _render_chunk(console: Console, facts: ChunkFacts) -> None:
    _print_chunk_head(console, facts.chunk)
    if facts.chunk.header:
        console.print(styled(facts.chunk.header, "dim"))
    console.print(styled(facts.chunk.text))
    entities = table("entity", "type", "description", title="Entities")
    for mention in facts.entities:
        entities.add_row(styled(mention.surface), mention.type, styled(one_line(mention.description, _EXCERPT_CELLS)))
    relations = table("source", "target", "keywords", "description", title="Relations")
    for relation in facts.relations:
        relations.add_row(
            styled(relation.source),
            styled(relation.target),
            styled(", ".join(relation.keywords)),
            styled(one_line(relation.description, _EXCERPT_CELLS)),
        )
    for listing in (entities, relations):
        if listing.row_count:
            console.print(listing)
    _print_claims(console, "subject", [(claim.subject, claim) for claim in facts.claims])
    for alias in facts.aliases:
        console.print(styled(f"{alias.surface} also names {alias.key}."))


def _render_entity(console: Console, details: EntityDetails) -> None:
    entity = details.entity
    console.print(styled(f"{entity.name} ({entity.type})", "bold"))
    if entity.aliases:
        console.print(styled(f"also: {', '.join(entity.aliases)}"))
    if entity.description:
        console.print(styled(entity.description))
    console.print(
        f"{format_count(entity.n_mentions, 'mention')}, {format_count(len(details.chunks), 'chunk')},"
        f" {format_count(entity.degree, 'relation')}"
    )
    _print_relations(console, details.relations, entity.key)
    _print_claims(console, "chunk", [(claim.chunk_id, claim) for claim in details.claims])
    groups = details.differing[:_MAX_ROWS]
    _print_statements(console, "The same words in different documents, but for a detail", groups)
    _print_rest(console, len(details.differing), "difference")
    passages = table("times", "document", "chunk", "text", right=["times"], ids=["document", "chunk"], title="Named in")
    for chunk, count in details.chunks[:_MAX_ROWS]:
        passages.add_row(str(count), styled(chunk.document_id), chunk.id, styled(one_line(chunk.text, _EXCERPT_CELLS)))
    print_table(console, passages)
    _print_rest(console, len(details.chunks), "chunk")


def _print_relations(console: Console, relations: tuple[Relation, ...], key: str) -> None:
    """Print the relations of the entity `key`, each with the entity at its other end."""
    if not relations:
        return
    listing = table("with", "weight", "keywords", "description", right=["weight"], title="Relations")
    for relation in relations[:_MAX_ROWS]:
        other = relation.target_name if relation.source == key else relation.source_name
        listing.add_row(
            styled(other),
            f"{relation.weight:g}",
            styled(", ".join(relation.keywords)),
            styled(one_line(relation.description, _EXCERPT_CELLS)),
        )
    console.print(listing)
    _print_rest(console, len(relations), "relation")


def _print_claims(console: Console, first: str, claims: Sequence[tuple[str, Claim | ClaimMention]]) -> None:
    """Print (value, claim) pairs; `first` is the heading of the column of values."""
    if not claims:
        return
    listing = table(first, "object", "type", "status", "dates", "description", ids=["chunk"], title="Claims")
    for value, claim in claims[:_MAX_ROWS]:
        cells = (value, claim.object, claim.type, claim.status, claim.dates)
        listing.add_row(*map(styled, cells), styled(one_line(claim.description, _EXCERPT_CELLS)))
    print_table(console, listing)
    _print_rest(console, len(claims), "claim")


def _print_statements(console: Console, title: str, groups: Sequence[Sequence[DatedStatement]]) -> None:
    """Print what documents say of a pair of entities; a line divides the groups of statements with the same words."""
    listing = table("since", "until", "document", "statement", "differs in", ids=["document"], title=title)
    for group in groups:
        for statement in group:
            listing.add_row(
                statement.holds_from[: len("2019-03-31")],
                statement.holds_until,
                named(statement.document_id),
                styled(one_line(statement.text, _EXCERPT_CELLS)),
                ", ".join(statement.differs_in),
            )
        listing.add_section()
    if groups:
        print_table(console, listing)


def _render_relation(console: Console, details: RelationDetails) -> None:
    relation = details.relation
    console.print(styled(f"{relation.source_name} and {relation.target_name}", "bold"))
    if relation.keywords:
        console.print(styled(", ".join(relation.keywords)))
    if relation.description:
        console.print(styled(relation.description))
    console.print(f"weight {relation.weight:g}, {format_count(relation.n_mentions, 'mention')}")
    statements = details.statements[:_MAX_ROWS]
    _print_statements(console, "What documents say of the two, newest first", [statements] if statements else [])
    _print_rest(console, len(details.statements), "statement")
    for facts in details.chunks[:_MAX_ROWS]:
        console.print()
        _print_chunk_head(console, facts.chunk)
        console.print(styled(facts.chunk.text))
    _print_rest(console, len(details.chunks), "chunk")


def _print_chunk_head(console: Console, chunk: Chunk) -> None:
    page = f", page {chunk.page}" if chunk.page else ""
    where = f"{chunk.document_id}, chars {chunk.start}-{chunk.end}{page}"
    headings = f", {' > '.join(chunk.headings)}" if chunk.headings else ""
    console.print(styled(f"chunk {chunk.id}, {where}{headings}", "bold"), soft_wrap=True)


def _print_rest(console: Console, n: int, noun: str) -> None:
    if n > _MAX_ROWS:
        console.print(f"… and {format_count(n - _MAX_ROWS, noun)} more; --json shows more.", style="dim")


_REPORT_EXCERPT_CELLS = 120
_NO_TITLE = "(no report yet)"


def render_report(console: Console, details: ReportDetails) -> None:
    """Draw a report, then the entities of its cluster, its source passages and the clusters around it."""
    report = details.report
    console.print(styled(report.title if report and report.title else details.cluster.id, "bold"))
    console.print(styled(_place(details), "dim"))
    if report:
        _print_text(console, report)
    if not details.is_current:
        console.print(styled(_why_not_current(details), "yellow"))
    _print_entities(console, details)
    _print_chunks(console, details)
    _print_groups(console, "Part of", details.ancestors)
    _print_groups(console, "Divided into", details.children)
    _print_beside(console, details)


def _place(details: ReportDetails) -> str:
    """Return the cluster of the report, its id and size, the rating and the author."""
    cluster, report = details.cluster, details.report
    if cluster.hierarchy is Hierarchy.COMMUNITIES:
        where = f"community {cluster.id}, level {cluster.level} (0 is the coarsest)"
    else:
        where = f"aggregate {cluster.id}, layer {cluster.level} (1 lies above the entities)"
    parts = [where, format_count(cluster.n_entities, "entity")]
    parts += [f"rated {report.rating:g} of 10"] if report and report.rating else []
    parts += [f"written by {report.model}"] if report and report.model else []
    return ", ".join(parts)


def _why_not_current(details: ReportDetails) -> str:
    name = "reports" if details.cluster.hierarchy is Hierarchy.COMMUNITIES else "hierarchy"
    why = "This report describes earlier contents" if details.report else "There is no current report"
    return f"{why}: `{command_line('refresh', name)}` writes a new one."


def _print_text(console: Console, report: ClusterReport) -> None:
    findings = (f"• {finding.summary}\n{finding.explanation}".rstrip() for finding in report.findings)
    for paragraph in (report.summary, *findings):
        if paragraph:
            console.print()
            console.print(styled(paragraph))
    console.print()


def _print_entities(console: Console, details: ReportDetails) -> None:
    listing = table("entity", "type", "relations", "description", right=["relations"], title="Key entities")
    for entity in details.entities[:_MAX_ROWS]:
        description = styled(one_line(entity.description, _REPORT_EXCERPT_CELLS))
        listing.add_row(styled(entity.name), styled(entity.type), f"{entity.degree:,}", description)
    console.print(listing)
    _print_rest(console, details.cluster.n_entities, "entity")


def _print_chunks(console: Console, details: ReportDetails) -> None:
    if not details.chunks:
        return
    listing = table("document", "chunk", "text", ids=["document", "chunk"], title="Rests on")
    for chunk in details.chunks[:_MAX_ROWS]:
        listing.add_row(named(chunk.document_id), chunk.id, styled(one_line(chunk.text, _REPORT_EXCERPT_CELLS)))
    print_table(console, listing)
    _print_rest(console, len(details.chunks), "chunk")


def _print_groups(console: Console, heading: str, groups: Sequence[tuple[str, str]]) -> None:
    if not groups:
        return
    listing = table("report", "title", ids=["report"], title=heading)
    for group, title in groups[:_MAX_ROWS]:
        listing.add_row(group, styled(title or _NO_TITLE))
    print_table(console, listing)
    _print_rest(console, len(groups), "report")


def _print_beside(console: Console, details: ReportDetails) -> None:
    if not details.neighbours:
        return
    listing = table("report", "title", "what connects them", ids=["report"], title="Connected with")
    for group, title, description in details.neighbours[:_MAX_ROWS]:
        excerpt = styled(one_line(description, _REPORT_EXCERPT_CELLS))
        listing.add_row(group, styled(title or _NO_TITLE), excerpt)
    print_table(console, listing)
    _print_rest(console, len(details.neighbours), "report")
