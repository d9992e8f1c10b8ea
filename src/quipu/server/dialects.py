"""Dialects: what the APIs of OpenAI and Ollama share. A model is a workspace with a strategy; messages are a question.

`quipu` is the workspace "default" with the strategy of the settings, `quipu-mix` the same with the strategy mix, and
`letters/quipu-mix` asks the workspace letters.
"""

import re
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Annotated, Literal, TypeAlias
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request

from quipu.errors import InvalidInput, NotFound
from quipu.model.answer import Answer, AnswerPiece, Citation
from quipu.model.chat import TokenCount
from quipu.model.query import Turn
from quipu.retrieve import STRATEGIES
from quipu.retrieve.question import QueryOptions
from quipu.server.access import Permission
from quipu.server.operations import Call
from quipu.server.wire import Problem
from quipu.server.workspaces import ONLY_WORKSPACE

_MODEL = re.compile(r"(?:([^/]+)/)?quipu(?:-([a-z_]+))?(?::latest)?")
_PREFIX = re.compile(r"\s*/([a-z_]*)(\[[^\]]*\])?(?:\s+|$)", re.IGNORECASE)
_TASK = re.compile(r"<chat_history>\s*USER:")  # a prompt of Open WebUI for a title or tags, not a question


# What is embedded at once: one text or several, as many as OpenAI takes.
EmbeddedTexts: TypeAlias = str | Annotated[list[str], Field(max_length=2_048)]


class OpenBody(BaseModel):
    """A body of a request by a client that also sends fields which mean nothing here: they are left out."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class ClientMessagePart(OpenBody):
    """A part of a message."""

    type: str = "text"
    text: str = ""


class ClientMessage(OpenBody):
    """A message of a conversation, in either API: its content is a text or a list of parts."""

    role: str = "user"
    content: str | list[ClientMessagePart] | None = None

    @property
    def text(self) -> str:
        """The whole text. Raises InvalidInput for parts of another type, such as images."""
        if not isinstance(self.content, list):
            return self.content or ""
        for part in self.content:
            if not part.type.endswith("text"):
                raise InvalidInput(f"A message has a part of the type {part.type!r}.", remedy="Send text only.")
        return "\n".join(part.text for part in self.content)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedModel:
    """What a model's name selects: a workspace, and a strategy ("": that of the settings)."""

    workspace: str
    strategy: str = ""

    @property
    def name(self) -> str:
        """The name of the model."""
        workspace = "" if self.workspace == ONLY_WORKSPACE else f"{self.workspace}/"
        return f"{workspace}quipu{'-' if self.strategy else ''}{self.strategy}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatQuestion:
    """The question that a conversation ends with. With `only_context` the reply is the evidence, without an answer."""

    text: str
    strategy: str = ""
    system_prompt: str = ""
    instruction: str = ""
    history: tuple[Turn, ...] = ()
    only_context: bool = False

    @property
    def options(self) -> QueryOptions:
        """The options of the question; all others are as the settings say."""
        options = QueryOptions(history=self.history, with_answer=not self.only_context)
        if self.strategy:
            options["strategy"] = self.strategy
        if self.system_prompt:
            options["system_prompt"] = self.system_prompt
        if self.instruction:
            options["user_prompt"] = self.instruction
        return options

    def with_prefix(self) -> "ChatQuestion":
        """Return the question without its prefix, which chooses how it is answered; LightRAG has the same ones.

        `/STRATEGY question`, `/context question` and `/STRATEGYcontext question` (evidence only), each also with an
        instruction: `/STRATEGY[as a table] question`. Unlike LightRAG, a prefix is a whole word in any case, every
        strategy but `context` has one, and what is not a prefix is left as it is.
        """
        match = _PREFIX.match(self.text)
        if not match:
            return self
        word, instruction = match[1].casefold(), match[2] or ""
        only_context = word == "context" or (word not in STRATEGIES and word.endswith("context"))
        strategy = word.removesuffix("context") if only_context else word
        if strategy not in STRATEGIES and (strategy or not (only_context or instruction)):
            return self
        return replace(
            self,
            text=self.text[match.end() :],
            strategy=strategy or self.strategy,
            instruction=instruction[1:-1].strip(),
            only_context=only_context,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CitedSpan:
    """A citation mark of a reply, at characters [start, end), and the address that opens what it cites."""

    citation: Citation
    url: str
    start: int
    end: int

    @property
    def title(self) -> str:
        """The title of the document, or its id."""
        return self.citation.title or self.citation.document_id


def served_models(call: Call) -> list[ServedModel]:
    """Return the models that the sender may ask: each workspace with each strategy."""
    names = [name for name in call.server.workspaces.names() if call.caller.opens(name)]
    return [ServedModel(workspace=name, strategy=strategy) for name in names for strategy in ("", *STRATEGIES)]


def model_named(name: str, call: Call) -> ServedModel:
    """Return the model with that name. Raises NotFound if there is none, or the sender may not ask it."""
    match = _MODEL.fullmatch(name)
    model = ServedModel(workspace=match[1] or ONLY_WORKSPACE, strategy=match[2] or "") if match else None
    is_known = (
        model is not None
        and (not model.strategy or model.strategy in STRATEGIES)
        and call.caller.opens(model.workspace)
        and call.server.workspaces.exists(model.workspace)
    )
    if model is None or not is_known:
        raise NotFound(f"There is no model {name!r}.", remedy="Use quipu, quipu-STRATEGY or WORKSPACE/quipu-STRATEGY.")
    return model


def question_of(messages: Sequence[ClientMessage], model: ServedModel, instructions: str = "") -> ChatQuestion:
    """Return the question of a conversation: the last message of the user; those before it are its history.

    System messages become the system prompt: they set role and style, never the rules on evidence and citations.
    Open WebUI's requests for titles and tags go to the language model without a search.
    """
    n_asked = next((n for n in reversed(range(len(messages))) if messages[n].role == "user"), None)
    if n_asked is None or not (text := messages[n_asked].text).strip():
        raise InvalidInput("The conversation has no question.", remedy="End it with a message of the role 'user'.")
    system = [message.text for message in messages if message.role in ("system", "developer")]
    if _TASK.search(text):
        return ChatQuestion(text=text, strategy="bypass")
    return ChatQuestion(
        text=text,
        strategy=model.strategy,
        system_prompt="\n\n".join(part for part in (instructions, *system) if part.strip()),
        history=tuple(_turns(messages[:n_asked])),
    )


def _turns(messages: Iterable[ClientMessage]) -> Iterable[Turn]:
    roles: dict[str, Literal["user", "assistant"]] = {"user": "user", "assistant": "assistant"}
    for message in messages:
        if message.role in roles and message.text.strip():
            yield Turn(role=roles[message.role], text=message.text)


async def answer_pieces(call: Call, model: ServedModel, question: ChatQuestion) -> AsyncIterator[AnswerPiece]:
    """Yield the pieces of text of the reply, then one piece with the whole answer. Closing it cancels the model."""
    has_text = False
    async with (
        call.use(model.workspace, Permission.READ) as kb,
        aclosing(kb.stream(question.text, **question.options)) as pieces,
    ):
        async for piece in pieces:
            if piece.answer is not None:
                call.server.metrics.count_answer(piece.answer)
                if not has_text:
                    yield AnswerPiece(text=reply_text(piece.answer, question))
                yield piece
            elif piece.text and not question.only_context:
                has_text = True
                yield piece


async def whole_answer(call: Call, model: ServedModel, question: ChatQuestion) -> Answer:
    """Return the answer to a question."""
    async with call.use(model.workspace, Permission.READ) as kb:
        answer = await kb.query(question.text, **question.options)
    call.server.metrics.count_answer(answer)
    return answer


def reply_text(answer: Answer, question: ChatQuestion) -> str:
    """Return the text of the reply: the answer, or the evidence where only that is asked for."""
    return answer.context or "Nothing was found." if question.only_context else answer.text


def cited_spans(answer: Answer, call: Call, workspace: str) -> list[CitedSpan]:
    """Return the citation marks of an answer, in their order; a citation without a mark is at its end."""
    by_number: dict[int, list[Citation]] = {}
    for citation in answer.citations:
        by_number.setdefault(citation.number, []).append(citation)
    marks = [(int(answer.text[start + 1 : stop - 1]), start, stop) for start, stop in answer.citation_marks]
    unmarked = by_number.keys() - {number for number, _, _ in marks}
    end = len(answer.text)
    return [
        CitedSpan(
            citation=citation,
            url=document_url(call.request, workspace, citation.document_id, citation.start, citation.end),
            start=start,
            end=stop,
        )
        for number, start, stop in (*marks, *((number, end, end) for number in sorted(unmarked)))
        for citation in by_number.get(number, ())
    ]


def document_url(
    request: Request, workspace: str, document_id: str, start: int | None = None, end: int | None = None
) -> str:
    """Return the address that opens a document, at some characters if given, on the server as the client named it."""
    document = quote(document_id, safe="")
    place = "" if start is None else f"?start={start}&end={end}"
    return f"{request.base_url}#/workspaces/{quote(workspace)}/documents/{document}{place}"


def tokens_of(answer: Answer) -> TokenCount:
    """Return the tokens of all model calls of an answer."""
    return sum((row.tokens for row in answer.usage), TokenCount())


def sentence_of(problem: Problem) -> str:
    """Return a problem as one text, for APIs that have a single field for it."""
    fields = [f"{error.field}: {error.detail}." for error in problem.errors]
    return " ".join(filter(None, (problem.detail, *fields, problem.remedy)))
