"""Asking: the outcome for every chunk of a group, from kept replies or from the extractor."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from typing import Protocol

from quipu.errors import Corrupt, OverBudget, QuipuError, Unavailable
from quipu.ingest.keeper import ReplyKeeper
from quipu.ingest.reading import extractor_input
from quipu.ingest.reply import from_payload, to_payload
from quipu.model.delta import ExtractionReply
from quipu.model.extraction import ChunkInput
from quipu.model.graph import Chunk
from quipu.ports.ingest import ExtractionResult, Extractor
from quipu.ports.store import Store


class OnOutcome(Protocol):
    """Is told of each input that has an outcome: for how many chunks, and whether it was asked for now."""

    def __call__(self, n_chunks: int, *, is_new: bool) -> None: ...


@dataclass(slots=True)
class Asked:
    """The inputs of a group of chunks by hash, equal ones once, and their outcomes as far as they are known.

    `n_extracted` inputs were read for the first chunk that has each; for `n_equal` others that was known then.
    Of a sample the replies are kept for no document: none is added.
    """

    chunks_by_hash: dict[str, list[Chunk]]
    job_by_document: Mapping[str, int] = field(default_factory=dict)
    outcomes: dict[str, ExtractionResult] = field(default_factory=dict)
    n_extracted: int = 0
    n_equal: int = 0
    n_dropped: int = 0
    is_sample: bool = False

    @classmethod
    def of(cls, chunks: Iterable[Chunk], job_by_document: Mapping[str, int] | None = None) -> "Asked":
        """Return what has to be known of these chunks."""
        chunks_by_hash: dict[str, list[Chunk]] = {}
        for chunk in chunks:
            chunks_by_hash.setdefault(chunk.input_hash, []).append(chunk)
        return cls(chunks_by_hash, job_by_document or {})

    @property
    def missing(self) -> list[str]:
        """The hashes of inputs without an outcome, in order."""
        return [input_hash for input_hash in self.chunks_by_hash if input_hash not in self.outcomes]

    def answers(self, chunks: Sequence[Chunk]) -> bool:
        """Say whether all these chunks have an outcome."""
        return all(chunk.input_hash in self.outcomes for chunk in chunks)

    def is_over(self, superseded: Collection[str]) -> bool:
        """Say whether only these documents wait for an outcome: then nobody does."""
        waiting = (chunk.document_id for input_hash in self.missing for chunk in self.chunks_by_hash[input_hash])
        return bool(superseded) and all(document in superseded for document in waiting)

    def take(self, input_hash: str, outcome: ExtractionResult) -> Iterator[ExtractionReply]:
        """Note an outcome that is new; return the replies to keep of it."""
        self.outcomes[input_hash] = outcome
        self.n_dropped += outcome.n_dropped
        if outcome.extraction is None or outcome.error:
            return iter(())
        self.n_extracted += 1
        self.n_equal += len(self.chunks_by_hash[input_hash]) - 1
        return self._replies(input_hash, to_payload(outcome.extraction))

    def _replies(self, input_hash: str, payload: str) -> Iterator[ExtractionReply]:
        documents = () if self.is_sample else (chunk.document_id for chunk in self.chunks_by_hash[input_hash])
        for document in dict.fromkeys(documents) or ("",):
            job = self.job_by_document.get(document)
            yield ExtractionReply(input_hash=input_hash, document_id=document, payload=payload, job=job)

    async def reuse(self, store: Store, on_outcome: OnOutcome) -> int:
        """Take the outcomes that are kept from before; return for how many chunks."""
        n_reused = 0
        for input_hash, payload in (await store.replies(list(self.chunks_by_hash))).items():
            with suppress(Corrupt):  # a damaged reply is asked for again
                self.outcomes[input_hash] = ExtractionResult(index=0, extraction=from_payload(payload))
                n_reused += len(self.chunks_by_hash[input_hash])
        on_outcome(n_reused, is_new=False)
        return n_reused


async def ask(asked: Asked, store: Store, extractor: Extractor, on_outcome: OnOutcome) -> QuipuError | None:
    """Have what is missing extracted, each reply kept as it comes; return why the extractor stopped before its end.

    Where it stopped, the work is interrupted, or nobody waits for the rest any more, some inputs stay without outcome.
    Where it failed by a fault of its own, they have that for their error: what it has answered is not lost.
    """
    missing = asked.missing
    inputs = [_input(asked.chunks_by_hash[input_hash]) for input_hash in missing]
    error = "The extractor gave no answer for this chunk."
    async with ReplyKeeper(store) as keeper, aclosing(extractor.extract(inputs)) as outcomes:
        while not asked.is_over(keeper.superseded):
            try:
                outcome = await anext(outcomes, None)
            except (OverBudget, Unavailable) as stopped:
                return stopped
            except QuipuError:
                raise
            except Exception as failure:
                error = f"The extractor failed: {type(failure).__name__}: {failure}"
                break
            if outcome is None:
                break
            keeper.put(asked.take(missing[outcome.index], outcome))
            on_outcome(len(asked.chunks_by_hash[missing[outcome.index]]), is_new=True)
        else:
            return None
    for input_hash in asked.missing:
        asked.outcomes[input_hash] = ExtractionResult(index=0, extraction=None, error=error)
    return None


def _input(chunks: Sequence[Chunk]) -> ChunkInput:
    """Return what the extractor sees of equal chunks, for the documents that hold them."""
    documents = tuple(dict.fromkeys(chunk.document_id for chunk in chunks))
    return replace(extractor_input(chunks[0]), documents=documents)
