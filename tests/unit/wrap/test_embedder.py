"""The embedder decorator, and its layers for batches and for the vectors of questions."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

from quipu.errors import Overloaded, TooLong
from quipu.wrap.embedder import BatchingEmbedder, BatchLayer, QueryVectorCache, WrappedEmbedder
from tests.unit.wrap.fakes import FakeEmbedder


class InPairs:
    """A service that takes two texts at a time."""

    def batches(self, texts: Sequence[str], *, is_query: bool) -> list[list[str]]:
        """Return them in pairs."""
        once = list(dict.fromkeys(texts))
        return [once[start : start + 2] for start in range(0, len(once), 2)]


async def test_each_batch_is_asked_for_by_itself_and_vectors_keep_the_order_of_the_texts() -> None:
    fake = FakeEmbedder()
    embedder = WrappedEmbedder(fake, [BatchLayer(InPairs())])
    assert isinstance(InPairs(), BatchingEmbedder)
    vectors = await embedder.embed(["ccc", "a", "bb", "a"])
    assert vectors.tolist() == [[3, 1], [1, 1], [2, 1], [1, 1]]
    assert fake.asked == [("ccc", "a"), ("bb",)]
    assert (await embedder.embed_queries(["a"])).tolist() == [[1, 1]]
    assert fake.is_query == [False, False, True]
    assert (embedder.identity, embedder.dimension) == ("fake/embedder", 2)


async def test_no_text_is_no_request() -> None:
    fake = FakeEmbedder()
    assert (await WrappedEmbedder(fake, [BatchLayer(InPairs())]).embed([])).shape == (0, 2)
    assert fake.asked == []


class Choosy(FakeEmbedder):
    """An embedder that cannot embed a text the first time."""

    refused = "a"

    async def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return a vector for each text, or raise."""
        vectors = await super().embed(texts)
        if self.refused in texts:
            self.refused = ""
            raise Overloaded("Too busy.")
        return vectors


async def test_what_other_batches_gave_is_not_asked_for_again() -> None:
    fake = Choosy()
    embedder = WrappedEmbedder(fake, [BatchLayer(InPairs())])
    texts = ["a", "bb", "ccc"]
    with pytest.raises(Overloaded):
        await embedder.embed(texts)
    assert (await embedder.embed(texts)).tolist() == [[1, 1], [2, 1], [3, 1]]
    assert fake.asked == [("a", "bb"), ("ccc",), ("a", "bb")]


class Narrow(FakeEmbedder):
    """An embedder that takes so many letters at a time."""

    most = 3

    async def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return a vector for each text, or raise."""
        vectors = await super().embed(texts)
        if len("".join(texts)) > self.most:
            raise TooLong("Too many letters.")
        return vectors


async def test_a_batch_that_is_too_long_is_halved() -> None:
    fake = Narrow()
    assert (await WrappedEmbedder(fake, [BatchLayer(InPairs())]).embed(["bb", "ccc", "a"])).tolist() == [
        [2, 1],
        [3, 1],
        [1, 1],
    ]
    assert sorted(fake.asked) == [("a",), ("bb",), ("bb", "ccc"), ("ccc",)]
    with pytest.raises(TooLong):
        await WrappedEmbedder(fake, [BatchLayer(InPairs())]).embed(["a", "dddd"])


async def test_a_question_is_embedded_once() -> None:
    embedder = FakeEmbedder()
    remembered = WrappedEmbedder(embedder, [QueryVectorCache()])
    first = await remembered.embed_queries(["ab", "abc"])
    again = await remembered.embed_queries(["abc", "abcd", "ab", "abcd"])
    assert (first.tolist(), again.tolist()) == ([[2, 1], [3, 1]], [[3, 1], [4, 1], [2, 1], [4, 1]])
    assert again.dtype == np.float32
    assert embedder.asked == [("ab", "abc"), ("abcd",)]


async def test_passages_are_not_remembered() -> None:
    embedder = FakeEmbedder()
    remembered = WrappedEmbedder(embedder, [QueryVectorCache()])
    await remembered.embed(["ab"])
    await remembered.embed(["ab"])
    await remembered.embed_queries(["ab"])
    assert len(embedder.asked) == 3


async def test_what_was_asked_longest_ago_is_forgotten() -> None:
    embedder = FakeEmbedder()
    remembered = WrappedEmbedder(embedder, [QueryVectorCache(2)])
    for question in ("a", "b", "a", "c"):
        await remembered.embed_queries([question])
    embedder.asked.clear()
    await remembered.embed_queries(["a"])
    await remembered.embed_queries(["b"])
    assert embedder.asked == [("b",)]


async def test_more_questions_at_once_than_are_remembered_are_answered() -> None:
    remembered = WrappedEmbedder(FakeEmbedder(), [QueryVectorCache(1)])
    assert (await remembered.embed_queries(["a", "ab", "abc"])).tolist() == [[1, 1], [2, 1], [3, 1]]


async def test_no_questions_have_no_vectors() -> None:
    embedder = FakeEmbedder()
    assert (await WrappedEmbedder(embedder, [QueryVectorCache()]).embed_queries([])).shape == (0, 2)
    assert embedder.asked == []


async def test_a_cache_can_be_shared() -> None:
    embedder, cache = FakeEmbedder(), QueryVectorCache()
    await WrappedEmbedder(embedder, [cache]).embed_queries(["a"])
    await WrappedEmbedder(embedder, [cache]).embed_queries(["a"])
    assert len(embedder.asked) == 1
    assert (
        WrappedEmbedder(embedder, [QueryVectorCache()]).identity,
        WrappedEmbedder(embedder, [QueryVectorCache()]).dimension,
    ) == ("fake/embedder", 2)
