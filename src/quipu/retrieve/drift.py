"""drift: an imagined answer leads to reports, these to partial answers and further questions, searched for in turn.

Source: DRIFT search of Microsoft GraphRAG. A model imagines the report that would answer the question (HyDE); the 20
reports nearest to that, in 5 folds, give 5 partial answers with follow-up questions; up to three times the open ones of
the best answers are each answered from a local search. At most 1 + 5 + 3 · `drift_follow_ups` calls: 18, where
Microsoft makes up to 66. Nothing is left to chance: the example for the imagined report is the one nearest to the
question, and questions are taken by the score of the answer they came from. Without a model: the reports nearest to the
question, and local searches for it and for their titles.
"""

from collections.abc import Iterator, Sequence

from quipu.algo.ranking import round_robin
from quipu.model.chat import ChatRequest, ReplyLifetime, Role
from quipu.model.cluster import ClusterReport
from quipu.model.evidence import Evidence, Hit, Seed
from quipu.model.query import Query
from quipu.ports.store import ReadView
from quipu.prompts import drift as prompt
from quipu.retrieve.steps.communities import Near, nearest_reports
from quipu.retrieve.steps.following import (
    Partial,
    Searched,
    follow,
    open_questions,
    partial_of,
    request_for,
    search_for,
    troubles,
)
from quipu.retrieve.steps.found import by_place
from quipu.retrieve.steps.points import best_first
from quipu.retrieve.steps.search import embed, near_hits
from quipu.retrieve.steps.shown import first_that_fit, room_of
from quipu.retrieve.strategy import Model, Strategy, Tools
from quipu.text.thinking import strip_thinking

MAX_REPORTS, N_FOLDS, N_ROUNDS = 20, 5, 3


async def retrieve(query: Query, view: ReadView, tools: Tools) -> Evidence:
    """Return partial answers as points with the passages found on the way, or without a model reports and passages."""
    vectors = await embed([query.text], tools.embedder)
    near = await nearest_reports(vectors[query.text], MAX_REPORTS, query.community_level, view, tools)
    if tools.model is None or not near:
        nothing, no_model = "no report is there to begin with", "without a language model no question is followed up"
        return await _without_model(near, (no_model if near else nothing,), query=query, view=view, tools=tools)
    imagined = await _imagine(query, near[0][1], tools, tools.model)
    if imagined:
        vectors = await embed([imagined], tools.embedder)
        near = await nearest_reports(vectors[imagined], MAX_REPORTS, query.community_level, view, tools)
    partials, n_unread = await _read_folds(query, near, tools, tools.model)
    found, partials = await _follow_up(partials, query, view, tools, tools.model)
    points = best_first([each.point for each in partials if each and each.point])
    notes = tuple(_notes(imagined, n_unread, partials, len(found)))
    if not points:
        return await _without_model(near, (*notes, "no partial answer came of it"), query=query, view=view, tools=tools)
    return Evidence(
        chunks=_passages(found, query),
        points=tuple(points),
        seeds=(_seed("the imagined report" if imagined else query.text, near), *(each.seed for each in found)),
        notes=notes,
        ranks_passages=bool(found),
    )


async def _imagine(query: Query, example: ClusterReport, tools: Tools, model: Model) -> str:
    """Return the report a model imagines, "" where it does not."""
    frame = prompt.render_hyde(query.text, ("", ""))
    shown = room_of(query, frame, tools.tokenizer).report(example)
    if shown is None:
        return ""
    request = ChatRequest(
        messages=prompt.render_hyde(query.text, shown.item),
        role=Role.KEYWORDS,
        max_output_tokens=prompt.HYDE_MAX_OUTPUT_TOKENS,
        lifetime=ReplyLifetime.REVISION,
        subject=query.text,
    )
    (reply,) = await model.ask([request])
    return strip_thinking(reply).strip()


async def _read_folds(query: Query, near: Near, tools: Tools, model: Model) -> tuple[list[Partial | None], int]:
    """Return a partial answer from each fold of the reports, one call each, all at once, and how many did not fit."""
    room = room_of(query, prompt.render_primer(query.text, ()), tools.tokenizer)
    reports = [shown for _, report in near if (shown := room.report(report))]
    folds = [first_that_fit(reports[place::N_FOLDS], room.n_tokens) for place in range(min(N_FOLDS, len(reports)))]
    requests = [request_for(prompt.render_primer(query.text, [each.item for each in fold]), query) for fold in folds]
    replies = await model.ask(requests) if requests else []
    read = [partial_of(reply, fold) for reply, fold in zip(replies, folds, strict=True)]
    return read, len(near) - sum(map(len, folds))


async def _follow_up(
    partials: list[Partial | None], query: Query, view: ReadView, tools: Tools, model: Model
) -> tuple[list[Searched], list[Partial | None]]:
    """Return what was searched for the questions followed up, and all partial answers with those to them."""
    searched: list[Searched] = []
    asked = {query.text.casefold()}
    for _ in range(N_ROUNDS):
        questions = open_questions(partials, asked)[: query.drift_follow_ups]
        if not questions:
            break
        asked.update(question.casefold() for question in questions)
        found = await search_for(questions, query, view, tools)
        partials = partials + await follow(found, query, view, tools, model)
        searched += found
    return searched, partials


async def _without_model(near: Near, notes: tuple[str, ...], *, query: Query, view: ReadView, tools: Tools) -> Evidence:
    """Return the reports nearest to the question, and the passages around it and around what they are about."""
    titles = [report.title for _, report in near[: query.drift_follow_ups] if report.title.strip()]
    found = await search_for(list(dict.fromkeys((query.text, *titles))), query, view, tools)
    return Evidence(
        chunks=_passages(found, query),
        reports=near_hits(scored for scored, _ in near),
        seeds=(_seed(query.text, near), *(each.seed for each in found)),
        notes=notes,
    )


def _passages(found: Sequence[Searched], query: Query) -> tuple[Hit, ...]:
    return by_place(round_robin([each.chunks for each in found], lambda hit: hit.id)[: query.chunk_top_k])


def _seed(text: str, near: Near) -> Seed:
    return Seed(text=text, kind="vector", matches=tuple(scored for scored, _ in near))


def _notes(imagined: str, n_unread: int, partials: Sequence[Partial | None], n_followed: int) -> Iterator[str]:
    if not imagined:
        yield "no report was imagined: the question itself was searched for"
    if n_unread:
        yield f"reports that were not read, for they do not fit the budget: {n_unread:,}"
    yield from troubles(partials)
    yield f"questions that were followed up: {n_followed:,}"


STRATEGY = Strategy(
    name="drift",
    retrieve=retrieve,
    summary="partial answers from reports near to an imagined answer, and to the questions these lead to",
    after="Microsoft GraphRAG (DRIFT search)",
    when="the question is broad and its answer lies in details; takes several rounds of calls",
    needs=("communities", "reports", "entity vectors", "relations"),
    n_model_calls=1 + N_FOLDS + N_ROUNDS * Query(text="").drift_follow_ups,
    model_calls="18 at most: 6, and 3 for each of `drift_follow_ups`",
)
