"""Estimates: chunks are counted, the rest is measured or typical."""

from dataclasses import replace
from pathlib import Path

from quipu.ingest.estimate import DocumentSurvey, MeasuredUsage, estimate_cost, sample_chunks, survey_documents
from quipu.ingest.local import LocalExtractor
from quipu.ingest.sources import FoundSource, text_source
from quipu.model.chat import TokenCount
from quipu.model.document import SourceDocument
from quipu.model.event import ignore_event
from quipu.model.extraction import ChunkInput
from quipu.model.graph import Chunk
from quipu.model.usage import Price, Stage, UsageRow
from tests.laws.world import INGEST_CONFIG, engine

PROMPT = 900


class CostlyExtractor(LocalExtractor):
    """Says that each chunk is sent under a long prompt."""

    def n_tokens_sent(self, chunk: ChunkInput) -> int:
        """Return a prompt's tokens."""
        return PROMPT


def _text(n: int) -> str:
    return "\n\n".join(f"Chapter {i}. Traveller{i} Jones crossed River{i} Delta with salt and silk." for i in range(n))


def _chunk(input_hash: str, n_tokens: int) -> Chunk:
    return Chunk(
        id=input_hash,
        document_id="a",
        title="",
        ordinal=0,
        text="x",
        start=0,
        end=1,
        n_tokens=n_tokens,
        text_hash="",
        input_hash=input_hash,
    )


def _found(*n_tokens: int) -> DocumentSurvey:
    unread = {f"{i:02}": _chunk(f"{i:02}", n) for i, n in enumerate(n_tokens)}
    return DocumentSurvey(n_documents=1, n_chunks=len(unread), unread=unread)


def _row(subject: str, n_calls: int, n_in: int, n_out: int) -> UsageRow:
    tokens = TokenCount(input=n_in, output=n_out)
    return UsageRow(day="2026-11-21", stage=Stage.EXTRACT, model="m", subject=subject, n_calls=n_calls, tokens=tokens)


async def test_a_survey_counts_only_what_would_be_read_and_changes_nothing(tmp_path: Path) -> None:
    old, new = (text_source(_text(n), id=name) for n, name in ((3, "old.md"), (6, "new.md")))
    async with engine(tmp_path) as kb:
        await kb.add(old)
        revision = (await kb.status()).revision
        copy = SourceDocument(id="copy.md", content=old.content, media_type=old.media_type)
        bad = SourceDocument(id="bad.txt", content=b"\0")
        sources: list[FoundSource] = [old, new, copy, bad]
        found = await survey_documents(iter(sources), kb._store, INGEST_CONFIG, ignore_event)
        assert (found.n_documents, found.n_unchanged, found.n_unreadable) == (2, 1, 1)
        known = len((await kb.document("old.md")).chunks)
        assert known <= found.n_chunks - len(found.unread) < found.n_chunks  # the copy's at least
        assert (await kb.status()).revision == revision
        assert [document.id for document in await kb.documents()] == ["old.md"]


def test_typical_figures_give_a_wide_range() -> None:
    found = _found(1_000, 200)
    ingest_config = replace(INGEST_CONFIG, extractor=CostlyExtractor())
    told = estimate_cost(found, ingest_config, model="m", price=Price(input=1, output=10), concurrency=4, measured=None)
    assert told.n_to_read == 2
    assert (told.calls.low, told.calls.high) == (2, 4)
    assert told.input_tokens.low == 2 * PROMPT
    assert told.output_tokens.likely == 0.6 * 1_200
    assert told.cost is not None
    assert told.cost.likely == told.input_tokens.likely + 10 * told.output_tokens.likely
    assert "typical" in told.basis


def test_measured_figures_scale_with_the_text_and_their_range_with_their_spread() -> None:
    found = _found(*[500] * 10)
    measured = MeasuredUsage(
        rows=[_row("a", 4, 4_000, 800), _row("b", 4, 4_400, 1_200), _row("gone", 9, 9, 9)],
        size_by_subject={"a": (2, 1_000), "b": (2, 1_000)},
        seconds_a_call=3.0,
        basis="4 chunks of this index",
    )
    told = estimate_cost(found, INGEST_CONFIG, model="m", price=None, concurrency=5, measured=measured)
    assert told.calls.likely == 20
    assert told.input_tokens.likely == 4.2 * 5_000
    assert told.output_tokens.likely == 1.0 * 5_000
    assert told.calls.high == 20 * 1.05  # both documents needed two calls a chunk
    assert told.output_tokens.high > 1.2 * told.output_tokens.likely  # they differ widely
    assert told.seconds.likely == 20 * 3 / 5
    assert (told.cost, told.basis) == (None, "4 chunks of this index")


def test_what_was_measured_on_one_document_is_given_with_care() -> None:
    measured = MeasuredUsage(
        rows=[_row("a", 2, 2_000, 600)], size_by_subject={"a": (2, 1_000)}, seconds_a_call=None, basis="2 chunks"
    )
    told = estimate_cost(_found(1_000), INGEST_CONFIG, model="m", price=None, concurrency=1, measured=measured)
    assert (round(told.output_tokens.low), round(told.output_tokens.high)) == (420, 780)


def test_a_sample_is_the_same_each_time() -> None:
    assert [each.input_hash for each in sample_chunks(_found(1, 2, 3), 2)] == ["00", "01"]
    assert len(sample_chunks(_found(1), 5)) == 1
