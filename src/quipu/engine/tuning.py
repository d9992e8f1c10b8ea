"""Tuning: a sample of documents, what a model or rules make of it, and what that changes; nothing is added."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from quipu.engine.estimating import UnaskedEmbedder
from quipu.engine.parts import Parts
from quipu.errors import InvalidInput, OverBudget, Refused, TooLong, Unavailable
from quipu.ingest.estimate import Survey, estimate
from quipu.ingest.llm import ExtractionOptions, LlmExtractor
from quipu.ingest.reading import extractor_input
from quipu.ingest.sources import FoundSource
from quipu.ingest.tuning.counting import Counted, count
from quipu.ingest.tuning.difference import compared, prompt_diff
from quipu.ingest.tuning.passages import ShortText, example_of, excerpts, short_texts
from quipu.ingest.tuning.sampling import Pool, Sample, choose, pool_of_index, pool_of_sources, spread
from quipu.ingest.tuning.suggestion import Suggestion, read_suggestion
from quipu.ingest.tuning.writing import file_text
from quipu.model.chat import ChatRequest, Lifetime, Role
from quipu.model.document import Status
from quipu.model.estimate import Range
from quipu.model.event import Progress
from quipu.model.extraction import ChunkInput
from quipu.model.graph import OTHER_TYPE, Chunk
from quipu.model.ontology import Example, Ontology, Term, TypeRule
from quipu.model.tuning import ComparedReading, Sampled, TuningCost, TuningReport
from quipu.ports.extractor import Extracted
from quipu.ports.llm import LLM
from quipu.ports.sink import Sink
from quipu.prompts import tune as prompt
from quipu.prompts.extract import gloss_of, system_text

SUBJECT = "tuning"  # under which its cost is counted
MAX_COUNTED = 100  # chunks that rules look at
MAX_EXAMPLES = 2
SAMPLE_TOKENS = (6_000, 3_000, 1_500, 750)  # of all passages shown; fewer where they do not fit the model's window
MAX_NOTES = 8  # on what a model suggested in vain
_SUGGESTED_OUTPUT = Range(low=300, likely=800, high=prompt.MAX_OUTPUT_TOKENS)  # tokens

NO_MODEL = (
    "No language model reads documents here, so this was counted by rules, and nothing reads the file until one does. "
    "With one (setting llm) `quipu tune` words the domain, tells types apart, suggests relations, writes examples and "
    "compares what is found before and after."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How many chunks to learn from, and how many others to compare on; `dry_run` only asks what it would cost."""

    n_sample: int = 12
    n_compare: int = 2
    dry_run: bool = False

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> "Sizes":
        """Return what was asked for. Raises InvalidInput for an option there is none of, or a size out of range."""
        try:
            made = cls(**options)
        except TypeError as error:
            raise InvalidInput(f"Unknown option ({error}).", remedy=f"There are: {', '.join(cls.__slots__)}.") from None
        if made.n_sample < 1 or made.n_compare < 0:
            raise InvalidInput(
                f"n_sample = {made.n_sample} and n_compare = {made.n_compare} cannot be.",
                remedy="Take a sample of at least one chunk, and compare on none or more.",
            )
        return made


async def tune(sources: Iterable[FoundSource] | None, wanted: Sizes, parts: Parts, on_event: Sink) -> TuningReport:
    """Return how documents like these, or like those of the index, should be read, and what that would change.

    Raises InvalidInput where there is nothing to take a sample of, and what the model's first call raises.
    """
    pool = await _pool(sources, parts, on_event)
    asks_model = isinstance(parts.recipe.extractor, LlmExtractor) and parts.models.llm(Role.EXTRACT) is not None
    sample = await asyncio.to_thread(choose, pool.chunks, wanted.n_sample, wanted.n_compare if asks_model else 0)
    if not sample.read:
        raise InvalidInput(
            "There is no text to take a sample of.", remedy="Name files or folders with text, or add documents first."
        )
    counted = await asyncio.to_thread(lambda: count(list(islice(spread(pool.chunks), MAX_COUNTED))))
    work = _Tuning(parts, sample, counted, on_event)
    if wanted.dry_run:
        report = TuningReport(file="", ontology=Ontology(), by=work.by, n_documents=0, cost=await work.cost())
    else:
        report = await work.report()
    return _with_sample(report, pool, sample, counted)


def _with_sample(report: TuningReport, pool: Pool, sample: Sample, counted: Counted) -> TuningReport:
    return replace(
        report,
        n_documents=pool.n_documents,
        n_unreadable=pool.n_unreadable,
        n_chunks=len(pool.chunks),
        sample=tuple(_sampled(each, is_compared=each in sample.compared) for each in (*sample.read, *sample.compared)),
        type_counts=counted.types,
        glossary=counted.glossary,
    )


async def _pool(sources: Iterable[FoundSource] | None, parts: Parts, on_event: Sink) -> Pool:
    """Return what there is to take a sample of; a service that compares sentences is not asked for it."""
    if sources is None:
        async with parts.store.view() as view:
            return await pool_of_index(view, on_event)
    recipe = parts.recipe
    if parts.models.embedder_chain is not None:
        recipe = replace(recipe, embedder=UnaskedEmbedder(recipe.embedder, recipe.tokenizer))
    return await pool_of_sources(sources, recipe, on_event)


class _Tuning:
    """One run of work on a sample."""

    def __init__(self, parts: Parts, sample: Sample, counted: Counted, on_event: Sink) -> None:
        self._parts = parts.counted_by(parts.models.meter.child(SUBJECT))
        self._sample, self._counted, self._on_event = sample, counted, on_event
        reader = self._parts.recipe.extractor
        self._reader = reader if isinstance(reader, LlmExtractor) else None
        self._llm = self._parts.models.llm(Role.EXTRACT, self._parts.models.meter) if self._reader else None
        self._options = self._reader.options if self._reader else ExtractionOptions()
        self._live: set[str] = set()
        self._notes: list[str] = []
        self._stopped = ""
        self._n_done = 0

    @property
    def by(self) -> str:
        """Who works it out."""
        return (
            f"the language model {self._parts.models.reading.model or self._llm.identity}"
            if self._llm
            else "local rules"
        )

    async def cost(self) -> TuningCost | None:
        """Return what asking a model would take; None where none is asked."""
        if self._llm is None:
            return None
        texts = await asyncio.to_thread(short_texts, self._sample.read, MAX_EXAMPLES)
        recipe, reading = self._parts.recipe, self._parts.models.reading
        shown = [replace(each.chunk, text=each.text, n_tokens=recipe.tokenizer.count(each.text)) for each in texts]
        chunks = [*shown, *self._sample.compared, *self._sample.compared]
        found = Survey(unread={str(place): chunk for place, chunk in enumerate(chunks)}, n_chunks=len(chunks))
        told = estimate(
            found, recipe, model=reading.model, price=reading.price, concurrency=reading.concurrency, measured=None
        )
        messages = self._request(SAMPLE_TOKENS[0]).messages
        n = sum(recipe.tokenizer.count(message.text) for message in messages)
        sent = Range(low=n, likely=n, high=2 * n)  # twice, where the first reply is of no use
        money = None
        if told.cost is not None and reading.price is not None:
            own = sent.times(reading.price.input).plus(_SUGGESTED_OUTPUT.times(reading.price.output))
            money = told.cost.plus(own)
        return TuningCost(
            model=reading.model,
            calls=told.calls.plus(Range(low=2, likely=2, high=4)),  # one asks whether the model answers
            input_tokens=told.input_tokens.plus(sent),
            output_tokens=told.output_tokens.plus(_SUGGESTED_OUTPUT),
            money=money,
        )

    async def report(self) -> TuningReport:
        """Do all of it."""
        await self._find_live()
        suggestion = await self._suggest()
        ontology, by = self._ontology(suggestion), self.by if suggestion else "local rules"
        examples = await self._examples(ontology) if suggestion else []
        ontology = replace(ontology, examples=tuple(examples))
        readings = await self._compare(ontology)
        suggested = [_fitting(term, ontology) for term in self._counted.glossary]
        counts = () if suggestion else self._counted.types
        return TuningReport(
            file=file_text(ontology, by=by, counts=counts, suggested=suggested),
            ontology=ontology,
            by=by,
            n_documents=0,
            prompt_diff=prompt_diff(
                system_text(self._options.guidance), system_text(replace(self._options, ontology=ontology).guidance)
            ),
            compared=tuple(readings),
            notes=tuple(self._notes),
            stopped=self._stopped,
            usage=self._parts.models.meter.rows(),
        )

    # ---- what a model suggests

    async def _suggest(self) -> Suggestion | None:
        """Return what the model suggests; None where there is no model, or its replies are of no use."""
        if self._llm is None:
            self._notes.append(NO_MODEL)
            return None
        self._notes += await self._parts.models.check(self._parts.models.meter)
        try:
            suggestion = await self._suggested_by(self._llm)
        except (Refused, TooLong) as error:
            self._notes.append(f"The model made no suggestion, so this was counted by rules: {error}")
            return None
        self._step()
        if suggestion is None:
            self._notes.append("The model's replies were no suggestion, so this was counted by rules.")
            return None
        self._notes += suggestion.notes[:MAX_NOTES]
        if len(suggestion.notes) > MAX_NOTES:
            self._notes.append(f"… and {len(suggestion.notes) - MAX_NOTES:,} more were left out.")
        return suggestion

    async def _suggested_by(self, llm: LLM) -> Suggestion | None:
        size = 0
        for attempt in range(2):
            while True:
                try:
                    completion = await llm.complete(self._request(SAMPLE_TOKENS[size], attempt))
                    break
                except TooLong:
                    size += 1
                    if size == len(SAMPLE_TOKENS):
                        raise
            if suggestion := read_suggestion(completion.text, self._options.types):
                return suggestion
        return None

    def _request(self, max_tokens: int, attempt: int = 0) -> ChatRequest:
        passages = excerpts(self._sample.read, max_tokens, self._parts.recipe.tokenizer)
        types = [f"{rule.name}: {gloss}" if (gloss := gloss_of(rule)) else rule.name for rule in self._options.types]
        documents = tuple(sorted({chunk.document_id for chunk in self._sample.read} & self._live))
        return ChatRequest(
            messages=prompt.render(passages, types, language=self._options.language),
            role=Role.EXTRACT,
            max_output_tokens=prompt.MAX_OUTPUT_TOKENS,
            schema=prompt.SCHEMA,
            attempt=attempt,
            documents=documents,
            lifetime=Lifetime.ALL_DOCUMENTS if documents else Lifetime.DOCUMENTS,
        )

    def _ontology(self, suggestion: Suggestion | None) -> Ontology:
        """Return what was suggested or counted, with what the user's own ontology says of the same types, and names."""
        before = self._options.ontology
        rules = suggestion.types if suggestion else self._counted.rules(self._options.types)
        own = {rule.name: rule for rule in before.types}
        types = tuple(replace(rule, aliases=own[rule.name].aliases) if rule.name in own else rule for rule in rules)
        made = Ontology(
            is_strict=before.is_strict,
            types=types or tuple(rule for rule in self._options.types if rule.name != OTHER_TYPE),
            relations=tuple(suggestion.relations) if suggestion else (),
            domain=suggestion.domain if suggestion else self._counted.domain,
        )
        return replace(made, glossary=tuple(_fitting(term, made) for term in before.glossary))

    # ---- what it makes of texts

    async def _examples(self, ontology: Ontology) -> list[Example]:
        """Have short texts read as tuned; what is borne out by them becomes examples."""
        texts: list[ShortText] = await asyncio.to_thread(short_texts, self._sample.read, MAX_EXAMPLES)
        inputs = [ChunkInput(text=each.text, documents=self._documents(each.chunk)) for each in texts]
        examples: list[Example] = []
        outcomes = await self._read(inputs, ontology)
        for place, each in enumerate(texts):
            outcome = outcomes.get(place)
            if outcome is None or outcome.extraction is None:
                continue
            if example := example_of(each.text, outcome.extraction):
                examples.append(example)
            else:
                self._notes.append(f"A text of {each.chunk.document_id} was no example: too little is borne out by it.")
        return examples

    async def _compare(self, ontology: Ontology) -> list[ComparedReading]:
        """Read chunks that were not used otherwise as before and as tuned."""
        chunks = self._sample.compared
        if self._reader is None or self._stopped or not chunks:
            return []
        inputs = [replace(extractor_input(each), documents=self._documents(each)) for each in chunks]
        before = await self._read(inputs, None)
        after = {} if self._stopped else await self._read(inputs, ontology)
        return [
            compared(chunk, before[place], after[place])
            for place, chunk in enumerate(chunks)
            if place in before and place in after
        ]

    async def _read(self, inputs: Sequence[ChunkInput], ontology: Ontology | None) -> dict[int, Extracted]:
        """Return the outcomes by place, those there are before the budget is spent or the model is gone."""
        found: dict[int, Extracted] = {}
        if self._reader is None or self._stopped:
            return found
        reader = self._reader if ontology is None else self._reader.guided_by(ontology)
        try:
            async with aclosing(reader.extract(inputs)) as outcomes:
                async for outcome in outcomes:
                    found[outcome.index] = outcome
                    self._step()
        except (OverBudget, Unavailable) as error:
            self._stopped = str(error)
        return found

    def _documents(self, chunk: Chunk) -> tuple[str, ...]:
        """Return for which document a reply is kept: none where it is not in the index, which `purge` ends."""
        return (chunk.document_id,) if chunk.document_id in self._live else ()

    async def _find_live(self) -> None:
        ids = sorted({chunk.document_id for chunk in (*self._sample.read, *self._sample.compared)})
        async with self._parts.store.view() as view:
            found = await view.documents(ids)
        self._live = {each.id for each in found if each.status in (Status.READY, Status.PARTIAL)}

    def _step(self) -> None:
        self._n_done += 1
        n_texts = MAX_EXAMPLES + 2 * len(self._sample.compared)
        self._on_event(Progress(stage="ask", done=self._n_done, total=max(self._n_done, 1 + n_texts)))


def _fitting(term: Term, ontology: Ontology) -> Term:
    """Return a term of the glossary, without a type that is none of the ontology's."""
    names = {rule.name for rule in (*ontology.types, TypeRule(name=OTHER_TYPE))}
    return term if term.type in names else replace(term, type="")


def _sampled(chunk: Chunk, *, is_compared: bool) -> Sampled:
    return Sampled(
        chunk_id=chunk.id,
        document_id=chunk.document_id,
        title=chunk.title,
        n_tokens=chunk.n_tokens,
        is_compared=is_compared,
    )
