"""What commands that ask a question share: their options, the query these make, and how answers are printed."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, get_origin

import click
from rich.box import ROUNDED
from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from quipu.cli.document_ids import with_paths
from quipu.cli.options import QuipuCommand, SectionOption, as_of_option, parse_date
from quipu.cli.output import one_line, print_table, spent, styled, table, unwrapped
from quipu.cli.progress import progress
from quipu.model.answer import Answer, Citation
from quipu.model.evidence import Evidence, Hit, Trace
from quipu.model.query import ComparisonOperator, Condition, Filter, Query, options_in
from quipu.model.query import Option as QueryOption
from quipu.model.usage import UsageRow
from quipu.text.formatting import format_count
from quipu.text.unicode import clean

if TYPE_CHECKING:
    from quipu.engine import Quipu
    from quipu.settings import Settings

Command = Callable[..., int | None]
Option = Callable[[Command], Command]

_USED_STRATEGIES = "quipu.strategy_options"

_COMPARISONS: dict[str, ComparisonOperator] = {
    "=": "=",
    "==": "=",
    "!=": "!=",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
    "~": "contains",
    "in": "in",
    "exists": "exists",
}
_CONDITION = re.compile(
    r"\s*(?P<field>[^\s=!<>~]+)\s*"
    r"(?:(?P<sign>==?|!=|<=?|>=?|~)(?![=!<>~])|\s(?P<word>in|exists)(?=\s|$))"
    r"\s*(?P<value>.*?)\s*"
)


class QuestionCommand(QuipuCommand):
    """A command with the options of a query and of every strategy, `without` those that it does not use.

    Strategies are slow to import. So their options are left out where no argument may be one of them.
    """

    def __init__(self, *args: Any, without: tuple[str, ...] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params += (
            _flag(option, "Options of the question") for option in options_in(Query) if option.name not in without
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; if all are known without the options of strategies, these are not read."""
        known = {name for parameter in self.params for name in (*parameter.opts, *parameter.secondary_opts)}
        flags = {argument.partition("=")[0] for argument in args if argument.startswith("-")}
        ctx.meta[_USED_STRATEGIES] = [] if flags <= known else list(_strategy_flags())
        return super().parse_args(ctx, args)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters, with the options of strategies last."""
        flags = ctx.meta.get(_USED_STRATEGIES)
        return super().get_params(ctx) + (list(_strategy_flags()) if flags is None else flags)


def _strategy_flags() -> Iterator[SectionOption]:
    from quipu.retrieve import strategies_by_options

    for kind, strategies in strategies_by_options().items():
        for option in options_in(kind):
            yield _flag(option, f"Options of {strategies}")


def _flag(option: QueryOption, section: str) -> SectionOption:
    """Return the option of the command line; its value is checked with the settings."""
    name = f"--{option.name.replace('_', '-')}"
    if option.annotation is bool:
        names = f"{name}/--no-{name[2:]}" if option.default else name
        return SectionOption([names], section=section, is_flag=True, default=None, help=option.description)
    metavar = "N" if option.annotation is int else "X" if option.annotation is float else "TEXT"
    if get_origin(option.annotation) is Literal:
        metavar = option.allowed.replace(" or ", "|")
    return SectionOption([name], section=section, metavar=metavar, help=option.description)


def options(*decorators: Option) -> Option:
    """Combine decorators, in the order of the help page."""

    def decorate(function: Command) -> Command:
        for option in reversed(decorators):
            function = option(function)
        return function

    return decorate


keyword_options = options(
    click.option("--keyword", "keywords", multiple=True, help="A name in the question; replaces the detected ones."),
    click.option("--theme", "themes", multiple=True, help="A theme of the question; replaces the detected ones."),
)

_filter_options = options(
    click.option(
        "--doc", "documents", multiple=True, metavar="ID", help="Search only these documents; ids, paths or patterns."
    ),
    click.option("--exclude", multiple=True, metavar="ID", help="Exclude these documents; ids, paths or patterns."),
    click.option(
        "--where", "conditions", multiple=True, metavar="COND", help='Condition on metadata, as in "year >= 1500".'
    ),
    click.option("--after", default="", metavar="DATE", help="Only documents of this date or later."),
    click.option("--before", default="", metavar="DATE", help="Only documents of this date or earlier."),
    as_of_option,
)


def filter_options(function: Command) -> Command:
    """Add the options of a filter to a command, which gets the filter as `allowed`."""

    @wraps(function)
    def filtered(
        *,
        documents: tuple[str, ...],
        exclude: tuple[str, ...],
        conditions: tuple[str, ...],
        **others: Any,
    ) -> int | None:
        where = tuple(map(parse_condition, conditions))
        dates = {name: parse_date(others.pop(name)) for name in ("after", "before", "as_of")}
        chosen, excluded = (with_paths(names) if names else () for names in (documents, exclude))
        return function(allowed=Filter(documents=chosen, exclude=excluded, where=where, **dates), **others)

    return _filter_options(filtered)


def parse_query(
    settings: "Settings", question: str, *, keywords: tuple[str, ...], themes: tuple[str, ...], allowed: Filter
) -> Query:
    """Return the query for a question, from the settings and the options."""
    return replace(settings.query(question), filter=allowed, low_level_keywords=keywords, high_level_keywords=themes)


async def prepared(engine: "Quipu", query: Query) -> Query:
    """Return the query once the strategy's derivations exist; with auto_refresh, compute them and show the progress."""
    if query.auto_refresh:
        with progress() as on_event:
            await engine.prepare(query, on_event)
    return query


def parse_condition(text: str) -> Condition:
    """Return the condition written as `region=Asia`, `year >= 1500`, `topic ~ road`, `language in en,ru`."""
    match = _CONDITION.fullmatch(text)
    word = match and (match["sign"] or match["word"])
    if not match or not word or not (match["value"] or word == "exists"):
        raise click.UsageError(
            f"--where {text!r} is not a condition: write field, comparison, value, as in region=Asia."
            " Comparisons: = != < <= > >= ~ (contains) in exists."
        )
    return Condition(field=match["field"], operator=_COMPARISONS[word], value=match["value"])


_MIN_COLUMN = 32
_MAX_HITS = 10
_TITLE_CELLS = 120
_UNSUPPORTED = "†"  # follows a sentence that no cited passage supports


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredQuestion:
    """A question and its answers, one for each strategy."""

    question: str
    answers: tuple[Answer, ...]


def render_answers(console: Console, question: AnsweredQuestion, *, has_trace: bool = False) -> None:
    """Draw the answers, side by side where the terminal is wide enough, then the trace of each if asked."""
    console.print(styled(question.question, "bold"))
    render_panels(console, [panel_of(answer, _title(answer)) for answer in question.answers])
    if has_trace:
        for answer in question.answers:
            _render_trace(console, answer.trace)
            _render_costs(console, answer.usage)


def render_panels(console: Console, panels: Sequence[Panel]) -> None:
    """Draw panels, side by side where the terminal is wide enough."""
    if len(panels) > 1 and console.width >= _MIN_COLUMN * len(panels):
        grid = Table.grid(expand=True, padding=(0, 1))
        for _ in panels:
            grid.add_column(ratio=1)
        grid.add_row(*panels)
        console.print(grid)
    else:
        for panel in panels:
            console.print(panel)


def render_raw(console: Console, question: AnsweredQuestion, *, is_prompt: bool) -> None:
    """Print contexts or prompts unformatted, for pipes; if there are several, each gets a heading."""
    for answer in question.answers:
        if len(question.answers) > 1:
            console.print(styled(f"# {answer.trace.strategy}", "bold"))
        console.print(styled(answer.prompt if is_prompt else answer.context), soft_wrap=True)


def _title(answer: Answer) -> str:
    ms = sum(timing.ms for timing in answer.trace.timings)
    return f"{answer.trace.strategy} · {answer.generator} · {ms:,.0f} ms"


def panel_of(answer: Answer, title: str, *, heading: str = "", has_usage: bool = True) -> Panel:
    """Return an answer in a frame, with `heading` above it if there is one."""
    parts: list[RenderableType] = [styled(heading, "dim"), Text()] if heading else []
    parts.append(unwrapped(_body(answer)))
    if answer.citations:
        parts += [Text(), *_sources(answer.citations)]
    if _has_marks(answer):
        parts += [Text(), styled(f"{_UNSUPPORTED} No passage cited supports this.", "dim")]
    parts += [styled(note, "yellow") for note in answer.notes]
    parts += [styled(stale, "yellow") for stale in answer.trace.stale]
    if answer.usage and has_usage:
        parts.append(styled(spent(answer.usage), "dim"))
    return Panel(Group(*parts), title=styled(title, "dim"), title_align="left", box=ROUNDED, border_style="dim")


def _body(answer: Answer) -> Text:
    """Return the text of an answer. Sentences that no cited passage supports are dimmed and marked.

    In a quoted answer the best sentence of each quote is bold.
    """
    if answer.highlights:
        return _highlighted(answer)
    if not _has_marks(answer):
        return styled(answer.text, "" if answer.is_supported else "yellow")
    body, written = styled(""), 0
    for statement in answer.statements:
        if not statement.is_supported:
            body.append(clean(answer.text[written : statement.start]))
            body.append(f"{clean(answer.text[statement.start : statement.end])} {_UNSUPPORTED}", style="dim")
            written = statement.end
    return body.append(clean(answer.text[written:]))


def _highlighted(answer: Answer) -> Text:
    body, written = styled("", "" if answer.is_supported else "yellow"), 0
    for start, end in answer.highlights:
        body.append(clean(answer.text[written:start]))
        body.append(clean(answer.text[start:end]), style="bold")
        written = end
    return body.append(clean(answer.text[written:]))


def _has_marks(answer: Answer) -> bool:
    return answer.is_supported and not all(statement.is_supported for statement in answer.statements)


def _sources(citations: tuple[Citation, ...]) -> Iterator[Text]:
    """Yield a line for each cited document of each number: its title, id and date, and the places of its quotes."""
    for (number, _), quotes in _by_source(citations).items():
        first = quotes[0]
        line = styled(f"[{number}] ", "cyan")
        line.append(one_line(first.title or first.document_id, _TITLE_CELLS))
        places = _places(quotes)
        date = f", dated {clean(first.date)}" if first.date else ""
        copies = f"; also in {clean(', '.join(first.also_in))}" if first.also_in else ""
        line.append(f" — {clean(first.document_id)}{date}, chars {places}{copies}", style="dim")
        yield line


def _by_source(citations: tuple[Citation, ...]) -> dict[tuple[int, str], list[Citation]]:
    """Return the quotes by number and document. The number of a report may stand for several documents."""
    quotes_by_source: dict[tuple[int, str], list[Citation]] = {}
    for citation in citations:
        quotes_by_source.setdefault((citation.number, citation.document_id), []).append(citation)
    return dict(sorted(quotes_by_source.items()))


def _places(quotes: Sequence[Citation]) -> str:
    """Return the places of quotes: characters, page, and headings that differ from the title, equal ones once."""
    by_part: dict[str, list[str]] = {}
    for quote in quotes:
        headings = [one_line(heading, _TITLE_CELLS) for heading in quote.headings if heading != quote.title]
        page = f", page {quote.page}" if quote.page else ""
        part = page + (f" in {' > '.join(headings)}" if headings else "")
        by_part.setdefault(part, []).append(f"{quote.start}-{quote.end}")
    return "; ".join(f"{'; '.join(spans)}{part}" for part, spans in by_part.items())


def _render_trace(console: Console, trace: Trace) -> None:
    console.print(styled(f"\nTrace of {trace.strategy}, revision {trace.revision}", "bold"))
    console.print(Columns([f"{timing.stage} {timing.ms:,.1f} ms" for timing in trace.timings], padding=(0, 2)))
    _render_seeds(console, trace.evidence)
    for section in ("chunks", "entities", "relations", "claims", "reports"):
        _render_hits(console, section, getattr(trace.evidence, section))
    for dropped in trace.dropped:
        ids = ", ".join(clean(hit_id) for hit_id in dropped.ids[:_MAX_HITS])
        what = format_count(len(dropped.ids), _noun(dropped.section))
        console.print(f"dropped {what} over the budget of {format_count(dropped.budget, 'token')}: {ids}")
    for note in (*trace.evidence.notes, *trace.notes):
        console.print(styled(f"note: {note}"))
    for stale in trace.stale:
        console.print(styled(f"stale: {stale}", "yellow"))


def _noun(section: str) -> str:
    return "entity" if section == "entities" else section.removesuffix("s")


def _render_costs(console: Console, usage: Sequence[UsageRow]) -> None:
    for row in usage:
        console.print(styled(f"cost: {row.stage} by {row.model}, {spent([row])}"))


def _render_seeds(console: Console, evidence: Evidence) -> None:
    if not evidence.seeds:
        return
    seeds = table("seed", "by", "led to", title="Seeds")
    for seed in evidence.seeds:
        matches = ", ".join(f"{clean(match.id)} {match.score:.3f}" for match in seed.matches[:_MAX_HITS])
        seeds.add_row(styled(seed.text), seed.kind, styled(matches or "nothing"))
    console.print(seeds)


def _render_hits(console: Console, section: str, hits: tuple[Hit, ...]) -> None:
    if not hits:
        return
    listing = table("rank", section, "score", "reason", right=["rank", "score"], ids=[section])
    for rank, hit in enumerate(hits[:_MAX_HITS], 1):
        listing.add_row(str(rank), styled(hit.id), f"{hit.score:.4f}", styled(hit.reason))
    print_table(console, listing)
    if len(hits) > _MAX_HITS:
        console.print(
            f"… and {format_count(len(hits) - _MAX_HITS, f'more {_noun(section)}')}; --json shows all.", style="dim"
        )
