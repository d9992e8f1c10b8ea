"""Conversations: questions whose answers are saved. A key sees those that it made; an admin may see all."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Annotated

from pydantic import Field
from starlette.responses import Response

from quipu.engine import Quipu
from quipu.engine.conversations import Conversations
from quipu.model.answer import Answer, AnswerPiece
from quipu.model.conversation import ConversationAnswer, ConversationDetails, ConversationPage, SavedConversation
from quipu.server.access import Permission
from quipu.server.operations import Call, WireBody, operation, operations_of
from quipu.server.questions import WORKSPACE, Question, answer_events, question_options
from quipu.server.wire import event_stream


class ConversationQuestion(Question):
    """A question in a conversation, and how to answer it. The history comes from the conversation."""

    conversation: str = Field("", description="The id of the conversation; empty: a new one.")


class ConversationTitle(WireBody):
    """A title for a conversation."""

    title: str


@operation("POST", f"{WORKSPACE}/conversations/query", Permission.READ)
async def ask_in_conversation(kb: Quipu, call: Call, body: ConversationQuestion) -> ConversationAnswer:
    """Answer a question in a conversation, by default a new one, and save both.

    The answers before it are its history. If the answer could not be saved, its `number` is 0, and a note says why.
    """
    saved = await _conversations(kb, call).ask(body.question, body.conversation, **question_options(call, body))
    call.server.metrics.count_answer(saved.answer)
    return replace(saved, answer=_without_paths(saved.answer, call))


@operation("POST", f"{WORKSPACE}/conversations/query/stream", Permission.READ, media_type="text/event-stream")
async def stream_in_conversation(kb: Quipu, call: Call, body: ConversationQuestion) -> Response:
    """Answer a question in a conversation in pieces, and save it before the last event.

    The events are those of a streamed question. Before `answer`, `saved` has the id of the conversation and the number
    of the question in it; it is left out if the answer could not be saved, and a note of the answer says why.
    """
    return event_stream(answer_events(call, lambda: _pieces(kb, call, body)))


async def _pieces(kb: Quipu, call: Call, body: ConversationQuestion) -> AsyncGenerator[AnswerPiece, None]:
    pieces = _conversations(kb, call).stream(body.question, body.conversation, **question_options(call, body))
    async with aclosing(pieces):
        async for piece in pieces:
            yield replace(piece, answer=_without_paths(piece.answer, call)) if piece.answer else piece


def _without_paths(answer: Answer, call: Call) -> Answer:
    """Return an answer whose notes, which may say why it was not saved, name no path of the server."""
    return replace(answer, notes=tuple(map(call.server.workspaces.without_paths, answer.notes)))


@operation("GET", f"{WORKSPACE}/conversations", Permission.READ)
async def list_conversations(
    kb: Quipu,
    call: Call,
    *,
    k: Annotated[int, Field(ge=1, le=1_000)] = 50,
    cursor: str = "",
    of_all_keys: bool = False,
) -> ConversationPage:
    """List the conversations of the key page by page, the last changed first; an admin may list those of all keys."""
    if of_all_keys:
        call.server.access.check(call.caller, Permission.ADMIN, call.workspace)
    return await _conversations(kb, call).page(cursor, k, of_all_owners=of_all_keys)


@operation("GET", f"{WORKSPACE}/conversations/{{conversation}}", Permission.READ)
async def show_conversation(kb: Quipu, call: Call, conversation: str) -> ConversationDetails:
    """Return a conversation with all its questions and answers.

    An answer is null if a document that it may quote has been removed or replaced since.
    """
    return await _conversations(kb, call).read(conversation)


@operation("PATCH", f"{WORKSPACE}/conversations/{{conversation}}", Permission.READ)
async def rename_conversation(kb: Quipu, call: Call, conversation: str, body: ConversationTitle) -> SavedConversation:
    """Give a conversation another title."""
    return await _conversations(kb, call).rename(conversation, body.title)


@operation("DELETE", f"{WORKSPACE}/conversations/{{conversation}}", Permission.READ, status=204)
async def delete_conversation(kb: Quipu, call: Call, conversation: str) -> Response:
    """Delete a conversation with all its questions and answers. This cannot be undone."""
    await _conversations(kb, call).delete(conversation)
    return Response(status_code=204)


def _conversations(kb: Quipu, call: Call) -> Conversations:
    return kb.conversations.of(call.caller.id, sees_all=call.caller.permission is Permission.ADMIN)


OPERATIONS = operations_of(
    ask_in_conversation,
    stream_in_conversation,
    list_conversations,
    show_conversation,
    rename_conversation,
    delete_conversation,
)
