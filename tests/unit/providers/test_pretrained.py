"""The embedder over any encoder."""

import asyncio

import numpy as np
import numpy.typing as npt
import pytest

from quipu.errors import Unavailable
from quipu.providers.pretrained import Prefixes, PretrainedEmbedder, prefixes_of
from tests.unit.providers.pretrained_fakes import vector_of


class _Encoder:
    identity = "fake/model"

    def __init__(self, factor: float = 1.0) -> None:
        self.factor = factor
        self.n_at_once = self.most_at_once = 0

    def passages(self, texts: list[str]) -> npt.NDArray[np.float32]:
        self.n_at_once += 1
        self.most_at_once = max(self.most_at_once, self.n_at_once)
        vectors = np.stack([vector_of(text) for text in texts]) * np.float32(self.factor)
        self.n_at_once -= 1
        return vectors

    def queries(self, texts: list[str]) -> npt.NDArray[np.float32]:
        return -self.passages(texts)


async def test_the_dimension_is_that_of_the_models_vectors() -> None:
    embedder = PretrainedEmbedder(_Encoder())
    assert embedder.dimension == 3
    assert embedder.identity == "fake/model/1"
    assert (await embedder.embed([])).shape == (0, 3)


async def test_vectors_have_length_one_and_blank_texts_none() -> None:
    vectors = await PretrainedEmbedder(_Encoder()).embed(["knots", "", " \n", "\ud83e"])
    assert vectors.dtype == np.float32
    assert np.abs(np.linalg.norm(vectors, axis=1) - [1, 0, 0, 1]).max() < 1e-6


async def test_many_texts_keep_their_order() -> None:
    embedder = PretrainedEmbedder(_Encoder())
    texts = ["knot" * n for n in range(1, 100)]
    alone = np.concatenate([await embedder.embed([text]) for text in texts])
    assert np.array_equal(await embedder.embed(texts), alone)
    assert np.array_equal(await embedder.embed_queries(texts), -alone)


async def test_the_model_is_asked_by_one_caller_at_a_time() -> None:
    encoder = _Encoder()
    embedder = PretrainedEmbedder(encoder)
    await asyncio.gather(*(embedder.embed(["knot"] * 100) for _ in range(4)))
    assert encoder.most_at_once == 1


async def test_vectors_that_are_no_numbers_are_refused() -> None:
    embedder = PretrainedEmbedder(_Encoder(float("nan")))
    with pytest.raises(Unavailable, match="fake/model"):
        await embedder.embed(["knots"])


@pytest.mark.parametrize(
    "model", ["intfloat/multilingual-e5-small", "e5-base-v2", "/models/E5_large", "intfloat/e5-small"]
)
def test_e5_tells_questions_from_passages(model: str) -> None:
    assert prefixes_of(model) == Prefixes(query="query: ", passage="passage: ")


@pytest.mark.parametrize(
    "model", ["paraphrase-multilingual-MiniLM-L12-v2", "sentence-transformers/gtr-t5-base", "made5-x"]
)
def test_other_models_do_not(model: str) -> None:
    assert prefixes_of(model) == Prefixes()
