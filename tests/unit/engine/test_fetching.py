"""Tests of fetching: what a search embeds is asked for once, while no view is open as far as that comes to an end."""

from collections.abc import Sequence
from itertools import count

import numpy as np

from quipu.engine.fetching import MAX_FETCHES, FetchingEmbedder, Vectors, with_fetches


class Paid:
    """An embedder that notes what it is asked for."""

    identity, dimension = "paid", 2

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    async def embed(self, texts: Sequence[str]) -> Vectors:
        return await self.embed_queries(texts)

    async def embed_queries(self, texts: Sequence[str]) -> Vectors:
        self.asked.append(list(texts))
        return np.array([[len(text), 1] for text in texts], np.float32)


async def test_what_is_known_is_not_asked_for_again() -> None:
    paid = Paid()
    embedder = FetchingEmbedder(paid)

    async def search() -> Vectors:
        await embedder.embed_queries(["question"])
        return await embedder.embed_queries(["question", "title", "title"])

    assert (await with_fetches(search)).tolist() == [[8, 1], [5, 1], [5, 1]]
    assert paid.asked == [["question"], ["title"]]


async def test_a_search_that_asks_something_else_each_time_comes_to_an_end() -> None:
    paid = Paid()
    embedder, number = FetchingEmbedder(paid), count()

    async def search() -> Vectors:
        return await embedder.embed_queries([f"{next(number):2d}"])

    assert (await with_fetches(search)).tolist() == [[2, 1]]
    assert len(paid.asked) == MAX_FETCHES + 1
