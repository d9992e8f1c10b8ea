"""Points: what a model finds in reports towards an answer, batch by batch (the map step of global search)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from quipu.model.chat import ChatRequest, ReplyLifetime, Role
from quipu.model.cluster import ClusterReport
from quipu.model.evidence import KeyPoint
from quipu.model.ids import digest
from quipu.model.query import Query
from quipu.ports.providers import Tokenizer
from quipu.prompts import community_search as prompt
from quipu.retrieve.steps.said import SaidPoint, read_points
from quipu.retrieve.steps.shown import Shown, batches, room_of
from quipu.retrieve.strategy import Model
from quipu.text.formatting import format_count


@dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    """Points, best first; `n_failed` of `n_batches` replies held no list of points."""

    points: tuple[KeyPoint, ...]
    n_batches: int
    n_failed: int
    notes: tuple[str, ...]


async def points_in(reports: Sequence[ClusterReport], query: Query, model: Model, tokenizer: Tokenizer) -> Points:
    """Return the points a model finds in all these reports, one call a batch, all at once."""
    room = room_of(query, prompt.render_map(query.text, ()), tokenizer)
    shown = [room.report(report) for report in _shuffled(reports)]
    weight = {report.cluster: (-len(report.chunks), -report.rating, report.cluster) for report in reports}
    runs = [
        sorted(run, key=lambda each: weight[each.id])
        for run in batches([each for each in shown if each], room.n_tokens)
    ]
    replies = await model.ask([_request(query, run) for run in runs]) if runs else []
    read = [read_points(reply, len(run)) for reply, run in zip(replies, runs, strict=True)]
    points = [_point(each, run) for said, run in zip(read, runs, strict=True) for each in said or ()]
    n_failed = sum(said is None for said in read)
    n_unnamed = sum(not each.numbers for said in read for each in said or ())
    return Points(
        points=tuple(best_first(points)),
        n_batches=len(runs),
        n_failed=n_failed,
        notes=tuple(note for n, note in _troubles(shown.count(None), n_failed, n_unnamed) if n),
    )


def _troubles(n_unread: int, n_failed: int, n_unnamed: int) -> Iterator[tuple[int, str]]:
    yield n_unread, f"not read, too long for the budget: {format_count(n_unread, 'report')}"
    yield n_failed, f"{format_count(n_failed, 'reply')} without points"
    yield (
        n_unnamed,
        f"{format_count(n_unnamed, 'point')} of no report by name, taken to rest on all that was shown with it",
    )


def best_first(points: Sequence[KeyPoint]) -> list[KeyPoint]:
    """Return points by score, equal ones by their words; what was said twice rests on all it was drawn from."""
    by_text: dict[str, KeyPoint] = {}
    for point in points:
        known = by_text.get(point.text, point)
        by_text[point.text] = KeyPoint(
            text=point.text,
            score=max(known.score, point.score),
            reports=tuple(dict.fromkeys(known.reports + point.reports)),
            chunks=tuple(dict.fromkeys(known.chunks + point.chunks)),
        )
    return sorted(by_text.values(), key=lambda point: (-point.score, point.text))


def _shuffled(reports: Sequence[ClusterReport]) -> list[ClusterReport]:
    """Return the reports in an order that has nothing to do with what they say, always the same.

    So no batch is about one thing alone, and none is left empty-handed (Microsoft GraphRAG).
    """
    return sorted(reports, key=lambda report: digest("shuffled", report.cluster))


def _request(query: Query, run: Sequence[Shown]) -> ChatRequest:
    return ChatRequest(
        messages=prompt.render_map(query.text, [each.item for each in run]),
        role=Role.ANSWER,
        max_output_tokens=prompt.MAP_MAX_OUTPUT_TOKENS,
        schema=prompt.MAP_SCHEMA,
        lifetime=ReplyLifetime.REVISION,
        subject=query.text,
    )


def _point(said: SaidPoint, run: Sequence[Shown]) -> KeyPoint:
    numbers = said.numbers or range(1, len(run) + 1)
    return KeyPoint(text=said.text, score=said.score, reports=tuple(run[number - 1].id for number in numbers))
