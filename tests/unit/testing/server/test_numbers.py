"""Tests of embeddings and rerankers over HTTP."""

import base64
import math

import numpy as np
import pytest

from quipu.model.chat import TokenCount
from quipu.testing.scripted.model import embed_words
from quipu.testing.scripted.script import Fault, FaultName, RequestKind, Script, Service
from quipu.testing.server import ServerHandle
from tests.unit.testing.server.client import Client

TEXTS = ("Alice Kober taught classics", "Rain fell on the hills", "Alice Kober")


async def test_vectors_come_as_numbers_or_as_base64(client: Client) -> None:
    plain = (await client.embed(*TEXTS)).json()
    coded = (await client.embed(*TEXTS, encoding_format="base64")).json()
    expected = embed_words(TEXTS, 64)
    np.testing.assert_array_equal(np.array([row["embedding"] for row in plain["data"]], dtype=np.float32), expected)
    decoded = [np.frombuffer(base64.b64decode(row["embedding"]), dtype="<f4") for row in coded["data"]]
    np.testing.assert_array_equal(np.array(decoded), expected)
    assert [row["index"] for row in plain["data"]] == [0, 1, 2]
    assert plain["usage"] == {"prompt_tokens": 16, "total_tokens": 16}


async def test_the_dimension_is_the_scripts_or_the_requests(server: ServerHandle, client: Client) -> None:
    server.configure(Script(service=Service(dimension=100)))
    assert len((await client.embed("a")).json()["data"][0]["embedding"]) == 100
    assert len((await client.embed("a", dimensions=8)).json()["data"][0]["embedding"]) == 8
    single = await client.post("/embeddings", {"model": "m", "input": "a"})
    assert len(single.json()["data"]) == 1


async def test_empty_texts_and_too_many_are_refused(server: ServerHandle, client: Client) -> None:
    server.configure(Script(service=Service(max_inputs=2)))
    assert [(await client.embed(*texts)).status for texts in (("a", "b"), (), ("a", ""), ("a", "b", "c"))] == [
        200,
        400,
        400,
        400,
    ]


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        (FaultName.DIMENSION, (3, 65)),
        (FaultName.COUNT, (2, 64)),
        (FaultName.NAN, (3, 64)),
        (FaultName.SHUFFLED, (3, 64)),
    ],
)
async def test_vectors_may_be_broken(
    server: ServerHandle, client: Client, name: FaultName, shape: tuple[int, int]
) -> None:
    server.configure(Script(faults=(Fault(name=name),)))
    data = (await client.embed(*TEXTS)).json()["data"]
    assert np.array([row["embedding"] for row in data]).shape == shape
    assert any(math.isnan(number) for row in data for number in row["embedding"]) == (name is FaultName.NAN)
    assert ([row["index"] for row in data] == [2, 1, 0]) == (name is FaultName.SHUFFLED)


async def test_scores_come_best_first_in_the_shape_of_jina_and_cohere(server: ServerHandle, client: Client) -> None:
    body = {"model": "m", "query": "Who taught classics?", "documents": [TEXTS[1], {"text": TEXTS[0]}, TEXTS[2]]}
    for path in ("/v1/rerank", "/v2/rerank", "/rerank"):
        said = (await client.post(f"{server.address}{path}", {**body, "top_n": 2, "return_documents": True})).json()
        assert [(row["index"], row["document"]["text"]) for row in said["results"]] == [(1, TEXTS[0]), (0, TEXTS[1])]
        assert [row["relevance_score"] for row in said["results"]] == [pytest.approx(2 / 3), 0]
    assert server.stats().total(RequestKind.RERANK).n_completed == 3


async def test_scores_come_as_a_list_in_the_shape_of_tei(server: ServerHandle, client: Client) -> None:
    body = {"query": "Who taught classics?", "texts": list(TEXTS), "return_text": True}
    said = (await client.post(f"{server.address}/rerank", body)).json()
    assert [(row["index"], row["text"]) for row in said] == [(0, TEXTS[0]), (1, TEXTS[1]), (2, TEXTS[2])]


async def test_scores_may_be_broken(server: ServerHandle, client: Client) -> None:
    body = {"model": "m", "query": "classics", "documents": list(TEXTS)}
    results = {}
    for name in (FaultName.COUNT, FaultName.NAN, FaultName.SHUFFLED):
        server.configure(Script(faults=(Fault(name=name),)))
        said = (await client.post("/rerank", body)).json()["results"]
        results[name] = [(row["index"], row["relevance_score"]) for row in said]
    assert len(results[FaultName.COUNT]) == 2
    assert [index for index, score in results[FaultName.NAN] if math.isnan(score)] == [2]
    assert [index for index, _ in results[FaultName.SHUFFLED]] == [2, 1, 0]


async def test_embedding_is_counted(server: ServerHandle, client: Client) -> None:
    await client.embed(*TEXTS)
    await client.embed("a")
    total = server.stats().total(RequestKind.EMBED)
    assert (total.n_completed, total.tokens) == (2, TokenCount(input=17))
