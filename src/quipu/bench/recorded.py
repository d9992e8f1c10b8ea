"""Recorded: a language model's extraction of a data set, as it was published, in place of the model."""

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

from pydantic import BaseModel, ValidationError

from quipu.errors import InvalidInput
from quipu.model.extraction import ChunkInput, Extraction, FoundEntity, FoundRelation
from quipu.model.graph import OTHER_TYPE
from quipu.ports.extractor import Extracted

FILE = "extraction.jsonl"


class _Record(BaseModel):
    passage_id: str
    entities: list[str] = []
    triples: list[list[str]] = []


class RecordedExtractor:
    """Answers with the recorded names and triples of the passage a chunk is of.

    Of a passage in several chunks each gets what its text holds. A triple is a relation: its middle the keyword, all
    of it the description; one that has not three parts is left out.
    """

    identity = "recorded/1"
    description = "a recorded language model"
    n_ahead = 0

    def __init__(self, record_by_passage: dict[str, _Record]) -> None:
        self._record_by_passage = record_by_passage

    def n_tokens_sent(self, chunk: ChunkInput) -> int:
        """Return 0: no model is asked."""
        return 0

    async def check(self) -> None:
        """Return: what is recorded is there."""

    async def extract(self, inputs: Sequence[ChunkInput]) -> AsyncGenerator[Extracted, None]:
        """Yield what is recorded for each chunk, in order."""
        for index, chunk in enumerate(inputs):
            record = self._record_by_passage.get(chunk.documents[0])
            yield Extracted(index=index, extraction=_extraction(record, chunk) if record else Extraction())


def read_recorded(folder: Path) -> RecordedExtractor | None:
    """Return the extractor of a data set's folder, None where none is recorded.

    Raises InvalidInput naming the line that is no record.
    """
    path = folder / FILE
    if not path.is_file():
        return None
    records: dict[str, _Record] = {}
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                record = _Record.model_validate_json(line)
            except ValidationError:  # other sets record other things
                if number == 1:
                    return None
                raise InvalidInput(f"{path}, line {number}: no record of a passage.") from None
            records[record.passage_id] = record
    return RecordedExtractor(records)


def _extraction(record: _Record, chunk: ChunkInput) -> Extraction:
    text = f"{chunk.title}\n{chunk.text}".casefold()
    names = [name for name in dict.fromkeys(record.entities) if name.casefold() in text]
    triples = [triple for triple in record.triples if len(triple) == 3]
    return Extraction(
        entities=tuple(_entity(name, chunk.text) for name in names),
        relations=tuple(
            FoundRelation(source=source, target=target, keywords=(how,), description=f"{source} {how} {target}")
            for source, how, target in triples
            if source.casefold() in text or target.casefold() in text
        ),
    )


def _entity(name: str, text: str) -> FoundEntity:
    start = text.find(name)
    found = (start, start + len(name)) if start >= 0 else (0, 0)
    return FoundEntity(name=name, type=OTHER_TYPE, start=found[0], end=found[1])
