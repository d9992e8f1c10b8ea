"""community_global: the reports on all communities of a level, read by a model batch by batch for what they answer.

Source: D. Edge et al., From local to global: a graph RAG approach to query-focused summarization (2024), and global
search of Microsoft GraphRAG. Map: each batch of reports gives scored points. Reduce: the answer is written from the
best. Read are the reports of each branch's finest community no finer than `community_level`, as Microsoft intended, so
each thing is read once; with `dynamic_selection` a model chooses them from the top down. One call a batch of 12,000
tokens, and one for each report rated. Without a model the reports themselves are the evidence, those nearest to the
question and rated highest first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from quipu.model.cluster import ClusterReport
from quipu.model.evidence import Evidence, Hit
from quipu.model.query import Query
from quipu.ports.store import ReadView, VectorSpace
from quipu.retrieve.steps.choosing import choose_reports
from quipu.retrieve.steps.communities import Tree, read_tree, reported_at
from quipu.retrieve.steps.points import points_in
from quipu.retrieve.steps.search import embed
from quipu.retrieve.strategy import Model, Strategy, Tools
from quipu.text.formatting import format_count

RATING_WEIGHT = 0.1  # what the highest rating, 10, is worth in cosine, where no model reads the reports


async def retrieve(query: Query, view: ReadView, tools: Tools) -> Evidence:
    """Return the points that a model finds in the reports, or without one the reports."""
    tree = await read_tree(view)
    if tools.model is None:
        ratings, notes = await reported_at(query.community_level, tree, view)
        left_out = "without a language model no points are drawn from the reports: they are shown as they are"
        evidence = await _reports_alone(ratings, (*notes, left_out), query=query, view=view, tools=tools)
        return replace(evidence, omissions=_hidden(query, notes))
    chosen, notes = await _to_read(query, tree, view, tools, tools.model)
    found = await points_in(chosen, query, tools.model, tools.tokenizer)
    hidden, notes = _hidden(query, notes), (*notes, *found.notes)
    if not found.points and found.n_failed:
        ratings = {report.cluster: report.rating for report in chosen}
        evidence = await _reports_alone(ratings, notes, query=query, view=view, tools=tools)
        return replace(evidence, omissions=hidden)
    calls, points = format_count(found.n_batches, "call"), format_count(len(found.points), "point")
    read = f"a model read {format_count(len(chosen), 'report')} in {calls} and found {points}"
    return Evidence(points=found.points, notes=(*notes, read), omissions=hidden, ranks_passages=False)


def _hidden(query: Query, notes: Sequence[str]) -> tuple[str, ...]:
    """Return what notes say of reports that are not shown, with the reason, where there is a filter."""
    if query.filter.is_empty() or query.dynamic_selection:
        return ()
    return tuple(f"{note}: such a report also tells of documents that are filtered out" for note in notes)


async def _to_read(
    query: Query, tree: Tree, view: ReadView, tools: Tools, model: Model
) -> tuple[Sequence[ClusterReport], tuple[str, ...]]:
    if not query.dynamic_selection:
        ratings, notes = await reported_at(query.community_level, tree, view)
        return await view.cluster_reports(list(ratings)), notes
    chosen = await choose_reports(query, tree, view, tools, model)
    rated = f"a model rated {format_count(chosen.n_rated, 'report')} and chose {len(chosen.reports):,}"
    too_long = f"not rated, too long for the budget: {format_count(chosen.n_too_long, 'report')}"
    return chosen.reports, (rated, too_long) if chosen.n_too_long else (rated,)


async def _reports_alone(
    ratings: Mapping[str, float], notes: tuple[str, ...], *, query: Query, view: ReadView, tools: Tools
) -> Evidence:
    """Return the reports by cosine to the question and rating; one that has no vector yet counts as unrelated."""
    vectors = await embed([query.text], tools.embedder)
    cosines = await tools.vectors.similarities(view, VectorSpace.REPORT, vectors[query.text], list(ratings))
    worth = {each: round(cosines.get(each, 0.0) + RATING_WEIGHT * ratings[each] / 10, 6) for each in ratings}
    best = sorted(worth, key=lambda each: (-worth[each], each))[: query.top_k]
    hits = (
        Hit(
            id=each,
            score=worth[each],
            reason=f"cosine {cosines.get(each, 0.0):.3f} to the question, rated {ratings[each]:g} of 10",
        )
        for each in best
    )
    return Evidence(reports=tuple(hits), notes=notes, ranks_passages=False)


STRATEGY = Strategy(
    name="community_global",
    retrieve=retrieve,
    summary="points a model finds in the reports on all communities, a call for each 12,000 tokens of them",
    after="Microsoft GraphRAG (global search)",
    when="the question is about the whole collection: its themes, trends, comparisons",
    needs=("communities", "reports"),
    n_model_calls=1,
    model_calls="1 for each 12,000 tokens of reports; with `dynamic_selection` also 1 for each report rated",
    ranks_passages=False,
)
