"""Tests of likeness: what each number compares, that documents do not touch, and how much is held at once."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

from quipu.ingest import likeness
from quipu.ingest.likeness import similarities


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
    found = await similarities([["a", "a", "a", "b", "b", "b", "b"]], Letters())
    assert found[0][2] == 0.0
    assert found[0][0] > found[0][1] > found[0][2] < found[0][3] < found[0][4]
    assert len(found[0]) == 6


async def test_documents_are_embedded_together_and_do_not_touch() -> None:
    documents = [["a", "b"], [], ["c"], ["b", "b", "a", "c"]]
    embedder = Letters()
    together = await similarities(documents, embedder)
    assert together == [(await similarities([each], Letters()))[0] for each in documents]
    assert [len(each) for each in together] == [1, 0, 0, 3]
    assert len(embedder.sizes) == 1


async def test_the_size_of_a_batch_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    documents = [["abc"[number * number % 3] * (1 + number % 4) + "c" for number in range(50)], ["a", "b"]]
    whole = await similarities(documents, Letters())
    for size in (1, 2, 7, 55):
        monkeypatch.setattr(likeness, "BATCH", size)
        embedder = Letters()
        assert await similarities(documents, embedder) == whole
        assert max(embedder.sizes) <= size


async def test_what_has_no_vector_is_no_change() -> None:
    assert await similarities([["***", "---", "a", "a"]], Letters()) == [[1.0, 1.0, 1.0]]


async def test_without_sentences_nothing_is_embedded() -> None:
    embedder = Letters()
    assert await similarities([[], []], embedder) == [[], []]
    assert embedder.sizes == []
