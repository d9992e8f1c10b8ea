"""The LLM extractor: reads several chunks at a time with a language model and yields results as they arrive."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from copy import copy
from dataclasses import replace

from quipu.errors import OverBudget, Overloaded, Refused, TooLong, Unavailable
from quipu.ingest.llm.conversation import Conversation, ConversationSetup, ExtractionOptions
from quipu.ingest.llm.grounding import DETECTION_VERSION
from quipu.ingest.llm.validation import EntityTypeMatcher, RecordValidator
from quipu.model.extraction import ChunkInput, Ontology
from quipu.model.ids import digest, stable_repr
from quipu.ports.ingest import ExtractionResult
from quipu.ports.providers import LLM, Tokenizer
from quipu.prompts.extraction import GLEANING, INSTRUCTIONS
from quipu.prompts.extraction import VERSION as PROMPT_VERSION
from quipu.prompts.instructions import prompt_version
from quipu.text.extraction_reply import PARSER_VERSION

VERSION = "3"
INPUTS_PER_CALL = 2  # chunks in progress for each concurrent call, so that the model never waits for the extractor
CHECK_INPUT = ChunkInput(text="Ada Lovelace wrote the notes on the Analytical Engine of Charles Babbage.")


class LlmExtractor:
    """Reads chunks with a language model, which answers up to `concurrency` calls at a time."""

    def __init__(
        self, llm: LLM, tokenizer: Tokenizer, options: ExtractionOptions | None = None, *, concurrency: int = 4
    ) -> None:
        options = options or ExtractionOptions()
        self.options = options
        self._llm, self._tokenizer = llm, tokenizer
        types = EntityTypeMatcher(options.types)
        self._validator = RecordValidator(types, options.ontology)
        self._setup = ConversationSetup(options, self._validator, types.words)
        self._digest = digest(
            "llm extraction",
            VERSION,
            prompt_version(PROMPT_VERSION, options.prompts, INSTRUCTIONS, GLEANING),
            PARSER_VERSION,
            DETECTION_VERSION,
            tokenizer.identity,
            stable_repr(options),
        )
        self._n_fixed_tokens = tokenizer.count(self._setup.system.text + self._setup.schema)
        self.n_ahead = INPUTS_PER_CALL * concurrency

    def with_llm(self, llm: LLM) -> "LlmExtractor":
        """Return the same extractor with another wrapper of the same model, such as one with its own meter."""
        other = copy(self)
        other._llm = llm
        return other

    def with_ontology(self, ontology: Ontology) -> "LlmExtractor":
        """Return an extractor with the same model and options, but another ontology."""
        concurrency = self.n_ahead // INPUTS_PER_CALL
        return LlmExtractor(
            self._llm, self._tokenizer, replace(self.options, ontology=ontology), concurrency=concurrency
        )

    @property
    def identity(self) -> str:
        """The model, and a digest of all else that an extraction depends on: prompt, parser, rules and options."""
        return f"llm/{self._llm.identity}/{self._digest[:12]}"

    @property
    def description(self) -> str:
        """The model's name."""
        return f"language model {self._llm.identity}"

    def n_tokens_sent(self, chunk: ChunkInput) -> int:
        """Return the tokens of the first call's prompt."""
        conversation = self._conversation(chunk)
        return self._n_fixed_tokens + self._tokenizer.count(conversation.user_message().text)

    async def check(self) -> None:
        """Read one sentence. Raises Unavailable if the model does not answer or gives no usable reply."""
        conversation = self._conversation(CHECK_INPUT)
        try:
            await conversation.run()
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
        """Yield one result for each input as it arrives; at most `n_ahead` inputs are in progress at a time.

        After Unavailable or OverBudget no further input is started. Inputs in progress are finished and yielded, then
        the error is raised.
        """
        waiting = iter(enumerate(inputs))
        running: set[asyncio.Task[ExtractionResult]] = set()
        stopped: Unavailable | OverBudget | None = None
        try:
            while True:
                if stopped is None:
                    self._start_waiting(waiting, running)
                if not running:
                    break
                finished, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in finished:
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

    def _start_waiting(
        self, waiting: Iterator[tuple[int, ChunkInput]], running: set[asyncio.Task[ExtractionResult]]
    ) -> None:
        while len(running) < self.n_ahead and (numbered := next(waiting, None)) is not None:
            running.add(asyncio.create_task(self._extract_one(*numbered)))

    def _conversation(self, chunk: ChunkInput) -> Conversation:
        return Conversation(self._llm, self._setup, chunk, self._tokenizer.count)

    async def _extract_one(self, index: int, chunk: ChunkInput) -> ExtractionResult:
        conversation = self._conversation(chunk)
        error = ""
        try:
            await conversation.run()
        except (Overloaded, TooLong, Refused) as failure:
            error = str(failure)
        if error and not conversation.records:
            return ExtractionResult(index=index, extraction=None, error=error)
        n_before = self._validator.dropped.total
        extraction = self._validator.validate(conversation.records, conversation.text)
        n_dropped = self._validator.dropped.total - n_before
        return ExtractionResult(index=index, extraction=extraction, error=error, n_dropped=n_dropped)


async def _cancel(running: set[asyncio.Task[ExtractionResult]]) -> None:
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
