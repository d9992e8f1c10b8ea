"""community_global: a language model reads the reports on all communities of one level and writes scored points.

Source: D. Edge et al., "From Local to Global: A Graph RAG Approach to Query-Focused Summarization" (2024),
section 3.1.6 of the revision of 2025, and global search of Microsoft GraphRAG with its dynamic community selection.

1. Selection: the reports on the communities of one level, which together cover the whole index. With
   `dynamic_selection` a model rates reports from the coarsest level down, and only the useful branches are followed.
2. Map: the reports are shuffled and divided into batches of 12,000 tokens. A model writes points with scores from each.
3. Reduce: the answer is written from the points with the highest scores. This is done where the answer is composed.

Differences from the source:
- All levels down to the second in the code, one in the paper → the finest report of each branch within
  `community_level`, because each fact is read once.
- A missing report is left out → the reports below it are read instead, because they cover the same entities.
- Batches are shuffled at random → by hash, and cut by content, because a changed report then costs few calls.
- A report over 12,000 tokens is read whole → without its last findings over `CALL_TOKENS`, because calls have a limit.
- Points with the same text count twice → they are merged, with the sources of both, because a repetition adds nothing.
- Points for 12,000 tokens are read → for what `total_tokens` leaves, because budgets are the same for all strategies.
- A model is required → without one the reports are the evidence, by similarity and rating, because it is optional.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from quipu.model.chat import ChatRequest, ReplyLifetime, Role
from quipu.model.cluster import Cluster, ClusterReport, Hierarchy
from quipu.model.evidence import Evidence, Hit, KeyPoint
from quipu.model.ids import digest
from quipu.model.query import Options, Query, option
from quipu.ports.providers import Tokenizer
from quipu.ports.store import ReadView, VectorSpace
from quipu.prompts import community_search as prompt
from quipu.retrieve.steps.model_replies import ScoredStatement, read_points, read_rating, sort_points
from quipu.retrieve.steps.prompt_items import PromptItem, prompt_space, split_into_batches
from quipu.retrieve.steps.seeds import embed
from quipu.retrieve.strategy import Model, Strategy, Tools
from quipu.text.formatting import format_count

MIN_RATING = 1  # of 0 to 5, for a report to be useful
UNREADABLE_RATING = 1  # for a reply without a rating: reading too much is better than too little
RATING_WEIGHT = 0.1  # of the highest rating, 10, compared with a cosine; used if no model reads the reports


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunityGlobalOptions(Options):
    """The options of `community_global`."""

    dynamic_selection: bool = option(
        False, "Let a model select the reports from the top down, with a call for each report it rates."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunityLevels:
    """All communities by id, and the ids of the communities directly below each; both in the order of ids."""

    by_id: Mapping[str, Cluster]
    children_by_id: Mapping[str, Sequence[str]]

    def at_level(self, level: int) -> list[str]:
        """Return the communities of one level."""
        return [cluster.id for cluster in self.by_id.values() if cluster.level == level]

    def children(self, cluster: str) -> Sequence[str]:
        """Return the communities directly below a community."""
        return self.children_by_id.get(cluster, ())

    def cover(self, level: int) -> list[str]:
        """Return the finest community of each branch that is not finer than `level`; together they hold everything."""
        return [
            cluster.id
            for cluster in self.by_id.values()
            if cluster.level == level or (cluster.level < level and not self.children(cluster.id))
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class MapResult:
    """The points of the map step, how many calls it took, how many replies had no points, and notes for the trace."""

    points: tuple[KeyPoint, ...]
    n_calls: int
    n_unreadable: int
    notes: tuple[str, ...]


async def retrieve(query: Query, view: ReadView, tools: Tools) -> Evidence:
    """Return the points that a model finds in the reports; without a model, the reports."""
    tree = await _read_tree(view)
    if tools.model is None:
        ratings, notes = await _reports_covering(query.community_level, tree, view)
        no_model = "no language model: the reports are returned as they are, without points"
        evidence = await _rank_reports(ratings, (*notes, no_model), query=query, view=view, tools=tools)
        return replace(evidence, omissions=_omissions(query, notes))
    reports, notes = await _select_reports(query, tree, view, tools, tools.model)  # step 1
    omissions = _omissions(query, notes)
    mapped = await _map_reports(reports, query, tools.tokenizer, tools.model)  # step 2
    notes = (*notes, *mapped.notes)
    if not mapped.points and mapped.n_unreadable:
        ratings = {report.cluster: report.rating for report in reports}
        evidence = await _rank_reports(ratings, notes, query=query, view=view, tools=tools)
        return replace(evidence, omissions=omissions)
    best = sort_points(mapped.points)
    n_reports, n_calls = format_count(len(reports), "report"), format_count(mapped.n_calls, "call")
    summary = f"a model read {n_reports} in {n_calls} and found {format_count(len(best), 'point')}"
    return Evidence(points=tuple(best), notes=(*notes, summary), omissions=omissions, ranks_passages=False)


async def _read_tree(view: ReadView) -> CommunityLevels:
    clusters = await view.clusters(Hierarchy.COMMUNITIES, with_members=False)
    children: defaultdict[str, list[str]] = defaultdict(list)
    for cluster in clusters:
        if cluster.parent:
            children[cluster.parent].append(cluster.id)
    return CommunityLevels(by_id={cluster.id: cluster for cluster in clusters}, children_by_id=children)


async def _reports_covering(
    level: int, tree: CommunityLevels, view: ReadView
) -> tuple[dict[str, float], tuple[str, ...]]:
    """Return the ratings of the reports that cover the index at `level`, by community, and notes on missing reports.

    If a community's report is not written yet, or the filter excludes one of its documents, the communities below
    replace it.
    """
    ratings: dict[str, float] = {}
    clusters, n_missing = tree.cover(level), 0
    while clusters:
        reports = await view.cluster_reports(clusters, with_text=False)
        ratings |= {report.cluster: report.rating for report in reports}
        without_report = [cluster for cluster in clusters if cluster not in ratings]
        n_missing += sum(not tree.children(cluster) for cluster in without_report)
        clusters = [child for cluster in without_report for child in tree.children(cluster)]
    return ratings, (f"{format_count(n_missing, 'community')} without an available report",) if n_missing else ()


def _omissions(query: Query, notes: Sequence[str]) -> tuple[str, ...]:
    """Return the notes on missing reports as omissions, with the reason, if the query has a filter."""
    if query.filter.is_empty() or query.options_of(CommunityGlobalOptions).dynamic_selection:
        return ()
    return tuple(f"{note}: the report also covers documents that the filter excludes" for note in notes)


async def _select_reports(
    query: Query, tree: CommunityLevels, view: ReadView, tools: Tools, model: Model
) -> tuple[Sequence[ClusterReport], tuple[str, ...]]:
    """Return the reports to read, and notes for the trace."""
    if not query.options_of(CommunityGlobalOptions).dynamic_selection:
        ratings, notes = await _reports_covering(query.community_level, tree, view)
        return await view.cluster_reports(list(ratings)), notes
    return await _select_dynamically(query, tree, view, tools, model)


async def _select_dynamically(
    query: Query, tree: CommunityLevels, view: ReadView, tools: Tools, model: Model
) -> tuple[list[ClusterReport], tuple[str, ...]]:
    """Return the reports that a model rates as useful, from the coarsest level down to `community_level`.

    A useful report replaces that of the community above, and the communities below are rated next. If no report of a
    level is useful, the next level is rated.
    """
    useful: dict[str, ClusterReport] = {}
    rated: set[str] = set()
    too_long: set[str] = set()
    level = 0
    clusters: Sequence[str] = tree.at_level(0)
    while clusters:
        reports = {report.cluster: report for report in await view.cluster_reports(clusters)}
        ratings = await _rate_reports(list(reports.values()), query, tools, model)
        rated |= ratings.keys()
        too_long |= reports.keys() - ratings.keys()
        selected = [cluster for cluster, rating in ratings.items() if rating >= MIN_RATING]
        for cluster in selected:
            useful.pop(tree.by_id[cluster].parent, None)
            useful[cluster] = reports[cluster]
        unrated = [cluster for cluster in clusters if cluster not in ratings]  # no report, or too long for a call
        children = [child for cluster in (*selected, *unrated) for child in tree.children(cluster)]
        clusters = [child for child in children if tree.by_id[child].level <= query.community_level]
        while not clusters and not useful and level < query.community_level:
            level += 1
            clusters = [cluster for cluster in tree.at_level(level) if cluster not in rated]
    notes = [f"a model rated {format_count(len(rated), 'report')} and selected {len(useful):,}"]
    if too_long:
        notes.append(f"not rated, too long for the budget: {format_count(len(too_long), 'report')}")
    return [useful[cluster] for cluster in sorted(useful)], tuple(notes)


async def _rate_reports(reports: Sequence[ClusterReport], query: Query, tools: Tools, model: Model) -> dict[str, float]:
    """Return the ratings of the reports that fit a call; one call for each, all at the same time."""
    space = prompt_space(query, prompt.render_rating(query.text, ("", ""), query.prompts), tools.tokenizer)
    items = [source for report in reports if (source := space.fit_report(report))]
    requests = [
        ChatRequest(
            messages=prompt.render_rating(query.text, source.titled_text, query.prompts),
            role=Role.KEYWORDS,
            max_output_tokens=prompt.RATING_MAX_OUTPUT_TOKENS,
            schema=prompt.RATING_SCHEMA,
            lifetime=ReplyLifetime.REVISION,
            subject=query.text,
        )
        for source in items
    ]
    ratings = map(read_rating, await model.ask(requests) if requests else [])
    return {
        source.id: UNREADABLE_RATING if rating is None else rating
        for source, rating in zip(items, ratings, strict=True)
    }


async def _map_reports(reports: Sequence[ClusterReport], query: Query, tokenizer: Tokenizer, model: Model) -> MapResult:
    """Return the points that a model finds in the reports (the map step); one call for each batch, all at once."""
    batches, n_too_long = _make_batches(reports, query, tokenizer)
    replies = await model.ask([_map_request(query, batch) for batch in batches]) if batches else []
    statements = [read_points(reply, len(batch)) for reply, batch in zip(replies, batches, strict=True)]
    points = [
        _point(statement, batch)
        for listed, batch in zip(statements, batches, strict=True)
        for statement in listed or ()
    ]
    return MapResult(
        points=tuple(points),
        n_calls=len(batches),
        n_unreadable=statements.count(None),
        notes=tuple(_map_notes(n_too_long, statements)),
    )


def _make_batches(
    reports: Sequence[ClusterReport], query: Query, tokenizer: Tokenizer
) -> tuple[list[list[PromptItem]], int]:
    """Return the reports in batches, and how many reports are too long for a call.

    Reports are shuffled by a hash, so that no batch is about one subject alone. Inside a batch, reports on more chunks
    come first, then those with higher ratings (Microsoft GraphRAG).
    """
    space = prompt_space(query, prompt.render_map(query.text, (), query.prompts), tokenizer)
    shuffled = sorted(reports, key=lambda report: digest("shuffled", report.cluster))
    items = [space.fit_report(report) for report in shuffled]
    order = {report.cluster: (-len(report.chunks), -report.rating, report.cluster) for report in reports}
    batches = split_into_batches([source for source in items if source], space.n_tokens)
    return [sorted(batch, key=lambda source: order[source.id]) for batch in batches], items.count(None)


def _map_request(query: Query, batch: Sequence[PromptItem]) -> ChatRequest:
    return ChatRequest(
        messages=prompt.render_map(query.text, [source.titled_text for source in batch], query.prompts),
        role=Role.ANSWER,
        max_output_tokens=prompt.MAP_MAX_OUTPUT_TOKENS,
        schema=prompt.MAP_SCHEMA,
        lifetime=ReplyLifetime.REVISION,
        subject=query.text,
    )


def _point(statement: ScoredStatement, batch: Sequence[PromptItem]) -> KeyPoint:
    """Return a statement as a point. If it names no report, all reports of its batch are its sources."""
    numbers = statement.numbers or range(1, len(batch) + 1)
    reports = tuple(batch[number - 1].id for number in numbers)
    return KeyPoint(text=statement.text, score=statement.score, reports=reports)


def _map_notes(n_too_long: int, statements: Sequence[Sequence[ScoredStatement] | None]) -> Iterator[str]:
    if n_too_long:
        yield f"not read, too long for the budget: {format_count(n_too_long, 'report')}"
    if n_unreadable := statements.count(None):
        yield f"{format_count(n_unreadable, 'reply')} without points"
    if n_unsourced := sum(not statement.numbers for listed in statements for statement in listed or ()):
        yield f"{format_count(n_unsourced, 'point')} without sources: all reports of the same call count as sources"


async def _rank_reports(
    ratings: Mapping[str, float], notes: tuple[str, ...], *, query: Query, view: ReadView, tools: Tools
) -> Evidence:
    """Return the `top_k` reports by similarity to the question and rating; without a vector the similarity is 0."""
    vectors = await embed([query.text], tools.embedder)
    cosines = await tools.vectors.similarities(view, VectorSpace.REPORT, vectors[query.text], list(ratings))
    scores = {
        cluster: round(cosines.get(cluster, 0.0) + RATING_WEIGHT * rating / 10, 6)
        for cluster, rating in ratings.items()
    }
    hits = []
    for cluster in sorted(scores, key=lambda cluster: (-scores[cluster], cluster))[: query.top_k]:
        reason = f"cosine {cosines.get(cluster, 0.0):.3f} to the question, rated {ratings[cluster]:g} of 10"
        hits.append(Hit(id=cluster, score=scores[cluster], reason=reason))
    return Evidence(reports=tuple(hits), notes=notes, ranks_passages=False)


STRATEGY = Strategy(
    name="community_global",
    retrieve=retrieve,
    options=(CommunityGlobalOptions,),
    summary="points that a model finds in the reports on all communities, one call for each 12,000 tokens of reports",
    after="Microsoft GraphRAG (global search)",
    when="the question is about the whole collection: its themes, trends, comparisons",
    needs=("communities", "reports"),
    n_model_calls=1,
    model_calls="1 for each 12,000 tokens of reports; with `dynamic_selection` also 1 for each report rated",
    ranks_passages=False,
)
