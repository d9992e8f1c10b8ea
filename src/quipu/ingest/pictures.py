"""Pictures of documents: a model says what each shows, or what a page in a picture says, before chunks are cut."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from quipu.errors import OverBudget, QuipuError, Unavailable
from quipu.model.chat import ChatRequest, Completion, FinishReason, PromptText, Role
from quipu.model.document import ParsedDocument, Picture, SourceDocument
from quipu.model.ids import digest
from quipu.ports.providers import LLM
from quipu.prompts import picture as prompt
from quipu.prompts.instructions import prompt_version
from quipu.text.model_text import strip_thinking

MAX_DESCRIPTION_TOKENS = 1_000
MAX_PAGE_TOKENS = 6_000
REMEDY = "Add the document again to ask for them once more."


class PictureParser(Protocol):
    """Parses documents and knows their pictures."""

    def collect(self, source: SourceDocument) -> tuple[ParsedDocument, tuple[Picture, ...]]:
        """Return the document without descriptions, and its pictures. Raises InvalidDocument as a Parser does."""
        ...

    def describe(self, source: SourceDocument, descriptions: Mapping[str, str]) -> ParsedDocument:
        """Return the document with the descriptions of its pictures, by their keys. Raises InvalidDocument."""
        ...


@dataclass(slots=True)
class PictureReplies:
    """What a model said of the pictures of a document, by their keys, and why others have no reply."""

    descriptions: dict[str, str] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)

    @property
    def error(self) -> str:
        """The error of the document, which names the first reason; "" if every picture has a reply."""
        if not self.errors:
            return ""
        n_all = len({*self.errors, *self.descriptions})
        reason = next(iter(self.errors.values()))
        return f"{len(self.errors)} of {n_all} pictures have no complete description: {reason} {REMEDY}"

    def take(self, picture: Picture, completion: Completion) -> None:
        """Keep a reply: the text of a page that was cut off, too, but with an error."""
        text = strip_thinking(completion.text).strip()
        if completion.finish not in (FinishReason.STOP, FinishReason.LENGTH):
            self.errors[picture.key] = f"The reply was {completion.finish}."
        elif not text:
            self.errors[picture.key] = "The reply was empty."
        else:
            self.descriptions[picture.key] = _description(text, is_page=picture.is_page)
            if picture.is_page and completion.finish is FinishReason.LENGTH:
                self.errors[picture.key] = f"The text of a page is longer than {MAX_PAGE_TOKENS:,} tokens."


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureReader:
    """Asks a model, at most `n_ahead` times at once, about the pictures that `parser` finds in documents.

    `language` is that of descriptions, "": that of the document. `prompts` are the user's own instructions.
    """

    parser: PictureParser
    llm: LLM
    n_ahead: int = 1
    language: str = ""
    prompts: Sequence[PromptText] = ()

    @property
    def identity(self) -> str:
        """The model and the instructions: with others, a document with pictures is read again."""
        version = prompt_version(prompt.VERSION, self.prompts, prompt.DESCRIPTION, prompt.PAGE)
        return digest(self.llm.identity, version, self.language)

    def request(self, picture: Picture, document_id: str, title: str) -> ChatRequest:
        """Return the request about a picture of a document."""
        return ChatRequest(
            messages=prompt.render(picture, title=title, language=self.language, texts=self.prompts),
            images=(picture.image,),
            role=Role.VISION,
            max_output_tokens=MAX_PAGE_TOKENS if picture.is_page else MAX_DESCRIPTION_TOKENS,
            documents=(document_id,),
        )

    async def read(
        self, pictures: Sequence[Picture], document_id: str, title: str, on_reply: Callable[[], None]
    ) -> PictureReplies:
        """Return what the model says of the pictures; `on_reply` is called after each.

        Raises Unavailable or OverBudget once no further picture can be read, after the requests in progress have ended:
        their replies are in the cache.
        """
        replies = PictureReplies()
        stops: list[QuipuError] = []
        slots = asyncio.Semaphore(self.n_ahead)

        async def ask(picture: Picture) -> None:
            async with slots:
                if stops:
                    return
                try:
                    completion = await self.llm.complete(self.request(picture, document_id, title))
                except (OverBudget, Unavailable) as error:
                    stops.append(error)
                    return
                except QuipuError as error:
                    replies.errors[picture.key] = str(error)
                else:
                    replies.take(picture, completion)
                on_reply()

        await asyncio.gather(*map(ask, pictures))
        if stops:
            raise stops[0]
        order = [picture.key for picture in pictures]
        return replace(replies, errors={key: replies.errors[key] for key in order if key in replies.errors})


def _description(text: str, *, is_page: bool) -> str:
    """Return the text of a reply, a description on one line; "" for decoration and for an empty page."""
    if text.strip("*`.\"' ").upper() == prompt.NOTHING:
        return ""
    return text if is_page else " ".join(text.split())
