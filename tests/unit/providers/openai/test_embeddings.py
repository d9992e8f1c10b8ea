"""An embedder against the scripted server and against one that sends raw bytes."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import pytest

from quipu.errors import Overloaded, Refused, TooLong, Unavailable
from quipu.model.chat import TokenCount
from quipu.providers.openai.catalog import InputType
from quipu.providers.openai.embeddings import (
    EmbeddingCapabilities,
    EmbeddingParameters,
    OpenAIEmbedder,
    is_batch_too_large,
    open_embedder,
    parse_vectors,
    split_into_windows,
    without_rejected_option,
    write_embedding_request,
)
from quipu.providers.openai.endpoint import Target
from quipu.providers.openai.reply import ErrorReply, ParsedReply, order_by_index, parse_reply, parse_token_count
from quipu.testing.scripted.script import Fault, FaultName, Script, Service
from quipu.testing.server import ServerHandle
from quipu.wrap.chain import EmbedderChain
from quipu.wrap.embedder import BatchingEmbedder, BatchLayer, WrappedEmbedder
from quipu.wrap.guard import Retry, RetryPolicy
from quipu.wrap.meter import Meter, ModelPricing
from quipu.wrap.metered_models import CountingEmbedder
from tests.unit.providers.openai.raw import Asked, answering, count, endpoint, failure, reply
from tests.unit.wrap.fakes import Shelf


@asynccontextmanager
async def embedding(
    url: str, provider: str = "vllm", model: str = "m", **parameters: Any
) -> AsyncIterator[OpenAIEmbedder]:
    where = endpoint(url, provider, total_s=2.0)
    given = EmbeddingParameters(**{"dimension": 64, **parameters})
    embedder = await open_embedder(where, model, count_tokens=count, parameters=given)
    try:
        yield embedder
    finally:
        await embedder.aclose()


def _script(*faults: Fault, **service: Any) -> Script:
    return Script(faults=faults, service=Service(**service))


def _answer(vector_of: Callable[[str], list[float]]) -> Callable[[Asked], bytes]:
    """Answer each text with its vector, and twenty tokens a request."""

    def answer(asked: Asked) -> bytes:
        texts = asked.fields["input"]
        assert isinstance(texts, list)
        data = [{"index": index, "embedding": vector_of(text)} for index, text in enumerate(texts)]
        return reply({"data": data, "usage": {"prompt_tokens": 20}})

    return answer


def _letters(text: str) -> list[float]:
    return [text.count("a"), text.count("b"), 1]


async def test_texts_become_unit_vectors_in_their_order(server: ServerHandle) -> None:
    server.configure(_script())
    texts = [f"text {n}" for n in range(150)]
    async with embedding(server.base_url, dimension=None) as embedder:
        together = await embedder.embed(texts)
        alone = np.concatenate([await embedder.embed([text]) for text in texts[:3]])
        assert isinstance(embedder, CountingEmbedder)
        assert isinstance(embedder, BatchingEmbedder)
    assert together.shape == (150, 64)
    assert together.dtype == np.float32
    assert np.abs(np.linalg.norm(together, axis=1) - 1).max() < 1e-6
    assert np.abs(together[:3] - alone).max() < 1e-6


async def test_blank_texts_are_zero_and_never_sent(server: ServerHandle) -> None:
    server.configure(_script())
    server.reset()
    async with embedding(server.base_url) as embedder:
        assert not (await embedder.embed(["", " \n"])).any()
        assert (await embedder.embed([])).shape == (0, 64)
    assert server.stats().requests == ()


async def test_the_same_text_is_sent_once() -> None:
    async with answering(_answer(_letters)) as raw, embedding(raw.url, dimension=3) as embedder:
        vectors = await embedder.embed(["ab", "b", "ab"])
    assert raw.posted("input") == [["ab", "b"]]
    assert np.array_equal(vectors[0], vectors[2])


async def test_a_dimension_nobody_knows_is_asked_for(server: ServerHandle) -> None:
    server.configure(_script(dimension=48))
    async with embedding(server.base_url, dimension=None) as embedder:
        assert embedder.dimension == 48


async def test_a_known_dimension_needs_no_call() -> None:
    async with embedding("http://127.0.0.1:9/v1", model="nomic-embed-text", dimension=None) as embedder:
        assert embedder.dimension == 768


async def test_a_dimension_that_is_set_is_asked_of_the_server(server: ServerHandle) -> None:
    server.configure(_script(dimension=64))
    async with embedding(server.base_url, dimension=32) as embedder:
        assert (await embedder.embed(["knots"])).shape == (1, 32)


async def test_what_a_server_rejects_is_not_sent_again(server: ServerHandle) -> None:
    server.configure(_script(rejects=("encoding_format", "dimensions"), dimension=64))
    async with embedding(server.base_url) as embedder:
        await embedder.embed(["knots"])
        server.reset()
        await embedder.embed(["cords"])
    assert len(server.stats().requests) == 1


async def test_a_batch_that_is_too_large_is_halved_from_then_on(server: ServerHandle) -> None:
    server.configure(_script(max_inputs=10))
    async with embedding(server.base_url) as embedder:
        with pytest.raises(TooLong):
            await embedder.embed([f"text {n}" for n in range(40)])
        batched = WrappedEmbedder(embedder, [BatchLayer(embedder)])
        assert (await batched.embed([f"text {n}" for n in range(40)])).any(axis=1).sum() == 40
        server.reset()
        await batched.embed([f"other {n}" for n in range(40)])
    assert {each.status for each in server.stats().requests} == {200}


async def test_batches_are_small_in_texts_and_tokens() -> None:
    async with answering(_answer(_letters)) as raw, embedding(raw.url, dimension=3, batch_texts=2) as embedder:
        await embedder.embed(["a", "b", "aa", "bb", "ab"])
        await embedder.embed(["a " * 1_500 + str(n) for n in range(20)])
    sizes = [len(texts) for texts in raw.posted("input") if isinstance(texts, list)]
    assert sizes[:3] == [2, 2, 1]
    assert max(sizes) == 2


async def test_a_long_text_is_the_mean_of_its_windows() -> None:
    async with answering(_answer(_letters)) as raw, embedding(raw.url, dimension=3, max_tokens=64) as embedder:
        (vector,) = await embedder.embed(["a " * 40 + "b " * 40])
    (texts,) = raw.posted("input")
    assert texts == [("a " * 40).strip(), ("b " * 40).strip()]
    parts = [np.array(_letters(text)) / np.linalg.norm(_letters(text)) for text in texts]
    mean = sum(parts) / np.linalg.norm(sum(parts))
    assert np.abs(vector - mean).max() < 1e-6


async def test_a_text_longer_than_the_server_reads_after_all_is_cut_again(server: ServerHandle) -> None:
    server.configure(_script(context_window=100))
    async with embedding(server.base_url, max_tokens=10_000) as embedder:
        vectors = await WrappedEmbedder(embedder, [BatchLayer(embedder)]).embed(["knots and cords " * 60, "short"])
    assert np.abs(np.linalg.norm(vectors, axis=1) - 1).max() < 1e-6


async def test_a_short_text_that_is_too_long_is_an_error() -> None:
    async with answering(failure(400, "maximum context length is 1 token")) as raw, embedding(raw.url) as embedder:
        with pytest.raises(TooLong):
            await embedder.embed(["knots"])


async def test_questions_and_passages_get_what_their_model_wants() -> None:
    async with answering(_answer(_letters)) as raw:
        async with embedding(raw.url, "ollama", "nomic-embed-text", dimension=3) as embedder:
            await embedder.embed(["knots"])
            await embedder.embed_queries(["knots"])
        async with embedding(raw.url, dimension=3, query_prefix="Q: ", passage_prefix="") as embedder:
            await embedder.embed_queries(["knots"])
    assert raw.posted("input") == [["search_document: knots"], ["search_query: knots"], ["Q: knots"]]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (FaultName.DIMENSION, "numbers where 64 were expected"),
        (FaultName.COUNT, "vectors for 1 text"),
        (FaultName.NAN, "vectors that are not finite numbers"),
        (FaultName.CUT_BODY, "ended too early"),
        (FaultName.RESET, "broke"),
        (FaultName.SERVER_ERROR, "answered 500"),
        (FaultName.TOO_MANY_REQUESTS, "answered 429"),
        (FaultName.ERROR_IN_200, "answered 200"),
    ],
)
async def test_every_fault_is_one_error(server: ServerHandle, name: FaultName, words: str) -> None:
    server.configure(_script(Fault(name=name)))
    async with embedding(server.base_url) as embedder:
        with pytest.raises(Overloaded, match=words):
            await embedder.embed(["knots"])


@pytest.mark.parametrize(
    ("name", "kind"),
    [(FaultName.QUOTA, Unavailable), (FaultName.NOT_JSON, Unavailable), (FaultName.BAD_REQUEST, Refused)],
)
async def test_what_does_not_pass_is_told_from_what_does(
    server: ServerHandle, name: FaultName, kind: type[Exception]
) -> None:
    server.configure(_script(Fault(name=name)))
    async with embedding(server.base_url) as embedder:
        with pytest.raises(kind):
            await embedder.embed(["knots"])


async def test_vectors_in_another_order_are_put_right(server: ServerHandle) -> None:
    texts = ["knots", "cords", "rain"]
    async with embedding(server.base_url) as embedder:
        server.configure(_script())
        straight = await embedder.embed(texts)
        server.configure(_script(Fault(name=FaultName.SHUFFLED)))
        assert np.array_equal(await embedder.embed(texts), straight)


async def test_each_request_is_counted_whatever_becomes_of_the_others(server: ServerHandle) -> None:
    server.configure(_script(Fault(name=FaultName.SERVER_ERROR, containing="cords", attempts=(1,)), max_inputs=2))
    server.reset()
    texts, meter = [f"{word} {n}" for word in ("knots", "cords", "rain") for n in range(4)], Meter()
    async with embedding(server.base_url, batch_texts=4) as embedder:
        retry, pricing = (
            Retry("m", RetryPolicy(max_wait_s=0.0)),
            ModelPricing(model="m", price=None, count_tokens=count),
        )
        chain = EmbedderChain(provider=embedder, pricing=pricing, save_usage=Shelf().record_call, guards=(retry,))
        vectors = await chain.embedder(meter).embed(texts)
    assert np.abs(np.linalg.norm(vectors, axis=1) - 1).max() < 1e-6
    completed = [each for each in server.stats().requests if each.is_completed]
    (row,) = meter.rows()
    assert (row.n_calls, row.tokens.input) == (len(completed), sum(each.tokens.input for each in completed))


async def test_batches_count_the_windows_of_long_texts() -> None:
    long = "a " * 80 + "b"
    async with answering(_answer(_letters)) as raw, embedding(raw.url, dimension=3, max_tokens=64, batch_texts=4) as it:
        batches = it.batches([long, f"{long} b", "a", "b"], is_query=False)
        for batch in batches:
            await it.embed(batch)
    assert len(raw.asked) == len(batches) == 2
    assert [text for batch in batches for text in batch] == [long, f"{long} b", "a", "b"]


async def test_a_call_after_which_nothing_will_be_answered_is_the_last() -> None:
    async with answering(failure(401, "no")) as raw, embedding(raw.url, batch_texts=1) as embedder:
        with pytest.raises(Unavailable):
            await embedder.embed(["a", "b", "c"])
    assert len(raw.asked) == 1


async def test_tokens_are_the_servers_or_else_our_own(server: ServerHandle) -> None:
    async with answering(_answer(_letters)) as raw, embedding(raw.url, dimension=3, batch_texts=1) as embedder:
        assert (await embedder.embed_counted(["a", "b"], is_query=True))[1] == TokenCount(input=40)
    server.configure(_script(reports_usage=False))
    async with embedding(server.base_url) as embedder:
        assert (await embedder.embed_counted(["three words here"], is_query=False))[1] == TokenCount(input=3)


async def test_a_server_that_fails_at_open_is_unavailable() -> None:
    for answer in (failure(500, "no"), failure(401, "no"), failure(400, "no")):
        async with answering(answer) as raw:
            with pytest.raises(Unavailable):
                await open_embedder(endpoint(raw.url), "m", count_tokens=count)


async def test_a_check_finds_another_dimension() -> None:
    async with answering(_answer(_letters)) as raw, embedding(raw.url, dimension=3) as embedder:
        await embedder.measure()
    short = (failure(400, "dimensions are not supported"), _answer(_letters))
    async with answering(*short) as raw, embedding(raw.url, dimension=5) as embedder:
        with pytest.raises(Unavailable, match=r"vectors of 3 numbers where 5 were expected.*embedder_dimension"):
            await embedder.measure()


async def test_calls_at_once_do_not_disturb_each_other(server: ServerHandle) -> None:
    server.configure(_script())
    async with embedding(server.base_url, batch_texts=3) as embedder:
        alone = [await embedder.embed([f"text {n}"]) for n in range(20)]
        again = await asyncio.gather(*(embedder.embed([f"text {n}", "knots", f"text {n}"]) for n in range(20)))
    assert all(np.abs(one[0] - many[2]).max() < 1e-6 for one, many in zip(alone, again, strict=True))


async def test_the_identity_changes_with_what_changes_vectors() -> None:
    async def identity(provider: str = "vllm", model: str = "m", **parameters: Any) -> str:
        async with embedding("", provider, model, **parameters) as embedder:
            return embedder.identity

    plain = await identity()
    assert plain.startswith("vllm/m/64/")
    assert plain == await identity(batch_texts=5)
    others = [
        await identity("ollama"),
        await identity(model="n"),
        await identity(dimension=32),
        await identity(query_prefix="Q: "),
        await identity(max_tokens=100),
    ]
    assert len({plain, *others}) == 6


KIND = InputType(parameter="input_type", query="query", passage="document")
TARGET = Target(endpoint=endpoint("http://gate.example/v1"), model="m")


def _said(body: object, status: int = 200) -> ParsedReply:
    return parse_reply(status, {}, json.dumps(body).encode())


def _data(*vectors: object, indices: tuple[object, ...] | None = None) -> ParsedReply:
    places = range(len(vectors)) if indices is None else indices
    return _said({"data": [{"index": at, "embedding": each} for at, each in zip(places, vectors, strict=True)]})


def test_a_request_asks_for_base64_and_tells_questions_from_passages() -> None:
    form = EmbeddingCapabilities(dimension=256)
    question = json.loads(write_embedding_request(["a"], TARGET, form, KIND, is_query=True))
    assert question == {
        "model": "m",
        "input": ["a"],
        "encoding_format": "base64",
        "dimensions": 256,
        "input_type": "query",
    }
    assert json.loads(write_embedding_request(["a"], TARGET, form, KIND, is_query=False))["input_type"] == "document"
    bare = write_embedding_request(
        ["a"], TARGET, EmbeddingCapabilities(is_base64=False, has_input_type=False), KIND, is_query=True
    )
    assert json.loads(bare) == {"model": "m", "input": ["a"]}


def test_voyage_has_another_name_for_the_dimension() -> None:
    voyage = Target(endpoint=endpoint("http://gate.example", "voyage"), model="m")
    assert "output_dimension" in json.loads(
        write_embedding_request(["a"], voyage, EmbeddingCapabilities(dimension=9), KIND, is_query=True)
    )


def test_lists_and_base64_are_read_alike_and_put_in_order() -> None:
    packed = base64.b64encode(np.array([3, 4], dtype="<f4").tobytes()).decode()
    vectors = parse_vectors(_data(packed, [1, 2], indices=(1, 0)), 2, 2, "m")
    assert vectors.dtype == np.float32
    assert vectors.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (_data([1, 2]), "1 vector for 2 texts"),
        (_data([1, 2], [1, 2], indices=(0, 0)), "2 vectors for 2 texts"),
        (_data([1, 2], [1, 2], indices=(0, 2)), "2 vectors for 2 texts"),
        (_data([1, 2], [1, 2, 3]), "vectors of 3 numbers where 2 were expected"),
        (_data([1, 2], "no base64!"), "vectors of 0 numbers where 2 were expected"),
        (_data([1, 2], None), "vectors of 0 numbers where 2 were expected"),
        (_data([1, 2], ["a", "b"]), "vectors of 0 numbers where 2 were expected"),
        (_data([1, 2], [1, float("nan")]), "vectors that are not finite numbers"),
        (_data([1, 2], [1, None]), "vectors that are not finite numbers"),
        (_data([1, 2], [1, 1e60]), "vectors that are not finite numbers"),
    ],
)
def test_what_was_not_asked_for_is_refused(said: ParsedReply, words: str) -> None:
    with pytest.raises(Overloaded, match=words) as caught:
        parse_vectors(said, 2, 2, "m")
    assert caught.value.may_cost


def test_what_is_no_answer_is_a_fault() -> None:
    bodies: tuple[object, ...] = ({"error": "no"}, {"data": None}, [], None)
    for body in bodies:
        with pytest.raises(ErrorReply):
            parse_vectors(_said(body), 1, 2, "m")


def test_a_vector_of_any_length_is_taken_where_none_is_known() -> None:
    assert parse_vectors(_data([1, 2, 3]), 1, 0, "m").shape == (1, 3)
    with pytest.raises(Overloaded, match="vectors of 0 numbers"):
        parse_vectors(_data([]), 1, 0, "m")


def test_results_without_indices_stand_as_they_were_asked_for() -> None:
    assert order_by_index([None, None], 2) == [0, 1]
    assert order_by_index([2, 0, 1], 3) == [1, 2, 0]
    assert order_by_index([0, None], 2) is None
    assert order_by_index([], 1) is None


@pytest.mark.parametrize(
    ("body", "n_tokens"),
    [
        ({"usage": {"prompt_tokens": 5, "total_tokens": 6}}, 5),
        ({"usage": {"total_tokens": 6}}, 6),
        ({"meta": {"billed_units": {"input_tokens": 7}}}, 7),
    ],
)
def test_what_a_service_has_read_is_found(body: object, n_tokens: int) -> None:
    assert parse_token_count(_said(body)) == TokenCount(input=n_tokens)
    assert parse_token_count(_said({"data": []})) is None
    assert parse_token_count(_said({"usage": {"prompt_tokens": 0}})) is None


@pytest.mark.parametrize(
    ("status", "message", "expected"),
    [
        (413, "Payload too large", True),
        (422, "batch size 64 > maximum allowed batch size 32", True),
        (400, "'$.input' is invalid: array too long, expected at most 2048", True),
        (400, "at most 100 requests can be in one batch", True),
        (400, "This model's maximum context length is 8192 tokens", True),
        (429, "too many inputs", False),
        (400, "Unknown model", False),
    ],
)
def test_too_much_at_once_is_told_from_other_errors(status: int, message: str, expected: bool) -> None:
    assert is_batch_too_large(_said({"error": {"message": message}}, status)) is expected


@pytest.mark.parametrize(
    ("message", "form"),
    [
        ("encoding_format 'base64' is not supported", EmbeddingCapabilities(is_base64=False, dimension=9)),
        ("This model does not support specifying dimensions.", EmbeddingCapabilities()),
        ("Model does not support matryoshka representation", EmbeddingCapabilities()),
        ("input_type: extra fields not permitted", EmbeddingCapabilities(dimension=9, has_input_type=False)),
    ],
)
def test_what_a_server_rejects_by_name_is_left_out(message: str, form: EmbeddingCapabilities) -> None:
    said = _said({"error": {"message": message}}, 400)
    assert without_rejected_option(EmbeddingCapabilities(dimension=9), said, TARGET, KIND) == form
    assert without_rejected_option(form, said, TARGET, KIND) is None


def test_another_error_changes_nothing() -> None:
    assert without_rejected_option(EmbeddingCapabilities(), _said({"error": "no"}, 400), TARGET, KIND) is None
    assert without_rejected_option(EmbeddingCapabilities(), _said({"error": "base64"}, 500), TARGET, KIND) is None


def test_a_long_text_is_cut_evenly_at_spaces() -> None:
    text = "knots and cords " * 100
    pieces = split_into_windows(text, 4)
    assert len(pieces) == 4
    assert " ".join(pieces) == text.strip()
    assert max(map(len, pieces)) - min(map(len, pieces)) < 20
    assert split_into_windows("x" * 10, 2) == ["xxxxx", "xxxxx"]
    assert split_into_windows("x" + " " * 50, 3) == ["x"]
