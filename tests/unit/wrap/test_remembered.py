"""Remembered: a question asked again costs nothing."""

import numpy as np

from quipu.wrap.remembered import Memory, RememberedEmbedder
from tests.unit.wrap.fakes import FakeEmbedder


async def test_a_question_is_embedded_once() -> None:
    embedder = FakeEmbedder()
    remembered = RememberedEmbedder(embedder)
    first = await remembered.embed_queries(["ab", "abc"])
    again = await remembered.embed_queries(["abc", "abcd", "ab", "abcd"])
    assert (first.tolist(), again.tolist()) == ([[2, 1], [3, 1]], [[3, 1], [4, 1], [2, 1], [4, 1]])
    assert again.dtype == np.float32
    assert embedder.asked == [("ab", "abc"), ("abcd",)]


async def test_passages_are_not_remembered() -> None:
    embedder = FakeEmbedder()
    remembered = RememberedEmbedder(embedder)
    await remembered.embed(["ab"])
    await remembered.embed(["ab"])
    await remembered.embed_queries(["ab"])
    assert len(embedder.asked) == 3


async def test_what_was_asked_longest_ago_is_forgotten() -> None:
    embedder = FakeEmbedder()
    remembered = RememberedEmbedder(embedder, max_questions=2)
    for question in ("a", "b", "a", "c"):
        await remembered.embed_queries([question])
    embedder.asked.clear()
    await remembered.embed_queries(["a"])
    await remembered.embed_queries(["b"])
    assert embedder.asked == [("b",)]


async def test_more_questions_at_once_than_are_remembered_are_answered() -> None:
    remembered = RememberedEmbedder(FakeEmbedder(), max_questions=1)
    assert (await remembered.embed_queries(["a", "ab", "abc"])).tolist() == [[1, 1], [2, 1], [3, 1]]


async def test_no_questions_have_no_vectors() -> None:
    embedder = FakeEmbedder()
    assert (await RememberedEmbedder(embedder).embed_queries([])).shape == (0, 2)
    assert embedder.asked == []


async def test_a_memory_can_be_shared() -> None:
    embedder, memory = FakeEmbedder(), Memory()
    await RememberedEmbedder(embedder, memory).embed_queries(["a"])
    await RememberedEmbedder(embedder, memory).embed_queries(["a"])
    assert len(embedder.asked) == 1
    assert (RememberedEmbedder(embedder).identity, RememberedEmbedder(embedder).dimension) == ("fake/embedder", 2)
