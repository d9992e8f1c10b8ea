"""Chat: requests to a language model and their completions."""

import base64
import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from quipu.model.ids import digest, digest_bytes


class Role(StrEnum):
    """The task a model is used for. Each role can have its own model.

    VISION describes pictures. Unlike the others it has no model by default, because many models see none.
    """

    EXTRACT = "extract"
    KEYWORDS = "keywords"
    SUMMARISE = "summarise"
    REPORT = "report"
    ANSWER = "answer"
    JUDGE = "judge"
    VISION = "vision"


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


_TILE = 512  # pixels
_MAX_SIDE, _MAX_SHORT_SIDE = 2_048, 768  # to which a service shrinks a picture before it counts
_TOKENS_A_PICTURE, _TOKENS_A_TILE = 85, 170


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """A picture in a request: its file as PNG, JPEG, GIF or WebP, and its size in pixels."""

    media_type: str
    content: bytes = field(repr=False)
    width: int
    height: int

    @property
    def hash(self) -> str:
        """A digest of the file."""
        return digest_bytes(self.content)

    @property
    def url(self) -> str:
        """The file as a data URL."""
        return f"data:{self.media_type};base64,{base64.b64encode(self.content).decode('ascii')}"

    @property
    def n_tokens(self) -> int:
        """About how many tokens a service counts for it, by the rule that OpenAI publishes for GPT-4o.

        Other models count otherwise: of the large services, between a third and twice as many.
        """
        scale = min(1.0, _MAX_SIDE / max(self.width, self.height), _MAX_SHORT_SIDE / min(self.width, self.height))
        n_tiles = math.ceil(self.width * scale / _TILE) * math.ceil(self.height * scale / _TILE)
        return _TOKENS_A_PICTURE + _TOKENS_A_TILE * n_tiles


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
    enforce a schema asks for plain JSON. `images` are sent with the last message. The other fields are never sent:

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
    images: tuple[Image, ...] = ()
    attempt: int = 0
    documents: tuple[str, ...] = ()
    source_replies: tuple[str, ...] = ()
    lifetime: ReplyLifetime = ReplyLifetime.DOCUMENTS
    revision: int | None = None
    subject: str = ""

    def hash(self, model_identity: str) -> str:
        """Return the key of the reply: a digest of the model, the messages, the images and the parameters."""
        contents = [part for message in self.messages for part in (message.role, message.text)]
        contents += [image.hash for image in self.images]
        parameters = [str(self.max_output_tokens), repr(self.temperature), self.schema]
        if self.attempt:
            parameters.append(str(self.attempt))
        return digest("chat", model_identity, *parameters, *contents)

    def in_openai_form(self) -> list[dict[str, object]]:
        """Return the messages in the form of OpenAI's API, in which images are parts of the last message."""
        messages: list[dict[str, object]] = [
            {"role": message.role, "content": message.text} for message in self.messages
        ]
        if self.images:
            images = [{"type": "image_url", "image_url": {"url": image.url}} for image in self.images]
            messages[-1]["content"] = [{"type": "text", "text": messages[-1]["content"]}, *images]
        return messages


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
