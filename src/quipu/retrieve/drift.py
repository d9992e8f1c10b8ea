"""drift: an imagined answer leads to reports, these to partial answers and follow-up questions, which are searched for.

Source: DRIFT search of Microsoft GraphRAG ("Introducing DRIFT Search: Combining global and local search methods to
improve quality and efficiency", Microsoft Research, 2024, and its code).

1. HyDE: a model imagines the community report that would answer the question. The 20 reports nearest to it are found.
2. Primer: from each of 5 folds of the reports a model writes a partial answer, its score, and follow-up questions.
3. Follow-up: in three rounds at most, a local search answers each open question, with a score and follow-up questions.
4. The partial answers are the points from which the answer is written.

Differences from the source:
- 20 follow-up questions in a round, so up to 66 calls → `drift_follow_ups`, because calls cost money.
- The example report and the order of questions are random → the nearest, and by score, because answers must not vary.
- The answers of the folds are joined → they stay separate points, because each has its own sources.
- No minimum cosine → `min_similarity`, because a far entity is no evidence.
- A model is required → else near reports, and local searches for the question and their titles, because it is optional.
"""

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np

from quipu.algo.similarity import round_robin
from quipu.model.chat import ChatRequest, Message, ReplyLifetime, Role
from quipu.model.cluster import ClusterReport, Hierarchy
from quipu.model.evidence import Evidence, Hit, KeyPoint, Scored, Seed
from quipu.model.query import Options, Query, option
from quipu.ports.store import ReadView, VectorSpace
from quipu.prompts import drift as prompt
from quipu.retrieve.steps.local_search import find_nearest_clusters, rank_passages, read_neighbourhood, reports_of
from quipu.retrieve.steps.model_replies import read_partial_answer, sort_points
from quipu.retrieve.steps.prompt_items import PromptItem, first_that_fit, prompt_space
from quipu.retrieve.steps.seeds import Vector, embed, hits_by_cosine
from quipu.retrieve.strategy import Model, Strategy, Tools
from quipu.text.formatting import format_count
from quipu.text.model_text import strip_thinking

MAX_REPORTS, N_FOLDS, N_ROUNDS = 20, 5, 3
MAX_ENTITIES = 10  # seeds of a local search
PASSAGE_SHARE = 0.9  # of a follow-up call; reports get the rest, entities, relations and claims nothing
MAX_PASSAGES_READ = 60  # to fill a follow-up call

NearReports = Sequence[tuple[Scored, ClusterReport]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftOptions(Options):
    """The options of `drift`."""

    drift_follow_ups: int = option(4, "Maximum follow-up questions in a round of three.", between=(0, 100), faithful=20)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalResult:
    """The result of a local search for one question: its seed, and passages and reports (by cluster), best first."""

    seed: Seed
    chunks: tuple[Hit, ...]
    reports: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialAnswer:
    """A model's partial answer to one question: a point, None if it is worthless, and follow-up questions.

    `is_asked` is False if no material fitted the call, so that the model was not asked.
    """

    point: KeyPoint | None = None
    follow_ups: tuple[str, ...] = ()
    is_asked: bool = True


async def retrieve(query: Query, view: ReadView, tools: Tools) -> Evidence:
    """Return partial answers as points, with the passages of the local searches; without a model, reports instead."""
    vectors = await embed([query.text], tools.embedder)
    near = await _find_reports(vectors[query.text], query.community_level, view, tools)
    if tools.model is None or not near:
        note = "no language model: no question is followed up" if near else "there is no report to begin with"
        return await _search_without_model(near, (note,), query=query, view=view, tools=tools)
    imagined = await _imagine_report(query, near[0][1], tools, tools.model)  # step 1
    if imagined:
        vectors = await embed([imagined], tools.embedder)
        near = await _find_reports(vectors[imagined], query.community_level, view, tools)
    answers, n_unread = await _run_primer(query, near, tools, tools.model)  # step 2
    searches, answers = await _follow_up(answers, query, view, tools, tools.model)  # step 3
    points = sort_points([answer.point for answer in answers if answer and answer.point])  # step 4
    notes = tuple(_notes(imagined, n_unread, answers, len(searches)))
    if not points:
        notes = (*notes, "there was no partial answer")
        return await _search_without_model(near, notes, query=query, view=view, tools=tools)
    return Evidence(
        chunks=_merge_passages(searches, query),
        points=tuple(points),
        seeds=(_seed("the imagined report" if imagined else query.text, near), *(result.seed for result in searches)),
        notes=notes,
        ranks_passages=bool(searches),
    )


async def _find_reports(vector: Vector, level: int, view: ReadView, tools: Tools) -> NearReports:
    """Return the `MAX_REPORTS` reports nearest to a vector, best first, on communities not finer than `level`."""

    async def have_reports(ids: Sequence[str]) -> Set[str]:
        clusters = await view.clusters(Hierarchy.COMMUNITIES, ids, with_members=False)
        coarse = [cluster.id for cluster in clusters if cluster.level <= level]
        return {report.cluster for report in await view.cluster_reports(coarse, with_text=False)}

    nearest = await find_nearest_clusters(have_reports, vector, MAX_REPORTS, view, tools)
    reports = {report.cluster: report for report in await view.cluster_reports([scored.id for scored in nearest])}
    return [(scored, reports[scored.id]) for scored in nearest]


async def _imagine_report(query: Query, example: ClusterReport, tools: Tools, model: Model) -> str:
    """Return the report that a model imagines as the answer, in the form of `example`; "" if it returns none (HyDE)."""
    source = prompt_space(query, prompt.render_hyde(query, ("", "")), tools.tokenizer).fit_report(example)
    if source is None:
        return ""
    request = _request(prompt.render_hyde(query, source.titled_text), query)
    request = replace(request, role=Role.KEYWORDS, max_output_tokens=prompt.HYDE_MAX_OUTPUT_TOKENS, schema="")
    (reply,) = await model.ask([request])
    return strip_thinking(reply).strip()


async def _run_primer(
    query: Query, near: NearReports, tools: Tools, model: Model
) -> tuple[list[PartialAnswer | None], int]:
    """Return a partial answer for each fold of the reports (the primer), and how many reports did not fit a call.

    All folds are asked at the same time. None stands for a reply that cannot be read.
    """
    space = prompt_space(query, prompt.render_primer(query, ()), tools.tokenizer)
    items = [source for _, report in near if (source := space.fit_report(report))]
    folds = [first_that_fit(items[first::N_FOLDS], space.n_tokens) for first in range(min(N_FOLDS, len(items)))]
    prompts = [prompt.render_primer(query, [source.titled_text for source in fold]) for fold in folds]
    replies = await model.ask([_request(messages, query) for messages in prompts]) if folds else []
    answers = [_partial_answer(reply, fold) for reply, fold in zip(replies, folds, strict=True)]
    return answers, len(near) - sum(map(len, folds))


async def _follow_up(
    answers: list[PartialAnswer | None], query: Query, view: ReadView, tools: Tools, model: Model
) -> tuple[list[LocalResult], list[PartialAnswer | None]]:
    """Follow the open questions for `N_ROUNDS` rounds; return the local searches, and all partial answers."""
    searches: list[LocalResult] = []
    followed = {query.text.casefold()}
    for _ in range(N_ROUNDS):
        questions = _open_questions(answers, followed)[: query.options_of(DriftOptions).drift_follow_ups]
        if not questions:
            break
        followed.update(question.casefold() for question in questions)
        results = await _search_locally(questions, query, view, tools)
        answers = answers + await _answer_questions(results, query, view, tools, model)
        searches += results
    return searches, answers


def _open_questions(answers: Sequence[PartialAnswer | None], followed: Set[str]) -> list[str]:
    """Return the questions not followed yet, those of the best partial answers first."""
    ranked = sorted(
        (-answer.point.score if answer.point else 0.0, position, question)
        for answer in filter(None, answers)
        for position, question in enumerate(answer.follow_ups)
    )
    question_by_folded: dict[str, str] = {}
    for _, _, question in ranked:
        if question.casefold() not in followed:
            question_by_folded.setdefault(question.casefold(), question)
    return list(question_by_folded.values())


async def _search_locally(questions: Sequence[str], query: Query, view: ReadView, tools: Tools) -> list[LocalResult]:
    """Return the result of a local search for each question; all are embedded in one call."""
    vectors = await embed(questions, tools.embedder)
    nearest = await tools.vectors.nearest(
        view,
        VectorSpace.ENTITY,
        np.stack([vectors[question] for question in questions]),
        k=min(query.top_k, MAX_ENTITIES),
        min_score=query.min_similarity,
    )
    return [
        LocalResult(
            seed=Seed(text=question, kind="vector", matches=entities),
            chunks=await rank_passages(await read_neighbourhood(entities, view), vectors[question], view, tools),
            reports=tuple(
                report.cluster
                for report, _ in await reports_of([entity.id for entity in entities], query.community_level, view)
            ),
        )
        for question, entities in zip(questions, nearest, strict=True)
    ]


async def _answer_questions(
    results: Sequence[LocalResult], query: Query, view: ReadView, tools: Tools, model: Model
) -> list[PartialAnswer | None]:
    """Return a partial answer for each local search, all asked at the same time; None for an unreadable reply."""
    materials = [await _select_material(result, query, view, tools) for result in results]
    requests = []
    for result, material in zip(results, materials, strict=True):
        texts = [source.titled_text for source in material]
        if texts:
            requests.append(_request(prompt.render_follow_up(result.seed.text, query, texts), query))
    replies = iter(await model.ask(requests) if requests else [])
    return [
        _partial_answer(next(replies), material) if material else PartialAnswer(is_asked=False)
        for material in materials
    ]


async def _select_material(result: LocalResult, query: Query, view: ReadView, tools: Tools) -> list[PromptItem]:
    """Return the passages and reports for one call: reports get a tenth of it, passages the rest."""
    space = prompt_space(query, prompt.render_follow_up(result.seed.text, query, ()), tools.tokenizer)
    read = await view.cluster_reports(result.reports)
    candidates = [source for report in read if (source := space.fit_report(report))]
    reports = first_that_fit(candidates, int((1 - PASSAGE_SHARE) * space.n_tokens))
    n_free = space.n_tokens - sum(source.n_tokens for source in reports)
    chunks = await view.chunks([hit.id for hit in result.chunks[:MAX_PASSAGES_READ]])
    return first_that_fit([space.measure_chunk(chunk) for chunk in chunks], n_free) + reports


def _request(messages: tuple[Message, ...], query: Query) -> ChatRequest:
    return ChatRequest(
        messages=messages,
        role=Role.ANSWER,
        max_output_tokens=prompt.MAX_OUTPUT_TOKENS,
        schema=prompt.SCHEMA,
        lifetime=ReplyLifetime.REVISION,
        subject=query.text,
    )


def _partial_answer(reply: str, material: Sequence[PromptItem]) -> PartialAnswer | None:
    """Return the partial answer of a reply; if it names no sources, all of its material counts as sources."""
    if (parsed := read_partial_answer(reply, len(material))) is None:
        return None
    if (statement := parsed.statement) is None:
        return PartialAnswer(follow_ups=parsed.follow_ups)
    sources = [material[number - 1] for number in statement.numbers] or material
    point = KeyPoint(
        text=statement.text,
        score=statement.score,
        reports=tuple(source.id for source in sources if source.is_report),
        chunks=tuple(source.id for source in sources if not source.is_report),
    )
    return PartialAnswer(point=point, follow_ups=parsed.follow_ups)


async def _search_without_model(
    near: NearReports, notes: tuple[str, ...], *, query: Query, view: ReadView, tools: Tools
) -> Evidence:
    """Return the reports nearest to the question, and the passages of local searches for it and for their titles."""
    n_titles = query.options_of(DriftOptions).drift_follow_ups
    titles = [report.title for _, report in near[:n_titles] if report.title.strip()]
    searches = await _search_locally(list(dict.fromkeys((query.text, *titles))), query, view, tools)
    return Evidence(
        chunks=_merge_passages(searches, query),
        reports=hits_by_cosine(scored for scored, _ in near),
        seeds=(_seed(query.text, near), *(result.seed for result in searches)),
        notes=notes,
    )


def _merge_passages(searches: Sequence[LocalResult], query: Query) -> tuple[Hit, ...]:
    """Return the passages of all searches, merged in turns, with 1 / rank as the score."""
    merged = round_robin([result.chunks for result in searches], lambda hit: hit.id)[: query.chunk_top_k]
    return tuple(replace(hit, score=round(1 / rank, 6)) for rank, hit in enumerate(merged, 1))


def _seed(text: str, near: NearReports) -> Seed:
    return Seed(text=text, kind="vector", matches=tuple(scored for scored, _ in near))


def _notes(imagined: str, n_unread: int, answers: Sequence[PartialAnswer | None], n_followed: int) -> Iterator[str]:
    if not imagined:
        yield "no report was imagined: the question itself was searched for"
    if n_unread:
        yield f"reports that did not fit the budget and were not read: {n_unread:,}"
    if n_unreadable := answers.count(None):
        yield f"{format_count(n_unreadable, 'partial answer')} missing or unreadable"
    if n_not_asked := sum(not answer.is_asked for answer in answers if answer):
        yield f"{format_count(n_not_asked, 'question')} without any material that fits the budget"
    yield f"questions followed up: {n_followed:,}"


STRATEGY = Strategy(
    name="drift",
    retrieve=retrieve,
    options=(DriftOptions,),
    faithful={"min_similarity": -1.0},
    summary="partial answers from the reports nearest to an imagined answer, and to their follow-up questions",
    after="Microsoft GraphRAG (DRIFT search)",
    when="the question is broad and its answer lies in details; takes several rounds of calls",
    needs=("communities", "reports", "entity vectors", "relations"),
    n_model_calls=1 + N_FOLDS + N_ROUNDS * DriftOptions().drift_follow_ups,
    model_calls="18 at most: 6, and 3 for each of `drift_follow_ups`",
)
