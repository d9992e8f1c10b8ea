"""`quipu resolve`: entities that may be one thing under two names are merged, or told apart."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from quipu.cli.options import QuipuCommand, command_line, user_name, with_engine
from quipu.cli.output import emit, one_line, print_table, stderr, styled, table
from quipu.errors import InvalidInput
from quipu.model.edit import DuplicateDecision, DuplicatePair, EditKind, RecordedEdit
from quipu.text.formatting import format_count

if TYPE_CHECKING:
    from quipu.engine import Quipu

_REASON = "reviewed as duplicates"
_ANSWERS = {"m": EditKind.MERGE, "d": EditKind.DISTINCT}
_DECISIONS = {kind.value: kind for kind in _ANSWERS.values()}
_MAX_BYTES = 50_000_000
_CELLS = 160  # of a description


@click.command(
    "resolve",
    cls=QuipuCommand,
    examples=(
        "quipu resolve",
        "quipu resolve IBM",
        "quipu resolve --review --above 0.8",
        "quipu resolve --json > pairs.json",
        "quipu resolve --decisions decisions.jsonl",
        "quipu resolve --merge-above 0.95",
    ),
)
@click.argument("entity", default="")
@click.option("--above", type=click.FloatRange(0, 1), default=0.6, show_default=True, help="The least score.")
@click.option("-k", default=50, show_default=True, type=click.IntRange(1, 10_000), help="How many pairs.")
@click.option("--review", "is_review", is_flag=True, help="Show one pair after the other, and ask.")
@click.option(
    "--decisions",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help='JSON lines: {"first": …, "second": …, "decision": "merge" or "distinct", "name": …}',
)
@click.option("--merge-above", type=click.FloatRange(0.5, 1), help="Merge all pairs with at least this score.")
def command(
    *, entity: str, above: float, k: int, is_review: bool, decisions: Path | None, merge_above: float | None
) -> None:
    """Find entities that may be one, and merge them or tell them apart.

    Each pair has a score and its reasons. Without --review, --decisions and --merge-above, nothing is changed. A merge
    is an edit: `quipu undo` takes it back. Pairs that are told apart are not shown again.
    """
    if bool(is_review) + bool(decisions) + bool(merge_above) > 1:
        raise click.UsageError("--review, --decisions and --merge-above do not go together.")
    if merge_above:
        emit(with_engine(lambda kb: kb.edits.merge_duplicates(merge_above)), _render_edits)
    elif decisions:
        chosen = _read(decisions)
        emit(with_engine(lambda kb: kb.edits.decide(chosen, author=user_name(), reason=_REASON)), _render_edits)
    elif is_review:
        emit(with_engine(lambda kb: _review(kb, entity, above, k)), _render_edits)
    else:
        emit(with_engine(lambda kb: kb.edits.duplicates(entity, above=above, k=k)), _render_pairs)


async def _review(kb: "Quipu", entity: str, above: float, k: int) -> Sequence[RecordedEdit]:
    """Ask about one pair after the other; each decision is made at once."""
    edits: list[RecordedEdit] = []
    console = stderr()
    pairs = await kb.edits.duplicates(entity, above=above, k=k)
    for number, pair in enumerate(pairs, 1):
        _print_pair(console, pair, f"{number} of {len(pairs)}")
        answer = click.prompt(
            "[m]erge, keep apart as [d]istinct, [s]kip, [q]uit", type=click.Choice(["m", "d", "s", "q"]), err=True
        )
        if answer == "q":
            break
        if answer in _ANSWERS:
            first, second = pair.candidate.first, pair.candidate.second
            name = ""
            if answer == "m":
                longer = max(pair.first, pair.second, key=lambda side: (side.n_mentions, side.name))
                name = click.prompt("Name", default=longer.name, err=True)
            decision = DuplicateDecision(first=first, second=second, kind=_ANSWERS[answer], name=name)
            edits += await kb.edits.decide([decision], author=user_name(), reason=_REASON)
    return edits


def _read(file: Path) -> list[DuplicateDecision]:
    """Return the decisions of a file. Raises InvalidInput with the line of a wrong one, before any is applied."""
    if file.stat().st_size > _MAX_BYTES:
        raise InvalidInput(f"{file} holds more than {_MAX_BYTES:,} bytes.", remedy="Split it.")
    decisions: list[DuplicateDecision] = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            names = [str(row["first"]), str(row["second"])]
            kind, name = _DECISIONS[row["decision"]], str(row.get("name") or "")
        except (ValueError, TypeError, KeyError, AttributeError):
            raise InvalidInput(
                f"{file}, line {number}: this is no decision.",
                remedy='Write {"first": "IBM", "second": "I.B.M.", "decision": "merge"}, or "distinct".',
            ) from None
        decisions.append(DuplicateDecision(first=names[0], second=names[1], kind=kind, name=name))
    return decisions


def _print_pair(console: Console, pair: DuplicatePair, place: str) -> None:
    console.print(f"\n{place}, score {pair.candidate.score:.2f}: {'; '.join(pair.candidate.reasons)}", style="bold")
    for side in (pair.first, pair.second):
        console.print(styled(f"  {side.name} ({side.type}, {format_count(side.n_mentions, 'mention')})"))
        if side.description:
            console.print(styled(f"    {one_line(side.description, _CELLS)}", "dim"))


def _render_pairs(console: Console, pairs: Sequence[DuplicatePair]) -> None:
    if not pairs:
        console.print("No duplicates were found.")
        return
    listing = table("score", "one", "other", "why", right=("score",))
    for pair in pairs:
        names = (styled(pair.first.name), styled(pair.second.name))
        listing.add_row(f"{pair.candidate.score:.2f}", *names, styled("; ".join(pair.candidate.reasons)))
    print_table(console, listing)
    console.print(styled(f"To decide: {command_line('resolve', '--review')}", "dim"))


def _render_edits(console: Console, edits: Sequence[RecordedEdit]) -> None:
    n_merged = sum(recorded.edit.kind is EditKind.MERGE for recorded in edits)
    console.print(f"{format_count(n_merged, 'pair')} merged, {len(edits) - n_merged:,} kept apart.")
    if edits:
        console.print(
            styled(f"To undo one: {command_line('undo', 'ID')}; {command_line('history')} lists them.", "dim")
        )
