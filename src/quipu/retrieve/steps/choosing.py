"""Choosing: a model rates reports from the coarsest level down, and only what is of use is looked into further.

Source: Microsoft GraphRAG, dynamic community selection. A report rated 1 or more is kept, takes the place of that of
the community above it, and has those beneath it rated next. Where a whole level is of no use, the next is tried.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from quipu.model.chat import ChatRequest, ReplyLifetime, Role
from quipu.model.cluster import ClusterReport
from quipu.model.query import Query
from quipu.ports.store import ReadView
from quipu.prompts import community_search as prompt
from quipu.retrieve.steps.communities import Tree
from quipu.retrieve.steps.said import read_rating
from quipu.retrieve.steps.shown import room_of
from quipu.retrieve.strategy import Model, Tools

LEAST = 1  # of 0 to 5: what a report must be rated to be of use
UNREADABLE = 1  # what a reply without a rating counts for: rather too much than too little


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The reports that are of use, by the ids of their communities, how many were rated, and were too long for it."""

    reports: tuple[ClusterReport, ...]
    n_rated: int
    n_too_long: int


async def choose_reports(query: Query, tree: Tree, view: ReadView, tools: Tools, model: Model) -> Chosen:
    """Return the reports a model finds of use, none finer than the query's level."""
    useful: dict[str, ClusterReport] = {}
    rated: set[str] = set()
    too_long: set[str] = set()
    level = 0
    sought: Sequence[str] = tree.at(0)
    while sought:
        reports = {report.cluster: report for report in await view.cluster_reports(sought)}
        ratings = await _ratings(list(reports.values()), query, tools, model)
        rated |= ratings.keys()
        too_long |= reports.keys() - ratings.keys()
        kept = [cluster for cluster, rating in ratings.items() if rating >= LEAST]
        for cluster in kept:
            useful.pop(tree.by_id[cluster].parent, None)
            useful[cluster] = reports[cluster]
        # What has no report that may be shown, or one too long for a call, is looked through.
        through = kept + [cluster for cluster in sought if cluster not in ratings]
        sought = [c for each in through for c in tree.beneath(each) if tree.by_id[c].level <= query.community_level]
        while not sought and not useful and level < query.community_level:
            level += 1
            sought = [cluster for cluster in tree.at(level) if cluster not in rated]
    return Chosen(
        reports=tuple(useful[cluster] for cluster in sorted(useful)), n_rated=len(rated), n_too_long=len(too_long)
    )


async def _ratings(reports: Sequence[ClusterReport], query: Query, tools: Tools, model: Model) -> dict[str, float]:
    """Return the rating of each report, one call each, all at once."""
    room = room_of(query, prompt.render_rating(query.text, ("", "")), tools.tokenizer)
    shown = [each for report in reports if (each := room.report(report))]
    requests = [
        ChatRequest(
            messages=prompt.render_rating(query.text, each.item),
            role=Role.KEYWORDS,
            max_output_tokens=prompt.RATING_MAX_OUTPUT_TOKENS,
            schema=prompt.RATING_SCHEMA,
            lifetime=ReplyLifetime.REVISION,
            subject=query.text,
        )
        for each in shown
    ]
    replies = await model.ask(requests) if requests else []
    ratings = map(read_rating, replies)
    return {each.id: UNREADABLE if rating is None else rating for each, rating in zip(shown, ratings, strict=True)}
