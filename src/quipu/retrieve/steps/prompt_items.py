"""Prompt items: reports and passages as texts for a model's prompt, within a number of tokens per call."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from quipu.algo.similarity import n_fitting
from quipu.model.chat import Message
from quipu.model.cluster import ClusterReport, report_text
from quipu.model.graph import Chunk, chunk_text
from quipu.model.ids import digest
from quipu.model.query import Query
from quipu.ports.providers import Tokenizer
from quipu.prompts.instructions import TitledText

CALL_TOKENS = 12_000  # of items in one call (Microsoft GraphRAG)
FRAME_TOKENS = 40  # for an item's number and the mark before it
MIN_FILL = 0.6  # of a batch that is followed by another


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptItem:
    """A report or chunk: its id, its title and text, and its cost in tokens."""

    id: str
    titled_text: TitledText
    n_tokens: int
    is_report: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSpace:
    """The number of tokens that items may use in one call, and the tokenizer that counts them."""

    n_tokens: int
    tokenizer: Tokenizer

    def fit_report(self, report: ClusterReport) -> PromptItem | None:
        """Return a report, without its last findings if it is too long for a call; None if its summary is too long."""
        for n_findings in range(len(report.findings), -1, -1):
            text = report_text(replace(report, title="", findings=report.findings[:n_findings]))
            prompt_item = self._measure(report.cluster, (report.title or report.cluster, text), is_report=True)
            if prompt_item.n_tokens <= self.n_tokens:
                return prompt_item
        return None

    def measure_chunk(self, chunk: Chunk) -> PromptItem:
        """Return a chunk with the title of its document."""
        return self._measure(chunk.id, (chunk.title, chunk_text("", chunk.header, chunk.text)))

    def _measure(self, identifier: str, titled_text: TitledText, *, is_report: bool = False) -> PromptItem:
        n_tokens = self.tokenizer.count("\n".join(titled_text)) + FRAME_TOKENS
        return PromptItem(id=identifier, titled_text=titled_text, n_tokens=n_tokens, is_report=is_report)


def prompt_space(query: Query, empty_prompt: Sequence[Message], tokenizer: Tokenizer) -> PromptSpace:
    """Return the space for items: `CALL_TOKENS`, or what `empty_prompt` leaves of the query's total if that is less."""
    n_used = tokenizer.count("\n\n".join(message.text for message in empty_prompt))
    return PromptSpace(n_tokens=min(CALL_TOKENS, query.budget.total - n_used), tokenizer=tokenizer)


def split_into_batches(items: Sequence[PromptItem], n_tokens: int) -> list[list[PromptItem]]:
    """Return the items in their order, in batches of at most `n_tokens`; an item that is larger is a batch of its own.

    A batch ends at the position, among those where it is more than `MIN_FILL` full, that has the smallest hash of the
    item after it (content-defined chunking). So a changed item leaves most batches as they were, and their replies can
    be read from the reply cache. This takes about a sixth more batches than filling each one.
    """
    batches: list[list[PromptItem]] = []
    start = 0
    while start < len(items):
        end = start + max(_n_fitting(items, start, n_tokens), 1)
        if end < len(items):
            first = min(start + _n_fitting(items, start, int(MIN_FILL * n_tokens)) + 1, end)
            end = min(range(first, end + 1), key=lambda position: (digest("batch", items[position].id), position))
        batches.append(list(items[start:end]))
        start = end
    return batches


def first_that_fit(items: Sequence[PromptItem], n_tokens: int) -> list[PromptItem]:
    """Return as many of the items, counted from the first, as fit into `n_tokens`."""
    return list(items[: _n_fitting(items, 0, n_tokens)])


def _n_fitting(items: Sequence[PromptItem], start: int, n_tokens: int) -> int:
    return n_fitting((items[position].n_tokens for position in range(start, len(items))), n_tokens)
