"""Passages: excerpts of a sample for a prompt, and short texts full of names that can serve as examples."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from quipu.ingest.llm.grounding import GroundingText
from quipu.ingest.local.extraction import extract_chunk
from quipu.model.extraction import ChunkInput, Extraction, ExtractionExample
from quipu.model.graph import Chunk
from quipu.model.ids import digest
from quipu.ports.providers import Tokenizer
from quipu.prompts.tuning import SampleText
from quipu.text.languages import languages_differ
from quipu.text.names import entity_key
from quipu.text.sentences import sentence_spans

MAX_EXAMPLES = 2
LEAST, MOST = 100, 500  # characters of a short text; a third in scripts whose characters are words
MAX_ENTITIES, MAX_RELATIONS = 6, 5  # of an example
LEAST_ENTITIES = 2
BYTES_OF_DENSE = 2.5  # for each character, of a text whose characters are words or halves of words


@dataclass(frozen=True, slots=True)
class ShortText:
    """Some sentences of a chunk in a row."""

    text: str
    chunk: Chunk


def excerpts(chunks: Sequence[Chunk], max_tokens: int, tokenizer: Tokenizer) -> list[SampleText]:
    """Return the beginning of each chunk, to the end of a sentence; all together have at most `max_tokens` tokens."""
    room = max_tokens // max(len(chunks), 1)
    return [
        SampleText(text=_beginning(chunk.text, room, tokenizer), title=chunk.title, headings=chunk.headings)
        for chunk in chunks
    ]


def short_texts(chunks: Sequence[Chunk], n: int) -> list[ShortText]:
    """Return the n short texts that rules find most names and relations in, each of another document if there are.

    Those in the language most chunks are in come first.
    """
    usual = max((each.text for each in chunks), key=lambda text: (_n_alike(text, chunks), digest(text)), default="")
    found = [(_n_found(each), each) for chunk in chunks for each in _candidates(chunk)]
    found = [each for each in found if each[0]]
    found.sort(key=lambda each: (languages_differ(each[1].text, usual), -each[0], digest(each[1].text)))
    best: dict[str, ShortText] = {}
    for _, each in found:
        best.setdefault(each.chunk.document_id, each)
    others = [each for _, each in found if each not in best.values()]
    return [*best.values(), *others][:n]


def example_of(text: str, extraction: Extraction) -> ExtractionExample | None:
    """Return an extraction as an example, with what the text bears out word by word; None where too little is left."""
    grounds = GroundingText(ChunkInput(text=text))
    held = (each for each in extraction.entities if grounds.contains_all_words(each.name))
    entities = [replace(each, start=0, end=0) for each in islice(held, MAX_ENTITIES)]
    keys = {entity_key(each.name) for each in entities}
    relations = [each for each in extraction.relations if {entity_key(each.source), entity_key(each.target)} <= keys][
        :MAX_RELATIONS
    ]
    if len(entities) < LEAST_ENTITIES or not relations:
        return None
    return ExtractionExample(text=text, entities=tuple(entities), relations=tuple(relations))


def _beginning(text: str, room: int, tokenizer: Tokenizer) -> str:
    if tokenizer.count(text) <= room:
        return text
    taken = 0
    for _, end in sentence_spans(text):
        if tokenizer.count(text[:end]) > room:
            break
        taken = end
    return text[:taken] or text[: max(1, room * len(text) // tokenizer.count(text))]


def _candidates(chunk: Chunk) -> Iterator[ShortText]:
    """Yield runs of sentences without a break between them, as long as they may be, none overlapping another."""
    is_dense = len(chunk.text.encode()) > BYTES_OF_DENSE * len(chunk.text)
    least, most = (LEAST // 3, MOST // 3) if is_dense else (LEAST, MOST)
    run_start = run_end = 0
    for start, end in sentence_spans(chunk.text):
        if end - run_start > most or "\n\n" in chunk.text[run_end:start]:
            if run_end - run_start >= least:
                yield ShortText(chunk.text[run_start:run_end], chunk)
            run_start = start
        run_end = end
    if least <= run_end - run_start <= most:
        yield ShortText(chunk.text[run_start:run_end], chunk)


def _n_alike(text: str, chunks: Sequence[Chunk]) -> int:
    """Return how many of the chunks are in the language of a text."""
    return sum(not languages_differ(text, chunk.text) for chunk in chunks)


def _n_found(each: ShortText) -> int:
    found = extract_chunk(ChunkInput(text=each.text))
    return len(found.entities) + 2 * len(found.relations)
