"""Trial: texts of the sample are read with the tuned ontology, to get examples and to compare before and after."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from itertools import islice

from quipu.errors import OverBudget, Unavailable
from quipu.ingest.documents import extractor_input
from quipu.ingest.llm import LlmExtractor
from quipu.ingest.llm.grounding import GroundingText
from quipu.ingest.local.extraction import extract_chunk
from quipu.ingest.tuning.sample import TuningContext
from quipu.model.extraction import ChunkInput, Extraction, ExtractionExample, Ontology
from quipu.model.graph import Chunk
from quipu.model.ids import digest
from quipu.model.tuning import ExtractionComparison, ExtractionOutcome, TypedName
from quipu.ports.ingest import ExtractionResult
from quipu.text.languages import languages_differ
from quipu.text.names import entity_key
from quipu.text.sentences import sentence_spans

N_EXAMPLES = 2
MIN_LENGTH, MAX_LENGTH = 100, 500  # characters of a short text; a third in scripts whose characters are words
MAX_ENTITIES, MAX_RELATIONS = 6, 5  # of an example
MIN_ENTITIES = 2
DENSE_BYTES_PER_CHARACTER = 2.5  # above it, characters are words or parts of words, as in Chinese


class Trial:
    """Reads texts with a model until all are read, the budget is spent or the model does not answer.

    `stopped` is the error that ended it early, "" if none did. `notes` are messages for the user.
    """

    def __init__(self, extractor: LlmExtractor, context: TuningContext, on_read: Callable[[], None]) -> None:
        self._extractor, self._context, self._on_read = extractor, context, on_read
        self.notes: list[str] = []
        self.stopped = ""

    async def examples(self, chunks: Sequence[Chunk], ontology: Ontology) -> list[ExtractionExample]:
        """Read short texts of the chunks with the ontology; what the texts support becomes examples."""
        texts = await asyncio.to_thread(short_texts, chunks, N_EXAMPLES)
        inputs = [ChunkInput(text=text.text, documents=self._context.reply_documents(text.chunk)) for text in texts]
        results = await self._read(inputs, self._extractor.with_ontology(ontology))
        examples: list[ExtractionExample] = []
        for index, text in enumerate(texts):
            result = results.get(index)
            if result is None or result.extraction is None:
                continue
            if example := example_of(text.text, result.extraction):
                examples.append(example)
            else:
                document = text.chunk.document_id
                self.notes.append(f"A text of {document} gives no example: it supports too little of the extraction.")
        return examples

    async def compare(self, chunks: Sequence[Chunk], ontology: Ontology) -> list[ExtractionComparison]:
        """Extract chunks with the current and with the tuned ontology, and return a comparison for each chunk."""
        inputs = [extractor_input(chunk, self._context.reply_documents(chunk)) for chunk in chunks]
        before = await self._read(inputs, self._extractor)
        after = await self._read(inputs, self._extractor.with_ontology(ontology))
        return [
            compare_results(chunk, before[index], after[index])
            for index, chunk in enumerate(chunks)
            if index in before and index in after
        ]

    async def _read(self, inputs: Sequence[ChunkInput], extractor: LlmExtractor) -> dict[int, ExtractionResult]:
        """Return the results by the index of their input, as far as the trial comes before it stops."""
        results: dict[int, ExtractionResult] = {}
        if self.stopped:
            return results
        try:
            async with aclosing(extractor.extract(inputs)) as stream:
                async for result in stream:
                    results[result.index] = result
                    self._on_read()
        except (OverBudget, Unavailable) as error:
            self.stopped = str(error)
        return results


@dataclass(frozen=True, slots=True)
class ShortText:
    """Some consecutive sentences of a chunk."""

    text: str
    chunk: Chunk


def short_texts(chunks: Sequence[Chunk], n: int) -> list[ShortText]:
    """Return the n short texts in which rules find most names and relations, from different documents if possible.

    Texts in the language of most chunks come first.
    """
    main_text = max(
        (chunk.text for chunk in chunks),
        key=lambda text: (sum(not languages_differ(text, chunk.text) for chunk in chunks), digest(text)),
        default="",
    )
    candidates = [(_n_mentions(text), text) for chunk in chunks for text in _candidates(chunk)]
    candidates = [candidate for candidate in candidates if candidate[0]]
    candidates.sort(key=lambda entry: (languages_differ(entry[1].text, main_text), -entry[0], digest(entry[1].text)))
    best_by_document: dict[str, ShortText] = {}
    for _, text in candidates:
        best_by_document.setdefault(text.chunk.document_id, text)
    others = [text for _, text in candidates if text not in best_by_document.values()]
    return [*best_by_document.values(), *others][:n]


def example_of(text: str, extraction: Extraction) -> ExtractionExample | None:
    """Return an example from an extraction, with what the text supports word for word; None if that is too little."""
    grounding = GroundingText(ChunkInput(text=text))
    grounded = (entity for entity in extraction.entities if grounding.contains_all_words(entity.name))
    entities = [replace(entity, start=0, end=0) for entity in islice(grounded, MAX_ENTITIES)]
    keys = {entity_key(entity.name) for entity in entities}
    relations = [
        relation
        for relation in extraction.relations
        if {entity_key(relation.source), entity_key(relation.target)} <= keys
    ]
    if len(entities) < MIN_ENTITIES or not relations:
        return None
    return ExtractionExample(text=text, entities=tuple(entities), relations=tuple(relations[:MAX_RELATIONS]))


def compare_results(chunk: Chunk, before: ExtractionResult, after: ExtractionResult) -> ExtractionComparison:
    """Return what two readings of a chunk found, and which names only one of them has or types differently."""
    before_by_key, after_by_key = _names_by_key(before), _names_by_key(after)
    return ExtractionComparison(
        chunk_id=chunk.id,
        document_id=chunk.document_id,
        title=chunk.title,
        before=_outcome(before),
        after=_outcome(after),
        only_before=tuple(name.name for key, name in before_by_key.items() if key not in after_by_key),
        only_after=tuple(name.name for key, name in after_by_key.items() if key not in before_by_key),
        retyped=tuple(
            name.name
            for key, name in after_by_key.items()
            if key in before_by_key and before_by_key[key].type != name.type
        ),
    )


def _candidates(chunk: Chunk) -> Iterator[ShortText]:
    """Yield runs of sentences of one paragraph, each as long as allowed, without overlap."""
    is_dense = len(chunk.text.encode()) > DENSE_BYTES_PER_CHARACTER * len(chunk.text)
    min_length, max_length = (MIN_LENGTH // 3, MAX_LENGTH // 3) if is_dense else (MIN_LENGTH, MAX_LENGTH)
    run_start = run_end = 0
    for start, end in sentence_spans(chunk.text):
        if end - run_start > max_length or "\n\n" in chunk.text[run_end:start]:
            if run_end - run_start >= min_length:
                yield ShortText(chunk.text[run_start:run_end], chunk)
            run_start = start
        run_end = end
    if min_length <= run_end - run_start <= max_length:
        yield ShortText(chunk.text[run_start:run_end], chunk)


def _n_mentions(text: ShortText) -> int:
    """Return how many entities, and twice how many relations, rules find in a text."""
    extraction = extract_chunk(ChunkInput(text=text.text))
    return len(extraction.entities) + 2 * len(extraction.relations)


def _outcome(result: ExtractionResult) -> ExtractionOutcome:
    extraction = result.extraction or Extraction()
    return ExtractionOutcome(
        entities=tuple(_names_by_key(result).values()), n_relations=len(extraction.relations), error=result.error
    )


def _names_by_key(result: ExtractionResult) -> dict[str, TypedName]:
    extraction = result.extraction or Extraction()
    return {entity_key(entity.name): TypedName(name=entity.name, type=entity.type) for entity in extraction.entities}
