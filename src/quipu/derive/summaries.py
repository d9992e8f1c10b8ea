"""Summaries: one text by a model for each entity or relation that has more descriptions than are shown.

Descriptions are summarised in batches, and the summaries of batches again, until one text is left. The batches depend
on the descriptions alone, so that a new description changes few requests.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from quipu.algo.batches import Batch, batch_tree
from quipu.derive.generation import Ask, GenerationSteps, ModelCalls, generate_all
from quipu.errors import OverBudget, Overloaded, QuipuError, Refused, Unavailable
from quipu.model.chat import ChatRequest, Completion, FinishReason, ReplyLifetime, Role
from quipu.model.delta import Delta
from quipu.model.event import EventSink, Progress
from quipu.model.ids import digest
from quipu.model.summary import Description, Summary, SummaryFailure, SummaryResult, SummaryTarget, SummaryTask
from quipu.ports.providers import LLM, Tokenizer
from quipu.ports.store import Store
from quipu.prompts import summary as prompt
from quipu.text.sentences import sentence_spans
from quipu.text.thinking import strip_thinking

LENGTH_FACTOR = 4  # a reply that reached its token limit is requested once more with this many times the limit
MAX_CHARS = 2_400  # twice the limit of joined descriptions: a longer summary is cut after a sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryOptions:
    """How summaries are written.

    `batch_tokens` is the size of the descriptions in one request. `max_words` makes a summary about as long as the
    joined descriptions that it replaces, so that an entity takes the same room in the context of an answer.
    `max_output_tokens` leaves room for scripts that need several tokens a word and for models that think first. With
    `language` "" a summary is in the language of the descriptions. `n_ahead` is how many requests should be waiting for
    a reply at any time.
    """

    batch_tokens: int = 4_000
    max_words: int = 160
    max_output_tokens: int = 1_024
    language: str = ""
    n_ahead: int = 16


async def summarise_stale(
    store: Store, llm: LLM, on_event: EventSink, *, tokenizer: Tokenizer, options: SummaryOptions
) -> SummaryResult:
    """Write all missing summaries and commit them as they arrive; the failure of one does not affect the others.

    `llm` must cache its replies, so that a repeated request costs nothing. Raises Unavailable or OverBudget once no
    request can succeed any more; everything written before is committed by then.
    """
    targets = await store.summary_targets()
    n_concurrent = 2 * options.n_ahead
    run = _SummaryRun(store=store, calls=ModelCalls(llm, n_concurrent), tokenizer=tokenizer, options=options)

    def on_done(n_done: int) -> None:
        on_event(Progress(stage="summarise", n_done=n_done, n_total=len(targets)))

    steps: GenerationSteps[SummaryTarget, SummaryTask, Summary | SummaryFailure] = GenerationSteps(
        read=run.read, write=run.write, store=run.commit
    )
    await generate_all(targets, steps, n_concurrent=n_concurrent, on_done=on_done)
    if run.calls.stop_error is not None:
        raise run.calls.stop_error
    return replace(run.result, n_calls=run.calls.n_calls, n_reused=run.calls.n_reused)


@dataclass(slots=True, kw_only=True)
class _SummaryRun:
    """The generation steps of one run, and its result so far."""

    store: Store
    calls: ModelCalls
    tokenizer: Tokenizer
    options: SummaryOptions
    result: SummaryResult = field(default_factory=SummaryResult)

    async def read(self, targets: Sequence[SummaryTarget]) -> Sequence[SummaryTask] | None:
        return await self.store.summary_tasks(targets) if self.calls.stop_error is None else None

    async def write(self, task: SummaryTask) -> Summary | SummaryFailure | None:
        try:
            return await write_summary(task, self.calls.ask, self.tokenizer, self.options)
        except (Unavailable, OverBudget):
            return None
        except QuipuError as error:
            return SummaryFailure(target=task.target, error=str(error))

    async def commit(self, outcomes: Sequence[Summary | SummaryFailure]) -> None:
        summaries = [outcome for outcome in outcomes if isinstance(outcome, Summary)]
        failures = [outcome for outcome in outcomes if isinstance(outcome, SummaryFailure)]
        n_outdated = (await self.store.commit(Delta(summaries=summaries))).n_outdated if summaries else 0
        self.result = replace(
            self.result,
            n_done=self.result.n_done + len(summaries) - n_outdated,
            n_outdated=self.result.n_outdated + n_outdated,
            failed=tuple(sorted((*self.result.failed, *failures), key=lambda failure: failure.target)),
        )


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
    return Summary(
        target=task.target, inputs_hash=task.inputs_hash, text=root.text, model=f"{root.model} summary/{prompt.VERSION}"
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
        """Return the summary in the model's reply; a cached reply that holds none is replaced by a new one."""
        while True:
            sent = request
            completion = await self.ask(sent)
            if completion.finish is FinishReason.LENGTH:
                sent = replace(sent, max_output_tokens=sent.max_output_tokens * LENGTH_FACTOR)
                completion = await self.ask(sent)
            try:
                return _BatchSummary(_summary_text(completion), completion.model, sent.hash(completion.model))
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


def _summary_text(completion: Completion) -> str:
    """Return the text of a reply. Raises Refused if it has none, Overloaded if it was interrupted."""
    if completion.finish is FinishReason.FILTERED:
        raise Refused("The provider withheld the rest of a summary.", remedy="Use another model for summaries.")
    if completion.finish is FinishReason.INTERRUPTED:
        raise Overloaded("The reply was interrupted while it wrote a summary.", remedy="Run `quipu refresh` again.")
    text = strip_thinking(completion.text).strip()
    if completion.finish is FinishReason.LENGTH or len(text) > MAX_CHARS:
        text = _without_last_sentence(text[:MAX_CHARS])
    if not text:
        raise Refused("The model's reply was an empty summary.", remedy="Use another model for summaries.")
    return text


def _without_last_sentence(text: str) -> str:
    """Return a cut text without its last sentence, unless that is the only one."""
    spans = sentence_spans(text)
    return text[: spans[-2][1]] if len(spans) > 1 else text
