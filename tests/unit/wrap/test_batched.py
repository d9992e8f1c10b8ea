"""Texts go to an embedder one request at a time."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

from quipu.errors import Overloaded, TooLong
from quipu.wrap.batched import BatchedEmbedder, BatchingEmbedder
from tests.unit.wrap.fakes import FakeEmbedder


class InPairs:
    """A service that takes two texts at a time."""

    def batches(self, texts: Sequence[str], *, is_query: bool) -> list[list[str]]:
        """Return them in pairs."""
        once = list(dict.fromkeys(texts))
        return [once[start : start + 2] for start in range(0, len(once), 2)]


async def test_each_batch_is_asked_for_by_itself_and_vectors_keep_the_order_of_the_texts() -> None:
    fake = FakeEmbedder()
    embedder = BatchedEmbedder(fake, InPairs())
    assert isinstance(InPairs(), BatchingEmbedder)
    vectors = await embedder.embed(["ccc", "a", "bb", "a"])
    assert vectors.tolist() == [[3, 1], [1, 1], [2, 1], [1, 1]]
    assert fake.asked == [("ccc", "a"), ("bb",)]
    assert (await embedder.embed_queries(["a"])).tolist() == [[1, 1]]
    assert fake.is_query == [False, False, True]
    assert (embedder.identity, embedder.dimension) == ("fake/embedder", 2)


async def test_no_text_is_no_request() -> None:
    fake = FakeEmbedder()
    assert (await BatchedEmbedder(fake, InPairs()).embed([])).shape == (0, 2)
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
    embedder = BatchedEmbedder(fake, InPairs())
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
    assert (await BatchedEmbedder(fake, InPairs()).embed(["bb", "ccc", "a"])).tolist() == [[2, 1], [3, 1], [1, 1]]
    assert sorted(fake.asked) == [("a",), ("bb",), ("bb", "ccc"), ("ccc",)]
    with pytest.raises(TooLong):
        await BatchedEmbedder(fake, InPairs()).embed(["a", "dddd"])
