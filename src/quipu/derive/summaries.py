"""Summaries: one text by a model for each entity or relation that has more descriptions than are shown.

Descriptions are summarised in batches, and the summaries of batches again, until one text is left. The batches depend
on the descriptions alone, so that a new description changes few requests.

Differences from LightRAG's code:
- A summary replaces 8 descriptions or 1,200 tokens of them → more than `model.graph.MAX_DESCRIPTIONS` descriptions or
  `model.graph.MAX_DESCRIPTION_CHARS` characters, because fewer are shown as they are.
- 12,000 tokens of descriptions in a request, and 600 of summary → `BATCH_TOKENS` and `MAX_WORDS` words, because a new
  description then changes less.
- All keywords of a relation are united → the `model.graph.MAX_RELATION_KEYWORDS` most frequent ones, because they would
  grow with every document.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from quipu.algo.batches import Batch, batch_tree
from quipu.derive.generation import Ask, ModelCalls, ReplyFormat, TextGeneration, ask_until_valid
from quipu.model.chat import ChatRequest, FinishReason, PromptText, ReplyLifetime, Role
from quipu.model.delta import Delta
from quipu.model.derivation import SUMMARIES
from quipu.model.event import EventSink, Progress
from quipu.model.ids import digest
from quipu.model.results import RefreshResult
from quipu.model.summary import Description, Summary, SummaryFailure, SummaryTarget, SummaryTask
from quipu.ports.providers import LLM, Tokenizer
from quipu.ports.store import Store
from quipu.prompts import summary as prompt
from quipu.prompts.instructions import prompt_version
from quipu.text.model_text import strip_thinking
from quipu.text.sentences import sentence_spans

BATCH_TOKENS, MAX_WORDS = 4_000, 160  # of the descriptions in one request, and of a summary
MAX_CHARS = 2_400  # twice the limit of joined descriptions: a longer summary is cut after a sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryOptions:
    """How summaries are written.

    `batch_tokens` is the size of the descriptions in one request. `max_words` makes a summary about as long as the
    joined descriptions that it replaces, so that an entity takes the same room in the context of an answer.
    `max_output_tokens` leaves room for scripts that need several tokens a word and for models that think first. With
    `language` "" a summary is in the language of the descriptions. `prompts` are the user's own instructions. `n_ahead`
    is how many requests should be waiting for a reply at any time.
    """

    batch_tokens: int = BATCH_TOKENS
    max_words: int = MAX_WORDS
    max_output_tokens: int = 1_024
    language: str = ""
    prompts: tuple[PromptText, ...] = ()
    n_ahead: int = 16


async def summarise_stale(
    store: Store, llm: LLM, on_event: EventSink, *, tokenizer: Tokenizer, options: SummaryOptions
) -> RefreshResult:
    """Write all missing summaries and commit them as they arrive; the failure of one does not affect the others.

    `llm` must cache its replies, so that a repeated request costs nothing. The result says why the work stopped if no
    request can succeed any more; everything written before is committed by then.
    """
    async with store.view() as view:
        targets = [SummaryTarget.from_id(id_) for id_ in await view.pending(SUMMARIES)]
    calls = ModelCalls(llm, 2 * options.n_ahead)
    generation: TextGeneration[SummaryTarget, SummaryTask, Summary] = TextGeneration(
        store.commit, calls, on_event, Progress(stage="summarise", n_done=0, n_total=len(targets))
    )
    await generation.generate(targets, _SummaryMaker(store, calls.ask, tokenizer, options))
    failures = [SummaryFailure(target=target, error=error) for target, error in sorted(generation.failed)]
    return RefreshResult(n_summarised=generation.n_stored, summary_failures=tuple(failures), stopped=generation.stopped)


@dataclass(frozen=True, slots=True)
class _SummaryMaker:
    """Makes the summary of an entity or relation from its descriptions."""

    store: Store
    ask: Ask
    tokenizer: Tokenizer
    options: SummaryOptions

    async def read(self, targets: Sequence[SummaryTarget]) -> Sequence[tuple[SummaryTarget, SummaryTask]]:
        return [(task.target, task) for task in await self.store.summary_tasks(targets)]

    async def write(self, _target: SummaryTarget, task: SummaryTask) -> Summary:
        return await write_summary(task, self.ask, self.tokenizer, self.options)

    def to_delta(self, summaries: Sequence[Summary]) -> Delta:
        return Delta(summaries=summaries)


async def write_summary(task: SummaryTask, ask: Ask, tokenizer: Tokenizer, options: SummaryOptions) -> Summary:
    """Return the summary of a task's descriptions; equal descriptions count once.

    `ask` must name the model in each completion. If it raises, the requests that do not depend on the failed one are
    still sent before the error is raised.
    """
    description_by_text: dict[str, Description] = {}
    for description in task.descriptions:
        description_by_text.setdefault(description.text, description)
    descriptions = tuple(description_by_text.values())
    tree = batch_tree(
        [tokenizer.count(description.text) + 1 for description in descriptions],
        [int(digest("batch", description.text)[:15], 16) for description in descriptions],
        room=options.batch_tokens,
        width=max(2, options.batch_tokens // (2 * options.max_words)),  # a word of a summary has one or two tokens
    )
    root = await _BatchSummariser(task.names, descriptions, ask, options, task.revision).summarise(tree)
    version = prompt_version(prompt.VERSION, options.prompts, prompt.INSTRUCTIONS)
    return Summary(
        target=task.target, inputs_hash=task.inputs_hash, text=root.text, model=f"{root.model} summary/{version}"
    )


@dataclass(frozen=True, slots=True)
class _BatchSummary:
    """The summary of a batch, the model that wrote it, and the cache key of the model's reply."""

    text: str
    model: str
    key: str


@dataclass(frozen=True, slots=True)
class _BatchSummariser:
    """Summarises any batch of one task."""

    names: Sequence[str]
    descriptions: Sequence[Description]
    ask: Ask
    options: SummaryOptions
    revision: int | None

    async def summarise(self, batch: Batch) -> _BatchSummary:
        """Return the summary of a batch; its parts are summarised concurrently.

        The cached reply is dropped with the first document whose descriptions it contains, or with the first reply that
        it was made from.
        """
        if not batch.parts:
            descriptions = self.descriptions[batch.start : batch.end]
            documents = sorted({description.document for description in descriptions})
            request = self._request([description.text for description in descriptions])
            return await self._ask(replace(request, documents=tuple(documents)))
        outcomes = await asyncio.gather(*map(self.summarise, batch.parts), return_exceptions=True)
        parts: list[_BatchSummary] = []
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
            parts.append(outcome)
        request = self._request([part.text for part in parts])
        return await self._ask(replace(request, source_replies=tuple(sorted({part.key for part in parts}))))

    async def _ask(self, request: ChatRequest) -> _BatchSummary:
        reply = await ask_until_valid(request, self.ask, _REPLY_FORMAT)
        text = reply.content
        if reply.completion.finish is FinishReason.LENGTH or len(text) > MAX_CHARS:
            text = _without_last_sentence(text[:MAX_CHARS])
        return _BatchSummary(text, reply.completion.model, reply.request.hash(reply.completion.model))

    def _request(self, notes: Sequence[str]) -> ChatRequest:
        options = self.options
        return ChatRequest(
            messages=prompt.render(
                self.names, notes, language=options.language, max_words=options.max_words, texts=options.prompts
            ),
            role=Role.SUMMARISE,
            max_output_tokens=options.max_output_tokens,
            lifetime=ReplyLifetime.ALL_DOCUMENTS,
            revision=self.revision,
        )


def _without_last_sentence(text: str) -> str:
    """Return a cut text without its last sentence, unless that is the only one."""
    spans = sentence_spans(text)
    return text[: spans[-2][1]] if len(spans) > 1 else text


_REPLY_FORMAT: ReplyFormat[str] = ReplyFormat(
    text="a summary", parse=lambda text: strip_thinking(text).strip() or None, length_factor=4, max_new=1
)
