"""The extractor: chunks go to the model some at a time, and their outcomes come as they arrive."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from copy import copy
from dataclasses import replace

from quipu.errors import OverBudget, Overloaded, Refused, TooLong, Unavailable
from quipu.ingest.llm.conform import Conformer
from quipu.ingest.llm.conversation import Conversation, Plan
from quipu.ingest.llm.kinds import Kinds
from quipu.ingest.llm.named import RULES
from quipu.ingest.llm.options import ExtractionOptions
from quipu.model.extraction import ChunkInput, Ontology
from quipu.model.ids import digest, stable_repr
from quipu.ports.ingest import ExtractionResult
from quipu.ports.providers import LLM, Tokenizer
from quipu.prompts.extraction import VERSION as PROMPT_VERSION
from quipu.text.extraction_reply import PARSER_VERSION

VERSION = "1"
AHEAD = 2  # inputs for each call the model answers at a time, so that none of them waits for us
CHECKED = ChunkInput(text="Ada Lovelace wrote the notes on the Analytical Engine of Charles Babbage.")


class LlmExtractor:
    """Reads chunks with a language model; `concurrency` is how many calls that answers at a time."""

    def __init__(
        self, llm: LLM, tokenizer: Tokenizer, options: ExtractionOptions | None = None, *, concurrency: int = 4
    ) -> None:
        options = options or ExtractionOptions()
        self.options = options
        self._llm, self._tokenizer = llm, tokenizer
        kinds = Kinds(options.types)
        conformer = Conformer(kinds, options.ontology)
        self._plan = Plan(options, conformer, kinds.words)
        self._choices = digest(
            "llm extraction", VERSION, PROMPT_VERSION, PARSER_VERSION, RULES, tokenizer.identity, stable_repr(options)
        )
        self._n_fixed = tokenizer.count(self._plan.system.text + self._plan.schema)
        self.n_ahead = AHEAD * concurrency

    def asking(self, llm: LLM) -> "LlmExtractor":
        """Return the same extractor, asking the same model by another way, as one that is counted apart."""
        other = copy(self)
        other._llm = llm
        return other

    def guided_by(self, ontology: Ontology) -> "LlmExtractor":
        """Return an extractor that asks the same model in the same way, but for what guides it."""
        concurrency = self.n_ahead // AHEAD
        return LlmExtractor(
            self._llm, self._tokenizer, replace(self.options, ontology=ontology), concurrency=concurrency
        )

    @property
    def identity(self) -> str:
        """Model, and a digest of everything else that an extraction depends on: prompt, parser, rules and options."""
        return f"llm/{self._llm.identity}/{self._choices[:12]}"

    @property
    def description(self) -> str:
        """The model's name."""
        return f"language model {self._llm.identity}"

    def n_tokens_sent(self, chunk: ChunkInput) -> int:
        """Return the tokens of the prompt of the first call."""
        conversation = self._conversation(chunk)
        return self._n_fixed + self._tokenizer.count(conversation.message().text)

    async def check(self) -> None:
        """Ask about one sentence. Raises Unavailable where the model cannot be asked, or gives no usable reply."""
        conversation = self._conversation(CHECKED)
        try:
            await conversation.hold()
        except TooLong as error:
            raise Unavailable(
                f"The context window of {self._llm.identity} is too small to extract anything: {error.message}",
                remedy=error.remedy or "Give the server a larger one, or use another model.",
            ) from error
        except Overloaded as error:
            raise Unavailable(
                f"{self._llm.identity} does not answer: {error.message}", remedy=error.remedy or "Try again later."
            ) from error
        except Refused as error:
            raise Unavailable(
                f"{self._llm.identity} gives no usable reply: {error.message}",
                remedy=error.remedy or "Use another model.",
            ) from error

    async def extract(self, inputs: Sequence[ChunkInput]) -> AsyncGenerator[ExtractionResult, None]:
        """Yield one outcome for each input as it arrives; never more than `n_ahead` inputs are begun and not ended.

        After Unavailable or OverBudget nothing new is begun; what is under way is ended and yielded, then it is raised.
        """
        waiting = iter(enumerate(inputs))
        running: set[asyncio.Task[ExtractionResult]] = set()
        stopped: Unavailable | OverBudget | None = None
        try:
            while True:
                if stopped is None:
                    self._begin(waiting, running)
                if not running:
                    break
                done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    running.remove(task)
                    try:
                        outcome = task.result()
                    except (Unavailable, OverBudget) as error:
                        stopped = stopped or error
                    else:
                        yield outcome
        finally:
            await _cancel(running)
        if stopped is not None:
            raise stopped

    def _begin(self, waiting: Iterator[tuple[int, ChunkInput]], running: set[asyncio.Task[ExtractionResult]]) -> None:
        while len(running) < self.n_ahead and (found := next(waiting, None)) is not None:
            running.add(asyncio.create_task(self._read(*found)))

    def _conversation(self, chunk: ChunkInput) -> Conversation:
        return Conversation(self._llm, self._plan, chunk, self._tokenizer.count)

    async def _read(self, index: int, chunk: ChunkInput) -> ExtractionResult:
        conversation = self._conversation(chunk)
        error = ""
        try:
            await conversation.hold()
        except (Overloaded, TooLong, Refused) as failure:
            error = str(failure)
        if error and not conversation.records:
            return ExtractionResult(index=index, extraction=None, error=error)
        n_before = self._plan.conformer.dropped.n
        extraction = self._plan.conformer.conform(conversation.records, conversation.grounds)
        n_dropped = self._plan.conformer.dropped.n - n_before
        return ExtractionResult(index=index, extraction=extraction, error=error, n_dropped=n_dropped)


async def _cancel(running: set[asyncio.Task[ExtractionResult]]) -> None:
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
