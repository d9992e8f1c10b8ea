"""How tuning looks: what was worked out, what a model would be told now, and what two readings of a chunk found."""

from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from quipu.cli.amounts import money, spent, tokens
from quipu.cli.output import named, styled, table
from quipu.model.tuning import ExtractionComparison, TuningResult, TypedName
from quipu.model.usage import Range
from quipu.text.formatting import format_count
from quipu.text.names import entity_key

_MAX_ROWS = 15
_STYLE_BY_MARK = {"+": "green", "-": "red", "@": "dim"}


def render_cost(console: Console, report: TuningResult) -> None:
    """Print what tuning would take."""
    _render_sample(console, report)
    if report.cost is None:
        console.print("No model would be asked, nothing is spent.")
        return
    cost, right = report.cost, ["likely", "at least", "at most"]
    listing = table(cost.model, *right, right=right)
    rows = [("calls", cost.calls), ("tokens in", cost.input_tokens), ("tokens out", cost.output_tokens)]
    for name, figure in rows:
        listing.add_row(name, *(tokens(round(value)) for value in _values(figure)))
    if cost.money is not None:
        listing.add_row("money", *(money(round(value)) for value in _values(cost.money)))
    console.print(listing)
    console.print("By typical figures. Nothing was asked or written; `--budget` sets a limit.")


def render_tuning(console: Console, report: TuningResult) -> None:
    """Print what was worked out and the differences it makes."""
    _render_sample(console, report)
    console.print(styled(f"Worked out by {report.method}."))
    for note in report.notes:
        console.print(styled(note, "yellow"))
    if report.stopped:
        console.print(styled(f"Stopped: {report.stopped}", "red"))
    console.print()
    _render_ontology(console, report)
    if report.prompt_diff:
        console.print()
        console.print(styled("What a model is told with every text", "bold"))
        for line in report.prompt_diff.splitlines():
            console.print(styled(line, _STYLE_BY_MARK.get(line[:1], "")))
    for each in report.comparisons:
        console.print()
        _render_compared(console, each)
    if report.usage:
        console.print()
        console.print(styled(f"{spent(report.usage)}.", "dim"))


def _render_sample(console: Console, report: TuningResult) -> None:
    n_compared = sum(each.is_compared for each in report.sample)
    apart = f", and {n_compared:,} apart to compare on" if n_compared else ""
    unreadable = f" ({report.n_unreadable:,} cannot be read)" if report.n_unreadable else ""
    console.print(
        f"A sample of {format_count(len(report.sample) - n_compared, 'chunk')}{apart}, of {report.n_chunks:,} in "
        f"{format_count(report.n_documents, 'document')}{unreadable}."
    )


def _render_ontology(console: Console, report: TuningResult) -> None:
    ontology = report.ontology
    console.print(styled(f"Domain: {ontology.domain or '(none)'}"))
    listing = table("type", "told of it", "by rules", right=["by rules"])
    count_by_name = {count.name: count.n for count in report.type_counts}
    for rule in ontology.types:
        listing.add_row(styled(rule.name), styled(rule.description), f"{count_by_name.get(rule.name, 0):,}")
    console.print(listing)
    if ontology.relations:
        listing = table("relation", "from", "to", "told of it")
        for each in ontology.relations:
            ends = (styled(", ".join(names) or "any") for names in (each.domain, each.range))
            listing.add_row(styled(each.name), *ends, styled(each.description))
        console.print(listing)
    if ontology.examples:
        console.print(f"{format_count(len(ontology.examples), 'example')}, from the documents.")


def _render_compared(console: Console, each: ExtractionComparison) -> None:
    """Print two readings side by side, names that both have first."""
    console.print(named(each.title or each.document_id, "bold").append(f"  {each.chunk_id}", style="dim"))
    for reading, when in ((each.before, "before"), (each.after, "tuned")):
        if reading.error:
            console.print(styled(f"{when}: {reading.error}", "red"))
    before, after = _by_key(each.before.entities), _by_key(each.after.entities)
    shown = list(dict.fromkeys((*(key for key in before if key in after), *before, *after)))
    listing = table("name before", "type", "name tuned", "type")
    for key in shown[:_MAX_ROWS]:
        listing.add_row(*_cells(before.get(key)), *_cells(after.get(key)))
    if len(shown) > _MAX_ROWS:
        listing.add_row(styled(f"… and {len(shown) - _MAX_ROWS:,} more", "dim"))
    console.print(listing)
    console.print(
        f"Before: {format_count(len(before), 'entity')}, {format_count(each.before.n_relations, 'relation')}. "
        f"Tuned: {format_count(len(after), 'entity')}, {format_count(each.after.n_relations, 'relation')}."
    )
    console.print(
        f"Only before: {len(each.only_before):,}. Only tuned: {len(each.only_after):,}. "
        f"With another type: {len(each.retyped):,}."
    )


def _by_key(entities: Iterable[TypedName]) -> dict[str, TypedName]:
    return {entity_key(each.name): each for each in entities}


def _cells(found: TypedName | None) -> tuple[Text, Text]:
    return (styled(found.name), styled(found.type)) if found else (styled("–", "dim"), Text())


def _values(figure: Range) -> tuple[float, float, float]:
    return figure.likely, figure.low, figure.high
