"""Questions: answers, whole or streamed, evidence, prompts, comparisons, explanations, and search by words."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

from pydantic import Field, create_model
from starlette.responses import Response

from quipu.engine import Quipu
from quipu.model.answer import Answer, AnswerPiece, Comparison
from quipu.model.evidence import Evidence, Explanation
from quipu.model.query import Option, Options, Query, options_in
from quipu.model.results import RetrievedPassage, SearchResult
from quipu.retrieve import strategies_by_options
from quipu.retrieve.question import NO_OPTIONS
from quipu.server.access import Permission
from quipu.server.operations import Call, WireBody, operation, operations_of
from quipu.server.wire import event_stream, sent_event

WORKSPACE = "/api/v1/workspaces/{workspace}"
_MAX_COST = "max_cost"  # an option of every question, and the setting of its default
AsOf = Annotated[str, Field(description="What held at the end of this year, month or day; empty: what holds now.")]


def _question_fields() -> Mapping[str, Any]:
    """Return the fields of a question: its text, the options of every question, and those of single strategies."""
    question: dict[str, Any] = {"question": (Annotated[str, Field(description="What is asked.")], ...)}
    kinds: list[type[Query] | type[Options]] = [Query, *strategies_by_options()]
    for kind in kinds:
        hints = get_type_hints(kind)
        options = {option.path[0]: option for option in options_in(kind) if len(option.path) == 1}
        for part in fields(kind):
            if kind is not Query or part.name not in NO_OPTIONS:
                default = part.default if part.default_factory is MISSING else part.default_factory()
                question[part.name] = (Annotated[hints[part.name], _limits(options.get(part.name))], default)
    return question


def _limits(option: Option | None) -> Any:
    if option is None:
        return Field()
    low, high = option.between or (None, None)
    return Field(description=option.description, ge=low, le=high)


if TYPE_CHECKING:

    class Question(WireBody):
        """A question and how to answer it: the options of `Quipu.query`. Unset ones are as the settings say."""

        question: str

else:
    Question = create_model("Question", __base__=WireBody, **_question_fields())


class ComparedQuestion(Question):
    """A question for several strategies."""

    strategies: tuple[str, ...] = Field((), description="The strategies to ask; none: all that can run.")


class ExplainedQuestion(Question):
    """A question, and the chunk to explain: by its id, by its rank, or the first three."""

    chunk: str = Field("", description="The id of a chunk.")
    rank: int | None = Field(None, ge=1, description="The rank of a passage in the evidence, from 1.")


@operation("POST", f"{WORKSPACE}/query", Permission.READ)
async def query(kb: Quipu, call: Call, body: Question) -> Answer:
    """Answer a question, with citations.

    Without a language model the answer quotes the documents. The trace says how the answer was found.
    """
    answer = await kb.query(body.question, **question_options(call, body))
    call.server.metrics.count_answer(answer)
    return answer


@operation("POST", f"{WORKSPACE}/query/stream", Permission.READ, media_type="text/event-stream")
async def stream_query(kb: Quipu, call: Call, body: Question) -> Response:
    """Answer a question in pieces while the answer is made.

    Server-sent events: `stage` says what is done from now on (and in the end, of how many passages the answer is made),
    `text` is a piece of the answer, `answer` is the whole answer with its citations, `problem` an error; the last event
    is `answer` or `problem`.
    """
    return event_stream(answer_events(call, lambda: kb.stream(body.question, **question_options(call, body))))


async def answer_events(call: Call, stream: Callable[[], AsyncGenerator[AnswerPiece, None]]) -> AsyncIterator[bytes]:
    """Yield the pieces of an answer as server-sent events; in a conversation, `saved` comes before `answer`."""
    try:
        async with aclosing(stream()) as pieces:
            async for piece in pieces:
                if piece.answer is not None:
                    call.server.metrics.count_answer(piece.answer)
                    if piece.number:
                        yield sent_event("saved", {"conversation": piece.conversation, "number": piece.number})
                    yield sent_event("answer", piece.answer)
                elif piece.stage:
                    yield sent_event("stage", {"stage": piece.stage, "n_passages": piece.n_passages})
                else:
                    yield sent_event("text", {"text": piece.text})
    except Exception as error:
        call.server.report(error, call.request)
        yield sent_event("problem", call.server.problem(error, call.request))


@operation("POST", f"{WORKSPACE}/evidence", Permission.READ)
async def evidence(kb: Quipu, call: Call, body: Question) -> Evidence:
    """Return the evidence for a question: ids, scores and reasons, without an answer."""
    return await kb.retrieve(body.question, **question_options(call, body))


@operation("POST", f"{WORKSPACE}/passages", Permission.READ)
async def passages(kb: Quipu, call: Call, body: Question) -> list[RetrievedPassage]:
    """Return the passages that a strategy ranks for a question, best first, each with its text and document."""
    return await kb.passages(body.question, **question_options(call, body))


@operation("POST", f"{WORKSPACE}/compare", Permission.READ)
async def compare(kb: Quipu, call: Call, body: ComparedQuestion) -> Comparison:
    """Ask several strategies the same question, and return what each found."""
    return await kb.compare(body.question, body.strategies, **question_options(call, body))


@operation("POST", f"{WORKSPACE}/explain", Permission.READ)
async def explain(kb: Quipu, call: Call, body: ExplainedQuestion) -> Explanation:
    """Return why chunks are in the evidence for a question."""
    return await kb.explain(body.question, chunk=body.chunk, rank=body.rank, **question_options(call, body))


@operation("GET", f"{WORKSPACE}/search", Permission.READ)
async def search(
    kb: Quipu, *, text: str, k: Annotated[int, Field(ge=1, le=1_000)] = 10, as_of: AsOf = ""
) -> SearchResult:
    """Find chunks and entities by their words."""
    return await kb.search(text, k, as_of=as_of)


def question_options(call: Call, body: Question) -> dict[str, Any]:
    """Return the options that the request sets; all others are as the settings say.

    A request may not spend more than the setting `max_cost` says, and only a key that may write refreshes derivations.
    """
    names = body.model_fields_set & Question.model_fields.keys() - {"question"}
    options = {name: getattr(body, name) for name in sorted(names)}
    if options.get("auto_refresh"):
        call.server.access.check(call.caller, Permission.WRITE, call.workspace)
    limit: float = getattr(call.server.workspaces.settings(call.workspace), _MAX_COST)
    if limit:
        options["max_cost"] = min(options.get("max_cost") or limit, limit)
    return options


OPERATIONS = operations_of(query, stream_query, evidence, passages, compare, explain, search)
