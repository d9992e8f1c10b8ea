"""Shown: reports and passages as a model is shown them on the way to an answer, within so many tokens a call."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from quipu.algo.ranking import n_fitting
from quipu.model.chat import Message
from quipu.model.cluster import ClusterReport, report_text
from quipu.model.graph import Chunk, chunk_text
from quipu.model.ids import digest
from quipu.model.query import Query
from quipu.ports.providers import Tokenizer
from quipu.prompts.fence import TitledText

CALL_TOKENS = 12_000  # of material in one call (Microsoft GraphRAG)
FRAME_TOKENS = 40  # of a number and the mark before it
LEAST_FILLED = 0.6  # of a call, where another follows


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A report or chunk by its id, as title and text, and what it costs."""

    id: str
    item: TitledText
    n_tokens: int
    is_report: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """How many tokens of material a call may hold, beside its rules and question: `CALL_TOKENS`, or what is left."""

    n_tokens: int
    tokenizer: Tokenizer

    def report(self, report: ClusterReport) -> Shown | None:
        """Return a report, without its last findings where it would fill more than the call; None if that is vain."""
        for n_findings in range(len(report.findings), -1, -1):
            text = report_text(replace(report, title="", findings=report.findings[:n_findings]))
            shown = self._shown(report.cluster, (report.title or report.cluster, text), is_report=True)
            if shown.n_tokens <= self.n_tokens:
                return shown
        return None

    def chunk(self, chunk: Chunk) -> Shown:
        """Return a chunk under the title of its document."""
        return self._shown(chunk.id, (chunk.title, chunk_text("", chunk.header, chunk.text)))

    def _shown(self, identifier: str, item: TitledText, *, is_report: bool = False) -> Shown:
        n_tokens = self.tokenizer.count("\n".join(item)) + FRAME_TOKENS
        return Shown(id=identifier, item=item, n_tokens=n_tokens, is_report=is_report)


def room_of(query: Query, frame: Sequence[Message], tokenizer: Tokenizer) -> Room:
    """Return the room beside `frame`, the messages without any material, in the query's total."""
    spent = tokenizer.count("\n\n".join(message.text for message in frame))
    return Room(n_tokens=min(CALL_TOKENS, query.budget.total - spent), tokenizer=tokenizer)


def batches(shown: Sequence[Shown], n_tokens: int) -> list[list[Shown]]:
    """Return the items in their order, in runs that hold at most `n_tokens` each; one that is larger is alone.

    Of the places from which on a run is more than `LEAST_FILLED` full the one that the items' ids choose ends it
    (content-defined chunking). So one item that changes leaves most runs as they were, and what a model was paid to say
    of them; that takes a sixth more runs than to fill each.
    """
    runs: list[list[Shown]] = []
    place = 0
    while place < len(shown):
        end = place + max(_n_fitting(shown, place, n_tokens), 1)
        if end < len(shown):
            first = min(place + _n_fitting(shown, place, int(LEAST_FILLED * n_tokens)) + 1, end)
            end = min(range(first, end + 1), key=lambda at: (digest("batch", shown[at].id), at))
        runs.append(list(shown[place:end]))
        place = end
    return runs


def first_that_fit(shown: Sequence[Shown], n_tokens: int) -> list[Shown]:
    """Return as many of the items, from the first on, as `n_tokens` hold."""
    return list(shown[: _n_fitting(shown, 0, n_tokens)])


def _n_fitting(shown: Sequence[Shown], start: int, n_tokens: int) -> int:
    return n_fitting((shown[place].n_tokens for place in range(start, len(shown))), n_tokens)
