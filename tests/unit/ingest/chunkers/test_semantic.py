"""Tests of the semantic chunker: sentence similarities, breaks at the drops, room on both sides, within budget."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quipu.ingest.chunkers import ChunkSpan, chunk_spans, semantic, sentences_to_compare
from quipu.ingest.chunkers.semantic import sentence_similarities
from quipu.model.chunking import SEMANTIC, Chunking
from quipu.model.document import ParsedDocument
from quipu.providers.local import WordLlamaEmbedder
from tests.unit.ingest.chunkers.texts import PIECES, Writer, assert_partition, count, parsed, plain, table

SHIP = "The ship left the harbour. The captain watched the sails. Sailors pulled ropes on deck. Waves hit the hull."
BREAD = "The bread was in the oven. The baker kneaded dough. Flour covered the kitchen table. Yeast made it rise."
COURT = "The judge opened the trial. A lawyer questioned a witness. The court heard the verdict. The jury agreed."


def cut(
    document: ParsedDocument, alike: Sequence[float], max_tokens: int | None = None, percentile: int | None = None
) -> list[ChunkSpan]:
    chunking = Chunking(method=SEMANTIC, max_tokens=max_tokens, percentile=percentile)
    return chunk_spans(document, chunking, count=count, similarities=alike)


@given(
    pieces=st.lists(st.sampled_from(PIECES), max_size=120),
    max_tokens=st.integers(1, 60),
    percentile=st.integers(1, 99),
    data=st.data(),
)
def test_chunks_are_a_partition_within_budget(
    pieces: list[str], max_tokens: int, percentile: int, data: st.DataObject
) -> None:
    document = parsed("".join(pieces))
    n_places = max(0, len(sentences_to_compare(document, Chunking(method=SEMANTIC))) - 1)
    alike = data.draw(st.lists(st.floats(-1, 1), min_size=n_places, max_size=n_places))
    spans = cut(document, alike, max_tokens, percentile)
    assert_partition(document.text, spans)
    assert all(count(document.text[span.start : span.end]) <= max_tokens for span in spans)
    assert spans == cut(document, alike, max_tokens, percentile)


async def test_a_text_is_cut_where_its_subject_changes() -> None:
    parts = [" ".join([subject] * 3) for subject in (SHIP, BREAD, COURT)]
    document = parsed(" ".join(parts))
    (alike,) = await sentence_similarities(
        [sentences_to_compare(document, Chunking(method=SEMANTIC))], WordLlamaEmbedder()
    )
    assert [document.text[span.start : span.end] for span in cut(document, alike)] != parts  # no room for breaks
    assert [document.text[span.start : span.end] for span in cut(document, alike, 200, 94)] == parts


def test_breaks_are_the_places_above_the_percentile_that_leave_room() -> None:
    said = [f"This is the sentence {number:03}." for number in range(200)]
    alike = [0.9] * 199
    for place in (49, 50, 119, 198):  # 50 is too near to 49, and 198 to the end
        alike[place] = 0.1
    document = parsed(" ".join(said))
    starts = [document.text[span.start : span.end].split(".")[0] for span in cut(document, alike, 1_200, 95)]
    assert starts == ["This is the sentence 000", starts[1], "This is the sentence 120"]
    assert starts[1] in ("This is the sentence 050", "This is the sentence 051")


def test_a_stretch_over_budget_is_cut_where_it_is_least_alike() -> None:
    said = [f"This is the sentence {number:03}." for number in range(60)]
    alike = [0.9] * 59
    alike[24] = 0.8
    document = parsed(" ".join(said))
    spans = cut(document, alike, 280, 99)
    assert document.text[spans[1].start :].startswith("This is the sentence 025")


def test_a_lower_percentile_gives_more_chunks() -> None:
    writer = Writer(1)
    document = parsed("\n\n".join(writer.paragraph() for _ in range(100)))
    n_places = len(sentences_to_compare(document, Chunking(method=SEMANTIC))) - 1
    alike = [(number * 7919 % 101) / 101 for number in range(n_places)]
    assert len(cut(document, alike, 600, 50)) > 1.5 * len(cut(document, alike, 600, 99))


def test_a_heading_stays_with_what_follows_it_and_a_header_is_repeated() -> None:
    document = parsed("\n\n".join(f"# Head {number}\n\nThe text under it says this." for number in range(60)))
    n_places = len(sentences_to_compare(document, Chunking(method=SEMANTIC))) - 1
    spans = cut(document, [0.0 if index % 2 == 0 else 0.9 for index in range(n_places)], 60, 50)
    assert all(not document.text[: span.end].split("\n")[-1].startswith("#") for span in spans)
    rows = table(100)
    spans = cut(rows, [0.5] * (len(sentences_to_compare(rows, Chunking(method=SEMANTIC))) - 1), 60)
    assert len(spans) > 5
    assert all(span.header == rows.blocks[0].header for span in spans[1:])


def test_similarities_of_another_text_are_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        cut(parsed("One thing. Another thing. A third."), [0.5])


def test_a_text_without_blocks_has_sentences_too() -> None:
    document = plain("One thing is here. Another thing is there. A third is not.")
    alike = [0.5] * (len(sentences_to_compare(document, Chunking(method=SEMANTIC))) - 1)
    assert len(alike) == 2
    assert_partition(document.text, cut(document, alike, 8))


def test_only_semantic_asks_for_sentences() -> None:
    document = parsed("One thing is here. Another thing is there.")
    assert sentences_to_compare(document, Chunking()) == []
    assert sentences_to_compare(document, Chunking(method=SEMANTIC)) == [
        "One thing is here.",
        "Another thing is there.",
    ]


class Letters:
    """Embeds a text as how often it holds a, b and c; keeps the sizes of its calls."""

    identity, dimension = "letters", 3

    def __init__(self) -> None:
        self.sizes: list[int] = []

    async def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        self.sizes.append(len(texts))
        rows = np.array([[text.count(letter) for letter in "abc"] for text in texts], dtype=np.float32)
        norms = np.sqrt((rows * rows).sum(axis=1, keepdims=True))
        return (rows / np.where(norms > 0, norms, 1)).astype(np.float32)

    async def embed_queries(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        return await self.embed(texts)


async def test_a_number_compares_three_sentences_before_with_three_after() -> None:
    found = await sentence_similarities([["a", "a", "a", "b", "b", "b", "b"]], Letters())
    assert found[0][2] == 0.0
    assert found[0][0] > found[0][1] > found[0][2] < found[0][3] < found[0][4]
    assert len(found[0]) == 6


async def test_documents_are_embedded_together_and_do_not_touch() -> None:
    documents = [["a", "b"], [], ["c"], ["b", "b", "a", "c"]]
    embedder = Letters()
    together = await sentence_similarities(documents, embedder)
    assert together == [(await sentence_similarities([each], Letters()))[0] for each in documents]
    assert [len(each) for each in together] == [1, 0, 0, 3]
    assert len(embedder.sizes) == 1


async def test_the_size_of_a_batch_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    documents = [["abc"[number * number % 3] * (1 + number % 4) + "c" for number in range(50)], ["a", "b"]]
    whole = await sentence_similarities(documents, Letters())
    for size in (1, 2, 7, 55):
        monkeypatch.setattr(semantic, "BATCH", size)
        embedder = Letters()
        assert await sentence_similarities(documents, embedder) == whole
        assert max(embedder.sizes) <= size


async def test_what_has_no_vector_is_no_change() -> None:
    assert await sentence_similarities([["***", "---", "a", "a"]], Letters()) == [[1.0, 1.0, 1.0]]


async def test_without_sentences_nothing_is_embedded() -> None:
    embedder = Letters()
    assert await sentence_similarities([[], []], embedder) == [[], []]
    assert embedder.sizes == []
