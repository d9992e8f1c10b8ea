"""Following up: questions answered from what lies around the entities near to them, each with what to ask next."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from quipu.model.chat import ChatRequest, Message, ReplyLifetime, Role
from quipu.model.evidence import Hit, KeyPoint, Seed
from quipu.model.query import Query
from quipu.ports.store import ReadView, VectorSpace
from quipu.prompts import drift as prompt
from quipu.retrieve.steps.said import SaidPoint, read_answer
from quipu.retrieve.steps.search import embed
from quipu.retrieve.steps.shown import Shown, first_that_fit, room_of
from quipu.retrieve.steps.surroundings import passages_of, read_around, reports_of
from quipu.retrieve.strategy import Model, Tools
from quipu.text.formatting import format_count

MAX_ENTITIES = 10
PASSAGE_SHARE = 0.9  # of a call; reports have the rest, entities, relations and claims nothing (DRIFT)
MAX_READ = 60  # passages that are read to fill a call


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """What a local search for one question found: where it started, passages and reports, best first."""

    seed: Seed
    chunks: tuple[Hit, ...]
    reports: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Partial:
    """What a model made of some material: a point, None where it is worth nothing, and the questions it led to.

    Where there is nothing to show it is not asked.
    """

    point: KeyPoint | None = None
    score: float = 0.0
    follow_ups: tuple[str, ...] = ()
    is_asked: bool = True


async def search_for(questions: Sequence[str], query: Query, view: ReadView, tools: Tools) -> list[Searched]:
    """Return what a local search finds for each question; all are embedded in one call."""
    if not questions:
        return []
    vectors = await embed(questions, tools.embedder)
    near = await tools.vectors.nearest(
        view,
        VectorSpace.ENTITY,
        np.stack([vectors[question] for question in questions]),
        k=min(query.top_k, MAX_ENTITIES),
        min_score=query.min_similarity,
    )
    found = []
    for question, entities in zip(questions, near, strict=True):
        around = await read_around(entities, view)
        reports = await reports_of([entity.id for entity in entities], query.community_level, view)
        found.append(
            Searched(
                seed=Seed(text=question, kind="vector", matches=entities),
                chunks=await passages_of(around, vectors[question], view, tools),
                reports=tuple(report.cluster for report, _ in reports),
            )
        )
    return found


async def follow(
    found: Sequence[Searched], query: Query, view: ReadView, tools: Tools, model: Model
) -> list[Partial | None]:
    """Return what a model answers to each question from what was found, one call each, all at once.

    None stands for a reply that could not be read. A question for which nothing was found that fits is not asked.
    """
    shown = [await _shown(each, query, view, tools) for each in found]
    requests = [
        request_for(prompt.render_follow_up(each.seed.text, query.text, [one.item for one in texts]), query)
        for each, texts in zip(found, shown, strict=True)
        if texts
    ]
    replies = iter(await model.ask(requests) if requests else [])
    return [partial_of(next(replies), texts) if texts else Partial(is_asked=False) for texts in shown]


def troubles(partials: Sequence[Partial | None]) -> Iterator[str]:
    """Yield what the trace should say of answers that could not be had, and of questions that were not asked."""
    if n_failed := partials.count(None):
        yield f"{format_count(n_failed, 'partial answer')} could not be had"
    if n_unasked := sum(not each.is_asked for each in partials if each):
        yield f"for {format_count(n_unasked, 'question')} nothing was found that fits the budget"


def open_questions(partials: Sequence[Partial | None], asked: set[str]) -> list[str]:
    """Return the questions not asked yet, those of the best answers first, each answer's in its order."""
    ranked = sorted(
        (-partial.score, place, question)
        for partial in partials
        if partial
        for place, question in enumerate(partial.follow_ups)
    )
    open_questions: dict[str, str] = {}
    for _, _, question in ranked:
        if question.casefold() not in asked:
            open_questions.setdefault(question.casefold(), question)
    return list(open_questions.values())


def request_for(messages: tuple[Message, ...], query: Query) -> ChatRequest:
    """Return the request for a partial answer."""
    return ChatRequest(
        messages=messages,
        role=Role.ANSWER,
        max_output_tokens=prompt.MAX_OUTPUT_TOKENS,
        schema=prompt.SCHEMA,
        lifetime=ReplyLifetime.REVISION,
        subject=query.text,
    )


def partial_of(reply: str, shown: Sequence[Shown]) -> Partial | None:
    """Return what a reply says of the material shown, None where it could not be read."""
    said = read_answer(reply, len(shown))
    if said is None:
        return None
    point = _point(said.point, shown) if said.point else None
    return Partial(point=point, score=point.score if point else 0.0, follow_ups=said.follow_ups)


def _point(said: SaidPoint, shown: Sequence[Shown]) -> KeyPoint:
    """Return the point; one that names no source is taken to rest on all that was shown."""
    rests_on = [shown[number - 1] for number in said.numbers] or shown
    return KeyPoint(
        text=said.text,
        score=said.score,
        reports=tuple(each.id for each in rests_on if each.is_report),
        chunks=tuple(each.id for each in rests_on if not each.is_report),
    )


async def _shown(found: Searched, query: Query, view: ReadView, tools: Tools) -> list[Shown]:
    """Return passages and reports that fit a call: reports a tenth of it, passages what is left."""
    frame = prompt.render_follow_up(found.seed.text, query.text, ())
    room = room_of(query, frame, tools.tokenizer)
    reports = [shown for each in await view.cluster_reports(found.reports) if (shown := room.report(each))]
    above = first_that_fit(reports, int((1 - PASSAGE_SHARE) * room.n_tokens))
    left = room.n_tokens - sum(each.n_tokens for each in above)
    chunks = await view.chunks([hit.id for hit in found.chunks[:MAX_READ]])
    return first_that_fit([room.chunk(chunk) for chunk in chunks], left) + above
