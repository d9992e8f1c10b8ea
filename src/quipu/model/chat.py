"""Chat: requests to a language model and their completions."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from quipu.model.ids import digest


class Role(StrEnum):
    """The task a model is used for. Each role can have its own model."""

    EXTRACT = "extract"
    KEYWORDS = "keywords"
    SUMMARISE = "summarise"
    REPORT = "report"
    ANSWER = "answer"
    JUDGE = "judge"


class FinishReason(StrEnum):
    """Why a reply ended.

    `length`: the reply reached the limit on output tokens. `filtered`: the provider withheld the rest. `interrupted`:
    the connection broke or timed out after some text had arrived.
    """

    STOP = "stop"
    LENGTH = "length"
    FILTERED = "filtered"
    INTERRUPTED = "interrupted"


class ReplyLifetime(StrEnum):
    """How long a cached reply is kept, so that no text of removed documents survives in it.

    `documents`: until the last of the request's documents is removed. `all documents`: until one of them is removed or
    loses content; for replies that combine all of them. `revision`: until any fact changes. `free`: until `purge`.
    """

    DOCUMENTS = "documents"
    ALL_DOCUMENTS = "all documents"
    REVISION = "revision"
    FREE = "free"


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation with a model."""

    role: Literal["system", "user", "assistant"]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptText:
    """Instructions of the user for one prompt, by its name, in place of the default ones."""

    prompt: str
    text: str

    def __str__(self) -> str:
        return self.prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """A request to a model, and what the reply cache and the usage counts need to know about it.

    `schema` is a JSON schema (as JSON text) that the reply must match, "" for free text. A provider that cannot
    enforce a schema asks for plain JSON. The fields after `schema` are never sent:

    - `attempt` counts earlier requests of the same text whose reply was unusable; each attempt has its own reply.
    - `documents` are the ids of the documents whose text the request contains.
    - `source_replies` are keys of cached replies that the request quotes. If one is deleted, this reply is too.
    - `revision` is the revision of the view that the request quotes, by default the current one.
    - `subject` is the name under which the cost is counted: by default the first document, for a query the question.
    """

    messages: tuple[Message, ...]
    role: Role
    max_output_tokens: int
    temperature: float = 0.0
    schema: str = ""
    attempt: int = 0
    documents: tuple[str, ...] = ()
    source_replies: tuple[str, ...] = ()
    lifetime: ReplyLifetime = ReplyLifetime.DOCUMENTS
    revision: int | None = None
    subject: str = ""

    def hash(self, model_identity: str) -> str:
        """Return the key of the reply: a digest of the model, the messages and the parameters."""
        contents = [part for message in self.messages for part in (message.role, message.text)]
        parameters = [str(self.max_output_tokens), repr(self.temperature), self.schema]
        if self.attempt:
            parameters.append(str(self.attempt))
        return digest("chat", model_identity, *parameters, *contents)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCount:
    """Tokens of one call or of many. `cached` is the part of `input` that the provider read from its own cache."""

    input: int = 0
    cached: int = 0
    output: int = 0

    def __add__(self, other: "TokenCount") -> "TokenCount":
        return TokenCount(
            input=self.input + other.input, cached=self.cached + other.cached, output=self.output + other.output
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """A model's reply. `is_estimate` is set if the provider did not count the tokens and Quipu estimated them.

    `is_reused` is set if the reply came from the cache: no call was made or paid for. `model` is the identity of the
    model that replied, "" if it is the requested model.
    """

    text: str
    finish: FinishReason
    tokens: TokenCount
    is_estimate: bool = False
    is_reused: bool = False
    model: str = ""
