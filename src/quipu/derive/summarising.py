"""One summary: descriptions in batches, each summed up, and what comes of them summed up in turn."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from quipu.algo.batches import Batch, batch_tree
from quipu.errors import Overloaded, Refused
from quipu.model.chat import ChatRequest, Completion, FinishReason, ReplyLifetime, Role
from quipu.model.ids import digest
from quipu.model.summary import Description, Summary, SummaryTask
from quipu.ports.providers import Tokenizer
from quipu.prompts import summary as prompt
from quipu.text.sentences import sentence_spans
from quipu.text.thinking import strip_thinking

MORE_OUTPUT = 4  # how many times as much room a reply gets, once, that was cut short
MAX_CHARS = 2_400  # twice what a join of descriptions may have: a model that says more is cut at a sentence

Ask = Callable[[ChatRequest], Awaitable[Completion]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryOptions:
    """How summaries are made.

    `batch_tokens` of descriptions are read at once. `max_words` make a text as long as the join it stands for, so that
    an entity takes no more room in an answer's context with a summary than without. `max_output_tokens` leave room for
    scripts that need several tokens a word, and for a model that thinks first. `language` "" is that of the texts.
    `n_ahead` is how many calls should be waiting for a reply at any time.
    """

    batch_tokens: int = 4_000
    max_words: int = 160
    max_output_tokens: int = 1_024
    language: str = ""
    n_ahead: int = 16


async def write_summary(task: SummaryTask, ask: Ask, tokenizer: Tokenizer, options: SummaryOptions) -> Summary:
    """Return the summary of a task. Raises what `ask` does, when every call is done that does not hang on that one.

    The requests depend on the descriptions alone: the same are asked, whatever came before. `ask` names the model in
    each completion.
    """
    by_text: dict[str, Description] = {}
    for each in task.descriptions:
        by_text.setdefault(each.text, each)
    said = tuple(by_text.values())
    tree = batch_tree(
        [tokenizer.count(each.text) + 1 for each in said],
        [int(digest("batch", each.text)[:15], 16) for each in said],
        room=options.batch_tokens,
        width=max(2, options.batch_tokens // (2 * options.max_words)),  # a summary has a token or two for each word
    )
    written = await _Writer(task.names, said, ask, options, task.revision).write(tree)
    model = f"{written.model} summary/{prompt.VERSION}"
    return Summary(target=task.target, inputs_hash=task.inputs_hash, text=written.text, model=model)


@dataclass(frozen=True, slots=True)
class _Written:
    """The summary of a batch, the model it is by, and the key of the reply it was read from."""

    text: str
    model: str
    key: str


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes the text of any batch of one task."""

    names: Sequence[str]
    said: Sequence[Description]
    ask: Ask
    options: SummaryOptions
    revision: int | None

    async def write(self, batch: Batch) -> _Written:
        """Return the summary of a batch; the parts of a batch are written at once.

        Its reply goes with the first of the documents whose descriptions it holds, or of the replies it was made from.
        """
        if not batch.parts:
            said = self.said[batch.start : batch.end]
            request = self._request([each.text for each in said])
            return await self._reply_to(replace(request, documents=tuple(sorted({each.document for each in said}))))
        outcomes = await asyncio.gather(*(self.write(part) for part in batch.parts), return_exceptions=True)
        parts: list[_Written] = []
        for each in outcomes:
            if isinstance(each, BaseException):
                raise each
            parts.append(each)
        request = self._request([part.text for part in parts])
        return await self._reply_to(replace(request, source_replies=tuple(sorted({part.key for part in parts}))))

    async def _reply_to(self, request: ChatRequest) -> _Written:
        """Return the reply to a request; a kept one that is of no use is asked for anew."""
        while True:
            asked = request
            completion = await self.ask(asked)
            if completion.finish is FinishReason.LENGTH:
                asked = replace(asked, max_output_tokens=asked.max_output_tokens * MORE_OUTPUT)
                completion = await self.ask(asked)
            try:
                return _Written(_made_ready(completion), completion.model, asked.hash(completion.model))
            except Refused:
                if not completion.is_reused:
                    raise
                request = replace(request, attempt=request.attempt + 1)

    def _request(self, notes: Sequence[str]) -> ChatRequest:
        options = self.options
        return ChatRequest(
            messages=prompt.render(self.names, notes, language=options.language, max_words=options.max_words),
            role=Role.SUMMARISE,
            max_output_tokens=options.max_output_tokens,
            lifetime=ReplyLifetime.ALL_DOCUMENTS,
            revision=self.revision,
        )


def _made_ready(completion: Completion) -> str:
    """Return the words of a reply. Raises Refused where it has none, Overloaded where it broke off."""
    if completion.finish is FinishReason.FILTERED:
        raise Refused("The provider withheld the rest of a summary.", remedy="Use another model for summaries.")
    if completion.finish is FinishReason.INTERRUPTED:
        raise Overloaded("A summary broke off.", remedy="Run `quipu refresh` again.")
    text = strip_thinking(completion.text).strip()
    if completion.finish is FinishReason.LENGTH or len(text) > MAX_CHARS:
        text = _whole_sentences(text[:MAX_CHARS])
    if not text:
        raise Refused("A summary came back without words.", remedy="Use another model for summaries.")
    return text


def _whole_sentences(text: str) -> str:
    """Return a text that was cut somewhere without its last sentence, unless that is all there is."""
    spans = sentence_spans(text)
    return text[: spans[-2][1]] if len(spans) > 1 else text
