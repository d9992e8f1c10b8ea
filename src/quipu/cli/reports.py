"""How a report on a community or an aggregate looks."""

from collections.abc import Sequence

from rich.console import Console

from quipu.cli.output import named, one_line, styled, table
from quipu.cli.session import command_line
from quipu.model.cluster import ClusterReport, Hierarchy
from quipu.model.results import ReportDetails
from quipu.text.formatting import format_count

_EXCERPT_CELLS = 120
_MAX_ROWS = 20
_NO_TITLE = "(nothing written yet)"


def render_report(console: Console, found: ReportDetails) -> None:
    """Draw what is written of a group of entities, then who is in it, what it rests on, and what is around it."""
    report = found.report
    console.print(styled(report.title if report and report.title else found.cluster.id, "bold"))
    console.print(styled(_place(found), "dim"))
    if report:
        _print_text(console, report)
    if not found.is_current:
        console.print(styled(_why_not_current(found), "yellow"))
    _print_entities(console, found)
    _print_chunks(console, found)
    _print_groups(console, "Part of", found.ancestors)
    _print_groups(console, "Divided into", found.children)
    _print_beside(console, found)


def _place(found: ReportDetails) -> str:
    """Return what it is a report on, how it is called for, and who wrote it."""
    cluster, report = found.cluster, found.report
    if cluster.hierarchy is Hierarchy.COMMUNITIES:
        where = f"community {cluster.id}, level {cluster.level} (0 is the coarsest)"
    else:
        where = f"aggregate {cluster.id}, layer {cluster.level} (1 lies above the entities)"
    parts = [where, format_count(cluster.n_entities, "entity")]
    parts += [f"rated {report.rating:g} of 10"] if report and report.rating else []
    parts += [f"written by {report.model}"] if report and report.model else []
    return ", ".join(parts)


def _why_not_current(found: ReportDetails) -> str:
    name = "reports" if found.cluster.hierarchy is Hierarchy.COMMUNITIES else "hierarchy"
    why = "This is of what was in it before" if found.report else "Nothing is written of it yet, or no longer"
    return f"{why}: `{command_line('refresh', name)}` writes it."


def _print_text(console: Console, report: ClusterReport) -> None:
    for paragraph in (report.summary, *(_finding(each.summary, each.explanation) for each in report.findings)):
        if paragraph:
            console.print()
            console.print(styled(paragraph))
    console.print()


def _finding(summary: str, explanation: str) -> str:
    return f"• {summary}\n{explanation}" if explanation else f"• {summary}"


def _print_entities(console: Console, found: ReportDetails) -> None:
    listing = table("entity", "type", "relations", "description", right=["relations"], title="Key entities")
    for entity in found.entities[:_MAX_ROWS]:
        description = styled(one_line(entity.description, _EXCERPT_CELLS))
        listing.add_row(styled(entity.name), styled(entity.type), f"{entity.degree:,}", description)
    console.print(listing)
    _print_rest(console, found.cluster.n_entities, "entity")


def _print_chunks(console: Console, found: ReportDetails) -> None:
    if not found.chunks:
        return
    listing = table("document", "chunk", "text", title="Rests on")
    for chunk in found.chunks[:_MAX_ROWS]:
        listing.add_row(named(chunk.document_id), chunk.id, styled(one_line(chunk.text, _EXCERPT_CELLS)))
    console.print(listing)
    _print_rest(console, len(found.chunks), "chunk")


def _print_groups(console: Console, heading: str, groups: Sequence[tuple[str, str]]) -> None:
    if not groups:
        return
    listing = table("report", "title", title=heading)
    for group, title in groups[:_MAX_ROWS]:
        listing.add_row(group, styled(title or _NO_TITLE))
    console.print(listing)
    _print_rest(console, len(groups), "report")


def _print_beside(console: Console, found: ReportDetails) -> None:
    if not found.neighbours:
        return
    listing = table("report", "title", "what connects them", title="Connected with")
    for group, title, description in found.neighbours[:_MAX_ROWS]:
        told = styled(one_line(description, _EXCERPT_CELLS))
        listing.add_row(group, styled(title or _NO_TITLE), told)
    console.print(listing)
    _print_rest(console, len(found.neighbours), "report")


def _print_rest(console: Console, n: int, noun: str) -> None:
    if n > _MAX_ROWS:
        console.print(f"… and {format_count(n - _MAX_ROWS, noun)} more; --json shows more.", style="dim")
