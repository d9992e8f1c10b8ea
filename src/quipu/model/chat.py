"""Chat: what a language model is asked, and what it replied."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from quipu.model.ids import digest


class Role(StrEnum):
    """The work a model is used for; each may have a model of its own."""

    EXTRACT = "extract"
    KEYWORDS = "keywords"
    SUMMARISE = "summarise"
    REPORT = "report"
    ANSWER = "answer"
    JUDGE = "judge"


class FinishReason(StrEnum):
    """Why a reply ended.

    `length`: the limit on output tokens was met. `filtered`: the provider withheld the rest. `interrupted`: the
    connection broke or time ran out after some text had come.
    """

    STOP = "stop"
    LENGTH = "length"
    FILTERED = "filtered"
    INTERRUPTED = "interrupted"


class ReplyLifetime(StrEnum):
    """How long a reply is kept, beyond which it would be a ghost of what has been removed.

    `documents`: until the last of the request's documents goes. `all documents`: until the first goes or takes
    something back, for a reply made from what all of them say. `revision`: until any fact changes. `free`: until
    `purge`.
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
class ChatRequest:
    """What a model is asked, and for whom.

    `schema` is a JSON schema (as JSON text) the reply shall fit, "" for free text: a provider that cannot enforce one
    asks for plain JSON. `attempt` counts how often the same was asked in vain: where a kept reply is of no use, the
    next attempt has one of its own. It and the other fields below `schema` are never sent: what the call is for
    (`role`), the documents whose text it holds, the keys of the replies it was made from (its own reply goes with the
    first of these that goes), how long its reply may be kept, the revision of the view it quotes (`revision`: by
    default that of the moment the model is asked), and under which name its cost is counted (`subject`: by default the
    first document; the question, for calls of a query).
    """

    messages: tuple[Message, ...]
    role: Role
    max_output_tokens: int
    temperature: float = 0.0
    schema: str = ""
    attempt: int = 0
    documents: tuple[str, ...] = ()
    made_from: tuple[str, ...] = ()
    lifetime: ReplyLifetime = ReplyLifetime.DOCUMENTS
    revision: int | None = None
    subject: str = ""

    def hash(self, model_identity: str) -> str:
        """Return the key of the reply: equal means the same model was asked the same in the same way."""
        said = [part for message in self.messages for part in (message.role, message.text)]
        how = [str(self.max_output_tokens), repr(self.temperature), self.schema]
        if self.attempt:
            how.append(str(self.attempt))
        return digest("chat", model_identity, *how, *said)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCount:
    """Tokens of one call or of many. `cached` are those of `input` the provider had read before."""

    input: int = 0
    cached: int = 0
    output: int = 0

    def __add__(self, other: "TokenCount") -> "TokenCount":
        return TokenCount(
            input=self.input + other.input, cached=self.cached + other.cached, output=self.output + other.output
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """A model's reply. `is_estimate` is set where the provider did not count the tokens and we did.

    `is_reused` is set where the reply was kept from before: nothing was asked or paid. `model` is the identity of the
    model that replied, "" where it is the one that was asked.
    """

    text: str
    finish: FinishReason
    tokens: TokenCount
    is_estimate: bool = False
    is_reused: bool = False
    model: str = ""
